"""A file server: Samba exports the directory, and its own client uploads, downloads, lists and deletes files.

smbd and smbclient run as the user nobody. Neither is on the network: they talk over the loopback of a network namespace
of this process, in which fslab accepts the one connection and hands it to smbd, as inetd(8) does. What smbd keeps
besides the files (its databases, its log) is in a tmpfs that is mounted at no place and ends with the processes that
use it. Source of what it promises: smb.conf(5), "strict sync" and "sync always".
"""

from __future__ import annotations

import errno
import os
import pwd
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field

from fslab.applications import (
    Contract,
    Driven,
    DriveRequest,
    DurableApplication,
    Populated,
    RecoveredData,
    Settings,
    has_other_bytes,
    repeated,
    setting,
)
from fslab.applications import _servers as servers
from fslab.errors import FslabError, ToolFailedError
from fslab.filesystem_abilities import Ability
from fslab.storage.crash_promises import Promise, Promises
from fslab.system import syscalls, users
from fslab.system.files import closed_after, memory_file
from fslab.system.namespaces import own_network
from fslab.system.syscalls import MountAttribute
from fslab.system.tools import Tool, require
from fslab.units import SomeSize

SMBD = Tool(program="smbd", package="samba")
CLIENT = Tool(program="smbclient", package="smbclient")
STDBUF = Tool(program="stdbuf", package="coreutils")
_SHARE, _PORT = "fslab", 445
# Printed after each command: smbclient has no prompt when its input is no terminal. It does not ask the server for it.
_WHERE, _PROMPT = "pwd", b"Current directory is \\\\127.0.0.1\\" + _SHARE.encode() + b"\\\n"
_FILES = (["A"], ["N"])  # their attributes in a listing: changed since a backup, or none
# What smbclient reports of an smbd that has not begun yet: no answer, or no process for change notifications
# (notify_init_sconn in source3/smbd/smb2_service.c).
_LATE = ("NT_STATUS_IO_TIMEOUT", "NT_STATUS_NO_MEMORY")
_TRIES = 5
_ATTRIBUTES = MountAttribute.NOSUID | MountAttribute.NODEV | MountAttribute.NOEXEC
_PLACES = (
    "private dir",
    "lock directory",
    "state directory",
    "cache directory",
    "pid directory",
    "ncalrpc dir",
)
_ALONE = {
    "server role": "standalone", "map to guest": "bad user", "disable netbios": "yes", "load printers": "no",
    "disable spoolss": "yes", "log level": "0",
}  # fmt: skip
_FILE_BYTES = 6 << 10  # the unused part of the last block, an inode, a name, an attribute of Samba's
_UNSYNCED = Promise(
    given=False, source='smb.conf(5), "sync always": without it, smbd(8) syncs what a client flushes'
)


class SambaLoad(Populated):
    """A transaction is the upload of one new file, or what `operation` says, by one smbclient(1) that stays connected
    to smbd(8). Both run as the user `nobody`, over a loopback of their own. smbd keeps its databases in memory.
    Afterwards all files, and no others, must be as uploaded. smbclient never asks for a flush: only `sync_always`
    syncs. Debian's package `samba` also starts a server, which is not used: `systemctl disable --now smbd nmbd`."""

    laid_out = frozenset({"operation", "files", "size"})
    amount, usual, least, made_per_s = "files", 1000, 20, 5000.0
    rates = {"upload": 1000.0, "download": 2000.0, "list": 100.0, "serve": 500.0}
    begins_empty, writing = "upload", frozenset({"upload", "serve"})
    reading = frozenset({"download", "list", "serve"})

    operation: Literal["upload", "download", "list", "serve"] = Field(
        "upload",
        description="upload a new file; download a random one; list the directory; or (serve) upload a file, download "
        "a random one, and delete the oldest one",
    )
    size: SomeSize = Field("64k", description="size of a file")
    files: int | None = Field(
        None, ge=2, le=10_000_000,
        description="files in the directory before; default: none for `upload`, otherwise 1000",
    )  # fmt: skip
    use_sendfile: Literal["no", "yes"] = Field("no", description="what is downloaded is sent by sendfile(2)")
    strict_allocate: Literal["no", "yes"] = Field(
        "no", description="space is allocated when a file grows, by fallocate(2)"
    )
    strict_sync: Literal["yes", "no"] = setting(
        "yes", "a flush that is asked for is an fsync(2); no: it is ignored, and so is `sync_always`"
    )
    sync_always: Literal["no", "yes"] = setting(
        "no", "each write is followed by a flush before it is answered"
    )

    @property
    def space_bytes(self) -> int:
        return (self.there + (self.most if self.operation == "upload" else 1)) * (
            self.size_bytes + _FILE_BYTES
        )

    def options(self) -> dict[str, str]:
        """Return parameters of smb.conf(5)."""
        chosen = {"use_sendfile": self.use_sendfile, "strict_allocate": self.strict_allocate}
        return _named({**self.settings(), **chosen})


