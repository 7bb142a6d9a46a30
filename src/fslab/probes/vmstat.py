"""Memory management counters of the whole machine: what was dirtied, written back and paged meanwhile.

Reads ``/proc/vmstat`` (proc_vmstat(5), mm/vmstat.c). Only reads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from fslab.probes import Finding, Moment, Probe, Snapshot, Target, Work
from fslab.record import Severity, ValidityWarning, Value, WarningKind
from fslab.units import Unit, format_size

COUNTERS = ("pgpgin", "pgpgout", "nr_dirtied", "nr_written", "pgmajfault", "drop_pagecache", "drop_slab")
DIRTIED_SHARE = 0.5


class Vmstat(Probe):
    """``pgpgin`` and ``pgpgout`` are in KiB and count every block device, a loop device and the disk under it
    both: hence ``all_devices_``. ``nr_dirtied`` and ``nr_written`` are pages of the page cache, so direct I/O
    that really was direct does not show in them. ``drop_pagecache`` and ``drop_slab`` count writes to
    /proc/sys/vm/drop_caches: one during a run is somebody else's."""

    summary = "pages dirtied and written back, bytes of all block devices, major faults"
    moments: ClassVar[tuple[Moment, ...]] = (Moment.BEFORE, Moment.END)

    def snapshot(self, target: Target) -> Snapshot:
        """The counters that this kernel has, and the size of its pages."""
        pairs = (line.split() for line in (target.proc / "vmstat").read_text().splitlines())
        known = {name: int(number) for name, number in pairs if name in COUNTERS}
        return {**known, "page_bytes": os.sysconf("SC_PAGE_SIZE")}

    def derive(self, taken: Mapping[Moment, Snapshot], work: Work) -> Finding:
        """Bytes and faults between the snapshots; None where the kernel lacks a counter."""
        before, end = (taken[moment] for moment in self.moments)
        page_bytes = end["page_bytes"]
        dirtied = _value(before, end, "nr_dirtied", page_bytes)
        found = (_dropped(before, end), _not_direct(dirtied.value, work))
        return Finding(
            values={
                "all_devices_read_bytes": _value(before, end, "pgpgin", 1024),
                "all_devices_written_bytes": _value(before, end, "pgpgout", 1024),
                "page_cache_dirtied_bytes": dirtied,
                "page_cache_written_bytes": _value(before, end, "nr_written", page_bytes),
                "major_faults": _value(before, end, "pgmajfault", 1, Unit.COUNT),
            },
            warnings=tuple(warning for warning in found if warning),
        )


def _dropped(before: Snapshot, end: Snapshot) -> ValidityWarning | None:
    drops = sum(end.get(name, 0) - before.get(name, 0) for name in ("drop_pagecache", "drop_slab"))
    if drops <= 0:
        return None
    return ValidityWarning(
        kind=WarningKind.CACHE_DROPPED,
        severity=Severity.INVALID,
        message="somebody else dropped the machine's caches during the run",
        hint="measure when nothing else works on the machine",
        data={"drops": drops},
    )


def _not_direct(dirtied_bytes: float | None, work: Work) -> ValidityWarning | None:
    """Direct writes that dirty as many pages went through the page cache: ext4 with data=journal, and btrfs with
    checksums since Linux 6.15, take O_DIRECT and write buffered."""
    if dirtied_bytes is None or not work.direct or not work.written_bytes:
        return None
    if dirtied_bytes < work.written_bytes * DIRTIED_SHARE:
        return None
    return ValidityWarning(
        kind=WarningKind.DIRECT_NOT_HONOURED,
        severity=Severity.DOUBT,
        message=f"direct writes of {format_size(work.written_bytes)} dirtied {format_size(dirtied_bytes)} of page "
        "cache: the file system wrote through the cache all the same",
        hint="compare it with buffered writes of the others, or use options that allow direct I/O",
        data={"written_bytes": work.written_bytes, "dirtied_bytes": dirtied_bytes},
    )


def _value(before: Snapshot, end: Snapshot, name: str, scale: int, unit: Unit = Unit.BYTES) -> Value:
    if name not in before or name not in end:
        return Value(value=None, unit=unit)
    return Value(value=(end[name] - before[name]) * scale, unit=unit)
