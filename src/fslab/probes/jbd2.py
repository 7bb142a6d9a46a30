"""The journal of ext3 and ext4: how often it committed and how many blocks it wrote.

Reads ``/proc/fs/jbd2/DEVICE-*/info`` (fs/jbd2/journal.c, jbd2_seq_info_show); takes some 20 µs. Gone after umount.
"""

import os
import re
from collections.abc import Mapping
from typing import ClassVar

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.probes._figures import grown
from fslab.record import Value
from fslab.units import Unit

_LINES: Mapping[str, re.Pattern[str]] = {
    "commits": re.compile(r"^(\d+) transactions", re.MULTILINE),
    "requested": re.compile(r"\((\d+) requested\)"),
    "commit_us": re.compile(r"(\d+)us average transaction commit time"),
    "handles": re.compile(r"(\d+) handles per transaction"),
    "logged_blocks": re.compile(r"(\d+) logged blocks per transaction"),
}


class Jbd2(Probe):
    """The kernel gives whole averages since the mount: sums are the averages times the number of commits, which is
    off by half a unit per commit at most, ``journal_bytes_error``."""

    summary = "ext4's journal: commits, bytes, commit time"
    moments: ClassVar[tuple[SnapshotMoment, ...]] = (SnapshotMoment.BEFORE, SnapshotMoment.SYNCED)

    def snapshot(self, target: Target) -> Snapshot:
        """Averages by name and the block size; nothing where there is no journal of this kind."""
        files = sorted(target.proc.glob(f"fs/jbd2/{target.volume}-*/info")) if target.volume else []
        if not files:
            return {}
        text = files[0].read_text()
        found = {name: line.search(text) for name, line in _LINES.items()}
        numbers = {name: int(match[1]) for name, match in found.items() if match}
        return {**numbers, "block_bytes": os.statvfs(target.directory).f_bsize}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        before, after = (_sums(taken[moment]) for moment in self.moments)
        if not before or not after:
            return ProbeFinding(values={})
        commits = grown(before, after, "commits").value
        commit_us = grown(before, after, "commit_us").value
        mean = commit_us * 1000 / commits if commits and commit_us is not None else None
        error = (before["commits"] + after["commits"]) / 2 * after["block_bytes"]
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


def _sums(snapshot: Snapshot) -> dict[str, int]:
    """Averages times commits; before the first commit there are no averages, and the sums are 0."""
    if "commits" not in snapshot:
        return {}
    commits = snapshot["commits"]
    summed = {name: snapshot.get(name, 0) * commits for name in ("commit_us", "handles", "logged_blocks")}
    kept = {name: snapshot[name] for name in ("commits", "requested", "block_bytes") if name in snapshot}
    return {**kept, **summed}
