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
    filesystems = frozenset({"ext2", "ext3", "ext4", "btrfs", "f2fs", "nilfs2"})
    unless = ("nobarrier", "barrier=0", "fsync_mode=nobarrier")
    unswitchable = frozenset({"xfs", "bcachefs"})
    off = Switch(mount=("nobarrier",), instead=("barrier",))

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        flushes = evidence.per_sync("device_flushes", "cache flushes per fsync")
        each = 0.0 if flushes is None else flushes.value / evidence.disks
        if each > 0.2:
            several = evidence.disks > 1
            yield self.explanation(
                evidence,
                f"Each fsync caused {each:.2f} cache flushes of {'each' if several else 'the'} device on average.",
                flushes and flushes.model_copy(update={"name": f"{flushes.name}{', all devices' * several}"}),
                evidence.figure("device_flushes"),
                weight=each,
            )