class Samba(DurableApplication):
    """A transaction is one uploaded file."""

    summary = "Samba: files are uploaded, downloaded, listed and deleted over SMB"
    tools = (SMBD, CLIENT, STDBUF)
    abilities = frozenset({Ability.CHOWN})
    Load = SambaLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return the promises. The fsync(2) of a file must also keep its name: smbclient flushes no directory."""
        synced = settings["strict_sync"] == settings["sync_always"] == "yes"
        return Contract(durable=promises.names if synced else _UNSYNCED, consistent=promises.unexposed)

    def lay_out(self, directory: Path, settings: Settings) -> None:  # noqa: ARG002
        servers.own_directory(directory)

    def prepare(self, drive: DriveRequest) -> None:
        super().prepare(drive)
        for number in range(1, drive.load.there + 1):
            path = drive.directory / str(number)
            path.write_bytes(drive.contents(number))
            servers.own_directory(path)

    def drive(self, drive: DriveRequest) -> Driven:
        load = drive.load
        with connected(drive.directory, load.options()) as client:
            driven = repeated(drive, _transaction(drive, client))
        first = driven.count + 1 if load.operation == "serve" else 1
        last = load.there + (driven.count if load.writes else 0)
        return self.verified(drive, driven, range(first, last + 1), "files")

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        with connected(directory, _named(settings)) as client:
            yield lambda number, contents: client.upload(str(number), contents)

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Read the files. Of one that was not synced, a part or zeros may be there, but nothing else."""
        there = set()
        for path in directory.iterdir():
            if not path.name.isdecimal():
                return RecoveredData(problem=f"'{path.name}' was never uploaded")
            number = int(path.name)
            found, uploaded = path.read_bytes(), contents(number)
            if found == uploaded:
                there.add(number)
            elif len(found) > len(uploaded) or has_other_bytes(found, uploaded):
                return RecoveredData(problem=f"file {number} has other contents than were uploaded")
        return RecoveredData(transactions=frozenset(there))


def _named(settings: Settings) -> dict[str, str]:
    """Return settings by their names in smb.conf(5)."""
    return {name.replace("_", " "): value for name, value in settings.items()}


def _transaction(drive: DriveRequest, client: SmbClient) -> Callable[[int], object]:
    """Return what is done for each number."""
    there = drive.load.there
    kept = deque(range(1, there + 1))
    random = drive.random()

    def upload(number: int) -> None:
        client.upload(str(there + number), drive.contents(there + number))

    def download(number: int) -> None:  # noqa: ARG001
        client.download(str(kept[random.randrange(len(kept))]))

    def listed(number: int) -> None:  # noqa: ARG001
        if (found := client.listed()) != there:
            raise ToolFailedError(f"smbclient lists {found} files, and not {there}")

    def serve(number: int) -> None:
        upload(number)
        kept.append(there + number)
        download(number)
        client.delete(str(kept.popleft()))

    return {"upload": upload, "download": download, "list": listed, "serve": serve}[drive.load.operation]


class SmbClient:
    """A connected smbclient(1): one command after the other. ``contents``: the descriptor of what it uploads."""

    def __init__(self, dialogue: servers.Dialogue, server: servers.RunningServer, contents: int) -> None:
        self._dialogue, self._server, self._contents = dialogue, server, contents

    def upload(self, name: str, data: bytes) -> None:
        os.pwrite(self._contents, data, 0)
        os.ftruncate(self._contents, len(data))
        self.say(f"put {servers.DESCRIPTORS}/{self._contents} {name}")

    def download(self, name: str) -> None:
        self.say(f"get {name} /dev/null")

    def delete(self, name: str) -> None:
        self.say(f"del {name}")

    def listed(self) -> int:
        """List the directory. Return the number of files."""
        return sum(line.split()[1:2] in _FILES for line in self.say("ls").splitlines())

    def say(self, command: str) -> str:
        """Do a command. Return what is printed. Of some errors, smbclient prints the NT_STATUS as an answer."""
        try:
            answer = self._dialogue.say(f"{command}\n{_WHERE}")
        except servers.NoAnswerError as error:
            raise self._failure(f"{self._dialogue.complaints()}{error}") from error
        complaints = self._dialogue.complaints()
        if "NT_STATUS_CONNECTION" in complaints + answer:
            raise self._failure(complaints)
        if complaints or "NT_STATUS_" in answer:
            raise _refused(complaints or answer)
        return answer

    def _failure(self, complaints: str) -> FslabError:
        for name, child in (("smbd", self._server.child), ("smbclient", self._dialogue.child)):
            ended = child.wait(1)
            # When smbd ends by itself, it sends SIGTERM to its own group: killkids() in source3/smbd/server.c.
            by_itself = name == "smbd" and ended == -signal.SIGTERM
            if ended is not None and ended < 0 and not by_itself:
                return ToolFailedError(f"{name} was ended by signal {-ended}")
        return _refused(complaints or self._server.said() or "does not answer")


