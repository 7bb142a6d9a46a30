"""Kernel messages logged during a trial; ``fslab.validity`` decides which of them mean a problem.

If the user may not read the kernel's log, this probe finds nothing.
"""

from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.system import kernel_log


class KernelLog(Probe):
    """Messages logged between the snapshot before the run and the one after everything was flushed, about the devices
    of the trial, or about no device. Messages about other devices and other file systems are left out."""

    summary = "kernel messages during the trial"
    moments = (SnapshotMoment.BEFORE, SnapshotMoment.FLUSHED)
    _log: kernel_log.KernelMessages | None = None

    def snapshot(self, target: Target) -> Snapshot:
        """Return the records since the last snapshot, in some 10 µs. They are parsed later, to take no time from the
        run. ``log`` is None if the log may not be read.
        """
        if self._log is None:
            self._log = kernel_log.KernelMessages(kernel_log.KMSG)
        return {
            "log": self._log.read(),
            "devices": (*target.devices, *((target.volume,) if target.volume else ())),
            "below": target.below,
            "others": target.others_in_log,
        }

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Return the texts of new records, possibly none. Leave ``kernel_log`` out if the log may not be read."""
        end = taken[SnapshotMoment.FLUSHED]
        if end["log"] is None:
            return ProbeFinding(values={})
        new = (message.text for message in kernel_log.parse(end["log"]))
        own = (text for text in new if kernel_log.belongs(text, end["devices"], end["below"], end["others"]))
        return ProbeFinding(values={}, texts={"kernel_log": tuple(own)})
