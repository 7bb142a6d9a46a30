"""Set kernel settings for trials, verify them, and restore them afterwards.

The journal contains the previous value before the new one is set. Only the settings in ``_settings`` are written.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fslab.errors import BusyError, NeedsRootError, UnsafeError, UnsupportedError
from fslab.machine import _cpu_latency, _settings, _timers
from fslab.machine._settings import OF_DEVICES, Write, in_force, is_setting
from fslab.machine.tunables import AUTO, IDLE, TIMER_NAME, TIMERS, timers
from fslab.storage import UndoJournal
from fslab.system import sysfs
from fslab.system.files import closed_after, locked

__all__ = [
    "OF_DEVICES",
    "TIMER", "alone", "check", "device_facts", "in_force", "is_setting", "is_timer", "put_back", "start_timer", "tuned",
    "tuned_devices",
]  # fmt: skip
TIMER = _timers.KIND
SETTINGS = frozenset({"tuning", TIMER})  # kinds of journal entries
LOCK = Path("/run/fslab-tuning.lock")
start_timer = _timers.start


def check(settings: Mapping[str, str]) -> None:
    """Raise an error if these settings cannot be set on this machine. Changes nothing.

    Without a setting, the study would measure something else, so it is refused; ``auto`` is what is possible here.
    Whether a device has a setting is known only when the device exists: the first trial checks that.
    """
    if settings.items() - {(IDLE, AUTO)} and os.geteuid() != 0:
        raise NeedsRootError(
            "kernel settings need root", where="tuning", hint="run with sudo, or remove 'tuning'"
        )
    _check_bounds(settings)
    for name, value in _of_machine(settings).items():
        _settings.writes(name, value)
    if IDLE in settings:
        _cpu_latency.check(settings[IDLE])
    if timers(settings.get(TIMERS, "")):
        _timers.check()


@contextmanager
def tuned(settings: Mapping[str, str], journal: UndoJournal) -> Iterator[None]:
    """Apply the settings of the machine. On exit, restore the previous values in reverse order.

    BusyError while another campaign has changed settings: each would restore the other's values. A limit for idle CPUs
    changes nothing that has to be restored.
    """
    _check_bounds(settings)
    with ExitStack() as undo:
        if settings.keys() - {IDLE}:
            undo.enter_context(alone())
        for name, value in _of_machine(settings).items():
            _make(_settings.writes(name, value), journal, undo)
        undo.enter_context(_cpu_latency.limited(settings.get(IDLE)))
        undo.enter_context(_timers.stopped(timers(settings.get(TIMERS, "")), journal))
        yield


@contextmanager
def tuned_devices(
    settings: Mapping[str, str], devices: Sequence[str], journal: UndoJournal
) -> Iterator[None]:
    """Do the same for block devices, given by kernel name (``sda``), and for the devices that they consist of."""
    with ExitStack() as undo:
        for name in OF_DEVICES:
            if name in settings:
                _make(_settings.device_writes(name, settings[name], queues(devices)), journal, undo)
        yield


def device_facts(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts of a device, named as in ``sysfs.geometry``, that ``tuned_devices`` changes."""
    facts: dict[str, Any] = {
        {"max_sectors_kib": "max_request_kib"}.get(name, name): int(settings[name])
        for name in OF_DEVICES
        if settings.get(name, "").isdecimal()
    }
    if "io_scheduler" in settings:
        facts["scheduler"] = settings["io_scheduler"]
    if "rotational" in facts:
        facts["rotational"] = bool(facts["rotational"])
    return facts


def queues(devices: Sequence[str], sys: Path = sysfs.SYS) -> list[Path]:
    """Return the request queues of block devices and of the devices below them (slaves of dm or md), each once."""
    found: dict[Path, None] = {}
    waiting = [(sys / "class/block" / name).resolve() for name in devices]
    while waiting:
        block = waiting.pop(0)
        queue = sysfs.queue_directory(block)
        if queue.is_dir() and queue not in found:
            found[queue] = None
            waiting += [slave.resolve() for slave in sorted((queue.parent / "slaves").glob("*"))]
    return list(found)


def is_timer(target: str) -> bool:
    """Return whether ``target`` is a valid timer name, so that fslab may have stopped it."""
    return TIMER_NAME.fullmatch(target) is not None


def put_back(path: Path, found: str) -> None:
    """Write the previous value again, unless the setting is gone, as that of a processor that went offline."""
    if path.exists():
        path.write_text(found)


def _check_bounds(settings: Mapping[str, str]) -> None:
    """Check all settings again: a resumed campaign takes them from the store."""
    for name, value in settings.items():
        _settings.check_bounds(name, value)
    _settings.check_together(settings)


def _of_machine(settings: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in {*OF_DEVICES, IDLE, TIMERS}}


def _make(writes: Sequence[Write], journal: UndoJournal, undo: ExitStack) -> None:
    for write in writes:
        restore, found = in_force(write.path)
        entry = journal.will_create("tuning", f"{restore}={found}")
        undo.callback(_restore, restore, found, journal, entry)
        _write(write)


def _write(write: Write) -> None:
    """Write a value and verify that it is in force: the kernel rounds some values and ignores others."""
    try:
        write.path.write_text(write.value)
    except PermissionError as error:
        raise NeedsRootError("setting it needs root", where=str(write.path), hint="run with sudo") from error
    except OSError as error:
        raise UnsupportedError(
            f"the kernel refuses '{write.value}' ({error.strerror})",
            where=str(write.path),
            hint="check the value",
        ) from error
    holds = _settings.held(write.path)
    if holds != write.value and not _equal_numbers(holds, write.value):
        raise UnsupportedError(
            f"'{write.value}' was written, but the kernel uses '{holds}'",
            where=str(write.path),
            hint=f"write {holds} in the study",
        )


def _equal_numbers(one: str, other: str) -> bool:
    return one.isdigit() and other.isdigit() and int(one) == int(other)


def _restore(path: Path, found: str, journal: UndoJournal, entry: str) -> None:
    put_back(path, found)
    journal.undone(entry)


@contextmanager
def alone(wait_s: float = 0.0) -> Iterator[None]:
    """Keep other campaigns from changing settings during the block. BusyError if one still does after ``wait_s``.

    The kernel releases the lock however its holder ends. All campaigns of the machine use the same file, whatever
    FSLAB_RUNTIME_DIR is. The file is not removed.
    """
    with _lock_file() as descriptor:
        if not locked(descriptor, wait_s=wait_s):
            raise BusyError(
                "another campaign has changed kernel settings", where="tuning", hint="wait for it, or stop it"
            )
        yield


@contextmanager
def _lock_file() -> Iterator[int]:
    """Open the lock's file. UnsafeError unless only our user can open it: others could hold the lock for ever."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(LOCK, flags, 0o600)
    except PermissionError as error:
        raise NeedsRootError("kernel settings need root", where="tuning", hint="run with sudo") from error
    except OSError as error:
        raise UnsafeError(
            f"cannot be locked ({error.strerror})", where=str(LOCK), hint="remove it"
        ) from error
    with closed_after(descriptor):
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise UnsafeError("not used: other users can open it", where=str(LOCK), hint="remove it")
        yield descriptor