def _refused(said: str) -> FslabError:
    if "NT_STATUS_DISK_FULL" in said:
        return ToolFailedError(f"smbd: {os.strerror(errno.ENOSPC)}")
    return ToolFailedError(f"smbclient: {said.strip().splitlines()[-1]}")


@contextmanager
def connected(directory: Path, options: Mapping[str, str]) -> Iterator[SmbClient]:
    """Export a directory, and connect to it. ``options``: parameters of smb.conf(5) for the share.

    smbclient waits 20 s for a server to begin, whatever its ``--timeout`` says. On a slow or busy machine smbd can need
    longer at first; at the next try, the page cache has it.
    """
    for tries_left in reversed(range(_TRIES)):
        with _asking(directory, options) as client:
            try:
                client.say("")
            except ToolFailedError as error:
                if not (tries_left and any(late in str(error) for late in _LATE)):
                    raise
            else:
                yield client
                return


@contextmanager
def _asking(directory: Path, options: Mapping[str, str]) -> Iterator[SmbClient]:
    """Start server and client. The client is not connected yet."""
    smbd, smbclient = require(SMBD), require(CLIENT)
    account = pwd.getpwuid(users.NOBODY if os.geteuid() == 0 else os.geteuid())
    with ExitStack() as undo:
        undo.enter_context(own_network())
        owned = {"uid": str(account.pw_uid), "gid": str(account.pw_gid), "mode": "0700"}
        state = undo.enter_context(closed_after(syscalls.detached_mount("tmpfs", owned, _ATTRIBUTES)))
        place = f"{servers.DESCRIPTORS}/{state}"
        exported, shared = undo.enter_context(servers.reached(directory))
        Path(place, "smb.conf").write_text(_conf(place, exported, account.pw_name, options))
        contents = undo.enter_context(memory_file("fslab-contents"))
        with socket.create_server(("127.0.0.1", _PORT)) as listening:
            # Of one request of a connected client: 20 s by default.
            limit = f"--timeout={servers.LIMIT_S:.0f}"
            asked = ("--no-pass", "--debuglevel=0", limit, f"//127.0.0.1/{_SHARE}")
            unbuffered = ("--input=0", "--output=0", smbclient)
            argv = servers.confined(STDBUF, *unbuffered, *_file(place), *asked)
            asking = servers.dialogue(argv, _PROMPT, inherit=(state, contents), cwd=directory)
            dialogue = undo.enter_context(asking)
            listening.settimeout(servers.END_S)
            connection, _ = listening.accept()
        with connection:
            words = (smbd, *_file(place), "--log-basename", place)
            serving = servers.ending_with_parent(*words, by=signal.SIGKILL)
            server = undo.enter_context(
                servers.started(
                    users.as_account(account, serving) if os.geteuid() == 0 else serving,
                    inherit=(state, *shared), ended_by=signal.SIGTERM, stdin=connection.fileno(),
                )
            )  # fmt: skip
        yield SmbClient(dialogue, server, contents)


def _conf(place: str, exported: str, account: str, options: Mapping[str, str]) -> str:
    """Return the file smb.conf. ``exported``: a path without the names of directories, which could be lines of the
    file, or contain what smbd replaces (``%U``). A client without a password is the guest, which is who runs smbd."""
    own = {**_ALONE, **dict.fromkeys(_PLACES, place), "guest account": account, "log file": f"{place}/log"}
    share = {"path": exported, "guest ok": "yes", "read only": "no", "follow symlinks": "no", **options}
    return "".join(
        f"[{name}]\n" + "".join(f"  {key} = {value}\n" for key, value in section.items())
        for name, section in (("global", own), (_SHARE, share))
    )


def _file(place: str) -> tuple[str, str]:
    return "--configfile", f"{place}/smb.conf"
