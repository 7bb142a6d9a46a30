"""Writeback: what this file system dirtied in the page cache and wrote back.

Reads ``bdi/NAME/stats`` of debugfs (mm/backing-dev.c), through a detached mount; takes some 50 µs. Before Linux 6.10,
which added ``wb_stats`` beside it, the file has only what the root memory cgroup dirtied.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work, btrfs_directory, grown
from fslab.system import namespaces, sysfs
from fslab.units import Unit

_FIRST_NAMESPACE = "cgroup:[4026531835]"  # PROC_CGROUP_INIT_INO, include/linux/proc_ns.h
_LINE = re.compile(r"^(BdiDirtied|BdiWritten):\s+(\d+) kB", re.MULTILINE)


class WritebackCounters(Probe):
    """Direct writes that bypass the page cache dirty nothing. Unlike /proc/vmstat, the counters are of one file
    system, but only root can read them; for other users there are no figures. ``volume_written_back_bytes`` counts
    until the tool ended, ``volume_written_back_bytes_flushed`` until syncfs(2) had returned."""

    summary = "page cache bytes that this file system dirtied and wrote back"
    moments = (SnapshotMoment.BEFORE, SnapshotMoment.END, SnapshotMoment.SYNCED)

    def snapshot(self, target: Target) -> Snapshot:
        """Return KiB since the mount; nothing without root or debugfs, or if the kernel counts only others' pages."""
        try:
            own = namespaces.debugfs() / "bdi" / _name(target)
            if not (own / "wb_stats").exists() and _in_cgroup(target.proc):
                return {}
            found = _LINE.findall((own / "stats").read_text())
        except OSError:
            return {}
        return {name: int(number) for name, number in found}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        before, end, synced = (taken[moment] for moment in self.moments)
        if not before or not end or not synced:
            return ProbeFinding(values={})
        return ProbeFinding(
            values={
                "volume_dirtied_bytes": grown(before, end, "BdiDirtied", Unit.BYTES, scale=1024),
                "volume_written_back_bytes": grown(before, end, "BdiWritten", Unit.BYTES, scale=1024),
                "volume_written_back_bytes_flushed": grown(
                    before, synced, "BdiWritten", Unit.BYTES, scale=1024
                ),
            }
        )


def _in_cgroup(proc: Path) -> bool:
    """Return whether the pages of this process count for a memory cgroup other than the root (cgroups(7)).

    In a cgroup namespace of its own, as in a container, a process seems to be in the root.
    """
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except FileNotFoundError:  # a kernel without cgroups
        return False
    if any("memory" in line.split(":")[1].split(",") for line in lines):
        return False  # version 1, which writes nothing back by cgroup
    try:
        namespace = str((proc / "self/ns/cgroup").readlink())
    except FileNotFoundError:
        namespace = _FIRST_NAMESPACE
    return namespace != _FIRST_NAMESPACE or any(line.startswith("0::") and line != "0::/" for line in lines)


def _name(target: Target) -> str:
    """Return the device's number; for btrfs a name such as ``btrfs-77``, which stands for all of its devices."""
    if own := btrfs_directory(target):
        return (own / "bdi").readlink().name
    return sysfs.major_minor(target.directory.stat().st_dev)
