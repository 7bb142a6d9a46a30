"""Counters of XFS for one mount: log, allocations, metadata buffers.

Reads ``/sys/fs/xfs/DEVICE/stats/stats`` (fs/xfs/xfs_stats.h; exact, per mount), which unmounting removes; takes some
30 µs.
"""

from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work, grown
from fslab.units import Unit

_LOG_BLOCK_BYTES = 512
# The line of each counter that is kept, and its position in the line.
_COUNTERS: Mapping[str, tuple[str, int]] = {
    "log_writes": ("log", 0),
    "log_blocks": ("log", 1),
    "log_no_buffer": ("log", 2),
    "log_forces": ("log", 3),
    "log_force_sleeps": ("log", 4),
    "allocated_extents": ("extent_alloc", 0),
    "freed_extents": ("extent_alloc", 2),
    "transactions_sync": ("trans", 0),
    "transactions_async": ("trans", 1),
    "log_space_waits": ("push_ail", 1),
    "extent_records": ("bmbt2", 2),
    "application_bytes": ("xpc", 1),
}


class XfsCounters(Probe):
    """``xfs_log_bytes``: bytes written to the log; ``xfs_log_no_buffer``: how often all log buffers were full."""

    summary = "XFS: log writes and bytes, log buffers, allocations"
    moments = (SnapshotMoment.BEFORE, SnapshotMoment.SYNCED)

    def snapshot(self, target: Target) -> Snapshot:
        """Return the counters of this mount; nothing if it is not XFS."""
        file = target.sys / "fs/xfs" / (target.volume or ".") / "stats/stats"
        if target.volume is None or not file.is_file():
            return {}
        lines = {name: fields for name, *fields in map(str.split, file.read_text().splitlines())}
        return {
            name: int(lines[line][position])
            for name, (line, position) in _COUNTERS.items()
            if len(lines.get(line, ())) > position
        }

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        before, after = (taken[moment] for moment in self.moments)
        if not before or not after:
            return ProbeFinding(values={})
        values = {
            f"xfs_{name}": grown(before, after, name)
            for name in _COUNTERS
            if name not in {"log_blocks", "application_bytes"}
        }
        values["xfs_log_bytes"] = grown(before, after, "log_blocks", Unit.BYTES, scale=_LOG_BLOCK_BYTES)
        values["xfs_written_bytes"] = grown(before, after, "application_bytes", Unit.BYTES)
        return ProbeFinding(values=values)
