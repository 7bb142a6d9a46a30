"""Tests of attacks that need no root: hostile study files, damaged journals, simulated race conditions."""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fslab.campaign import cleanup, launch
from fslab.campaign import undo_journal as journals
from fslab.campaign.observer import Observer
from fslab.campaign.trial_loop import run_campaign
from fslab.campaign.undo_journal import CampaignJournal, JournalEntry, default_directory, parse
from fslab.errors import (
    BusyError,
    FslabError,
    InterruptedBySignal,
    NoSpaceError,
    ToolFailedError,
    UnsafeError,
)
from fslab.machine import _settings, facts, tuning
from fslab.plan.expand import expand
from fslab.storage import images, overwrite_check
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.study import load
from fslab.system import files, loop_devices, paths, proc
from fslab.workloads import REGISTRY as WORKLOADS
from fslab.workloads import Job

STUDY = """
title: t
media: {{m: {{type: directory, path: {path}}}}}
stacks: {{s: {{medium: m}}}}
workloads: {{w: {{tool: dd, op: write, count: 1}}}}
"""


@pytest.mark.parametrize(
    ("filesystem", "options"),
    [
        ("xfs", "-llogdev=precious"),
        ("xfs", "-l logdev=precious"),
        ("xfs", "-lname=precious"),
        ("xfs", "-lsize=8m,logdev=precious"),
        ("xfs", "-dname=precious"),
        ("ext4", "-Jdevice=LABEL=precious"),
        ("ext4", "-J size=4,device=UUID=1234"),
        ("ext4", "-E nodiscard precious"),
        ("btrfs", "-n 16k precious"),
        ("btrfs", "--nodesize=16k /dev/vda"),
    ],
)
def test_mkfs_options_name_no_other_device(filesystem: str, options: str) -> None:
    with pytest.raises(ValueError, match=r"names another|does not know"):
        FILESYSTEMS.get(filesystem).check_mkfs_options(options)


@pytest.mark.parametrize(
    "given",
    [
        "ext4 -U clear", "ext2 -Lroot", "ext4 -m 1 -L root", "xfs -L root", "xfs -m uuid=1", "xfs -mcrc=1,uuid=1",
        "btrfs --uuid=1", "f2fs -l root", "vfat -i 1", "vfat -n ROOT", "udf --label=root", "bcachefs --fs_label=root",
        "reiserfs -u 1", "jfs -L root", "nilfs2 -L root", "exfat --volume-label=ROOT", "ntfs3 -L ROOT", "reiser4 -U 1",
    ],
)  # fmt: skip
def test_mkfs_options_give_no_name_by_which_a_mount_could_find_it(given: str) -> None:
    filesystem, _, options = given.partition(" ")
    with pytest.raises(ValueError, match="a UUID or a label, and a mount by that could find it"):
        FILESYSTEMS.get(filesystem).check_mkfs_options(options)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("filename", "/etc/passwd"), ("exec_prerun", "id"), ("aux-path", "/etc"),
        ("ioengine", "external:/tmp/evil.so"), ("mem", "mmaphuge:/etc/x"), ("buffer_pattern", "'passwd'"),
        ("verify_pattern", "'/etc/passwd'"), ("read_iolog", "/etc/x"), ("trigger", "id"), ("rw --exec_prerun", "id"),
        ("uid", "0"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [{"rw": "read", "size": "1m"}, {"file": "a", "file_text": "[a]\nsize=1m\n"}])
def test_fio_touches_only_its_own_files(key: str, value: str, form: dict[str, str]) -> None:
    fio = WORKLOADS.get("fio").of(form)
    with pytest.raises(ValueError, match=key.partition(" ")[0]):
        fio.parse_parameters({**form, key: value})


@pytest.mark.parametrize(("key", "value"), [("directory", "/etc"), ("write_bw_log", "/etc/x")])
def test_fio_is_not_given_what_only_says_where_files_and_logs_are(key: str, value: str) -> None:
    fio, job = WORKLOADS.get("fio"), Job(directory=Path("/d"), scratch=Path("/s"), seed=1)
    given = fio.commands(fio.parse_parameters({"rw": "read", "size": "1m", key: value}), job)
    assert value not in str((given.prepare, given.run, given.cleanup, given.inputs))


