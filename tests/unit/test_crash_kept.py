"""Tests of kept recordings of broken promises: which are kept and removed, and how changed ones are refused."""

from __future__ import annotations

import errno
import json
import os
import struct
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from fslab.api import crash_states
from fslab.campaign import cleanup, guest_recordings
from fslab.cell import MachineSpec
from fslab.cli import crash as commands
from fslab.crash import bounded_sequences, examine, kept_recordings
from fslab.crash.judge import Positions
from fslab.crash.recording import Recording
from fslab.crash.sequences import Sequences
from fslab.crash.states import State
from fslab.errors import GuestError, NoSpaceError, StoreError, ToolOutputError, UsageError
from fslab.storage.filesystems import REGISTRY
from fslab.system import disk_server, memory

DISK_BYTES = 64 << 20
HEADER = struct.pack("<8sIIQQ32x", disk_server.MAGIC, 1, 64, DISK_BYTES, 0)
SEQUENCES = Sequences(chosen=(bounded_sequences.parse(["write n", "fsync n"]),))


def mark(number: int, operation: int = 4) -> bytes:
    return struct.pack("<QQQQQIIHBB12x", 0, 1, 1, number, (1 << 64) - 1, 0, 0, 0, operation, 0)


def recorded(place: Path, number: int, rows: bytes = mark(0)) -> Recording:
    place.mkdir(exist_ok=True)
    recording = Recording(base=place / "crash-base", log=place / "fslab-disk.log")
    recording.base.write_bytes(bytes(4096))
    os.truncate(recording.base, DISK_BYTES)
    recording.log.write_bytes(HEADER[:24] + number.to_bytes(8, "little") + HEADER[32:] + rows)
    Path(f"{recording.log}.data").write_bytes(b"")
    Path(f"{recording.log}.json").write_text(json.dumps({"phases": [], "marks": ["0:1:returned"]}))
    return recording


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "fslab" / "crash"


@pytest.fixture
def keep(home: Path, tmp_path: Path) -> Callable[[int], str]:
    def one(number: int) -> str:
        recording = recorded(tmp_path / "made", number)
        tested = examine.subject(REGISTRY.get("ext4"), "rw", "w", recording.base)
        identity = kept_recordings.keep(recording, tested, SEQUENCES, home)
        assert identity is not None
        os.utime(home / identity / kept_recordings.ABOUT, (number, number))
        return identity

    return one


def test_a_list_of_no_recordings_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands.listing()
    assert capsys.readouterr() == ("", "no recording of a broken promise is stored\n")


def test_only_recordings_go(keep: Callable[[int], str], home: Path, tmp_path: Path) -> None:
    """Old recordings are removed, but no other files: the caller can name any directory for the recordings."""
    home.mkdir(parents=True)
    theirs = [home / f"theirs-{number}" for number in range(kept_recordings.MOST)] + [home / "0a1b2c3d"]
    for place in theirs:
        place.mkdir()
        (place / "file").touch()
        os.utime(place, (0, 0))
    (home / "deadbeef").symlink_to(tmp_path)
    (home / "feedbeef").touch()
    made = [keep(number) for number in range(1, kept_recordings.MOST + 3)]
    assert kept_recordings.identities(home) == made[2:]
    assert all((place / "file").exists() for place in theirs)
    assert (home / "deadbeef").is_symlink()
    assert (home / "feedbeef").exists()


def test_a_recording_stays_beside_others_of_a_later_time(keep: Callable[[int], str], home: Path) -> None:
    """They were kept while the clock was ahead."""
    others = [keep(number) for number in range(1, kept_recordings.MOST + 1)]
    for later, each in enumerate(others):
        os.utime(home / each / kept_recordings.ABOUT, (4_000_000_000 + later,) * 2)
    new = keep(99)
    assert set(kept_recordings.identities(home)) == {new, *others[1:]}


def test_half_a_recording_is_made_again(keep: Callable[[int], str], home: Path) -> None:
    identity = keep(1)
    (home / identity / kept_recordings.ABOUT).unlink()
    assert keep(1) == identity
    assert kept_recordings.load(identity, home).source == SEQUENCES


