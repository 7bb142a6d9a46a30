"""The settings of a machine in a fleet: ``worker.toml``, written by the machine's own administrator.

A study of the fleet can do nothing that this file does not allow: everything that is not known to be harmless is
refused before anything of the study is executed. Without the file, a study can only use images in memory and in fslab's
own directory.
"""

import os
import socket
import stat
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator

from fslab import untrusted_text
from fslab.campaign.consent import Executed, Kind, executed
from fslab.cell import Cell, Frozen, MachineSpec, MediumSpec
from fslab.errors import UnsafeError, UsageError
from fslab.machine import tunables
from fslab.names import Word, short_word, shown
from fslab.storage.parsed_stack import parsed_stack
from fslab.store.fleet_values import LONGEST_NAME
from fslab.store.store_url import has_password
from fslab.study.fields import describe
from fslab.system import path_owners, paths
from fslab.workloads import REGISTRY as WORKLOADS

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
        text = ""
        try:
            found = path.stat()
            _check_owner(path, found)
            text = untrusted_text.of_file(path, limit_bytes=LIMIT_BYTES)
        except FileNotFoundError as error:
            if needed:
                raise UsageError("does not exist", where=str(path)) from error
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
        except UnicodeDecodeError as error:
            raise UsageError("is not UTF-8 text", where=str(path), hint="save it as UTF-8") from error
        try:
            settings = cls.model_validate(tomllib.loads(text))
        except ValidationError as error:
            said = "; ".join(
                f"{'.'.join(map(str, each['loc']))}: {describe(each)}" for each in error.errors()
            )
            raise UsageError(said, where=str(path), hint="see docs/fleet.md") from error
        except ValueError as error:  # includes errors of TOML, and of numbers with too many digits
            raise UsageError(f"is not valid TOML: {error}", where=str(path)) from error
        if found and found.st_mode & 0o077 and settings.store is not None and has_password(settings.store):
            what = "other users can read this file, which has the database's password"
            raise UnsafeError(what, where=str(path), hint=f"chmod 600 {path}")
        return settings


def _check_owner(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UsageError("is not a regular file", where=str(path))
    if why := path_owners.stranger_on_the_way(path, sticky=False):
        what = f"other users can change this file, which says what may be overwritten: {why}"
        hint = f"chown root {path}; chmod 644 {path}; or use a directory that only root can change"
        raise UnsafeError(what, where=str(path), hint=hint)


OWN_KEYS = {"device": "devices", "directory": "directories"}  # of media that need more than their kind
PATHS = frozenset({"path", "image", "directory"})
# Names of files whose texts are part of the study, and these texts. fslab opens no file by these names.
TEXTS = frozenset({"file", "file_text", "description"})


def check(allowed: Allowed, cells: Sequence[Cell]) -> None:
    """Raise UnsafeError if something is not allowed. The message lists up to five refusals, each with the key of
    ``worker.toml`` that would allow it."""
    _raise_any(_refused(allowed, cells))


def check_executed(allowed: Allowed, found: Sequence[Executed]) -> None:
    """Raise UnsafeError like ``check`` if something may not be executed."""
    _raise_any(why for each in found for why in _of_executed(allowed, each))


def _raise_any(found: Iterable[str]) -> None:
    refused = dict.fromkeys(found)
    if refused:
        what = f"this machine does not allow the study: {'; '.join(list(refused)[:5])}"
        hint = "its administrator can allow it below [allow] in worker.toml, and restart the agent"
        raise UnsafeError(what, where="worker.toml", hint=hint)


def _refused(allowed: Allowed, cells: Sequence[Cell]) -> Iterator[str]:
    for cell in cells:
        yield from _of_medium(allowed, cell)
        if cell.stack.machine.type != MachineSpec().type and not allowed.guests:
            yield "virtual machines (guests = true)"
        # The kernel itself ends this request when the process that made it ends (pm_qos_interface.rst).
        if cell.tuned.keys() - {tunables.IDLE} and not allowed.tuning:
            yield "settings of the kernel or of services (tuning = true)"
        options = (cell.stack.mkfs_options, cell.stack.mount_options)
        for path in (word for text in options for word in text.split() if "/" in word):
            yield f"a path in options of mkfs or mount: {shown(path)}"
        texts = WORKLOADS.get(cell.workload.tool).Parameters.command_keys | TEXTS
        values = [
            value for key, value in cell.workload.parameters.items() if key.rpartition(".")[2] not in texts
        ]
        for value in (*values, *cell.stack.layout_options.values()):
            if _is_path(value) and not _below(str(value), allowed.directories):
                yield f"{shown(str(value))} (directories)"
    for each in executed(cells):
        yield from _of_executed(allowed, each)


def _of_medium(allowed: Allowed, cell: Cell) -> Iterator[str]:
    medium = cell.stack.medium
    if medium.type not in (*allowed.media, *(["device"] if allowed.devices else []),
                           *(["directory"] if allowed.directories else [])):  # fmt: skip
        yield f"the medium '{shown(medium.type)}' ({OWN_KEYS.get(medium.type, 'media')})"
        return
    stack = parsed_stack(cell.stack)
    planned = stack.medium_plan(paths.images())
    for device in planned.wipes:
        if device not in allowed.devices:
            yield f"to overwrite {shown(device)} (devices)"
    for path in _paths_of(medium):
        if path not in allowed.devices and not _below(path, allowed.directories):
            yield f"{shown(path)} (directories)"
    if not stack.medium.formatted and not _below(planned.device, allowed.directories):
        yield f"{shown(planned.device)} (directories)"


def _paths_of(medium: MediumSpec) -> Iterator[str]:
    """Yield the paths in a medium's options: values of keys that name a path, and values that look like one."""
    for key, value in medium.options.items():
        text = str(value)
        if key in PATHS or "/" in text or text.startswith((".", "~")):
            yield from text.split() if medium.type == "device" else (text,)


def _of_executed(allowed: Allowed, each: Executed) -> Iterator[str]:
    if each.kind in {Kind.COMMAND, Kind.SCRIPT}:
        if not allowed.commands:
            yield f"the {each.kind} '{shown(each.what)}' (commands = true)"
    elif each.what not in allowed.kernels:
        yield f"to boot {shown(each.what)} (kernels)"


def _is_path(value: Any) -> bool:
    text = str(value)
    return "\n" not in text and (text.startswith(("/", "~")) or ".." in PurePosixPath(text).parts)


def _below(path: str, directories: Iterable[str]) -> bool:
    """Return whether a path, as written, is below one of the directories. False for a relative path, also one with
    ``~``, and for a path with ``..``."""
    wanted = PurePosixPath(path)
    if not wanted.is_absolute() or ".." in wanted.parts:
        return False
    return any(wanted.is_relative_to(PurePosixPath(each)) for each in directories)
