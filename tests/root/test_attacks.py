"""Tests of media, journals and settings under attack, on real loop devices, mounts and directories.

Devices are in use, images and journals are replaced or forged by other users, names are unusual, disks are full.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests import fuse, loops, made
from tests.limits import LIMIT_S, wait_for

from fslab import feasibility, safe_output
from fslab.campaign import cleanup
from fslab.campaign.trial_loop import new_id
from fslab.campaign.undo_journal import CampaignJournal, default_directory
from fslab.cell import MediumSpec, StackSpec
from fslab.cli import app
from fslab.errors import BusyError, FslabError, MountError, StoreError, UnsafeError, UsageError
from fslab.machine import tuning
from fslab.probes import REGISTRY as PROBES
from fslab.probes import Target
from fslab.storage import Workspace, overwrite_check, stack
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.media import _loop
from fslab.store.store import Store
from fslab.system import files, loop_devices, mounts, tools

MIB = 1 << 20
NOBODY = 65534
Make = Callable[[], Path]
Stable = Callable[[Path], str]
DEVICE = MEDIA.get("device")


def spec(filesystem: str = "ext4", medium: str = "ram", **more: Any) -> StackSpec:
    medium_spec = MediumSpec(
        name=more.pop("name", "m"), type=medium, options={"size": "24m", **more.pop("options", {})}
    )
    return StackSpec(name="s", medium=medium_spec, filesystem=filesystem, **more)


@contextmanager
def mounted(device: Path, target: Path, shell: Any) -> Iterator[None]:
    target.mkdir()
    shell("mount", device, target)
    try:
        yield
    finally:
        mounts.unmount(target, devices=None)


@pytest.mark.parametrize("create", [True, False])
def test_a_disk_is_no_store_and_takes_no_output(create: bool, loop: Make, shell: Any) -> None:
    device = loop()
    shell("mkfs.ext4", "-q", device)
    with pytest.raises(StoreError, match="is not a regular file"):
        Store.open(str(device), create=create)
    with pytest.raises(UsageError, match="is a disk"):
        safe_output.replace(device, "text")
    shell("e2fsck", "-fn", device)


class TestDevicesInUse:
    def test_under_a_loop_device_even_with_wipe(
        self, loop: Make, stable: Stable, tmp_path: Path, shell: Any
    ) -> None:
        device = loop()
        shell("mkfs.ext4", "-q", device)
        upper = loops.attached(device)
        try:
            with (
                mounted(upper, tmp_path / "upper", shell),
                pytest.raises(UnsafeError, match="in use by the loop device"),
            ):
                overwrite_check.check_unused(stable(device))
        finally:
            loop_devices.detach(device)

    def test_open_for_writing_as_a_virtual_machine_has_its_disk(self, loop: Make, stable: Stable) -> None:
        device = loop()
        path = stable(device)
        reader = os.open(device, os.O_RDONLY)
        overwrite_check.check_unused(path)
        writer = os.open(device, os.O_RDWR)
        try:
            with pytest.raises(UnsafeError, match="is open for writing by process"):
                overwrite_check.check_unused(path)
        finally:
            os.close(writer)
            os.close(reader)

    def test_open_for_writing_for_a_moment(
        self, loop: Make, stable: Stable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        device = loop()
        path = stable(device)
        monkeypatch.setattr(overwrite_check, "BRIEF_S", LIMIT_S)
        with device.open("r+b", buffering=0) as writer:
            pause = time.sleep

            def leave(seconds: float) -> None:
                writer.close()  # while check_unused waits
                pause(seconds)

            monkeypatch.setattr(time, "sleep", leave)
            assert overwrite_check.check_unused(path) == device

    def test_by_another_campaign_between_its_trials(
        self, loop: Make, stable: Stable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(overwrite_check, "CLAIM_DEADLINE_S", 0.1)
        device = loop()
        path, same = stable(device), stable(device)
        options, others = DEVICE.parse_options({"path": path}), DEVICE.parse_options({"path": same})
        with (
            cleanup.opened_workspace(new_id(), frozenset({path})) as first,
            cleanup.opened_workspace(new_id(), frozenset({same})) as second,
            ExitStack() as undone,
        ):
            DEVICE.provide(options, first, "slot", undone)
            with pytest.raises(BusyError):
                DEVICE.provide(others, second, "slot", undone)
        with cleanup.opened_workspace(new_id(), frozenset({same})) as second, ExitStack() as undone:
            DEVICE.provide(others, second, "slot", undone)


class TestHostileDirectories:
    def test_an_image_that_its_directory_s_owner_exchanges(
        self, workspace: Workspace, tmp_path: Path
    ) -> None:
        victim = tmp_path / "victim"
        victim.write_bytes(b"precious" * MIB)
        image = _loop.image_for(tmp_path, workspace, "m", 8 * MIB)
        image.rename(tmp_path / "taken away")
        image.symlink_to(victim)
        with ExitStack() as undone, pytest.raises(UnsafeError, match="replaced the image"):
            _loop.attach(image, workspace, undone, expect_direct=False)
        assert not loop_devices.attached_to(victim)
        assert victim.read_bytes() == b"precious" * MIB

    @pytest.mark.parametrize("kind", ["image", "tree"])
    def test_what_lies_on_a_disk_that_is_not_mounted_at_a_clean_up_is_removed_later(
        self, kind: str, loop: Make, tmp_path: Path, shell: Any
    ) -> None:
        device, disk = loop(), tmp_path / "disk"
        shell("mkfs.ext4", "-q", device)
        target = disk / "images/fslab-c-m"
        with CampaignJournal("c", tmp_path / "journal") as journal:
            with mounted(device, disk, shell):
                target.parent.mkdir()
                journal.will_create(kind, str(target))
                target.touch() if kind == "image" else target.mkdir()
            with pytest.raises(FslabError, match="its file system is not mounted at"):
                cleanup.undo_pending(journal)
            disk.rmdir()
            with mounted(device, disk, shell):
                assert [entry.kind for entry in cleanup.undo_pending(journal)] == [kind]
                assert not os.path.lexists(target)
        assert not journal.path.exists()

    @pytest.mark.parametrize("medium", ["ram", "virtual"])
    def test_a_loop_device_that_somebody_detaches_gets_no_other_image(
        self, medium: str, workspace: Workspace, tmp_path: Path, shell: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Before mkfs and before each mount, somebody detaches the device and attaches the next free one."""
        victim, run, devices = tmp_path / "victim", Workspace.run, set()

        def detached_first(self: Workspace, stage: str, argv: Any, **how: Any) -> Any:
            if stage in {"mkfs", "mount"} and "tmpfs" not in argv:
                device = next(word for word in argv if word.startswith("/dev/loop"))
                shell("losetup", "--detach", device)
                victim.write_bytes(b"precious" * MIB)
                devices.add(device)
                devices.add(other := str(loops.attached(victim)))
                loop_devices.detach(victim)
                assert other != device
            return run(self, stage, argv, **how)

        monkeypatch.setattr(Workspace, "run", detached_first)
        with ExitStack() as undone:
            options = {"profile": "none"} if medium == "virtual" else {}
            up = stack.build(spec(medium=medium, options=options), workspace, undone, slot="m", make=True)
            assert up.unmount()
            up.mount()
            assert up.device is not None
            assert str(up.device.path) in devices
        assert victim.read_bytes() == b"precious" * MIB

    def test_an_image_that_still_has_a_device_is_not_formatted(self, workspace: Workspace) -> None:
        """A trial could not unmount it: mkfs on a second device would write to a mounted file system."""
        with ExitStack() as first:
            stack.build(spec(), workspace, first, slot="m", make=True)
            with ExitStack() as second, pytest.raises(MountError, match="still has the image"):
                stack.build(spec(), workspace, second, slot="m", make=True)

    def test_a_file_system_in_which_others_can_exchange_the_work_directory(
        self, workspace: Workspace
    ) -> None:
        """A command that runs as another user could put a link there, and its target would become that user's."""
        wanted = spec(mkfs_options=f"-E root_owner={NOBODY}:{NOBODY}")
        with ExitStack() as undone, pytest.raises(UnsafeError, match="the root directory of the file system"):
            stack.build(wanted, workspace, undone, slot="m", make=True)

    def test_a_free_loop_device_that_another_process_takes_first(
        self, workspace: Workspace, tmp_path: Path, shell: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other, run = tmp_path / "other", Workspace.run
        taken: list[Path] = []
        other.write_bytes(bytes(MIB))

        def taken_first(self: Workspace, stage: str, argv: Any, **how: Any) -> Any:
            if argv[0] == "losetup" and not taken:
                # If yet another process has taken it, the next one that fslab asks for is tried.
                with suppress(subprocess.CalledProcessError):
                    shell("losetup", argv[1], other)
                    taken.append(Path(argv[1]))
            return run(self, stage, argv, **how)

        monkeypatch.setattr(Workspace, "run", taken_first)
        try:
            with ExitStack() as undone:
                up = stack.build(spec(), workspace, undone, slot="m", make=True)
                assert up.device is not None
                assert up.device.path != taken[0]
            assert loop_devices.attached_to(other) == taken
        finally:
            loop_devices.detach(other)

    def test_a_state_directory_behind_a_link(self, own_directories: Path) -> None:
        real = own_directories / "state"
        real.rename(own_directories / "elsewhere") if real.exists() else (
            own_directories / "elsewhere"
        ).mkdir()
        real.symlink_to(own_directories / "elsewhere")
        with cleanup.opened_workspace(new_id(), frozenset()) as workspace, ExitStack() as undone:
            up = stack.build(spec(medium="loop"), workspace, undone, slot="m", make=True)
            assert up.device is not None
            assert up.device.facts["backing_filesystem"]
        # The fixture leaves_nothing checks that no loop device is left.

    @pytest.mark.parametrize(
        ("tool", "parameters"),
        [
            ("fio", {"file": "a", "file_text": "[a]\nrw=write\nsize=64k\n"}),
            ("samba", {"transactions": 20}),
        ],
        ids=["fio", "samba"],
    )
    def test_a_directory_whose_name_is_a_line_of_a_program_s_configuration(
        self, tool: str, parameters: dict[str, Any], workspace: Workspace, tmp_path: Path
    ) -> None:
        """A study brings the name: what it makes a program run would be run without a question."""
        if tool == "samba" and not all(tools.find(each) for each in ("smbd", "smbclient")):
            pytest.skip("needs samba and smbclient")
        beside, flag = tmp_path / "d", tmp_path / "flag"
        chosen = tmp_path / f"d\nexec_prerun=touch {flag} #\n preexec = touch {flag}"
        for directory in (beside, chosen):
            directory.mkdir(parents=True)
        medium = MediumSpec(name="m", type="directory", options={"path": str(chosen)})
        record = made.run(workspace, made.cell(made.spec(None, medium), tool, parameters, cache="warm"))
        assert record.metrics, record.error
        assert not flag.exists()
        assert not [*beside.iterdir()]

    @pytest.mark.parametrize("name", [b"latin1-\xe9", b"form\x0cfeed", "line\u2028separator".encode()])
    def test_another_user_s_mount_and_loop_of_a_strange_name(
        self, name: bytes, workspace: Workspace, tmp_path: Path, shell: Any
    ) -> None:
        directory = tmp_path / os.fsdecode(name)
        image = tmp_path / (os.fsdecode(name) + ".img")
        image.write_bytes(bytes(MIB))
        loops.attached(image)
        directory.mkdir()
        shell("mount", "-t", "tmpfs", "somebody", directory)
        try:
            with ExitStack() as undone:
                stack.build(spec(), workspace, undone, slot="m", make=True)
        finally:
            shell("umount", directory)
            loop_devices.detach(image)


class TestJournals:
    def plant(self, target: Path, owner: int = 0, kind: str = "tree", campaign: str = "planted") -> Path:
        directory = default_directory()
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{campaign}.jsonl"
        path.write_text(json.dumps({"id": "1-1", "kind": kind, "target": str(target)}) + "\n")
        os.chown(path, owner, -1)
        return path

    def test_another_user_s_journal_is_not_trusted(self, tmp_path: Path) -> None:
        victim = tmp_path / "fslab-planted-m"
        victim.mkdir()
        path = self.plant(victim, NOBODY)
        done, failures = cleanup.clean_all()
        assert victim.exists()
        assert not done
        assert "another user" in str(failures[0])
        path.unlink()

    def test_a_journal_that_others_can_write_is_not_trusted(self, tmp_path: Path) -> None:
        victim = tmp_path / "fslab-planted-m"
        victim.mkdir()
        path = self.plant(victim)
        path.chmod(0o666)
        assert cleanup.clean_all()[1]
        assert victim.exists()
        path.unlink()

    def test_a_journal_that_is_a_link_is_not_followed(self, tmp_path: Path) -> None:
        victim = tmp_path / "fslab-planted-m"
        victim.mkdir()
        path = self.plant(victim)
        other = path.rename(tmp_path / "elsewhere.jsonl")
        path.symlink_to(other)
        assert cleanup.clean_all()[1]
        assert victim.exists()
        path.unlink()

    def test_a_journal_exchanged_after_it_was_opened_is_not_read(self, tmp_path: Path) -> None:
        victim = tmp_path / "fslab-planted-m"
        victim.mkdir()
        with CampaignJournal("planted") as journal:
            journal.path.unlink()
            self.plant(victim, NOBODY)
            assert cleanup.undo_pending(journal) == []
        assert victim.exists()

    @pytest.mark.parametrize("kind", ["tree", "image", "mount", "directory"])
    def test_what_does_not_carry_the_campaign_s_name_is_not_undone(self, kind: str, tmp_path: Path) -> None:
        victim = tmp_path / "precious"
        victim.write_text("data") if kind == "image" else victim.mkdir()
        path = self.plant(victim, kind=kind)
        assert "does not belong to this campaign" in str(cleanup.clean_all()[1][0])
        assert victim.exists()
        path.unlink()

    def test_what_is_mounted_in_a_tree_is_not_removed(self, tmp_path: Path, shell: Any) -> None:
        (mounted := tmp_path / "fslab-planted-m/inner").mkdir(parents=True)
        (mounted.parent / "file").touch()
        path = self.plant(mounted.parent)
        shell("mount", "-t", "tmpfs", "somebody", mounted)
        try:
            (mounted / "precious").touch()
            assert "something is mounted there" in str(cleanup.clean_all()[1][0])
            assert [each.name for each in mounted.iterdir()] == ["precious"]
            assert list(mounted.parent.iterdir()) == [mounted]
        finally:
            shell("umount", mounted)
        assert cleanup.clean_all()[1] == []
        assert not mounted.parent.exists()
        assert not path.exists()

    def test_a_tuning_entry_writes_to_settings_only(self, tmp_path: Path) -> None:
        victim = tmp_path / "passwd"
        victim.write_text("root")
        path = self.plant(Path(f"{victim}=evil"), kind="tuning")
        assert cleanup.clean_all()[1]
        assert victim.read_text() == "root"
        path.unlink()

    def test_a_directory_that_was_a_sudo_caller_s_is_not_trusted_later(
        self, tmp_path: Path, shell: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What a killed campaign left is undone only by one who trusts that user."""
        (theirs := tmp_path / "theirs").mkdir()
        (victim := tmp_path / "victim").mkdir()
        os.chown(theirs, NOBODY, -1)
        monkeypatch.setenv("SUDO_UID", str(NOBODY))
        with CampaignJournal("test-0005") as journal:
            for kind in ("mount", "image", "tree", "directory", "loop", "disk"):
                journal.will_create(kind, str(theirs / "test-0005/mnt"))
        (theirs / "test-0005").mkdir()
        (theirs / "test-0005/mnt").symlink_to(victim)
        monkeypatch.delenv("SUDO_UID")
        shell("mount", "-t", "tmpfs", "somebody", victim)
        try:
            (told,) = cleanup.clean_all()[1]
            assert f"{theirs} belongs to user {NOBODY}" in str(told)
            assert mounts.at(victim)
        finally:
            mounts.unmount(victim, devices=None)
        (theirs / "test-0005/mnt").unlink()
        monkeypatch.setenv("SUDO_UID", str(NOBODY))
        assert cleanup.clean_all()[1] == []

    def test_one_thing_that_cannot_be_undone_does_not_keep_the_rest(self, tmp_path: Path, shell: Any) -> None:
        with CampaignJournal("test-0004") as journal:
            target = tmp_path / "fslab-test-0004-d"
            journal.will_create("tree", str(tmp_path / "fslab-test-0004-t"))
            journal.will_create("directory", str(target))
        (tmp_path / "fslab-test-0004-t").mkdir()
        (target / "not empty").mkdir(parents=True)
        assert cleanup.clean_all()[1]
        assert not (tmp_path / "fslab-test-0004-t").exists()
        (target / "not empty").rmdir()
        assert cleanup.clean_all()[1] == []

    def test_a_path_whose_server_does_not_answer_does_not_keep_the_rest(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = []

        def ask(path: Path) -> bool:
            asked.append(path)
            return answers(path, 0.5)

        answers = mounts.answers
        (served := tmp_path / "served").mkdir()
        (tree := tmp_path / "fslab-test-0006-t").mkdir()
        images = [served / f"fslab-test-0006-{number}.img" for number in range(3)]
        with CampaignJournal("test-0006") as journal:
            journal.will_create("tree", str(tree))
            for image in images:
                journal.will_create("image", str(image))
        with monkeypatch.context() as patched, fuse.mounted(served, of=0, says=None):
            patched.setattr(mounts, "answers", ask)
            (told,) = cleanup.clean_all()[1]
            assert str(told).startswith(f"{images[-1]}: does not answer")
            assert not tree.exists()
            assert asked == [images[-1], tree], "it is waited for once"
        assert cleanup.clean_all()[1] == []

    def test_an_entry_that_the_full_disk_cut_short_is_not_an_entry(self, tmp_path: Path, shell: Any) -> None:
        small = tmp_path / "small"
        small.mkdir()
        shell("mount", "-t", "tmpfs", "-o", "size=16k", "fslab-test", small)
        try:
            with CampaignJournal("test-0005", small) as journal:
                with pytest.raises(OSError, match="No space"):
                    for _ in range(100):
                        journal.will_create("mount", "/" + "x" * 1000)
                assert journal.path.read_text().endswith("}\n")
                for entry in journal.pending():
                    small_enough = entry.id
                with pytest.raises(OSError, match="No space"):
                    journal.will_create("mount", "/" + "x" * 4096)
                assert journal.pending()[-1].id == small_enough
        finally:
            shell("umount", small)


class TestStoredCampaigns:
    """A store can come from another user. Therefore its contents are checked like those of a study."""

    @pytest.mark.parametrize(
        "more",
        [
            {"mkfs_options": "-J device=/dev/vda"},
            {"filesystem": "xfs", "mkfs_options": "-llogdev=vda"},
            {"mount_options": "noatime,X-mount.mkdir"},
        ],
    )
    def test_a_stack_that_no_study_could_have(self, more: dict[str, Any], workspace: Workspace) -> None:
        with pytest.raises(UsageError):
            feasibility.check_stack(spec(**more), workspace)

    def test_a_campaign_named_as_a_path(self) -> None:
        with pytest.raises(FslabError), cleanup.opened_workspace("../../tmp/x", frozenset()):
            pass


@pytest.mark.alone  # settings apply to the whole machine
def test_two_campaigns_do_not_tune_at_once_and_nobody_else_can_prevent_it(workspace: Workspace) -> None:
    swappiness = Path("/proc/sys/vm/swappiness")
    found = swappiness.read_text()
    with files.opened("/proc/sys/vm", os.O_DIRECTORY) as anyone_s:
        fcntl.flock(anyone_s, fcntl.LOCK_EX)  # any user can lock what they can read
        with tuning.tuned({"vm.swappiness": "11"}, workspace.journal), pytest.raises(BusyError):  # noqa: SIM117
            with tuning.tuned({"vm.swappiness": "12"}, workspace.journal):
                pass
    assert swappiness.read_text() == found
    lock = tuning.LOCK.stat()
    assert (lock.st_uid, stat.S_IMODE(lock.st_mode)) == (0, 0o600)


def test_no_server_is_asked_for_the_directory_that_another_s_process_works_in(tmp_path: Path) -> None:
    """One that does not answer would let each trial wait for ever, and no signal would end it."""
    (served := tmp_path / "served").mkdir()
    (seen := tmp_path / "proc").mkdir()
    # Not by Popen(cwd=…): until the program is started, it holds the lock that the server in this process needs.
    there = ["sh", "-c", 'cd "$0" && exec sleep 1000', str(served)]
    with fuse.mounted(served, of=NOBODY, says=NOBODY) as asked, subprocess.Popen(there) as other:
        try:
            wait_for(lambda: os.readlink(f"/proc/{other.pid}/cwd") == str(served))  # noqa: PTH115 - asks no server
            (seen / str(other.pid)).symlink_to(f"/proc/{other.pid}")
            asked.clear()
            target = Target(devices=(), filesystem="ext4", directory=Path("/proc/work"), proc=seen)
            assert PROBES.get("foreign-cpu").snapshot(target)["own"] == set()
            assert fuse.GETATTR not in asked
        finally:
            other.kill()


def test_completion_is_not_installed_behind_the_links_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, precious = tmp_path / "home", tmp_path / "precious"
    theirs.mkdir()
    precious.write_text("precious")
    (theirs / ".bashrc").symlink_to(precious)
    os.chown(theirs, NOBODY, NOBODY)
    monkeypatch.setenv("HOME", str(theirs))
    with pytest.raises(UnsafeError, match="who could put a link"):
        app(["--install-completion", "bash"])
    assert precious.read_text() == "precious"
