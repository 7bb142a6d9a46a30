"""Whether the loop devices under the file system bypassed the page cache of their images until the end.

Reads ``/sys/class/block/loop*/loop/dio`` (Documentation/ABI/testing/sysfs-block-loop); takes some 20 µs.
"""

from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.system import sysfs
from fslab.trial_record import Value
from fslab.units import Unit


class LoopDevice(Probe):
    """``loop_direct`` is 1 if every loop device used direct I/O, else 0. Without loop devices there is no figure."""

    summary = "whether loop devices used direct I/O"
    moments = (SnapshotMoment.END,)

    def snapshot(self, target: Target) -> Snapshot:
        """Return ``loop/dio`` by device; only loop devices have this file."""
        found = {
            name: sysfs.number(target.sys / "class/block" / name / "loop/dio") for name in target.devices
        }
        return {name: direct for name, direct in found.items() if direct is not None}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Return one figure for all loop devices."""
        found = taken[SnapshotMoment.END]
        if not found:
            return ProbeFinding(values={})
        return ProbeFinding(values={"loop_direct": Value(value=min(found.values()), unit=Unit.COUNT)})
