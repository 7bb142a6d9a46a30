"""Rules about time: how long was measured, whether the rate was steady, and whether the clocks were right."""

import statistics
from itertools import dropwhile, groupby

from fslab.stats.time_series import steadiness
from fslab.trial_record import Severity
from fslab.validity import Issue, Issues
from fslab.validity.facts import Rate, TrialFacts
from fslab.validity.trial_warnings import rule

SHORTEST_STEP_S = 0.005
_SLEW = 0.0005  # adjtime(3) and NTP slew by at most 500 ppm


@rule(
    "the wall clock jumped during the run",
    when=f"the wall clock jumped against the monotonic one by more than {1000 * SHORTEST_STEP_S:g} ms, and "
    "by more than NTP can slew in the time: it was set, or the virtual machine was paused",
    needs=("clock_step", "clock_window"),
    hint="check whether NTP sets the clock, and whether the virtual machine was paused",
)
def clock_stepped(_: TrialFacts, step: float, window: float) -> Issues:
    """Tools measure with the monotonic clock, which NTP does not step.

    But if a virtual machine was paused or migrated, its wall clock jumps, and the run itself was interrupted.
    """
    if abs(step) > max(SHORTEST_STEP_S, 2 * _SLEW * window):
        yield Issue(f"the wall clock jumped by {step:+.3f} s against the monotonic clock", step_s=step)


@rule(
    "the kernel changed its clock source",
    when="the name of the clock source differs before and after the run: times before the change can be wrong",
    hint="search the kernel log for 'clocksource', and measure again",
)
def clocksource_changed(facts: TrialFacts) -> Issues:
    """The kernel switches the clock source when it finds the TSC unstable.

    Times before the switch are wrong. After it, reading the clock, which happens twice per request, takes longer.
    """
    names = facts.texts.get("clocksource", ())
    if len(set(names)) > 1:
        yield Issue(
            f"the kernel changed its clock source from {names[0]} to {names[-1]}",
            before=names[0],
            after=names[-1],
        )


LARGEST_SHIFT = 0.2  # SNIA's Performance Test Specification allows 20 % of the mean between rounds
_LEVEL = 0.01
_END = 5  # a fifth of a run is its start, and another its end


@rule(
    "the rate changed while it was measured",
    when=f"the rate during the run changed its level, or went one way, by more than {LARGEST_SHIFT:.0%}; "
    "for a set amount of work a note. Known for fio and the engine's small files, in runs of 8 s and "
    "more",
    hint="measure for longer, or precondition the device first",
)
def not_steady(facts: TrialFacts) -> Issues:
    """A mean over two levels is neither of them and depends mostly on when the run was stopped.

    So it is a warning. With a fixed amount of work, the time is still the result, and it is a note. Rates are
    autocorrelated, which makes tests report too many changes; therefore a change must also be large. Give one warning,
    about the rate that changed most.
    """
    found = [(shift, rate) for rate in facts.work.rates if abs(shift := _shift(rate)) > LARGEST_SHIFT]
    if not found:
        return
    shift, rate = max(found, key=lambda each: abs(each[0]))
    span_s = len(rate.values) * rate.interval_s
    yield Issue(
        f"the {rate.what} was not steady: over {span_s:.0f} s it changed by {100 * abs(shift):.0f} % of its median",
        severity=Severity.WARNING if facts.work.asked_s is not None else Severity.NOTE,
        shift=shift,
        interval_s=rate.interval_s,
        values=list(rate.values),
    )


