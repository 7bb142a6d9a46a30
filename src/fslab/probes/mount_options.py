"""Mount options in effect: requested options and defaults, as the kernel applies them.

Reads ``/proc/self/mountinfo`` (proc_pid_mountinfo(5)) and, for ext4, ``/proc/fs/ext4/DEVICE/options``; some 50 µs.
"""

from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.system import mountinfo


class MountOptions(Probe):
    """ext4 leaves its defaults out of mountinfo and lists all options in another file. Other file systems show only
    mountinfo."""

    summary = "mount options in effect"
    moments = (SnapshotMoment.BEFORE,)

    def snapshot(self, target: Target) -> Snapshot:
        """Return all options, as the kernel spells them."""
        own = target.proc / "fs/ext4" / (target.volume or ".") / "options"
        there = target.filesystem is not None and target.directory.is_dir()
        shown = mountinfo.containing(target.directory).options.split(",") if there else []
        listed = own.read_text().split() if target.volume and own.is_file() else []
        return {"options": [*dict.fromkeys((*shown, *listed))]}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Return one text for each option."""
        return ProbeFinding(
            values={}, texts={"mount_options": tuple(taken[SnapshotMoment.BEFORE]["options"])}
        )
