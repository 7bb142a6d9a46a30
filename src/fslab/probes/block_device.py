"""Block-device counters: what reached the device, compared with what the application transferred.

Reads ``/sys/class/block/*/stat`` (Documentation/block/stat.rst; a sector there is always 512 bytes, for any
device). Only reads; takes some 30 µs per device.
"""

from collections.abc import Mapping
from pathlib import Path

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Transactions, Work, figures
from fslab.system import sysfs
from fslab.trial_record import Value
from fslab.units import Unit

SECTOR_BYTES = 512
FIELDS = (
    "read_requests", "read_merges", "read_sectors", "read_ms",
    "write_requests", "write_merges", "write_sectors", "write_ms",
    "in_flight", "busy_ms", "queue_ms",
    "discard_requests", "discard_merges", "discard_sectors", "discard_ms",
    "flush_requests", "flush_ms",
)  # fmt: skip
LEAST_MS = 20  # the counter is then right to 5 %
COUNTED = ("read_requests", "write_requests", "read_merges", "write_merges")


class BlockDevice(Probe):
    """Counters of all devices under the file system, summed.

    On some file systems, empty flushes count as write requests of 0 sectors, so bytes are more reliable than requests.
    ``…_longest``: of several disks, on the one where it took longest; the others may have worked meanwhile.
    ``device_written_bytes`` counts until the tool ended, ``device_written_bytes_flushed`` until all dirty data had
    reached the device. Only the latter is the full cost of the work.
    """

    summary = (
        "bytes, requests, their times and flushes at the block device, also per transaction; amplification"
    )
    moments = (SnapshotMoment.BEFORE, SnapshotMoment.END, SnapshotMoment.FLUSHED)

    def snapshot(self, target: Target) -> Snapshot:
        """Return the counters by device. ValueError if counting is switched off (``queue/iostats`` is 0)."""
        return {name: _counters(target.sys / "class/block" / name) for name in target.devices}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:
        before, end, flushed = (taken[moment] for moment in self.moments)
        if not before:
            return ProbeFinding(values={})
        run = {name: _difference(before, end, name) for name in FIELDS}
        read_bytes = _bytes(run["read_sectors"])
        flushed_bytes = _bytes(_difference(before, flushed, "write_sectors"))
        return ProbeFinding(
            values={
                **figures(
                    Unit.BYTES,
                    device_read_bytes=read_bytes,
                    device_written_bytes=_bytes(run["write_sectors"]),
                    device_written_bytes_flushed=flushed_bytes,
                    device_discarded_bytes=_bytes(run["discard_sectors"]),
                ),
                **figures(Unit.COUNT, **{f"device_{name}": run[name] for name in COUNTED}),
                **figures(Unit.COUNT, device_flushes=run["flush_requests"]),
                **figures(
                    Unit.SECONDS,
                    device_busy=_seconds(run["busy_ms"]),
                    device_flush_time=_seconds(run["flush_ms"]),
                    **_longest(before, end),
                ),
                **figures(
                    Unit.NANOSECONDS,
                    **{f"device_{kind}_mean": _mean(run, kind) for kind in ("read", "write", "flush")},
                ),
                **figures(
                    Unit.RATIO,
                    read_amplification=_ratio(read_bytes, work.read_bytes),
                    write_amplification=_ratio(flushed_bytes, work.written_bytes),
                ),
                **_each(work.transactions, flushed_bytes),
            }
        )


def _each(transactions: Transactions | None, flushed_bytes: int | None) -> dict[str, Value]:
    """Return what each transaction costs, with what is written only after the last one; nothing of a workload that has
    none."""
    if transactions is None:
        return {}
    before, count = transactions.bytes_before, transactions.count
    own = None if flushed_bytes is None or before is None else max(0.0, flushed_bytes - before)
    return {
        **figures(Unit.BYTES, device_written_per_transaction=_ratio(own, count)),
        **figures(Unit.RATIO, device_flushes_per_transaction=_ratio(transactions.flushes, count)),
    }


def _counters(device: Path) -> dict[str, int]:
    switch = sysfs.queue_directory(device.resolve()) / "iostats"
    if sysfs.text(switch) == "0":
        raise ValueError(f"the kernel does not count requests of {device.name}: {switch} is 0")
    numbers = [int(number) for number in (device / "stat").read_text().split()]
    # Kernels before 5.5 have no flush counters, those before 4.18 no discard counters either.
    return dict(zip(FIELDS, numbers, strict=False))


def _difference(before: Snapshot, after: Snapshot, field: str) -> int | None:
    """Return the sum over all devices; None if a device lacks the counter, disappeared or was reset."""
    total = 0
    for name, counters in before.items():
        first, last = counters.get(field), after.get(name, {}).get(field)
        if first is None or last is None or last < first:
            return None
        total += last - first
    return total


def _longest(before: Snapshot, after: Snapshot) -> dict[str, float | None]:
    """Return the times of the disk on which they were longest; nothing of a single disk."""
    if len(before) < 2:
        return {}
    found = {}
    for figure, field in (("device_busy", "busy_ms"), ("device_flush_time", "flush_ms")):
        each = [_difference({name: counters}, after, field) for name, counters in before.items()]
        known = [took_ms for took_ms in each if took_ms is not None]
        found[f"{figure}_longest"] = _seconds(max(known)) if len(known) == len(each) else None
    return found


def _bytes(sectors: int | None) -> int | None:
    return None if sectors is None else sectors * SECTOR_BYTES


def _mean(run: Mapping[str, int | None], kind: str) -> float | None:
    """Return the mean time of a kind of request, with its wait in the device's queue, in ns; None if there are too few
    for the counter, which has whole milliseconds."""
    spent_ms, requests = run[f"{kind}_ms"], run[f"{kind}_requests"]
    return spent_ms * 1e6 / requests if spent_ms and requests and spent_ms >= LEAST_MS else None


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _ratio(of_device: float | None, of_application: int | None) -> float | None:
    return of_device / of_application if of_device is not None and of_application else None
