"""Lazy initialisation: ext4 writes inode tables in the background during the first minutes. mke2fs(8)."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size


class LazyInitialisation(Mechanism):
    """These writes happen at the same time as the workload. fslab's own mkfs command disables them."""

    summary = "inode tables are written in the background"
    cause = "lazy initialisation"
    filesystems = frozenset({"ext4"})
    writing = False
    wants = ("lazy_itable_init=1",)
    off = Switch(mkfs="-E lazy_itable_init=0,lazy_journal_init=0")

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        idle = evidence.of_trace("traced_idle_bytes", "written while no tool ran")
        if evidence.traced is not None and idle is None:
            record = evidence.traced.probes.get("traced_idle_bytes")
            if record is not None and record.value:
                yield self.explanation(
                    evidence, f"{format_size(record.value)} were written while no tool ran.", weight=1.0
                )