def test_a_recording_without_room_costs_no_trial(home: Path, tmp_path: Path) -> None:
    home.parent.mkdir()
    home.write_text("a file is where the directory should be")
    recording = recorded(tmp_path / "made", 1)
    tested = examine.subject(REGISTRY.get("ext4"), "rw", "w", recording.base)
    assert kept_recordings.keep(recording, tested, SEQUENCES, home) is None


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1}, {"base": "../../secret"}, {"base": "/etc/hostname"}, {"base": None}, {"log": 5},
        {"filesystem": "nofs"},
        {"filesystem": []}, {"options": 3}, {"sequences": 7}, {"sequences": [["no such step"]]}, {"sequences": [3]},
        {"root": "/srv"}, {"root": "w/../../srv"}, {"options": "rw,journal_path=/dev/sda1"},
        {"options": "rw,loop=/dev/loop7"},
        {"application": 3}, {"application": {"name": "sqlite"}},
    ],
)  # fmt: skip
def test_a_changed_recording_is_said_to_be_damaged(
    change: dict[str, Any], keep: Callable[[int], str], home: Path
) -> None:
    identity = keep(1)
    about = home / identity / kept_recordings.ABOUT
    about.write_text(json.dumps(json.loads(about.read_text()) | change))
    with pytest.raises(StoreError, match="damaged"):
        kept_recordings.load(identity, home)
    damaged = [{"id": identity, "filesystem": None, "runs": None, "first": None}]
    assert crash_states.crash_recordings() == damaged
    assert json.loads(CliRunner().invoke(commands.app, ["list", "--json"]).stdout) == damaged


@pytest.mark.parametrize("text", ["", "[]", "5", "{}", "[" * 100_000, "\0"])
def test_any_text_about_a_recording(text: str, keep: Callable[[int], str], home: Path) -> None:
    identity = keep(1)
    (home / identity / kept_recordings.ABOUT).write_text(text)
    with pytest.raises(StoreError, match="damaged"):
        kept_recordings.load(identity, home)


@pytest.mark.parametrize("suffix", ["", ".json"])
def test_any_bytes_as_its_log(suffix: str, keep: Callable[[int], str], home: Path) -> None:
    identity = keep(1)
    (home / identity / f"fslab-disk.log{suffix}").write_bytes(b"\xff" * 200)
    with pytest.raises(StoreError, match="damaged"):
        kept_recordings.load(identity, home)


@pytest.mark.parametrize(
    "file", ["crash-base", "fslab-disk.log", "fslab-disk.log.data", kept_recordings.ABOUT]
)
def test_a_recording_copied_from_elsewhere_shows_no_other_file(
    file: str, keep: Callable[[int], str], home: Path, tmp_path: Path
) -> None:
    """Its links would be followed with the rights of the reader, into an image that others may read."""
    place = home / keep(1)
    (place / file).rename(tmp_path / "elsewhere")
    (place / file).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=f"'{file}' is not a regular file"):
        kept_recordings.load(place.name, home)
    (place / file).unlink()
    os.mkfifo(place / file)
    with pytest.raises(
        StoreError, match="not a regular file" if file != kept_recordings.ABOUT else "no recording"
    ):
        kept_recordings.load(place.name, home)


