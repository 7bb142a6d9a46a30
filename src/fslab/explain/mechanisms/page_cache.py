"""Absorption by the page cache: buffered work that the device does not see in the measured time."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.explain.switch import Switch
from fslab.units import format_size
from fslab.workloads import Switchable


class PageCache(Mechanism):
    """What is read again, or written again before it is written back, costs no I/O."""

    summary = "memory answers instead of the device"
    cause = "the page cache"
    alters = True

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return seen.traits.direct is False and seen.traits.few_files

    def switch(self, seen: Seen) -> Switch | None:
        """As its own option says."""
        direct = seen.traits.switches.get(Switchable.DIRECT)
        return Switch(parameters=direct) if direct else None

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        written, device = (
            seen.written_bytes,
            seen.figure("device_written_bytes", "device bytes when the tool ended"),
        )
        if written and device is not None and device.value < 0.5 * written:
            yield self.said(
                seen,
                f"{format_size(written)} were written and the device had received {format_size(device.value)} when the "
                "tool ended: the rest was in memory.",
                device,
                seen.figure("volume_dirtied_bytes", "dirtied"),
                weight=written / max(device.value, 4096),
            )
        read = seen.figure("read_amplification", "device bytes per byte read")
        if read is not None and read.value < 0.5:
            yield self.said(
                seen,
                f"Of each byte read {read.value:.2f} came from the device, the rest from memory.",
                read,
                weight=1.0,
            )
