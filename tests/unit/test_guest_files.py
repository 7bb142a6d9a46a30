"""Tests of attacks by a guest on the host: links and pipes in the shared directory, floods, forged replies."""

from __future__ import annotations

import errno
import json
import os
import resource
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.limits import LIMIT_S
from tests.made import cell, spec, trial

from fslab.campaign import trial_dispatch
from fslab.cell import MachineSpec, TrialKey
from fslab.errors import FailureClass, FslabError, GuestError, GuestHungError, UnsupportedError
from fslab.feasibility import RefusingJournal
from fslab.machine import guest as waiting
from fslab.machine.guest import CONSOLE, Disk, Guest
from fslab.machine.kinds.qemu import QemuGuest
from fslab.machine.kinds.uml import UmlGuest
from fslab.storage import Drive, Growth, Workspace, images
from fslab.system import trees, untrusted_files
from fslab.trial_record import Status


class Alive:
    """The process of a guest. It never ends."""

    pid = 0

    def exit_code(self) -> int | None:
        return None

    def wait(self, timeout_s: float) -> int | None:
        return None

    def end(self) -> None:
        """Do nothing."""


class Said(Guest):
    """A guest whose messages come from the test. It always answers pings."""

    def plug(self, drive: Drive) -> Disk:
        raise NotImplementedError

    def unplug(self, disk: Disk) -> None:
        raise NotImplementedError

    def answers(self, within_s: float) -> bool:
        return True


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[tuple[Said, socket.socket]]:
    directory = tmp_path / "guest"
    directory.mkdir()
    ours, theirs = socket.socketpair()
    made = Said(directory=directory, child=Alive(), line=ours, facts={})  # type: ignore[arg-type]
    yield made, theirs
    made.end()
    theirs.close()
    assert not directory.exists()


def test_a_request_is_not_written_through_a_link(guest: tuple[Said, socket.socket], tmp_path: Path) -> None:
    (victim := tmp_path / "victim").write_text("precious")
    (guest[0].directory / "request-1.json").symlink_to(victim)
    with pytest.raises(GuestError, match="changed what only the host may change"):
        guest[0].ask({"do": "trial"}, timeout_s=LIMIT_S)
    assert victim.read_text() == "precious"
    assert guest[0].broken


def put_link(path: Path) -> None:
    (path.parent.parent / "secret").write_text('{"value": "of the host"}')
    path.symlink_to(path.parent.parent / "secret")


def put_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_endless(path: Path) -> None:
    path.touch()
    os.truncate(path, waiting.REPLY_LIMIT_BYTES + 1)


def put_list(path: Path) -> None:
    path.write_text("[1, 2]")


def put_nested(path: Path) -> None:
    path.write_text("[" * 100_000)


@pytest.mark.parametrize("put", [put_link, put_pipe, put_endless, put_list, put_nested])
def test_a_reply_that_is_none_breaks_the_guest(put: Any, guest: tuple[Said, socket.socket]) -> None:
    made, theirs = guest
    put(made.directory / "reply-1.json")
    theirs.sendall(b"done 1\n")
    with pytest.raises(GuestError, match="reply"):
        made.ask({"do": "trial"}, timeout_s=LIMIT_S)
    assert made.broken


def test_a_flood_of_lines_ends_with_the_deadline(guest: tuple[Said, socket.socket]) -> None:
    made, theirs = guest
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            theirs.send(b"done 7\n" * 1000)
    with pytest.raises(GuestHungError):
        made.ask({"do": "trial"}, timeout_s=0)


