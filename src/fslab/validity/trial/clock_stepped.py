"""Clock stepped: the wall clock was set, or the machine was paused, during the run. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

SHORTEST_STEP_S = 0.005
_SLEW = 0.0005  # adjtime(3) and NTP slew by at most 500 ppm


class ClockStepped(TrialRule):
    """Tools measure with the monotonic clock, which NTP does not step.

    But if a virtual machine was paused or migrated, its wall clock jumps, and the run itself was interrupted.
    """

    summary = "the wall clock jumped during the run"
    severity = Severity.WARNING
    when = (
        f"the wall clock jumped against the monotonic one by more than {1000 * SHORTEST_STEP_S:g} ms, and "
        "by more than NTP can slew in the time: it was set, or the virtual machine was paused"
    )
    needs = ("clock_step", "clock_window")
    hint = "check whether NTP sets the clock, and whether the virtual machine was paused"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Warn if the step is larger than slewing can explain."""
        step, window = facts.known("clock_step"), facts.known("clock_window")
        if abs(step) > max(SHORTEST_STEP_S, 2 * _SLEW * window):
            yield self.warning(
                f"the wall clock jumped by {step:+.3f} s against the monotonic clock", step_s=step
            )
