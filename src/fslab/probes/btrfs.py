"""Counters of btrfs: transaction commits, and use and reservation of the space for metadata.

Reads ``/sys/fs/btrfs/UUID`` (Documentation/ch-sysfs.rst of btrfs), which unmounting removes; takes some 200 µs.
"""

from collections.abc import Mapping

from fslab.probes import (
    Probe,
    ProbeFinding,
    Snapshot,
    SnapshotMoment,
    Target,
    Work,
    btrfs_directory,
    figures,
    grown,
)
from fslab.trial_record import Value
from fslab.units import Unit

_SPACE = ("bytes_used", "disk_used", "total_bytes", "bytes_may_use")


class BtrfsCounters(Probe):
    """Commits are transaction commits; an fsync writes a log tree and is not a commit. Figures of space are
    allocations, not I/O. ``btrfs_metadata_reserved`` may exceed ``btrfs_metadata_total`` while there is free space to
    add; on a small volume there is little, and btrfs flushes early. ``btrfs_metadata_copies`` is 2 for DUP."""

    summary = "btrfs: commits, metadata space, reservations and copies; how checksums are computed"
    moments = (SnapshotMoment.BEFORE, SnapshotMoment.END, SnapshotMoment.SYNCED)

    def snapshot(self, target: Target) -> Snapshot:
        """Return counters and space of the file system on these devices; nothing if it is not btrfs.

        Nothing without ``commit_stats``, which kernels before 6.0 lack.
        """
        own = btrfs_directory(target)
        if own is None or not (own / "commit_stats").exists():
            return {}
        pairs = (line.split() for line in (own / "commit_stats").read_text().splitlines())
        found: dict[str, int | str] = {name: int(number) for name, number in pairs}
        if (own / "checksum").exists():  # since 5.5: "crc32c (crc32c-intel)"
            found["checksum"] = (own / "checksum").read_text().strip()
        metadata = own / "allocation/metadata"
        if metadata.is_dir():  # with mkfs.btrfs --mixed, data and metadata are in the same block groups
            found |= {name: int((metadata / name).read_text()) for name in _SPACE}
        return found

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Compute commits until the tool ended and until all data was synced, and space when the tool ended."""
        before, end, synced = (taken[moment] for moment in self.moments)
        if not before or not end or not synced:
            return ProbeFinding(values={})
        return ProbeFinding(
            values={
                "btrfs_commits": grown(before, end, "commits"),
                "btrfs_commits_synced": grown(before, synced, "commits"),
                "btrfs_commit_time": grown(before, end, "total_commit_ms", Unit.SECONDS, scale=1e-3),
                **(_metadata(end) if "bytes_used" in end else {}),
            },
            texts={"checksum": (end["checksum"],)} if "checksum" in end else {},
        )


def _metadata(end: Snapshot) -> dict[str, Value]:
    copies = end["disk_used"] / end["bytes_used"] if end["bytes_used"] else None
    return {
        **figures(
            Unit.BYTES,
            btrfs_metadata_used=end["bytes_used"],
            btrfs_metadata_total=end["total_bytes"],
            btrfs_metadata_reserved=end["bytes_may_use"],
        ),
        **figures(Unit.RATIO, btrfs_metadata_copies=copies),
    }