def test_a_job_file_has_no_name_that_the_study_chose() -> None:
    """In it, a line break or a # in the name of a directory would end the line: what follows could be an option."""
    fio = WORKLOADS.get("fio").of({"file": "a"})
    parameters = fio.parse_parameters({"file": "a", "file_text": "[a]\nsize=1m\n"})
    job = Job(directory=Path("/d\nexec_prerun=id #/work"), scratch=Path("/s"), seed=1)
    commands = fio.commands(parameters, job)
    texts = [*commands.inputs.values(), *(check.text for check in fio.checks(parameters, job))]
    assert not [text for text in texts if "exec_prerun" in text]


def test_fio_is_given_a_directory_whose_name_has_colons() -> None:
    fio = WORKLOADS.get("fio")
    parameters = fio.parse_parameters({"rw": "write", "size": "1m"})
    job = Job(directory=Path("/a:b/work"), scratch=Path("/s"), seed=1)
    assert r"--directory=/a\:b/work" in fio.commands(parameters, job).run


@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("dd", {"op": "write", "count": 1, "oflag": "direct,append"}),
        ("dd", {"op": "write", "count": 1, "conv": "fsync of=/etc/x"}),
        ("dd", {"op": "write", "count": 1, "bs": "1M of=/etc/x"}),
        ("dd", {"op": "write", "count": 1, "of": "/etc/x"}),
        ("sysbench", {"file-test-mode": "seqwr", "config-file": "/etc/x"}),
        ("sysbench", {"file-test-mode": "seqwr --config-file=/etc/x"}),
        ("sysbench", {"file-test-mode": "seqwr", "file-total-size": "1M\n"}),
        ("engine", {"operation": "/bin/sh"}),
        ("engine", {"size": "4k --seed=1"}),
    ],
)
def test_other_tools_take_no_foreign_words(tool: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        WORKLOADS.get(tool).parse_parameters(parameters)


def test_where_the_kernel_makes_all_files_there_is_no_room_for_others() -> None:
    """A workload of no size got a directory in cgroup2 or tracefs, which was then not removed."""
    with pytest.raises(NoSpaceError, match="no room for files"):
        images.check_room(Path("/proc"), 0)


class TestDamagedJournal:
    WHOLE = '{"id": "1-1", "kind": "mount", "target": "/x/c/mnt"}\n'
    KEPT = (JournalEntry(id="1-1", kind="mount", target="/x/c/mnt"),)

    @pytest.mark.parametrize(
        "damage",
        ["5\n", "null\n", '"undone"\n', "[1]\n", '{"id": "1-2"}\n', "\0\0\0\n", '{"undone": ["x"]}\n'],
    )
    def test_lines_that_are_no_entries_are_passed_over(self, damage: str) -> None:
        assert tuple(parse(damage + self.WHOLE + damage)) == self.KEPT

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "c.jsonl"
        path.write_bytes(b"\xff\xfe\x80\n" + self.WHOLE.encode())
        path.chmod(0o600)
        with CampaignJournal("c", tmp_path) as journal:
            assert tuple(journal.pending()) == self.KEPT

    def test_what_follows_a_torn_line_is_not_lost_with_it(self, tmp_path: Path) -> None:
        path = tmp_path / "c.jsonl"
        path.write_text(self.WHOLE + '{"id": "1-2", "kind": "lo')
        path.chmod(0o600)
        with CampaignJournal("c", tmp_path) as journal:
            journal.undone("1-1")
            assert journal.pending() == []

    def test_a_journal_that_its_last_owner_removes_meanwhile(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, path = fcntl.flock, tmp_path / "c.jsonl"

        def removed_first(descriptor: int, operation: int) -> None:
            monkeypatch.setattr(fcntl, "flock", real)
            path.unlink()
            real(descriptor, operation)

        monkeypatch.setattr(fcntl, "flock", removed_first)
        with CampaignJournal("c", tmp_path) as journal:
            journal.will_create("mount", "/x/c/mnt")
            assert "/x/c/mnt" in path.read_text()

    @pytest.mark.parametrize("campaign", ["", ".", "..", "a/b", "../x"])
    def test_a_name_that_leads_elsewhere(self, campaign: str, tmp_path: Path) -> None:
        with pytest.raises(FslabError):
            CampaignJournal(campaign, tmp_path / "journal")


def test_a_loop_device_that_got_another_image_meanwhile_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    device, image = tmp_path / "loop7", tmp_path / "ours.img"
    device.touch()
    # The device has our image when it is found, and another one once it is open.
    answers = iter([[device], []])
    started: list[list[str]] = []
    monkeypatch.setattr(loop_devices, "attached_to", lambda _: next(answers))
    monkeypatch.setattr(proc, "run", lambda argv, **_: started.append(argv))
    loop_devices.detach(image)
    assert not started


@pytest.mark.parametrize(
    "name", ["by-uuid/1234", "by-label/data", "by-partlabel/data", "by-diskseq/9", "by-loop-ref/x"]
)
def test_a_name_that_a_copy_of_the_disk_or_the_next_one_has_too(name: str) -> None:
    with pytest.raises(UnsafeError, match="stable"):
        overwrite_check.check_name(f"/dev/disk/{name}")


def test_a_setting_of_an_earlier_boot_is_not_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "vm/swappiness"
    setting.parent.mkdir()
    setting.write_text("10")
    monkeypatch.setattr(_settings, "SYSCTL", tmp_path)
    monkeypatch.setattr(tuning, "LOCK", tmp_path / "lock")
    with CampaignJournal("c", tmp_path / "journal") as journal:
        with monkeypatch.context() as earlier:
            earlier.setattr(journals, "boot", lambda: "an earlier boot")
            journal.will_create("tuning", f"{setting}=60")
        cleanup.undo_pending(journal)
        assert setting.read_text() == "10"
        journal.will_create("tuning", f"{setting}=60")
        cleanup.undo_pending(journal)
        assert setting.read_text() == "60"


def test_a_word_with_a_nul_character_fails_the_trial_only() -> None:
    with pytest.raises(ToolFailedError, match="null"):
        proc.run(["true", "a\0b"])


class TestNamesTakenMeanwhile:
    """Another process creates a file after fslab found its name free. fslab must neither use nor change this file."""

    def test_a_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os.path, "lexists", lambda _: False)
        taken = tmp_path / "fslab-c-m"
        taken.mkdir()
        (taken / "theirs").touch()
        medium = MEDIA.get("directory")
        with (
            pytest.raises(FileExistsError),
            cleanup.opened_workspace("c", frozenset()) as workspace,
            ExitStack() as undone,
        ):
            medium.provide(medium.parse_options({"path": str(tmp_path)}), workspace, "m", undone)
        assert (taken / "theirs").exists()

    def test_an_image(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os.path, "lexists", lambda _: False)
        taken = tmp_path / "fslab-c-m.img"
        taken.write_text("theirs")
        with pytest.raises(FileExistsError), cleanup.opened_workspace("c", frozenset()) as workspace:
            images.create(taken, 1, workspace)
        assert taken.read_text() == "theirs"


def test_directories_of_ours_are_closed_to_others_whatever_the_umask(
    own_directories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = own_directories / "run/fslab"
    monkeypatch.setattr(paths, "runtime", lambda: runtime)
    before = os.umask(0)
    try:
        with cleanup.opened_workspace("c", frozenset()) as workspace:
            for made in (runtime, workspace.runtime, default_directory()):
                assert not made.stat().st_mode & 0o022, made
    finally:
        os.umask(before)


@pytest.mark.parametrize(("mode", "make"), [(0o700, "runtime"), (0o711, "fleet")])
def test_a_directory_that_fslab_did_not_make_keeps_its_mode_and_is_not_used(
    mode: int, make: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are in a directory of fslab's own in FSLAB_RUNTIME_DIR. One of this name may be there before."""
    monkeypatch.setenv("FSLAB_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o755)
    ours: Path = getattr(paths, make)()
    files.own_directory(ours, mode)
    files.own_directory(ours, mode)
    assert (ours.parent, ours.stat().st_mode & 0o7777, tmp_path.stat().st_mode & 0o7777) == (
        tmp_path,
        mode,
        0o755,
    )
    for theirs in (0o777, 0o750):
        ours.chmod(theirs)
        with pytest.raises(UnsafeError, match="not a directory of this user"):
            files.own_directory(ours, mode)
        assert ours.stat().st_mode & 0o7777 == theirs
    ours.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(mode)
    ours.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeError, match="not a directory of this user"):
        files.own_directory(ours, mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_nor_does_a_directory_of_another_user(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 65534, 65534)
    with pytest.raises(UnsafeError, match="not a directory of this user"):
        files.own_directory(theirs, 0o700)


def test_a_campaign_that_runs_elsewhere_keeps_its_status(own_directories: Path) -> None:
    study = load.load_text(STUDY.format(path=own_directories), "study")
    campaign = Campaign(
        id="c", study_id="study", study_title="t", study_source=study.text, seed=1, cells=expand(study),
        trials=1, machine=facts.gather(), created=datetime.now(UTC), status=CampaignStatus.RUNNING,
    )  # fmt: skip
    with Store.open(str(own_directories / "store.sqlite")) as store:
        store.create_campaign(campaign)
        with CampaignJournal("c"), pytest.raises(BusyError):
            run_campaign(campaign, store, Observer(), budget_s=None)
        assert store.campaign("c").status is CampaignStatus.RUNNING


def test_a_journal_that_cannot_be_written_leaves_no_campaign(own_directories: Path) -> None:
    study = load.load_text(STUDY.format(path=own_directories), "study")
    default_directory().parent.mkdir(parents=True)
    default_directory().touch()
    with Store.open(str(own_directories / "store.sqlite")) as store:
        campaign = launch.of_study(study, "study")
        launch.create(campaign, store, launch.RunConditions())
        with pytest.raises(FileExistsError):
            launch.run(campaign, store, Observer(), launch.RunConditions(), new=True)
        assert store.campaigns() == []


def test_settings_that_cannot_be_put_back_stay_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vm").mkdir()
    setting = tmp_path / "vm/swappiness"
    setting.write_text("60\n")
    monkeypatch.setattr(_settings, "SYSCTL", tmp_path)
    monkeypatch.setattr(tuning, "LOCK", tmp_path / "lock")
    with CampaignJournal("c", tmp_path / "journal") as journal:
        monkeypatch.setattr(tuning, "put_back", lambda *_: _refused())
        with pytest.raises(PermissionError), tuning.tuned({"vm.swappiness": "11"}, journal):
            assert setting.read_text() == "11"
        assert [entry.target for entry in journal.pending()] == [f"{setting}=60"]
        monkeypatch.undo()
        tuning.put_back(setting, "60")


def _refused() -> None:
    raise PermissionError(13, "Permission denied")


def test_an_interruption_of_cleaning_up_is_no_failed_cleanup(
    monkeypatch: pytest.MonkeyPatch, own_directories: Path
) -> None:
    def interrupted(_: str) -> None:
        raise InterruptedBySignal(15)

    with CampaignJournal("c") as journal:
        journal.will_create("tree", str(own_directories / "fslab-c-m"))
    monkeypatch.setattr(cleanup, "UNDO", {"tree": interrupted})
    with pytest.raises(InterruptedBySignal):
        cleanup.clean_all()


def test_a_journal_that_cannot_be_read_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refused(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith(".jsonl"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **kwargs)

    with CampaignJournal("c") as journal:
        journal.will_create("mount", "/x/c/mnt")
    monkeypatch.setattr(os, "open", refused)
    done, failures = cleanup.clean_all()
    assert not done
    assert len(failures) == 1
