"""Tests of the members of a fleet and of what studies may do on them: invitations, certificates, worker.toml."""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from tests.limits import ran

import fslab
from fslab import feasibility
from fslab.cli import fleet_members, fleet_schedule, fleet_status
from fslab.errors import BusyError, FslabError, UnsafeError, UnsupportedError, UsageError
from fslab.fleet import (
    agent,
    certificates,
    confined,
    enrolment,
    invitations,
    link_keeper,
    permission,
    starting,
)
from fslab.fleet.link import LinkSettings
from fslab.fleet.worker_settings import Allowed, WorkerSettings
from fslab.plan.expand import expand
from fslab.store.fleet_values import Assignment, MemberMachine
from fslab.study import shipped
from fslab.study.load import load, load_text
from fslab.system import paths

STUDY = """
title: a study
media: {disk: {type: ram, size: 64m}}
stacks: {ext4: {medium: disk, filesystem: ext4}}
workloads: {work: {tool: fio, rw: randread, size: 8m, runtime: 1s}}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    directory = tmp_path / "fleet"
    certificates.make_authority(directory, "bench")
    return directory


@pytest.fixture
def server(fleet: Path) -> Iterator[tuple[str, int]]:
    """Run the enrolment server of a fleet on the loopback interface. Yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = enrolment.EnrolmentServer(
            directory=fleet, scheduler="bench:8786", store="postgresql+psycopg://db/f", tell=lambda _: None
        )
        thread = threading.Thread(target=made.serve, args=(listening,))
        thread.start()
        yield listening.getsockname()
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_keys_are_readable_for_their_owner_alone(fleet: Path) -> None:
    for name in ("ca.key", "fleet.key"):
        assert (fleet / name).stat().st_mode & 0o777 == 0o600
    assert fleet.stat().st_mode & 0o777 == 0o700
    with pytest.raises(UsageError, match="exists already"):
        certificates.make_authority(fleet, "again")


# OIDs of a request that the library does not know: the kind of the key, and its curve.
@pytest.mark.parametrize(("oid", "other"), [("2a8648ce3d0201", "2a8648ce3d027f"), ("3d030107", "3d03017f")])
def test_a_request_with_an_unknown_key_is_refused(fleet: Path, oid: str, other: str) -> None:
    _, request = certificates.make_request("lab1")
    document = x509.load_pem_x509_csr(request).public_bytes(Encoding.DER)
    changed = base64.encodebytes(document.replace(bytes.fromhex(oid), bytes.fromhex(other)))
    pem = b"-----BEGIN CERTIFICATE REQUEST-----\n%b-----END CERTIFICATE REQUEST-----\n" % changed
    with pytest.raises(ValueError, match="the certificate request is not valid"):
        certificates.issue(fleet, pem, "lab1")


def test_a_machine_joins_by_its_invitation(fleet: Path, server: tuple[str, int], tmp_path: Path) -> None:
    token = invitations.invite(fleet, valid_s=60, machines=1)
    member = enrolment.join(server, invitations.Invitation.of(str(token)), "lab1", tmp_path / "w")
    assert (member.scheduler, member.store) == ("bench:8786", "postgresql+psycopg://db/f")
    mine = certificates.Credentials(directory=tmp_path / "w")
    assert mine.complete
    certificate = x509.load_pem_x509_certificate(mine.certificate.read_bytes())
    authority = x509.load_pem_x509_certificate((fleet / "ca.pem").read_bytes())
    certificate.verify_directly_issued_by(authority)
    assert certificate.subject.rfc4514_string() == "CN=lab1"


def test_two_agents_of_one_machine_are_two(tmp_path: Path) -> None:
    """The store refuses the second one of a name. With one id, both were online, and each replaced the other."""
    ids = set()
    for name in ("one", "other"):
        (tmp_path / name).write_text(name)
        ids.add(agent.this_machine(WorkerSettings(name="lab1"), tmp_path / name).id)
    assert len(ids) == 2
    assert agent.this_machine(WorkerSettings(name="lab1"), tmp_path / "one").id in ids, (
        "the same after a restart"
    )


