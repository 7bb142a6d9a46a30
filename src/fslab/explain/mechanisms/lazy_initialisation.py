"""Lazy initialisation: ext4 writes inode tables in the background of the first minutes. mke2fs(8)."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.explain.switch import Switch
from fslab.units import format_size


class LazyInitialisation(Mechanism):
    """It writes while the workload does; fslab's own mkfs leaves it off."""

    summary = "inode tables are written in the background"
    cause = "lazy initialisation"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return seen.filesystem == "ext4" and "lazy_itable_init=1" in seen.cell.stack.mkfs_options

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mkfs="-E lazy_itable_init=0,lazy_journal_init=0")

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        idle = seen.of_trace("traced_idle_bytes", "written while nothing ran")
        if seen.traced is not None and idle is None:
            record = seen.traced.probes.get("traced_idle_bytes")
            if record is not None and record.value:
                yield self.said(
                    seen, f"{format_size(record.value)} were written while nothing ran.", weight=1.0
                )
