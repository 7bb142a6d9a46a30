"""Set kernel settings for trials and stop systemd timers, verify that, and restore them afterwards.

The journal contains the previous value before the new one is set. Only the settings in ``_settings`` are written.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fslab.errors import BusyError, NeedsRootError, ToolFailedError, UnsafeError, UnsupportedError
from fslab.machine import _settings, facts
from fslab.machine._settings import FIRST, OF_DEVICES, Write, in_force, is_setting
from fslab.machine.tunables import AUTO, IDLE, TIMER_NAME, TIMERS, timers
from fslab.storage import UndoJournal, undone_later
from fslab.system import proc, sysfs, tools
from fslab.system.files import locked, opened

__all__ = [
    "OF_DEVICES",
    "TIMER", "alone", "check", "check_latency", "check_timers", "device_facts", "is_setting", "is_timer",
    "latency_limited", "latency_us", "put_back", "queues", "start_timer", "timers_stopped", "tuned", "tuned_devices",
    "tuned_mount",
]  # fmt: skip
TIMER = "timer"
SETTINGS = frozenset({"tuning", TIMER})  # kinds of journal entries
LOCK = Path("/run/fslab-tuning.lock")
SYSTEMD = Path("/run/systemd/system")  # sd_booted(3)
TIMER_LIMIT_S = 30.0
# Allows the state C1 of current processors (1 or 2 µs), in which they do not poll and boost the others as usual; the
# next ones take 10 µs and more (drivers/idle/intel_idle.c).
SHALLOW_US = 2


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
        check_latency(settings[IDLE])
    if timers(settings.get(TIMERS, "")):
        check_timers()


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
        made: list[Write] = []
        wanted = _of_machine(settings)
        for name in sorted(wanted, key=lambda each: each not in FIRST):
            for path in _settings.raised(name):
                _keep(path, journal, undo)
            made += _make(_settings.writes(name, wanted[name]), journal, undo)
        _verify(made)
        undo.enter_context(latency_limited(settings.get(IDLE)))
        undo.enter_context(timers_stopped(timers(settings.get(TIMERS, "")), journal))
        yield


@contextmanager
def tuned_devices(
    settings: Mapping[str, str], devices: Sequence[str], journal: UndoJournal
) -> Iterator[None]:
    """Do the same for block devices, given by kernel name (``sda``), and for the devices that they consist of.

    One setting changes others, so all of them are put back, in the order in which they are set.
    """
    wanted = [name for name in OF_DEVICES if name in settings]
    found = queues(devices) if wanted else []
    with ExitStack() as undo:
        for name in reversed(OF_DEVICES):
            for path in _settings.device_files(name, found):
                _keep(path, journal, undo, inode=str(path.stat().st_ino))
        made = [write for name in wanted for write in _settings.device_writes(name, settings[name], found)]
        for write in made:
            _write(write)
        _verify(made)
        yield


@contextmanager
def tuned_mount(
    settings: Mapping[str, str],
    filesystem: str,
    devices: Sequence[str],
    directory: Path,
    journal: UndoJournal,
) -> Iterator[None]:
    """Do the same for those settings of devices of which the file system has its own, which each mount makes anew.
    ``directory``: on it."""
    number = sysfs.major_minor(directory.stat().st_dev)
    with ExitStack() as undo:
        for name in OF_DEVICES:
            if name in settings:
                writes = _settings.mount_writes(name, settings[name], filesystem, devices, number)
                for write in writes:
                    _keep(write.path, journal, undo, inode=str(write.path.stat().st_ino))
                    _write(write)
                _verify(writes)
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
            waiting += sysfs.slaves(queue.parent)
    return list(found)


def is_timer(target: str) -> bool:
    """Return whether ``target`` is a valid timer name, so that fslab may have stopped it."""
    return TIMER_NAME.fullmatch(target) is not None


def put_back(path: Path, found: str, inode: str = "") -> None:
    """Write the previous value again, unless the setting is gone, as that of a processor that went offline.

    ``inode``: the number of the file, if it is of a device. Until the next boot, the kernel gives it to no other one:
    another device that got this name later is left alone.
    """
    if path.exists() and inode in {"", str(path.stat().st_ino)} and _settings.held(path) != found:
        path.write_text(found)


def _check_bounds(settings: Mapping[str, str]) -> None:
    """Check all settings again: a resumed campaign takes them from the store."""
    for name, value in settings.items():
        _settings.check_bounds(name, value)
    _settings.check_together(settings)


def _of_machine(settings: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in {*OF_DEVICES, IDLE, TIMERS}}


def _make(writes: Sequence[Write], journal: UndoJournal, undo: ExitStack) -> list[Write]:
    for write in writes:
        _keep(write.path, journal, undo)
        _write(write)
    return [*writes]


def _keep(path: Path, journal: UndoJournal, undo: ExitStack, *, inode: str = "") -> None:
    restore, found = in_force(path)
    target = f"{restore}={found}={inode}" if inode else f"{restore}={found}"
    undone_later(journal, "tuning", target, undo, partial(put_back, restore, found, inode))


def _write(write: Write) -> None:
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


def _verify(made: Sequence[Write]) -> None:
    """Verify that all values are in force, after the last one was written: the kernel rounds some, ignores others, and
    changes some with others."""
    for write in made:
        holds = _settings.held(write.path)
        if holds != write.value and not _equal_numbers(holds, write.value):
            raise UnsupportedError(
                f"'{write.value}' was written, but the kernel uses '{holds}'",
                where=str(write.path),
                hint=f"write {holds} in the study",
            )


def _equal_numbers(one: str, other: str) -> bool:
    return one.isdigit() and other.isdigit() and int(one) == int(other)


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
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = opened(LOCK, flags)
    except PermissionError as error:
        raise NeedsRootError("kernel settings need root", where="tuning", hint="run with sudo") from error
    except OSError as error:
        raise UnsafeError(
            f"cannot be locked ({error.strerror})", where=str(LOCK), hint="remove it"
        ) from error
    with file as descriptor:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise UnsafeError("not used: other users can open it", where=str(LOCK), hint="remove it")
        yield descriptor


def check_latency(value: str, device: Path = facts.IDLE_LATENCY) -> None:
    """Raise UnsupportedError if this kernel has no limit for the latency of idle CPUs; ``auto`` does without one."""
    if value != AUTO and not device.exists():
        raise UnsupportedError(
            "this kernel has no limit for the latency of idle CPUs (CONFIG_CPU_IDLE)",
            where=str(device),
            hint="remove 'cpu_dma_latency' on this machine",
        )


def latency_us(value: str | None, device: Path = facts.IDLE_LATENCY, root: Path = Path("/")) -> str | None:
    """Return the limit to request. ``auto``: the one with which CPUs wake up at once, None if this kernel has none, or
    if this user may not set it.

    In a virtual machine, an idle CPU halts, and waking it takes a switch to the hypervisor; with a limit of 0, it polls
    instead.
    """
    if value != AUTO:
        return value
    if not os.access(device, os.R_OK | os.W_OK):
        return None
    return "0" if facts.virtualisation(root) else str(SHALLOW_US)


@contextmanager
def latency_limited(asked: str | None, device: Path = facts.IDLE_LATENCY) -> Iterator[None]:
    """Request a limit in microseconds, or ``auto``, and verify that it is in force. None: do nothing.

    Documentation/power/pm_qos_interface.rst: it ends with the process that made it, however it ends, and of the limits
    of several programs the smallest is in force: with ``auto``, that of another program may be.
    """
    value = latency_us(asked, device)
    if value is None:
        yield
        return
    check_latency(value, device)
    with opened(device, os.O_RDWR) as descriptor:
        os.write(descriptor, int(value).to_bytes(4, "little", signed=True))
        limit = facts.idle_latency_us(device)
        lower = limit is not None and limit < int(value)
        if limit != int(value) and not (lower and asked == AUTO):
            raise UnsupportedError(
                f"{value} was requested, but the kernel uses {limit}",
                where=str(device),
                hint=f"another program requests less: end it, or write {limit} in the study"
                if lower
                else "remove 'cpu_dma_latency' on this machine",
            )
        yield


def check_timers(running: Path = SYSTEMD) -> None:
    """Raise UnsupportedError if systemd does not run."""
    if not running.is_dir() or tools.find("systemctl") is None:
        raise UnsupportedError(
            "systemd does not run on this machine",
            where="tuning.stop_timers",
            hint="remove 'stop_timers' on this machine",
        )


@contextmanager
def timers_stopped(names: Sequence[str], journal: UndoJournal) -> Iterator[None]:
    """Stop the systemd timers that are active, and start these again at the end, in reverse order. A stopped timer
    starts no new job; a job that it started before continues."""
    if names:
        check_timers()
    with ExitStack() as undo:
        for name in filter(_is_active, names):
            undone_later(journal, TIMER, name, undo, partial(start_timer, name))
            proc.run(["systemctl", "stop", "--", name], timeout_s=TIMER_LIMIT_S)
            if _is_active(name):
                raise ToolFailedError("is still active after it was stopped", where=name)
        yield


def start_timer(name: str) -> None:
    """Start a timer that fslab stopped."""
    proc.run(["systemctl", "start", "--", name], timeout_s=TIMER_LIMIT_S)


def _is_active(name: str) -> bool:
    argv = ["systemctl", "is-active", "--quiet", "--", name]
    return proc.run(argv, check=False, timeout_s=TIMER_LIMIT_S).returncode == 0
