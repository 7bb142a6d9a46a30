"""A file server: Samba exports the directory, and its own client uploads, downloads, lists and deletes files.

Source of what it promises: smb.conf(5), "strict sync" and "sync always".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
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
    repeated,
    setting,
)
from fslab.applications import _samba as server
from fslab.applications._servers import own_directory
from fslab.errors import ToolFailedError
from fslab.storage.crash_promises import Promise, Promises
from fslab.units import SomeSize

_FILE_BYTES = 6 << 10  # the unused part of the last block, an inode, a name, an attribute of Samba's
_RATES = {"upload": 1000.0, "download": 2000.0, "list": 100.0, "serve": 500.0}


class SambaLoad(Populated):
    """A transaction is the upload of one new file, or what `operation` says, by one smbclient(1) that stays connected
    to smbd(8). Both run as the user `nobody`, over a loopback of their own. smbd keeps its databases in memory.
    Afterwards all files, and no others, must be as uploaded. smbclient never asks for a flush: only `sync_always`
    syncs. Debian's package `samba` also starts a server, which is not used: `systemctl disable --now smbd nmbd`."""

    laid_out = frozenset({"operation", "files", "size"})
    amount, usual, least, made_per_s = "files", 1000, 20, 5000.0
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
    def guessed_rate(self) -> float:
        return _RATES[self.operation]

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
    tools = (server.SMBD, server.CLIENT, server.STDBUF)
    Load = SambaLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return the promises. The fsync(2) of a file must also keep its name: smbclient flushes no directory."""
        synced = settings["strict_sync"] == settings["sync_always"] == "yes"
        return Contract(durable=promises.names if synced else _UNSYNCED, consistent=promises.unexposed)

    def lay_out(self, directory: Path, settings: Settings) -> None:  # noqa: ARG002
        own_directory(directory)

    def prepare(self, drive: DriveRequest) -> None:
        """Make the files that are there before."""
        super().prepare(drive)
        for number in range(1, drive.load.there + 1):
            path = drive.directory / str(number)
            path.write_bytes(drive.contents(number))
            own_directory(path)

    def drive(self, drive: DriveRequest) -> Driven:
        load = drive.load
        with server.connected(drive.directory, load.options()) as client:
            driven = repeated(drive, _transaction(drive, client))
        first = driven.count + 1 if load.operation == "serve" else 1
        wanted = frozenset(range(first, load.there + (driven.count if load.writes else 0) + 1))
        found = self.look(drive.directory, drive.contents)
        told = f"{len(found.transactions)} files are there, and not the {len(wanted)} that must be"
        return driven.checked(found.problem or (None if found.transactions == wanted else told))

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Use one connection for all uploads."""
        with server.connected(directory, _named(settings)) as client:
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
            elif len(found) > len(uploaded) or any(
                byte not in (0, was) for byte, was in zip(found, uploaded, strict=False)
            ):
                return RecoveredData(problem=f"file {number} has other contents than were uploaded")
        return RecoveredData(transactions=frozenset(there))


_UNSYNCED = Promise(
    given=False, source='smb.conf(5), "sync always": without it, smbd(8) syncs what a client flushes'
)


def _named(settings: Settings) -> dict[str, str]:
    """Return settings by their names in smb.conf(5)."""
    return {name.replace("_", " "): value for name, value in settings.items()}


def _transaction(drive: DriveRequest, client: server.SmbClient) -> Callable[[int], object]:
    """Return what is done for each number."""
    there = drive.load.there
    kept = deque(range(1, there + 1))
    random = Random(drive.seed)  # noqa: S311 - to be repeated

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