@pytest.mark.parametrize(
    "file", ["crash-base", "fslab-disk.log", "fslab-disk.log.data", "fslab-disk.log.json"]
)
def test_a_recording_that_does_not_fit_into_memory_is_not_read(
    file: str, keep: Callable[[int], str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = home / keep(1)
    os.truncate(place / file, DISK_BYTES)
    monkeypatch.setattr(memory, "available_bytes", lambda: 32 << 20)
    if file == "crash-base":
        kept_recordings.load(place.name, home)
        (place / file).write_bytes(bytes(DISK_BYTES))
    with pytest.raises(NoSpaceError, match=r"the recording needs 64.* MiB of memory"):
        kept_recordings.load(place.name, home)
    assert crash_states.crash_recordings()[0]["filesystem"] is None


def test_a_first_image_that_was_cut_short_is_not_taken_for_zeros(
    keep: Callable[[int], str], home: Path
) -> None:
    place = home / keep(1)
    os.truncate(place / "crash-base", DISK_BYTES - 4096)
    with pytest.raises(StoreError, match="does not have the size of the disk"):
        kept_recordings.load(place.name, home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own files of another user")
@pytest.mark.parametrize("file", [".", "crash-base"])
def test_root_uses_no_recording_that_another_user_can_exchange(
    file: str, keep: Callable[[int], str], home: Path
) -> None:
    identity = keep(1)
    os.chown(home / identity / file, 65534, 65534)
    with pytest.raises(StoreError, match="belongs to user 65534"):
        kept_recordings.load(identity, home)


@pytest.mark.parametrize(
    "identity", ["", ".", "..", "../made", "/etc", "x" * 300, "\x1b[31m", "0a1b2c3d/../made"]
)
def test_an_id_is_no_path(identity: str, keep: Callable[[int], str], home: Path) -> None:
    keep(1)
    with pytest.raises(StoreError, match="no recording"):
        kept_recordings.load(identity, home)


@pytest.mark.parametrize(
    "name",
    ["9" * 5000 + "-kept", "٣-kept", "1-random-" + "9" * 30, "1-without-1..2", "1-without-.", "1-torn0x1-1"],
)
def test_a_state_is_no_other_text(name: str) -> None:
    with pytest.raises(UsageError, match="not the name of a crash state"):
        State.parse(name)


def test_rows_and_marks_of_no_log(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="damaged"):
        recorded(tmp_path, 1, mark(0, operation=9)).table()
    log = recorded(tmp_path, 1)
    shapes: list[Any] = [[], {"phases": 1, "marks": []}, {"phases": [], "marks": [5]}, {"phases": []}]
    for names in shapes:
        Path(f"{log.log}.json").write_text(json.dumps(names))
        with pytest.raises(ToolOutputError, match="names in this log"):
            log.table()
    for name in ("x:y:z", "1:2", "0:9:begins", "7:0:begins", "9" * 5000 + ":1:begins"):
        Path(f"{log.log}.json").write_text(json.dumps({"phases": [], "marks": [name]}))
        with pytest.raises(ToolOutputError, match="mark"):
            Positions.of(log.table(), SEQUENCES.steps)


@pytest.mark.parametrize("name", ["0a1b2c3d", "412-random-7"])
def test_a_state_without_its_recording_is_told_how_it_is_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"'{name}' names no state") as refused:
        crash_states.crash_state(name, tmp_path / "image")
    assert "0a1b2c3d.412-random-7" in str(refused.value)


def test_the_recording_of_a_guest_is_kept_with_its_machine_and_without_a_program(
    keep: Callable[[int], str], home: Path, tmp_path: Path
) -> None:
    identity, shared = keep(1), tmp_path / "shared"
    (home / identity).rename(guest_recordings_of(shared) / identity)
    guest_recordings.take_over(shared, MachineSpec(type="uml", memory="2g", kernel="/tmp/kernel"), "6.1.176")
    found = kept_recordings.load(identity, home)
    assert (found.machine, found.kernel) == (MachineSpec(type="uml", memory="2g"), "6.1.176")
    assert not guest_recordings_of(shared).joinpath(identity).exists()


def test_nothing_of_the_host_enters_a_recording_that_a_guest_left(
    keep: Callable[[int], str], home: Path, tmp_path: Path
) -> None:
    identity, shared = keep(1), tmp_path / "shared"
    place = guest_recordings_of(shared)
    (home / identity).rename(place / identity)
    (place / identity / "crash-base").unlink()
    (place / identity / "crash-base").symlink_to("/etc/hostname")
    guest_recordings.take_over(shared, MachineSpec(type="uml"), "6.1.176")
    place.symlink_to(home)
    guest_recordings.take_over(shared, MachineSpec(type="uml"), "6.1.176")
    assert kept_recordings.identities(home) == []


def test_a_recording_is_brought_into_a_guest_and_never_through_its_links(
    keep: Callable[[int], str], home: Path, tmp_path: Path
) -> None:
    identity = keep(0)
    first, *_ = names = sorted(each.name for each in (home / identity).iterdir())
    for number, put in enumerate(("directory", "file", "nothing")):
        (shared := tmp_path / f"shared-{number}").mkdir()
        (victims := tmp_path / f"victims-{number}").mkdir()
        (victims / first).write_text("precious")
        if put == "directory":
            (shared / identity).symlink_to(victims)
        elif put == "file":
            (shared / identity).mkdir()
            (shared / identity / first).symlink_to(victims / first)
        if put == "nothing":
            guest_recordings.bring(identity, shared)
            for name in names:
                assert (shared / identity / name).read_bytes() == (home / identity / name).read_bytes()
        else:
            with pytest.raises(
                GuestError, match="cannot be copied into the directory of the guest: File exists"
            ):
                guest_recordings.bring(identity, shared)
        assert [(each.name, each.read_text()) for each in victims.iterdir()] == [(first, "precious")]


def guest_recordings_of(shared: Path) -> Path:
    place = shared / "recordings"
    place.mkdir(parents=True, exist_ok=True)
    return place


FINDING = {
    "id": "x.1-kept", "kind": "lost", "broken": True, "detail": "d", "source": "s", "state": "1-kept",
    "sequence": ["w"], "step": 1, "steps_broken": [1], "lost_rows": [],
}  # fmt: skip
TOLD = {"image": "/run/i", "filesystem": "ext4", "kernel": "6.1", "findings": [FINDING]}


@pytest.fixture
def replayed(
    keep: Callable[[int], str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Any], dict[str, Any]]:
    """Return a function that replays a state of a recording in a guest, which replies so."""
    identity, shared = keep(1), tmp_path / "shared"
    (home / identity).rename(guest_recordings_of(shared) / identity)
    guest_recordings.take_over(shared, MachineSpec(type="uml"), "6.1.176")
    monkeypatch.setattr(cleanup, "opened_workspace", lambda *_: nullcontext(None))
    machines = SimpleNamespace(shared=lambda _: shared)
    monkeypatch.setattr(crash_states, "TrialMachines", lambda **_: machines)
    monkeypatch.setattr(guest_recordings, "bring", lambda *_: None)

    def replay(reply: Any) -> dict[str, Any]:
        machines.ask = lambda *_, **__: reply
        return crash_states.crash_state(f"{identity}.1-kept", tmp_path / "image")

    return replay


@pytest.mark.parametrize(
    "reply",
    [None, [], {}, "x", {**TOLD, "findings": 5}, {**TOLD, "findings": [{}]}, {**TOLD, "kernel": None},
     {**TOLD, "findings": [{**FINDING, "sequence": 7}]}, {**TOLD, "image": "\0", "more": 1}],
)  # fmt: skip
def test_a_reply_about_a_state_that_is_none_is_an_error_of_the_guest(
    reply: Any, replayed: Callable[[Any], dict[str, Any]], tmp_path: Path
) -> None:
    with pytest.raises(GuestError, match="invalid reply from the guest"):
        replayed(reply)
    assert not (tmp_path / "image").exists()


def test_the_image_of_a_state_comes_from_the_guest_as_a_whole_or_not_at_all(
    replayed: Callable[[Any], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GuestError, match="no image of the state"):
        replayed(TOLD)
    (tmp_path / "shared/state.img").write_bytes(b"x" * 10_000)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full_after(4096))
        with pytest.raises(OSError, match="No space") as caught:
            replayed(TOLD)
    assert caught.value.filename == str(tmp_path / "image")
    assert not (tmp_path / "image").exists()
    monkeypatch.setattr(os, "pwrite", full_after(1 << 20, most=4096))
    told = replayed(TOLD)
    assert told == {**TOLD, "image": str(tmp_path / "image"), "recorded_kernel": "6.1.176"}
    assert (tmp_path / "image").read_bytes() == b"x" * 10_000


def full_after(room: int, most: int = 1 << 20) -> Callable[[int, bytes, int], int]:
    """Return a pwrite(2) of a disk with this room. It writes what fits, as Linux does, and at most ``most`` bytes."""
    real = os.pwrite

    def pwrite(descriptor: int, data: bytes, at: int) -> int:
        if at >= room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[: min(room - at, most)], at)

    return pwrite
