"""Depth not reached: fewer requests were in flight than the study asked for. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

_HALF = 0.5
_NEARLY = 0.9  # the queue fills at the start and empties at the end


class DepthNotReached(TrialRule):
    """Below half of the requested depth, the trial measured a different experiment: invalid. Below 90 %: a note."""

    summary = "fewer requests in flight than asked for"
    severity = Severity.INVALID
    when = f"less than {_HALF:.0%} of the queue depth asked for was reached; below {_NEARLY:.0%} a note"
    hint = "set direct: true or ioengine: io_uring, or spread the load over numjobs"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Use the upper bound of the depth reached, so that an imprecise figure of the tool causes no warning."""
        depth = facts.work.depth
        if depth is None or depth.asked == 1 or depth.at_most >= _NEARLY * depth.asked:
            return
        yield self.warning(
            f"{depth.asked} requests in flight were asked for, {depth.at_most:.1f} were reached at most",
            severity=Severity.INVALID if depth.at_most < _HALF * depth.asked else Severity.NOTE,
            asked=depth.asked, at_least=depth.at_least, at_most=depth.at_most,
        )  # fmt: skip
