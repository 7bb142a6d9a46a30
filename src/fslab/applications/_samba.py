"""Samba's smbd and smbclient, which exports one directory and works on it, both as the user nobody.

Neither is on the network: they talk over the loopback of a network namespace of this process, in which fslab accepts
the one connection and hands it to smbd, as inetd(8) does. What smbd keeps besides the files (its databases, its log) is
in a tmpfs that is mounted at no place and ends with the processes that use it.
"""

from __future__ import annotations

import errno
import os
import pwd
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fslab.applications import _servers as servers
from fslab.errors import FslabError, ToolFailedError
from fslab.system import syscalls, users
from fslab.system.files import closed_after, memory_file
from fslab.system.namespaces import own_network
from fslab.system.syscalls import MountAttribute
from fslab.system.tools import Tool, require

SMBD = Tool(program="smbd", package="samba")
CLIENT = Tool(program="smbclient", package="smbclient")
STDBUF = Tool(program="stdbuf", package="coreutils")
_SHARE, _PORT = "fslab", 445
# Printed after each command: smbclient has no prompt when its input is no terminal. It does not ask the server for it.
_WHERE, _PROMPT = "pwd", b"Current directory is \\\\127.0.0.1\\" + _SHARE.encode() + b"\\\n"
_FILES = (["A"], ["N"])  # their attributes in a listing: changed since a backup, or none
_LONG_S = 3600.0  # of one command; the trial has a time limit
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
        answer = self._dialogue.say(f"{command}\n{_WHERE}")
        complaints = self._dialogue.complaints()
        if answer is None or "NT_STATUS_CONNECTION" in complaints + answer:
            raise self._failure(complaints)
        if complaints or "NT_STATUS_" in answer:
            raise _refused(complaints or answer)
        return answer

    def _failure(self, complaints: str) -> FslabError:
        for name, child in (("smbd", self._server.child), ("smbclient", self._dialogue.child)):
            ended = child.wait(1)
            if ended is not None and ended < 0:
                return ToolFailedError(f"{name} was ended by signal {-ended}")
        return _refused(complaints or self._server.said() or "does not answer")


def _refused(said: str) -> FslabError:
    if "NT_STATUS_DISK_FULL" in said:
        return ToolFailedError(f"smbd: {os.strerror(errno.ENOSPC)}")
    return ToolFailedError(f"smbclient: {said.strip().splitlines()[-1]}")


@contextmanager
def connected(directory: Path, options: Mapping[str, str]) -> Iterator[SmbClient]:
    """Export a directory, and connect to it. ``options``: parameters of smb.conf(5) for the share."""
    smbd, smbclient = require(SMBD), require(CLIENT)
    account = pwd.getpwuid(users.NOBODY if os.geteuid() == 0 else os.geteuid())
    with ExitStack() as undo:
        undo.enter_context(own_network())
        state = undo.enter_context(closed_after(_state(account.pw_uid, account.pw_gid)))
        place = f"{servers.DESCRIPTORS}/{state}"
        Path(place, "smb.conf").write_text(_conf(place, directory, account.pw_name, options))
        contents = undo.enter_context(memory_file("fslab-contents"))
        with socket.create_server(("127.0.0.1", _PORT)) as listening:
            asked = ("--no-pass", "--debuglevel=0", f"//127.0.0.1/{_SHARE}")
            unbuffered = ("--input=0", "--output=0", smbclient)
            argv = servers.unprivileged(*_ending(require(STDBUF), *unbuffered, *_file(place), *asked))
            asking = servers.dialogue(
                argv, _PROMPT, inherit=(state, contents), cwd=directory, limit_s=_LONG_S
            )
            dialogue = undo.enter_context(asking)
            listening.settimeout(servers.LIMIT_S)
            connection, _ = listening.accept()
        with connection:
            serving = _ending(smbd, *_file(place), "--log-basename", place)
            server = undo.enter_context(
                servers.started(
                    users.as_account(account, serving) if os.geteuid() == 0 else serving,
                    inherit=(state,), ended_by=signal.SIGTERM, stdin=connection.fileno(),
                )
            )  # fmt: skip
        client = SmbClient(dialogue, server, contents)
        client.say("")  # it is connected
        yield client


def _conf(place: str, directory: Path, account: str, options: Mapping[str, str]) -> str:
    """Return the file smb.conf. A client without a password is the guest, which is who runs smbd."""
    own = {**_ALONE, **dict.fromkeys(_PLACES, place), "guest account": account, "log file": f"{place}/log"}
    share = {"path": str(directory), "guest ok": "yes", "read only": "no", "follow symlinks": "no", **options}
    return "".join(
        f"[{name}]\n" + "".join(f"  {key} = {value}\n" for key, value in section.items())
        for name, section in (("global", own), (_SHARE, share))
    )


def _ending(*words: str) -> list[str]:
    return servers.ending_with_parent(*words, by=signal.SIGKILL)


def _file(place: str) -> tuple[str, str]:
    return "--configfile", f"{place}/smb.conf"


def _state(user: int, group: int) -> int:
    """Return a descriptor of a new tmpfs that belongs to a user."""
    options = {"uid": str(user), "gid": str(group), "mode": "0700"}
    return syscalls.detached_mount("tmpfs", options, _ATTRIBUTES)
