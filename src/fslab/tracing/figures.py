"""Turn a trace into figures of its trial, and check whether the trace may be used. Pure."""

from fslab.tracing import RingFigures, Split, Trace, Traffic
from fslab.tracing.slow_operations import Operations
from fslab.trial_record import Value
from fslab.units import Unit

SHARE_OFF = 0.005
_NAMED = 6


def values(trace: Trace, operations: Operations | None = None) -> dict[str, Value]:
    """Return figures by name; all names begin with ``traced_``, and figures that were not traced are missing.

    ``operations``: the operations that the tool logged, compared with the commits of the journal. ``traced_off`` is the
    share by which the traced written bytes differ from the block device's own count.
    """
    found = {"traced_idle_bytes": Value(value=trace.idle_bytes, unit=Unit.BYTES)}
    if trace.method is not None:
        written = _of(trace.split, "W", "WM")
        found |= {
            "traced_written_bytes": Value(value=written.bytes, unit=Unit.BYTES),
            "traced_metadata_bytes": Value(value=_of(trace.split, "WM").bytes, unit=Unit.BYTES),
            "traced_metadata_requests": Value(value=_of(trace.split, "WM").requests, unit=Unit.COUNT),
            "traced_off": Value(value=_off(trace), unit=Unit.RATIO),
        }
    if operations is not None:
        found |= _of_operations(operations)
    return found | (_of_ring(trace.ring) if trace.ring else {})


def texts(trace: Trace) -> dict[str, tuple[str, ...]]:
    """Return the method, what is absent, which tasks submitted the bytes, and which kernel functions ran longest."""
    found = {"trace_absent": trace.absent, "trace_withdrawn": tuple(withdrawn(trace))}
    if trace.method is not None:
        found["trace_method"] = (trace.method.value,)
    if trace.ring is not None:
        total = sum(trace.ring.submitted.values())
        found["submitters"] = tuple(
            f"{task} {100 * sent / total:.0f} %"
            for task, sent in [*trace.ring.submitted.items()][:_NAMED]
            if total
        )
        found["kernel_work"] = tuple(
            f"{function} {time_s:.3f} s" for function, time_s in [*trace.ring.work_s.items()][:_NAMED]
        )
    return found


def withdrawn(trace: Trace) -> list[str]:
    """Return the reasons why this trace may not be used; empty if there are none."""
    found = []
    if trace.idle_bytes:
        found.append(f"{trace.idle_bytes} bytes were written in {trace.idle_s:g} s in which nothing ran")
    if trace.method is None:
        return found
    off = _off(trace)
    if off is None:
        found.append(
            "the block device does not count requests (queue/iostats is 0), so the trace cannot be checked"
        )
    elif off > SHARE_OFF:
        found.append(f"the traced bytes differ by {100 * off:.1f} % from the block device's own count")
    return found


def _off(trace: Trace) -> float | None:
    counted = trace.stat.get("W")
    if counted is None:
        return None
    traced = _of(trace.split, "W", "WM").bytes
    return abs(traced - counted.bytes) / counted.bytes if counted.bytes else float(traced > 0)


def _of(split: Split, *kinds: str) -> Traffic:
    return sum((split[kind] for kind in kinds if kind in split), Traffic())


def _of_operations(operations: Operations) -> dict[str, Value]:
    return {
        "traced_operations": Value(value=operations.count, unit=Unit.COUNT),
        "traced_slow_operations": Value(value=operations.slow, unit=Unit.COUNT),
        "traced_slow_from": Value(value=1e9 * operations.threshold_s, unit=Unit.NANOSECONDS),
        "traced_slow_in_commits": Value(value=100 * operations.share_slow, unit=Unit.PERCENT),
        "traced_chance_in_commits": Value(value=100 * operations.share_chance, unit=Unit.PERCENT),
        "traced_all_in_commits": Value(value=100 * operations.share_all, unit=Unit.PERCENT),
    }


def _of_ring(ring: RingFigures) -> dict[str, Value]:
    found = {
        f"traced_{place}_written_bytes": Value(value=traffic.bytes, unit=Unit.BYTES)
        for place, traffic in ring.by_place.items()
    }
    found |= {
        f"traced_{place}_writes": Value(value=traffic.requests, unit=Unit.COUNT)
        for place, traffic in ring.by_place.items()
    }
    requests, journal_s = ring.written.requests, sum(end - start for start, end in ring.commits_s)
    found["traced_writes"] = Value(value=requests, unit=Unit.COUNT)
    if requests:
        found["traced_sequential"] = Value(value=100 * ring.sequential / requests, unit=Unit.PERCENT)
        for percent in (50, 90):
            found[f"traced_write_p{percent}"] = Value(value=_size(ring, percent), unit=Unit.BYTES)
        found["traced_write_mean"] = Value(value=ring.written.bytes / requests, unit=Unit.BYTES)
    found["traced_journal_commits"] = Value(value=len(ring.commits_s), unit=Unit.COUNT)
    found["traced_journal_commit_time"] = Value(value=journal_s, unit=Unit.SECONDS)
    return found


def _size(ring: RingFigures, percent: int) -> int | None:
    """Return the size that ``percent`` of the non-empty writes do not exceed."""
    left = ring.written.requests * percent / 100
    for size, requests in sorted(ring.sizes.items()):
        left -= requests
        if left <= 0:
            return size
    return None