def test_a_guest_that_sends_much_and_reads_nothing_has_hung(
    guest: tuple[Said, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, theirs = guest
    monkeypatch.setattr(waiting, "SEND_LIMIT_S", 0.1)
    theirs.sendall(b"told x\n" * 10_000)
    with pytest.raises(GuestHungError, match="does not read"):
        made.ask({"do": "trial"}, timeout_s=LIMIT_S)
    with pytest.raises(GuestHungError, match="does not read"):
        made.ask({"do": "trial"}, timeout_s=LIMIT_S)
    assert made.broken


def test_a_guest_that_runs_no_program_any_more_has_hung(
    guest: tuple[Said, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest that was ready and then sends nothing has hung, even if its kernel still answers.

    While it boots, a guest may be silent for longer.
    """
    made, theirs = guest
    monkeypatch.setattr(waiting, "SILENT_LIMIT_S", 0.5)
    monkeypatch.setattr(waiting, "BOOT_LIMIT_S", 1.5)
    with pytest.raises(GuestHungError, match="waiting for 'ready'"):
        made.wait_ready()
    theirs.sendall(b"ready\n")
    made.wait_ready()
    with pytest.raises(GuestHungError, match="no program has run in the guest"):
        made.ask({"do": "trial"}, timeout_s=LIMIT_S)
    assert made.broken


def test_what_a_guest_said_while_fslab_was_stopped_counts(
    guest: tuple[Said, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a time limit passed while fslab was stopped (Ctrl-Z), a reply that arrived meanwhile is still read."""
    made, theirs = guest
    theirs.sendall(b"ready\n")
    made.wait_ready()
    monkeypatch.setattr(waiting, "SILENT_LIMIT_S", 0.0)
    (made.directory / "reply-1.json").write_text('{"value": 1}')
    theirs.sendall(b"done 1\n")
    assert made.ask({"do": "trial"}, timeout_s=LIMIT_S) == {"value": 1}


def test_a_guest_that_shows_that_it_is_alive_may_take_its_time(
    guest: tuple[Said, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, theirs = guest
    monkeypatch.setattr(waiting, "SILENT_LIMIT_S", LIMIT_S)
    theirs.sendall(b"ready\n")
    made.wait_ready()
    (made.directory / "reply-1.json").write_text('{"value": 1}')
    theirs.sendall(f"{waiting.ALIVE}\n{waiting.ALIVE}\ndone 1\n".encode())
    assert made.ask({"do": "trial"}, timeout_s=LIMIT_S) == {"value": 1}


def test_a_guest_that_fills_what_it_shares_is_ended(
    guest: tuple[Said, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest that fills the shared directory is stopped, even if it sends messages all the time."""
    made, theirs = guest
    theirs.sendall(b"done 7\n")
    monkeypatch.setattr(images, "RESERVE_BYTES", 1 << 60)  # makes the file system count as full
    monkeypatch.setattr(images, "RESERVE_SHARE", 0.5)
    with pytest.raises(GuestError, match=r"the guest was stopped, .* free"):
        made.ask({"do": "trial"}, timeout_s=LIMIT_S)
    assert made.broken


def test_a_line_without_end_is_none(guest: tuple[Said, socket.socket]) -> None:
    made, theirs = guest
    theirs.sendall(b"x" * (waiting.LINE_LIMIT_BYTES + 1))
    with pytest.raises(GuestError, match="too long for a line"):
        made.ask({"do": "trial"}, timeout_s=LIMIT_S)


def test_a_log_is_read_to_a_limit_and_never_through_a_link(
    guest: tuple[Said, socket.socket], tmp_path: Path
) -> None:
    made, _ = guest
    console = made.directory / CONSOLE
    assert made.log_text() == ""
    console.write_bytes(b"a" * waiting.LOG_LIMIT_BYTES + b"\r\nlast")
    assert made.console_end() == waiting.LOG_LIMIT_BYTES + 6
    assert made.log_text().endswith("a\nlast")
    assert len(made.log_text()) == waiting.LOG_LIMIT_BYTES - 1, "one CR less"
    assert made.log_text(waiting.LOG_LIMIT_BYTES + 2) == "last"
    console.unlink()
    (tmp_path / "shadow").write_text("root:secret")
    console.symlink_to(tmp_path / "shadow")
    assert made.log_text() == ""


def test_what_is_removed_is_only_what_is_in_it(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").mkdir(mode=0o700)
    (kept / "file").touch()
    kept.chmod(0o500)
    (directory := tmp_path / "guest").mkdir()
    (directory / "link").symlink_to(kept)
    (directory / "closed/inner").mkdir(parents=True)
    (directory / "closed").chmod(0)
    trees.remove(directory)
    trees.remove(directory)
    assert not directory.exists()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o500
    kept.chmod(0o700)


def test_a_device_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a regular file") as raised:
        untrusted_files.read(Path("/dev/zero"), limit_bytes=10)
    assert raised.value.errno == errno.EINVAL
    (tmp_path / "small").write_bytes(b"0123456789")
    assert untrusted_files.read(tmp_path / "small", limit_bytes=10) == b"0123456789"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, former[1]))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            untrusted_files.write_new(tmp_path / "a", bytes(32))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    assert raised.value.filename == str(tmp_path / "a")


def put_directory(path: Path) -> None:
    (path / "inner").mkdir(parents=True)


@pytest.mark.parametrize("name", ["request-1.json", "reply-1.json"])
def test_a_directory_in_the_place_of_a_message_is_removed(
    name: str, guest: tuple[Said, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, theirs = guest
    reply = made.directory / "reply-1.json"
    reply.write_text('{"value": 1}')

    def read(path: Path, *, limit_bytes: int) -> bytes:
        content = path.read_bytes()[:limit_bytes]
        (made.directory / name).unlink()
        put_directory(made.directory / name)
        return content

    monkeypatch.setattr(untrusted_files, "read", read)
    theirs.sendall(b"done 1\n")
    assert made.ask({}, timeout_s=LIMIT_S) == {"value": 1}
    assert list(made.directory.iterdir()) == []


def test_a_disk_that_cannot_be_plugged_in_breaks_the_guest(tmp_path: Path) -> None:
    """The names of virtual disks in the shared directory: the guest may have put anything there."""
    made = UmlGuest(directory=tmp_path, child=Alive(), line=socket.socket(), facts={})  # type: ignore[arg-type]
    drive = Drive(image=tmp_path / "disk", socket=tmp_path / "disk.guest", serial="d")
    try:
        put_directory(tmp_path / "virtio-0")
        with pytest.raises(GuestError, match="changed what only the host may change"):
            made.plug(drive)
        assert made.broken
        made.unplug(Disk(serial="d", bind="virtio-uml.0"))
        assert list(tmp_path.iterdir()) == []
    finally:
        made.line.close()


CELL = cell(spec(name="s"), parameters={"rw": "randread", "size": "4m"})
KEY = TrialKey(campaign="c", block=0, seed=1)


def record(**changes: Any) -> dict[str, Any]:
    return dict(json.loads(trial(of=CELL, **{"key": KEY, **changes}).model_dump_json()))


def test_a_record_of_another_trial_is_not_trusted(guest: tuple[Said, socket.socket]) -> None:
    made, _ = guest
    reply = trial_dispatch._checked_reply(made, {"record": record(), "made": ["m"]}, CELL, KEY)
    assert (reply.record.cell, reply.made, made.broken) == (CELL, frozenset({"m"}), False)
    other = KEY.model_copy(update={"campaign": "somebody else's"})
    replies: tuple[Any, ...] = ({"record": record(key=other), "made": []}, {"record": {}, "made": []}, {}, 7)
    for forged in replies:
        with pytest.raises(GuestError, match="invalid record"):
            trial_dispatch._checked_reply(made, forged, CELL, KEY)
    assert made.broken


def test_an_error_of_an_unknown_class_is_still_an_error() -> None:
    said = {"what": "it failed", "where": None, "hint": None, "failure": "made up"}
    with pytest.raises(FslabError, match="it failed") as raised:
        trial_dispatch._value({"error": said})
    assert raised.value.failure in FailureClass


def test_of_an_error_of_endless_length_the_beginning_is_kept() -> None:
    """It is stored with the trial, and printed."""
    said = {"what": "x" * 100_000, "where": "y" * 100_000, "hint": "z" * 100_000, "failure": "mkfs"}
    with pytest.raises(FslabError) as raised:
        trial_dispatch._value({"error": said})
    assert len(str(raised.value)) < 4 * trial_dispatch.ERROR_LIMIT


def test_a_reply_that_is_none_costs_the_trial_alone() -> None:
    for reply in ({}, {"bug": 5}, {"error": "no mapping"}, {"nonsense": "x"}):
        with pytest.raises(GuestError, match="invalid reply from the guest"):
            trial_dispatch._value(reply)


IN_GUEST = CELL.model_copy(
    update={"stack": CELL.stack.model_copy(update={"machine": MachineSpec(type="uml")})}
)


def machines(
    made: Said, reply: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> trial_dispatch.TrialMachines:
    """Return machines whose guest is ``made``, which replies so and gets no disks."""
    workspace = Workspace(
        campaign="c",
        runtime=directory,
        images=directory,
        journal=RefusingJournal(),
        wipe=frozenset(),
        tell=print,
    )
    several = trial_dispatch.TrialMachines(
        workspace=workspace,
        _running={IN_GUEST.stack.machine: made},
    )
    monkeypatch.setattr(made, "ask", lambda *_, **__: reply)
    monkeypatch.setattr(several, "_plug", lambda *_: {})
    return several


def test_a_forged_bug_costs_the_trial_alone(
    guest: tuple[Said, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root in a guest can forge a reply that reports a bug. Such a reply fails only its trial, and the guest is ended.

    The trial's error contains the end of the traceback.
    """
    forged = {"bug": "x" * 100_000 + "ZeroDivisionError: forged"}
    several = machines(guest[0], forged, tmp_path, monkeypatch)
    record = several.run(IN_GUEST, KEY)
    assert (record.status, record.failure) == (Status.FAILED, FailureClass.GUEST_LOST.value)
    assert record.error is not None
    assert record.error.endswith("ZeroDivisionError: forged")
    assert len(record.error) < 2 * trial_dispatch.ERROR_LIMIT
    assert several.running == []


FORGED: tuple[dict[str, Any], ...] = (
    {"version": 1 << 63}, {"failure": "\ud800"}, {"started": "0001-01-01T00:00:00+23:59"},
    {"started": "2026-11-30T00:00:00"},
    *({key: {name: {"value": 1, "unit": "count"}}} for key in ("metrics", "probes") for name in ("a\0", "x" * 129, "")),
    {"raw": {"a\0": ""}}, {"raw": {"x" * 256: ""}}, {"metrics": {"\ud800": {"value": 1, "unit": "count"}}},
    {"validity": [{"kind": "x" * 65, "severity": "note", "message": "m"}]},
)  # fmt: skip


@pytest.mark.parametrize("change", FORGED)
def test_a_record_that_no_store_takes_costs_the_trial_alone(
    change: dict[str, Any], guest: tuple[Said, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = {"record": {**record(cell=IN_GUEST), **change}, "made": []}
    several = machines(guest[0], {"value": value}, tmp_path, monkeypatch)
    found = several.run(IN_GUEST, KEY)
    assert (found.status, found.failure) == (Status.FAILED, FailureClass.GUEST_LOST.value)


def test_a_recording_that_cannot_be_removed_costs_the_trial_alone(
    guest: tuple[Said, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of the guest can go on writing into what is removed."""
    put_directory(guest[0].directory / "recordings")
    value = {"record": record(cell=IN_GUEST), "made": []}
    several = machines(guest[0], {"value": value}, tmp_path, monkeypatch)

    def in_use(place: Path) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty", str(place))

    with monkeypatch.context() as patch:
        patch.setattr(trees, "remove", in_use)
        patch.setattr(guest[0], "end", lambda: None)
        found = several.run(IN_GUEST, KEY)
    assert (found.status, found.failure) == (Status.FAILED, FailureClass.GUEST_LOST.value)


def test_a_guest_makes_no_file_system_but_that_of_its_trial(
    guest: tuple[Said, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a guest says of another disk, such as one of the host, would be taken for a file system there."""
    value = {"record": record(cell=IN_GUEST), "made": [IN_GUEST.slot, "disk"]}
    several = machines(guest[0], {"value": value}, tmp_path, monkeypatch)
    assert several.run(IN_GUEST, KEY).status is Status.OK
    assert several.workspace.made == {IN_GUEST.slot}


def test_a_failure_on_a_disk_without_room_is_told_as_such(
    guest: tuple[Said, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest sees I/O errors only: that its image has outgrown its room, or its directory is full, the host sees."""
    made, _ = guest
    image = tmp_path / "image"
    image.write_bytes(b"x" * (2 << 20))
    made.growths = [Growth(image=image, room_bytes=1 << 20)]
    failed = {
        "cell": IN_GUEST.model_dump(mode="json"), "status": "failed", "failure": "mkfs", "error": "I/O error",
    }  # fmt: skip
    reply = {"value": {"record": record(**failed), "made": []}}
    several = machines(made, reply, tmp_path, monkeypatch)
    found = several.run(IN_GUEST, KEY)
    assert found.status_text == "failed:no_space"
    assert "room for 1 MiB" in str(found.error)


def test_qemu_is_given_no_disk_that_only_a_server_has(tmp_path: Path) -> None:
    guest = QemuGuest.__new__(QemuGuest)
    guest.made = 0
    drive = Drive(image=tmp_path / "disk", socket=tmp_path / "disk.guest", serial="d")
    with pytest.raises(UnsupportedError, match="only root"):
        guest.plug(drive)


def test_what_a_guest_tells_is_answered_and_an_error_there_ends_it(
    guest: tuple[Said, socket.socket],
) -> None:
    made, theirs = guest
    theirs.sendall(b"told run begins\ntold something else\ndone 1\n")
    (made.directory / "reply-1.json").write_text("{}")
    heard: list[str] = []
    assert made.ask({}, timeout_s=LIMIT_S, told=heard.append) == {}
    assert heard == ["run begins", "something else"]
    assert theirs.recv(100).split(b"\n") == [b"run 1", b"go on", b"go on", b""]
    theirs.sendall(b"told run begins\n")

    def fails(_: str) -> None:
        raise FslabError("the disk is gone")

    with pytest.raises(FslabError, match="gone"):
        made.ask({}, timeout_s=LIMIT_S, told=fails)
    assert made.broken
