"""How long a CPU may take to leave an idle state: a request to the kernel that holds while its file is open.

Documentation/power/pm_qos_interface.rst. In a virtual machine, an idle CPU halts, and waking it takes a switch to the
hypervisor; with a limit of 0, it polls instead. The request ends with the process that made it, however it ends.
Several programs can request limits: the smallest is in force.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fslab.errors import UnsupportedError
from fslab.machine import _host_facts
from fslab.machine.tunables import AUTO
from fslab.system.files import opened

DEVICE = Path("/dev/cpu_dma_latency")
NO_LIMIT_US = 2_000_000_000  # PM_QOS_CPU_LATENCY_DEFAULT_VALUE
# Allows the state C1 of current processors (1 or 2 µs), in which they do not poll and boost the others as usual; the
# next ones take 10 µs and more (drivers/idle/intel_idle.c).
SHALLOW_US = 2
_BYTES = 4


def check(value: str, device: Path = DEVICE) -> None:
    """Raise UnsupportedError if this kernel has no such limit; ``auto`` does without one."""
    if value != AUTO and not device.exists():
        raise UnsupportedError(
            "this kernel has no limit for the latency of idle CPUs (CONFIG_CPU_IDLE)",
            where=str(device),
            hint="remove 'cpu_dma_latency' on this machine",
        )


def in_force(device: Path = DEVICE) -> int | None:
    """Return the limit in microseconds, the smallest that any program requests; ``NO_LIMIT_US`` if none does.

    None if it is unknown: only root may read it.
    """
    try:
        return int.from_bytes(device.read_bytes()[:_BYTES], "little", signed=True)
    except OSError:
        return None


def fact(root: Path) -> int | str | None:
    """Return the limit for a record: microseconds, ``no limit``, or None if it is unknown."""
    found = in_force(root / DEVICE.relative_to("/"))
    return "no limit" if found == NO_LIMIT_US else found


def limit_us(value: str | None, device: Path = DEVICE, root: Path = Path("/")) -> str | None:
    """Return the limit to request. ``auto``: the one with which CPUs wake up at once, None if this kernel has none, or
    if this user may not set it."""
    if value != AUTO:
        return value
    if not os.access(device, os.R_OK | os.W_OK):
        return None
    return "0" if _host_facts.virtualisation(root) else str(SHALLOW_US)


@contextmanager
def limited(asked: str | None, device: Path = DEVICE) -> Iterator[None]:
    """Request a limit in microseconds, or ``auto``, and verify that it is in force. None: do nothing."""
    value = limit_us(asked, device)
    if value is None:
        yield
        return
    check(value, device)
    with opened(device, os.O_RDWR) as descriptor:
        os.write(descriptor, int(value).to_bytes(_BYTES, "little", signed=True))
        limit = in_force(device)
        if limit is None or limit > int(value):
            raise UnsupportedError(
                f"{value} was requested, but the kernel uses {limit}",
                where=str(device),
                hint="remove 'cpu_dma_latency' on this machine",
            )
        yield
