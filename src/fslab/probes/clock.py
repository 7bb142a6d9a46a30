"""The clocks: whether the wall clock was set, the machine was suspended, or the kernel changed its clock source.

Reads clock_gettime(2) and ``/sys/devices/system/clocksource``; takes some 20 µs.
"""

import time
from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work, figures
from fslab.units import Unit

_SOURCE = "devices/system/clocksource/clocksource0/current_clocksource"

_CLOSE_NS = 20_000  # an undisturbed attempt takes some 2 µs, in a guest without a vDSO some 10 µs
_ATTEMPTS = 50


class Clock(Probe):
    """CLOCK_MONOTONIC is slewed but never set, and stops in suspend; CLOCK_REALTIME can be set; CLOCK_BOOTTIME also
    counts suspend. ``clock_step`` is the advance of CLOCK_REALTIME minus that of CLOCK_BOOTTIME."""

    summary = "steps of the wall clock, suspend, clock source"

    def snapshot(self, target: Target) -> Snapshot:
        """Return three clocks in nanoseconds, and the name of the clock source (None if unknown)."""
        source = target.sys / _SOURCE
        return {
            **_clocks(),
            "source": source.read_text().strip() if source.exists() else None,
        }

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:
        """Compute the seconds by which the clocks diverged between the snapshots, beside those that the tool measured:
        without its start, where it reports them and all that it did (fio: not what it did in its ramp time)."""
        before, end = (taken[moment] for moment in self.moments)
        went = {name: end[name] - before[name] for name in ("real_ns", "monotonic_ns", "boot_ns")}
        sources = tuple(each["source"] for each in (before, end) if each["source"] is not None)
        return ProbeFinding(
            values=figures(
                Unit.SECONDS,
                clock_window=went["monotonic_ns"] / 1e9,
                clock_measured=None if None in (work.read_bytes, work.written_bytes) else work.measured_s,
                clock_step=(went["real_ns"] - went["boot_ns"]) / 1e9,
                suspended=(went["boot_ns"] - went["monotonic_ns"]) / 1e9,
            ),
            texts={"clocksource": sources},
        )


def _clocks() -> dict[str, int]:
    """Read the three clocks at one moment. No system call reads them together, and a task may be preempted in between.

    Therefore return the closest of some attempts. Its error is half the time between the two readings of the monotonic
    clock.
    """
    closest, found = None, {}
    for _ in range(_ATTEMPTS):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        real = time.clock_gettime_ns(time.CLOCK_REALTIME)
        boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        apart = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - before
        if closest is None or apart < closest:
            closest = apart
            found = {"real_ns": real, "monotonic_ns": before + apart // 2, "boot_ns": boot}
        if apart <= _CLOSE_NS:
            break
    return found