def test_two_agents_do_not_share_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two fleets, with one name: each removed the other's directories, and ended its measuring processes."""
    monkeypatch.setattr(agent.Agent, "_run", lambda _: None)
    for name in ("runtime", "data"):
        monkeypatch.setenv("FSLAB_RUNTIME_DIR", str(tmp_path / f"runtime {name}"))
        credentials = certificates.Credentials(directory=tmp_path / name)
        made = agent.Agent(
            settings=WorkerSettings(name="lab1"), credentials=credentials, scheduler="", store="",
            tell=print, own=str(tmp_path / "data" / "fleet.sqlite"),
        )  # fmt: skip
        made.run()
        shared = paths.fleet() if name == "runtime" else tmp_path / "data"
        with agent.only_one(shared):
            if shared == credentials.directory:  # locked when the machine joined
                made.run()
                continue
            with pytest.raises(BusyError, match="another agent uses this directory"):
                made.run()


def test_the_certificate_of_another_machine_is_not_used(
    fleet: Path, server: tuple[str, int], tmp_path: Path
) -> None:
    """As on a copy of a machine's disk: two machines would have one private key."""
    enrolment.join(server, invitations.invite(fleet, valid_s=60, machines=1), "lab1", tmp_path / "w")
    copied = agent.Agent(
        settings=WorkerSettings(name="lab2"), credentials=certificates.Credentials(directory=tmp_path / "w"),
        scheduler="", store="", own="", tell=print,
    )  # fmt: skip
    with pytest.raises(UsageError, match="certificate of 'lab1', and this machine's name is 'lab2'"):
        copied.run()


