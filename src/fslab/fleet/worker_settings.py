"""The settings of a machine in a fleet: ``worker.toml``, written by the machine's own administrator.

A study of the fleet can do nothing that this file does not allow. Without the file, a study can only use images in
memory and in fslab's own directory.
"""

import os
import socket
import stat
import tomllib
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, field_validator

from fslab.cell import Frozen
from fslab.errors import UnsafeError, UsageError
from fslab.names import Word, short_word
from fslab.store.database import has_password
from fslab.store.fleet_values import LONGEST_NAME
from fslab.system import path_owners

DEFAULT = Path("/etc/fslab/worker.toml")
LIMIT_BYTES = 1 << 20


class Allowed(Frozen):
    """What studies may use. ALL DATA on ``devices`` IS LOST when a study names them.

    ``media``: kinds of media, besides devices and directories, which have their own keys.
    ``devices``: stable names, as in a study. ``wipe``: allow devices that are not blank. ``directories``: for images
    and the medium ``directory``, including all subdirectories. ``commands``: programs and command lines of a study.
    ``tuning``: settings of the kernel and of services, changed for the time of a trial. ``guests``: virtual machines
    with installed kernels. ``kernels``: files that guests may boot.
    """

    media: tuple[str, ...] = ("ram", "virtual", "loop")
    devices: tuple[str, ...] = ()
    wipe: bool = False
    directories: tuple[str, ...] = ()
    commands: bool = False
    tuning: bool = False
    guests: bool = False
    kernels: tuple[str, ...] = ()

    @field_validator("directories")
    @classmethod
    def _absolute(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        for path in paths:
            if not path.startswith("/"):
                raise ValueError(f"'{path}' is not an absolute path")
        return paths


class WorkerSettings(Frozen):
    """``store``: URL of the fleet's store. ``stall``: seconds without a stored trial after which an assignment is
    ended."""

    name: Word = Field(
        default_factory=lambda: short_word(socket.gethostname())[:LONGEST_NAME],
        max_length=LONGEST_NAME,
        validate_default=True,  # Linux accepts any host name
    )
    labels: dict[Word, str] = {}
    store: str | None = None
    stall: float = Field(7200.0, gt=0, allow_inf_nan=False)
    allow: Allowed = Allowed()

    @classmethod
    def load(cls, path: Path, *, needed: bool) -> Self:
        """Return the settings in a file; the defaults if it does not exist and is not ``needed``.

        Raises UnsafeError if users other than root and this user can change the file, or read a password in it;
        UsageError for mistakes in it.
        """
        found: os.stat_result | None = None
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                _check_owner(path, found)
                content = file.read(LIMIT_BYTES)
        except FileNotFoundError as error:
            if needed:
                raise UsageError("does not exist", where=str(path)) from error
            content = b""
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
        try:
            settings = cls.model_validate(tomllib.loads(content.decode("utf-8")))
        except ValidationError as error:
            said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            raise UsageError(said, where=str(path), hint="see docs/fleet.md") from error
        except ValueError as error:  # includes errors of TOML and of UTF-8
            raise UsageError(f"is not valid TOML: {error}", where=str(path)) from error
        if found and found.st_mode & 0o077 and settings.store is not None and has_password(settings.store):
            raise UnsafeError(
                "other users can read this file, which has the database's password",
                where=str(path),
                hint=f"chmod 600 {path}",
            )
        return settings


def _check_owner(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UsageError("is not a regular file", where=str(path))
    if why := path_owners.stranger_on_the_way(path, sticky=False):
        raise UnsafeError(
            f"other users can change this file, which says what may be overwritten: {why}",
            where=str(path),
            hint=f"chown root {path}; chmod 644 {path}; or use a directory that only root can change",
        )