def _shift(rate: Rate) -> float:
    """Return the distance of the levels, or that of start and end of a rate that went one way if it is larger, as a
    fraction of the median.

    It is 0 if there is neither, or if the run was too short to detect it. A rate that goes one way also has levels,
    which are only half as far apart. The slope of its trend would make steps seem larger than they are.
    """
    found = steadiness(rate.values)
    if found is None:
        return 0.0
    part, middle, went = max(1, len(rate.values) // _END), statistics.median(rate.values), 0.0
    if found.trend is not None and found.trend.p_value <= _LEVEL and middle > 0:
        went = (statistics.fmean(rate.values[-part:]) - statistics.fmean(rate.values[:part])) / middle
    return max(found.largest_shift or 0.0, went, key=abs)


LONGEST_S = 1.0
_STANDING = 0.05  # a rate below this share of the median, where there is progress, counts as none
_REGULAR = 4  # so many pauses can be the tool's own,
_STEP = 2  # if the progress between them takes no more than so many intervals


@rule(
    "no progress for 1 s or longer",
    when=f"no progress for {LONGEST_S:g} s or longer after the first progress, unless the tool always "
    "progresses in such steps. Known for fio with a set amount of work or in runs of 8 s and more, and for the "
    "engine's small files",
    hint="measure for longer, so that each trial includes such stalls; read the kernel log",
)
def stalled(facts: TrialFacts) -> Issues:
    """Causes of stalls: garbage collection in the device, a full journal, a paused machine.

    If stalls are less frequent than one per trial, chance decides whether a trial contains one. ``not-steady`` detects
    lasting changes of level; after a stall, the rate returns to its level. Report the longest stall of all rates.
    """
    found = [(seconds, rate) for rate in facts.work.rates if (seconds := _longest(rate)) >= LONGEST_S]
    if found:
        seconds, rate = max(found, key=lambda each: each[0])
        yield Issue(
            f"the {rate.what} stalled for {seconds:.1f} s",
            stalled_s=seconds,
            interval_s=rate.interval_s,
        )


def _longest(rate: Rate) -> float:
    """Return the longest time without progress in seconds, after the first progress.

    A tool whose operations take longer than an interval has many pauses of about the same length: these are not stalls.
    """
    moving = [value for value in rate.values if value > 0]
    least = _STANDING * statistics.median(moving) if moving else 0.0
    begun = dropwhile(lambda value: value < least, rate.values)
    runs = [
        (standing, len([*values])) for standing, values in groupby(begun, key=lambda value: value < least)
    ]
    pauses = [length for standing, length in runs if standing]
    if not pauses:
        return 0.0
    step = statistics.median(length for standing, length in runs if not standing)
    regular = len(pauses) >= _REGULAR and max(pauses) <= 2 * statistics.median(pauses)
    return 0.0 if regular and step <= _STEP else max(pauses) * rate.interval_s


# If a larger share of its writes reaches the disks in the slices of others, they pay for what it has put off.
LEFT_MOST = 0.05


@rule(
    "what a stack has put off was written in the slices of others",
    when=f"more than {LEFT_MOST:.0%} of what a tool wrote reached the disk while it was frozen, although each of its "
    "slices ends with a flush",
    hint="measure without slices: slices: off",
)
def left_work(facts: TrialFacts) -> Issues:
    """Without a flush, the round has begun again with one (``campaign.sliced_rounds``)."""
    share = facts.work.left_share
    if share is not None and share > LEFT_MOST:
        yield Issue(
            f"{share:.0%} of what the tool wrote reached the disk while it was frozen: others paid for it, and it "
            "gained the time",
            share=share,
        )


TOGETHER_MOST = 0.1


@rule(
    "the tools of all stacks ran at the same time",
    when=f"more than {TOGETHER_MOST:.0%} of what a tool measured in slices was before it was first frozen: all start "
    "at the same time, and it only computed, or soon ended",
    hint="give the tool more to do, or measure without slices: slices: off",
)
def ran_together(facts: TrialFacts) -> Issues:
    share = facts.work.together_share
    if share > TOGETHER_MOST:
        yield Issue(
            f"{share:.0%} of the measured time was not in slices: the tools of the other stacks ran too",
            share=share,
        )


SHORTEST_S = 1.0
SLICED_SHORTEST_S = 0.25  # without the start of the tool, whose rounds are what is repeated
LONG_S = 30.0
_TOLERANCE = 0.95  # a tool that is to run for 1 s reports 0.997 s
_WHOLE_RUN = 0.9  # minimum share of the requested time
_WHOLE_SLICED = 0.5


@rule(
    "the measurement was too short",
    Severity.INVALID,
    when=f"a run with a set time that measured for less than {SHORTEST_S:g} s ({SLICED_SHORTEST_S:g} s in "
    f"slices), or for less than {_WHOLE_RUN:.0%} of its time ({_WHOLE_SLICED:.0%} in slices). A "
    f"set amount of work that took less than {SHORTEST_S:g} s: a warning, because its time is the "
    f"result. Below {LONG_S:g} s: a note",
    hint="raise the runtime, or the amount of work",
)
def too_short(facts: TrialFacts) -> Issues:
    """A short run is invalid only if the run time was set.

    With a fixed amount of work, the time is the result: leaving out short trials would leave out the best trials of the
    fastest file system. Below 30 s, ext4's commit and the kernel's writeback (every 5 s) and a drive's own caches
    affect some trials and not others.
    """
    work = facts.work
    parts = work.parts_s or ({"": work.measured_s} if work.measured_s is not None else {})
    shortest_s = SLICED_SHORTEST_S if work.sliced else SHORTEST_S
    whole = _WHOLE_SLICED if work.sliced else _WHOLE_RUN  # how long each runs depends on the others
    short = {name: seconds for name, seconds in parts.items() if seconds < shortest_s * _TOLERANCE}
    asked, measured = work.asked_s, work.measured_s
    if asked is not None and measured is not None and measured < whole * asked:
        yield Issue(
            f"the tool measured for only {measured:.3g} s; it was asked for {asked:g} s",
            measured_s=measured,
            asked_s=asked,
            shortest_s=max(shortest_s, whole * asked),
        )
    elif short:
        took = ", ".join(f"{name or 'the work'} took only {seconds:.3g} s" for name, seconds in short.items())
        yield Issue(
            f"{took}: below {shortest_s:g} s the start and the end of the run affect the figure",
            severity=Severity.WARNING if asked is None else Severity.INVALID,
            seconds=short,
            shortest_s=shortest_s,
        )
    elif long := {name: seconds for name, seconds in parts.items() if seconds < LONG_S}:
        yield Issue(
            f"measured for {_listed(long)}: periodic work, such as commits and writeback every few seconds, may be "
            "missing",
            severity=Severity.NOTE,
            seconds=long,
            long_s=LONG_S,
        )


def _listed(parts: dict[str, float]) -> str:
    return ", ".join(f"{name} {seconds:.3g} s".lstrip() for name, seconds in parts.items())
