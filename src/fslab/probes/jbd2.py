"""The journal of ext3 and ext4: number of commits, and number of blocks written.

Reads ``/proc/fs/jbd2/DEVICE-INODE/info``, or of a journal on a disk of its own ``/proc/fs/jbd2/DEVICE/info``
(fs/jbd2/journal.c, jbd2_seq_info_show), which unmounting removes; some 20 µs.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work, grown
from fslab.trial_record import Value
from fslab.units import Unit

_LINES: Mapping[str, re.Pattern[str]] = {
    "commits": re.compile(r"^(\d+) transactions", re.MULTILINE),
    "requested": re.compile(r"\((\d+) requested\)"),
    "commit_us": re.compile(r"(\d+)us average transaction commit time"),
    "handles": re.compile(r"(\d+) handles per transaction"),
    "logged_blocks": re.compile(r"(\d+) logged blocks per transaction"),
}


class Jbd2(Probe):
    """The kernel shows averages per commit since the mount, rounded down to whole numbers. A sum is the average times
    the number of commits. ``journal_bytes_error`` bounds the rounding error: one block per commit since the mount. The
    commit time is a moving average, in which the last commit counts for a quarter (fs/jbd2/commit.c):
    ``journal_commit_mean`` is its value after the run."""

    summary = "ext4's journal: commits, bytes, commit time"
    moments = (SnapshotMoment.BEFORE, SnapshotMoment.SYNCED)

    def snapshot(self, target: Target) -> Snapshot:
        """Return the averages by name, and the block size; nothing without a jbd2 journal."""
        if (info := _info(target)) is None:
            return {}
        text = info.read_text()
        found = {name: line.search(text) for name, line in _LINES.items()}
        numbers = {name: int(match[1]) for name, match in found.items() if match}
        return {**numbers, "block_bytes": os.statvfs(target.directory).f_bsize}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        before, after = (_sums(taken[moment]) for moment in self.moments)
        if not before or not after:
            return ProbeFinding(values={})
        commits = grown(before, after, "commits").value
        mean = after["commit_us"] * 1000 if commits and "commit_us" in after else None
        error = after["commits"] * after["block_bytes"]
        return ProbeFinding(
            values={
                "journal_commits": Value(value=commits, unit=Unit.COUNT),
                "journal_commits_requested": grown(before, after, "requested"),
                "journal_bytes": grown(
                    before, after, "logged_blocks", Unit.BYTES, scale=after["block_bytes"]
                ),
                "journal_bytes_error": Value(value=error, unit=Unit.BYTES),
                "journal_handles": grown(before, after, "handles"),
                "journal_commit_mean": Value(value=mean, unit=Unit.NANOSECONDS),
            }
        )


def _info(target: Target) -> Path | None:
    own = target.proc.glob(f"fs/jbd2/{target.volume}-*/info") if target.volume else ()
    external = (target.proc / f"fs/jbd2/{device}/info" for device in target.devices)
    return next((path for path in (*own, *external) if path.exists()), None)


def _sums(snapshot: Snapshot) -> dict[str, int]:
    """Return averages times commits. Before the first commit the kernel shows no averages, and the sums are 0."""
    if "commits" not in snapshot:
        return {}
    commits = snapshot["commits"]
    summed = {name: snapshot.get(name, 0) * commits for name in ("handles", "logged_blocks")}
    kept = {
        name: snapshot[name]
        for name in ("commits", "commit_us", "requested", "block_bytes")
        if name in snapshot
    }
    return {**kept, **summed}
