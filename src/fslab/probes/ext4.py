"""Counters of ext4: fast commits, and data that had no allocated blocks yet when the tool ended.

Reads ``/proc/fs/ext4/DEVICE/fc_info`` and ``/sys/fs/ext4/DEVICE`` (Documentation/admin-guide/ext4.rst); some 30 µs.
"""

import os
import re
from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work, grown
from fslab.trial_record import Value
from fslab.units import Unit

_FAST = re.compile(r"^(\d+) (commits|ineligible|numblks)$", re.MULTILINE)


class Ext4Counters(Probe):
    """``session_write_kbytes`` is left out, because it repeats the block device's own count."""

    summary = "ext4: fast commits, delayed allocation"

    def snapshot(self, target: Target) -> Snapshot:
        """Return the counters of this mount; nothing if it is not ext4."""
        own = target.sys / "fs/ext4" / (target.volume or ".")
        if target.volume is None or not own.is_dir():
            return {}
        found = {"block_bytes": os.statvfs(target.directory).f_bsize}
        found["delayed"] = int((own / "delayed_allocation_blocks").read_text())
        info = target.proc / "fs/ext4" / target.volume / "fc_info"
        if info.exists():
            found |= {f"fast_{name}": int(number) for number, name in _FAST.findall(info.read_text())}
        return found

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Compute the growth between the snapshots; for delayed allocation, use the value at the end."""
        before, end = (taken[moment] for moment in self.moments)
        if not before or not end:
            return ProbeFinding(values={})
        delayed = end["delayed"] * end["block_bytes"]
        return ProbeFinding(
            values={
                "delayed_allocation_bytes": Value(value=delayed, unit=Unit.BYTES),
                "fast_commits": grown(before, end, "fast_commits"),
                "fast_commits_ineligible": grown(before, end, "fast_ineligible"),
                "fast_commit_bytes": grown(before, end, "fast_numblks", Unit.BYTES, scale=end["block_bytes"]),
            }
        )
