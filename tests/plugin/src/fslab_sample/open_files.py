"""How many files all processes have open. Reads ``/proc/sys/fs/file-nr``; proc_sys_fs(5)."""

from __future__ import annotations

from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.trial_record import Value
from fslab.units import Unit


class OpenFiles(Probe):
    """The first of the three numbers: allocated file handles."""

    summary = "files that all processes have open"
    moments = (SnapshotMoment.BEFORE, SnapshotMoment.END)

    def snapshot(self, target: Target) -> Snapshot:
        return {"open": int((target.proc / "sys/fs/file-nr").read_text().split()[0])}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:
        return ProbeFinding(
            values={"open_files": Value(value=taken[SnapshotMoment.END]["open"], unit=Unit.COUNT)}
        )
