"""Memory management counters of the whole machine: pages dirtied and written back, bytes paged in and out.

Reads ``/proc/vmstat`` (proc_vmstat(5), mm/vmstat.c). Only reads.
"""

import os
from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work, grown
from fslab.trial_record import Value
from fslab.units import Unit

COUNTERS = ("pgpgin", "pgpgout", "nr_dirtied", "nr_written", "pgmajfault", "drop_pagecache", "drop_slab")


class Vmstat(Probe):
    """``pgpgin`` and ``pgpgout`` are in KiB and count every block device, both a loop device and the disk under it:
    hence ``all_devices_``. ``nr_dirtied`` and ``nr_written`` are pages of the page cache, so I/O that bypassed it is
    not counted. ``drop_pagecache`` and ``drop_slab`` count writes to /proc/sys/vm/drop_caches; during a run, such
    writes come from another program."""

    of_machine = True
    summary = "pages dirtied and written back, bytes of all block devices, major faults"

    def snapshot(self, target: Target) -> Snapshot:
        """Return the counters that this kernel has, and its page size."""
        pairs = (line.split() for line in (target.proc / "vmstat").read_text().splitlines())
        known = {name: int(number) for name, number in pairs if name in COUNTERS}
        return {**known, "page_bytes": os.sysconf("SC_PAGE_SIZE")}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Compute bytes and faults between the snapshots; None if the kernel lacks a counter."""
        before, end = (taken[moment] for moment in self.moments)
        page_bytes = end["page_bytes"]
        return ProbeFinding(
            values={
                "all_devices_read_bytes": grown(before, end, "pgpgin", Unit.BYTES, scale=1024),
                "all_devices_written_bytes": grown(before, end, "pgpgout", Unit.BYTES, scale=1024),
                "page_cache_dirtied_bytes": grown(before, end, "nr_dirtied", Unit.BYTES, scale=page_bytes),
                "page_cache_written_bytes": grown(before, end, "nr_written", Unit.BYTES, scale=page_bytes),
                "major_faults": grown(before, end, "pgmajfault"),
                "cache_drops": _drops(before, end),
            }
        )


def _drops(before: Snapshot, end: Snapshot) -> Value:
    names = [name for name in ("drop_pagecache", "drop_slab") if name in before and name in end]
    drops = sum(end[name] - before[name] for name in names) if names else None
    return Value(value=drops, unit=Unit.COUNT)
