"""Rules about disks: virtual ones, those with limits, and arrays."""

from fslab.trial_record import Severity
from fslab.units import Unit, format_value, listed
from fslab.validity import Issue, Issues
from fslab.validity.facts import TrialFacts
from fslab.validity.trial_warnings import rule

SHARE = 0.03


@rule(
    "the virtual disk answered later than its model says",
    when=f"a virtual disk answered late by more than {SHARE:.0%} of its model's mean service time, on average, "
    "if that is not 0",
    of_host=True,
    hint="measure when the machine is idle, or use a slower profile",
    needs=("disk_late_mean", "disk_service_mean"),
)
def disk_late(_: TrialFacts, late: float, service: float) -> Issues:
    """The server thread needs a CPU at the right moment to answer at the time that the model gives.

    Use the mean, because rates depend on it. Without a model, a disk that has faults takes no time of its own: 0.
    """
    if late > SHARE * service > 0:
        yield Issue(
            f"the virtual disk's answers were {format_value(late, Unit.NANOSECONDS)} late on average; its model's "
            f"mean service time is {format_value(service, Unit.NANOSECONDS)}",
            late_ns=late,
            service_ns=service,
        )


@rule(
    "the virtual disk did not run at the speed of its model",
    when="`speed` of a virtual disk is not 1",
    hint="compare only what is bound by the disk, and confirm it with 'speed: 1'",
)
def disk_speed(facts: TrialFacts) -> Issues:
    """The speed of the processors does not change with it, so their share of each figure differs."""
    if facts.disk_speed != 1:
        yield Issue(
            f"the virtual disk ran {facts.disk_speed:g} times as fast as its model, but not the CPUs and the "
            "file system's timers: their share of the figures differs from that on a real disk",
            speed=facts.disk_speed,
        )


TOO_FAST = "too-fast"


@rule(
    "the virtual disk is faster than this machine can serve",
    when="the round trip to a virtual disk, measured before the trial, takes longer than its model's "
    "fastest request",
    of_host=True,
    hint="keep idle CPUs ready (tuning: {cpu_dma_latency: auto}), use a slower profile, or a lower 'speed'",
)
def disk_too_fast(facts: TrialFacts) -> Issues:
    for fidelity in facts.disk_fidelities:
        if fidelity.get("verdict") == TOO_FAST:
            trip, fastest = fidelity["round_trip_ns"]["p50"], fidelity["fastest_request_ns"]
            yield Issue(
                f"the round trip to the virtual disk takes {format_value(trip, Unit.NANOSECONDS)}, but the fastest "
                f"request of its model only {format_value(fastest, Unit.NANOSECONDS)}",
                round_trip_ns=trip,
                fastest_request_ns=fastest,
            )
            return


@rule(
    "an md array lacked disks, or was rebuilt or checked",
    Severity.INVALID,
    when="before or after the run, the array of the layout lacks a disk, or a resync, recovery or check of it runs, "
    "or one ran meanwhile; a warning if the disk has `faults`, or if the study only uses the array, as that of a "
    "directory",
    hint="look at /proc/mdstat: replace the disk, or wait for the end",
)
def array_not_whole(facts: TrialFacts) -> Issues:
    """Without a disk, less is written, and reads compute what it had; a rebuild or check reads and writes all disks."""
    own, below = (facts.texts.get(name, ()) for name in ("layout_array", "arrays_below"))
    if own and not facts.disk_faults:
        yield Issue(f"the array is not the one that the study asks for: {listed(own)}")
    elif own or below:
        yield Issue(
            f"{listed((*own, *below))}: its speed is not that of a whole array", severity=Severity.WARNING
        )