def test_an_invitation_is_for_so_many_machines_and_for_a_time(
    fleet: Path, server: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = invitations.invite(fleet, valid_s=60, machines=2)
    for name in ("lab1", "lab2"):
        enrolment.join(server, token, name, tmp_path / name)
    with pytest.raises(FslabError, match="not valid, has expired or was used"):
        enrolment.join(server, token, "lab3", tmp_path / "lab3")
    assert not certificates.Credentials(directory=tmp_path / "lab3").complete
    late = invitations.invite(fleet, valid_s=60, machines=1)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert not invitations.accept(fleet, late.secret)


def test_a_stranger_gets_no_word(fleet: Path, tmp_path: Path) -> None:
    """If the server's certificate does not match the invitation, the machine stops before it sends the secret."""
    other, received = tmp_path / "other", list[bytes]()
    certificates.make_authority(other, "stranger")
    credentials = certificates.Credentials(directory=other)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(credentials.certificate, credentials.key)

    def listen(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
            while data := secured.recv(4096):
                received.append(data)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=listen, args=(listening,))
        thread.start()
        token = invitations.invite(fleet, valid_s=60, machines=1)
        with pytest.raises(UsageError, match="not the fleet that the invitation is for"):
            enrolment.join(listening.getsockname(), token, "lab1", tmp_path / "w")
        thread.join()
    assert received == []
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("text", ["", "x", "A" * 63, "A" * 68, "ä" * 64, "../../etc/passwd"])
def test_invalid_invitations(text: str) -> None:
    with pytest.raises(UsageError, match="not an invitation"):
        invitations.Invitation.of(text)


@pytest.mark.parametrize(
    "sent",
    [
        b"\n", b"{}\n", b"[" * 9000 + b"\n", b'{"name": "../x", "secret": "00", "request": ""}\n',
        b'{"name": "a", "secret": "zz", "request": ""}\n', b"x" * 40000,
    ],
)  # fmt: skip
def test_the_enrolment_survives_what_strangers_say(
    fleet: Path, server: tuple[str, int], tmp_path: Path, sent: bytes
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(server) as plain, context.wrap_socket(plain) as secured:
        try:
            secured.sendall(sent)
            answer = secured.recv(4096)
        except OSError:
            answer = b""
    assert b"certificate" not in answer
    token = invitations.invite(fleet, valid_s=60, machines=1)
    enrolment.join(server, token, "lab1", tmp_path / "w")


def test_idle_connections_of_one_peer_keep_nobody_waiting(
    fleet: Path, server: tuple[str, int], tmp_path: Path
) -> None:
    """The peer with the most connections loses its oldest; that of another peer, which came first, goes on."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.ExitStack() as undo:
        slow = undo.enter_context(socket.create_connection(server, source_address=("127.0.0.2", 0)))
        idle = [undo.enter_context(socket.create_connection(server)) for _ in range(40)]
        enrolment.join(server, invitations.invite(fleet, valid_s=60, machines=1), "lab1", tmp_path / "w")
        secured = undo.enter_context(context.wrap_socket(slow))
        secured.sendall(b"{}\n")
        assert b"not valid" in secured.recv(4096)
        idle[0].settimeout(enrolment.PATIENCE_S / 2)
        assert idle[0].recv(1) == b""


@pytest.mark.parametrize(
    "answer", [b"", b"\n", b"[]\n", b"{}\n", b"[" * 9000 + b"\n", b"\xff\n", b'{"error": 5}\n']
)
def test_an_invalid_membership_is_refused(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    """Even a server with the right certificate can send an invalid answer, for example one of another version.

    Then joining fails, and no file is written.
    """
    token = invitations.invite(fleet, valid_s=60, machines=1)
    read = enrolment._read
    monkeypatch.setattr(enrolment, "_read", lambda connection: (read(connection), answer)[1])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = enrolment.EnrolmentServer(directory=fleet, scheduler="", store="", tell=lambda _: None)
        thread = threading.Thread(target=made.serve, args=(listening,))
        thread.start()
        with pytest.raises(FslabError, match=r"cannot join the fleet|the fleet refused"):
            enrolment.join(listening.getsockname(), token, "lab1", tmp_path / "w")
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()
    assert not (tmp_path / "w").exists()


def test_a_link_that_cannot_be_started_is_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the link cannot be started, for example on a full disk, the agent continues and tries again later."""
    said: list[str] = []

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(confined, "start", full)
    monkeypatch.setattr("fslab.fleet.link_keeper.time.monotonic", lambda: 1000.0)
    kept = link_keeper.LinkKeeper(
        name="x", settings=LinkSettings(scheduler="s:1", machine="x", agent=1), files={}, user=None,
        request=lambda _: None, is_waiting=lambda _: False, tell=said.append,
    )  # fmt: skip
    kept.keep()
    kept.keep()
    assert len(said) == 1
    assert "No space left" in said[0]
    assert kept.is_failing
    assert kept.next_start == 1001.0


def test_a_confined_program_has_a_limit_of_memory() -> None:
    """Anyone with a certificate of the fleet can run code in it, which must not use up the memory of the machine."""
    code = "from fslab.fleet import confined; confined.limit_itself(1 << 30); bytearray(2 << 30)"
    told = ran([sys.executable, "-c", code])
    assert told.stderr.endswith("MemoryError\n"), told.stderr


def test_a_request_for_something_else_is_not_signed(fleet: Path) -> None:
    with pytest.raises(ValueError):
        certificates.issue(fleet, b"no request", "lab1")


def test_settings_that_others_can_change_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "worker.toml"
    path.write_text('name = "lab1"\n[allow]\ndevices = ["/dev/disk/by-id/x"]\n')
    path.chmod(0o644)
    assert WorkerSettings.load(path, needed=True).allow.devices == ("/dev/disk/by-id/x",)
    path.chmod(0o666)
    with pytest.raises(UnsafeError, match="other users can change"):
        WorkerSettings.load(path, needed=True)
    if os.geteuid() == 0:
        path.chmod(0o644)
        for changed in (path, tmp_path):
            os.chown(changed, 65534, 0)
            with pytest.raises(UnsafeError, match="other users can change"):
                WorkerSettings.load(path, needed=True)
            with pytest.raises(UnsafeError, match="not used by root"):
                fleet_members._home(changed, "worker")
            os.chown(changed, 0, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = [", "is not valid TOML"), ("\xff", "is not valid TOML"), ("name = '../x'", "name"),
        ("unknown = 1", "unknown"), ("[allow]\ndirectories = ['images']", "not an absolute path"),
        ("stall = -1", "stall"),
    ],
)  # fmt: skip
def test_mistakes_in_settings_are_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "worker.toml"
    path.write_text(text, "latin-1")
    path.chmod(0o644)
    with pytest.raises(UsageError, match=said):
        WorkerSettings.load(path, needed=True)


def test_without_settings_only_memory_and_our_own_directory(tmp_path: Path) -> None:
    assert WorkerSettings.load(tmp_path / "none", needed=False).allow == Allowed()
    with pytest.raises(UsageError, match="does not exist"):
        WorkerSettings.load(tmp_path / "none", needed=True)
    for name in ("quick", "loop-vm", "crash-quick"):
        permission.check(Allowed(), expand(load(name), feasibility.all_resolved))


RAM, EXT4, FIO = (
    "{type: ram, size: 64m}",
    ", filesystem: ext4",
    "{tool: fio, rw: randread, size: 8m, runtime: 1s}",
)
REFUSED: dict[str, tuple[dict[str, str], str, dict[str, Any]]] = {
    "directory": (
        {RAM: "{type: directory, path: /srv}", EXT4: ""},
        "medium 'directory'",
        {"directories": ["/srv"]},
    ),
    "image": ({RAM: "{type: loop, path: /srv/a}"}, "/srv/a", {"directories": ["/srv"]}),
    "device": (
        {RAM: "{type: device, path: /dev/disk/by-id/a}"},
        "medium 'device'",
        {"devices": ["/dev/disk/by-id/a"]},
    ),
    "guest": ({"title:": "on: uml\ntitle:"}, "virtual machines", {"guests": True}),
    "tuning": (
        {"title:": "tuning: {cpu_governor: performance}\ntitle:"},
        "settings of the kernel",
        {"tuning": True},
    ),
    "command": ({FIO: "{tool: command, run: touch a, space: 1m}"}, "the command", {"commands": True}),
}


def changed(replaced: dict[str, str]) -> Any:
    """Return the cells of STUDY with parts of its text replaced."""
    text = STUDY
    for old, new in replaced.items():
        text = text.replace(old, new)
    return expand(load_text(text, "study.yaml"), feasibility.all_resolved)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_study_may_not_do_unless_the_machine_allows_it(name: str) -> None:
    replaced, said, allowed = REFUSED[name]
    cells = changed(replaced)
    with pytest.raises(UnsafeError, match="does not allow the study") as caught:
        permission.check(Allowed(), cells)
    assert said in caught.value.what
    permission.check(Allowed(**allowed), cells)


@pytest.mark.parametrize("path", ["boot", "home", "srv", "a b", ".", "..", "~", "/boot"])
def test_an_image_lies_nowhere_else_whatever_its_path_looks_like(path: str) -> None:
    """Without allowed directories, every image is refused, also with a relative path: the agent's directory is /."""
    with pytest.raises(UnsafeError, match="directories"):
        permission.check(Allowed(), changed({RAM: f"{{type: loop, path: '{path}', size: 64m}}"}))


def test_kernels_need_no_commands_and_commands_no_directories() -> None:
    guests = changed({"title:": "on: uml\nkernel: /boot/vmlinux-next\ntitle:"})
    permission.check(Allowed(guests=True, kernels=("/boot/vmlinux-next",)), guests)
    with pytest.raises(UnsafeError, match=r"to boot /boot/vmlinux-next .kernels."):
        permission.check(Allowed(guests=True), guests)
    permission.check(Allowed(commands=True), changed({FIO: "{tool: command, run: /usr/bin/true, space: 1m}"}))


def test_a_device_is_allowed_by_its_name_and_a_directory_with_all_below() -> None:
    other = changed({RAM: "{type: device, path: /dev/disk/by-id/b}"})
    with pytest.raises(UnsafeError, match="to overwrite /dev/disk/by-id/b"):
        permission.check(Allowed(devices=("/dev/disk/by-id/a",)), other)
    for path in ("/srvx", "/srv/../etc", "~/x", "."):
        outside = changed({RAM: f"{{type: directory, path: {path}}}", EXT4: ""})
        with pytest.raises(UnsafeError):
            permission.check(Allowed(directories=("/srv",)), outside)


@pytest.mark.parametrize("options", ["-J device=/dev/sda1", "-d /etc"])
def test_paths_in_options_are_refused(options: str) -> None:
    study = load_text(STUDY, "study.yaml")
    (cell,) = expand(study, feasibility.all_resolved)
    stack = cell.stack.model_copy(update={"mkfs_options": options})
    with pytest.raises(UnsafeError, match="a path in options"):
        permission.check(Allowed(), [cell.model_copy(update={"stack": stack})])


def machine(name: str, **values: Any) -> MemberMachine:
    known = {"version": fslab.__version__, **values}
    return MemberMachine(name=name, id=name, **known)


def test_machines_are_chosen_by_name_and_label() -> None:
    there = [
        machine("a", labels={"rack": "1"}),
        machine("b", labels={"rack": "2"}),
        machine("c", unseen_s=1000.0),
        machine("d", version="0.0"),
        machine("e", facts={"certificate_until": "2020-02-03T00:00:00+00:00"}),
    ]
    ready, left_out = starting.chosen(there, [])
    assert [each.name for each in ready] == ["a", "b"]
    assert left_out == {
        "c": "not seen for 90 s",
        "d": f"runs fslab 0.0, and this is {fslab.__version__}",
        "e": "its certificate expired on 2020-02-03: it must join again",
    }
    assert [each.name for each in starting.chosen(there, ["rack=2"])[0]] == ["b"]
    with pytest.raises(UnsupportedError, match="no machine fits"):
        starting.chosen(there, ["rack=1", "rack=2"])
    with pytest.raises(UsageError, match="no such machine: z"):
        starting.chosen(there, ["z"])
    with pytest.raises(UnsupportedError, match="no machine can run it"):
        starting.chosen(there, ["c"])


def test_brackets_in_facts_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    fleet_status._show_machines([machine("a", facts={"kernel": "6.1 [rt]"})])
    assert " 6.1 [rt] " in capsys.readouterr().out


def test_names_leave_room_for_each_other() -> None:
    value = starting.assigned(load("quick"), "quick.yaml", name="n" * 63)
    (made,) = starting.assignments(value, [machine("m" * 63)])
    assert Assignment.model_validate_json(made.model_dump_json()) == made
    with pytest.raises(UsageError, match="too long"):
        starting.assignments(value.model_copy(update={"name": "n" * 64}), [machine("m")])
    with pytest.raises(ValueError):
        WorkerSettings(name="m" * 64)


@pytest.mark.parametrize("name", shipped.ids())
def test_each_gives_all_to_all_and_spread_divides_what_is_not_compared(name: str) -> None:
    study = load(name)
    value = starting.assigned(study, f"{name}.yaml", name="nightly")
    machines = [machine("a"), machine("b"), machine("c")]
    assert [each.study.workloads for each in starting.assignments(value, machines)] == [(), (), ()]
    shares = [each.study.workloads for each in starting.assignments(value, machines, spread=True)]
    whole = [cell.workload.name for cell in expand(study, feasibility.all_resolved)]
    assert sorted(part for share in shares for part in share) == sorted(set(whole))


@pytest.mark.parametrize(
    ("at", "now", "first"),
    [
        ("02:00", "2026-11-23T01:59:59", "2026-11-23T02:00:00"),
        ("02:00", "2026-11-23T02:00:00", "2026-11-24T02:00:00"),
        ("00:00", "2026-12-31T12:00:00", "2027-01-01T00:00:00"),
    ],
)
def test_the_first_run_of_a_schedule(at: str, now: str, first: str) -> None:
    given = datetime.fromisoformat(f"{now}+00:00")
    assert fleet_schedule._next(at, given) == datetime.fromisoformat(f"{first}+00:00")


@pytest.mark.parametrize("at", ["2 o'clock", "25:00", "02:00+02:00"])
def test_invalid_times_of_day(at: str) -> None:
    with pytest.raises(UsageError, match="not a time of day"):
        fleet_schedule._next(at, datetime.now(UTC))


@pytest.mark.parametrize(("text", "seconds"), [("24h", 86400), ("7d", 604800), ("90s", 90)])
def test_from_one_run_to_the_next(text: str, seconds: int) -> None:
    assert fleet_schedule._every(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "-1d", "30s", "x"])
def test_invalid_times_between_runs(text: str) -> None:
    with pytest.raises(UsageError, match="--every"):
        fleet_schedule._every(text)


def test_what_a_program_left_in_its_directory_is_removed_and_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is untrusted. Links that it left in its directory are removed, but not their targets."""
    monkeypatch.setenv("FSLAB_RUNTIME_DIR", str(tmp_path / "run"))
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "kept").write_text("kept")
    directory = confined.place("link-lab1")
    for name in ("log", "settings.json", "agent.sock"):
        (directory / name).symlink_to(ours / "kept")
    (directory / "deep").mkdir()
    (directory / "deep" / "all").symlink_to(ours)
    again = confined.place("link-lab1")
    assert again != directory
    assert list(again.iterdir()) == []
    assert (ours / "kept").read_text() == "kept"
    assert again.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "asked", [b"", b"x", b"[" * 1000, b"[]", b"1", b'{"assignment": "../x"}', b'{"assignment": 1}', b"\xff"]
)
def test_a_link_may_ask_for_anything(asked: bytes) -> None:
    with pytest.raises(ValueError):
        link_keeper._assignment(asked)


def test_the_authority_is_not_the_scheduler_s(fleet: Path) -> None:
    """The process that speaks Dask's protocol has its own certificate and no authority key.

    Thus nobody who takes over this process can admit machines to the fleet.
    """
    mine = certificates.Credentials(directory=certificates.scheduler_directory(fleet))
    assert mine.complete
    assert certificates.fingerprint(mine.certificate) != certificates.fingerprint(fleet / "fleet.pem")
    assert not certificates.authority_key(mine.directory).exists()


def test_certificates_are_renewed_before_they_expire(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of scheduler and enrolment server by the scheduler, with their keys; a machine's by joining again."""
    mine = certificates.Credentials(directory=certificates.scheduler_directory(fleet))
    assert certificates.renew(fleet) == []
    monkeypatch.setattr(certificates, "VALID", timedelta(days=59))
    other = tmp_path / "other"
    certificates.make_authority(other, "bench")
    old = certificates.fingerprint(other / "fleet.pem")
    monkeypatch.undo()
    key = (other / "fleet.key").read_bytes()
    assert certificates.renew(other) == ["enrolment", "scheduler"]
    assert certificates.renew(other) == []
    assert (other / "fleet.key").read_bytes() == key
    assert certificates.fingerprint(other / "fleet.pem") != old
    assert certificates.expires(other / "fleet.pem") - datetime.now(UTC) > timedelta(days=700)
    made = x509.load_pem_x509_certificate((other / "scheduler" / "fleet.pem").read_bytes())
    made.verify_directly_issued_by(x509.load_pem_x509_certificate((other / "ca.pem").read_bytes()))
    assert made.subject.rfc4514_string() == "CN=scheduler"
    assert mine.complete


def test_joining_again_renews_a_machine_s_certificate(
    fleet: Path, server: tuple[str, int], tmp_path: Path
) -> None:
    token = invitations.invite(fleet, valid_s=60, machines=2)
    certificate = certificates.Credentials(directory=tmp_path / "w").certificate
    enrolment.join(server, token, "lab1", tmp_path / "w")
    first = certificates.fingerprint(certificate)
    enrolment.join(server, token, "lab1", tmp_path / "w")
    assert certificates.fingerprint(certificate) != first
