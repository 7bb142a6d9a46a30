"""Too short: the tool measured for less time than it takes to say anything. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

SHORTEST_S = 1.0
LONG_S = 30.0
_TOLERANCE = 0.95  # a tool told to run for 1 s says 0.997 s
_WHOLE_RUN = 0.9  # of the time that was asked for


class TooShort(TrialRule):
    """Invalid only where the time was set: of a set amount of work the time is the outcome, and leaving out
    what was quick would leave out the best trials of the fastest file system. Below 30 s, ext4's commit and
    the kernel's writeback (every 5 s) and a drive's own caches fall into some trials and not into others."""

    summary = "the measurement was too short"
    severity = Severity.INVALID
    hint: ClassVar[str] = "raise the runtime, or the amount of work"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """One warning: of the shortest part, where parts have figures of their own."""
        work = facts.work
        parts = work.parts_s or ({"": work.measured_s} if work.measured_s is not None else {})
        short = {name: seconds for name, seconds in parts.items() if seconds < SHORTEST_S * _TOLERANCE}
        asked = work.asked_s
        if asked is not None and work.measured_s is not None and (
            short or work.measured_s < _WHOLE_RUN * asked
        ):  # fmt: skip
            yield self.warning(
                f"the tool measured for only {work.measured_s:.3g} s; it was asked for {asked:g} s",
                measured_s=work.measured_s, asked_s=asked, shortest_s=max(SHORTEST_S, _WHOLE_RUN * asked),
            )  # fmt: skip
        elif short:
            yield self.warning(
                f"{_took(short)}: below {SHORTEST_S:g} s the start and the end of the run affect the figure",
                severity=Severity.DOUBT, seconds=short, shortest_s=SHORTEST_S,
            )  # fmt: skip
        elif long := {name: seconds for name, seconds in parts.items() if seconds < LONG_S}:
            yield self.warning(
                f"measured for {_listed(long)}: periodic work, such as commits and writeback every few seconds, may be "
                "missing",
                severity=Severity.NOTE, seconds=long, long_s=LONG_S,
            )  # fmt: skip


def _took(parts: dict[str, float]) -> str:
    return ", ".join(f"{name or 'the work'} took only {seconds:.3g} s" for name, seconds in parts.items())


def _listed(parts: dict[str, float]) -> str:
    return ", ".join(f"{name} {seconds:.3g} s".lstrip() for name, seconds in parts.items())
