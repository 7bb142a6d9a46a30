"""Cache flushes that keep commits in order on disks with a volatile cache.

Documentation/block/writeback_cache_control.rst
"""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch


class Barriers(Mechanism):
    """Each fsync flushes the device's cache at least once. Without flushes, a power cut loses synced data."""

    summary = "cache flushes per fsync"
    cause = "cache flushes"
    filesystems = frozenset({"ext2", "ext3", "ext4", "btrfs"})
    unless = ("nobarrier", "barrier=0")
    off = Switch(mount=("nobarrier",), instead=("barrier",))

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        flushes = evidence.per_sync("device_flushes", "cache flushes per fsync")
        if flushes is not None and flushes.value > 0.2:
            yield self.explanation(
                evidence,
                f"Each fsync caused {flushes.value:.2f} cache flushes of the device on average.",
                flushes,
                evidence.figure("device_flushes"),
                weight=flushes.value,
            )
