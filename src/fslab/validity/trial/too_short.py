"""Too short: the tool measured for less time than a meaningful figure needs. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

SHORTEST_S = 1.0
SLICED_SHORTEST_S = 0.5  # without the start of the tool
LONG_S = 30.0
_TOLERANCE = 0.95  # a tool that is to run for 1 s reports 0.997 s
_WHOLE_RUN = 0.9  # minimum share of the requested time


class TooShort(TrialRule):
    """A short run is invalid only if the run time was set.

    With a fixed amount of work, the time is the result: leaving out short trials would leave out the best trials of the
    fastest file system. Below 30 s, ext4's commit and the kernel's writeback (every 5 s) and a drive's own caches
    affect some trials and not others.
    """

    summary = "the measurement was too short"
    severity = Severity.INVALID
    when = (
        f"a run with a set time that measured for less than {SHORTEST_S:g} s ({SLICED_SHORTEST_S:g} s in "
        f"slices), or for less than {_WHOLE_RUN:.0%} of its time ({SLICED_SHORTEST_S:.0%} in slices). A "
        f"set amount of work that took less than {SHORTEST_S:g} s: a warning, because its time is the "
        f"result. Below {LONG_S:g} s: a note"
    )
    hint = "raise the runtime, or the amount of work"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Give at most one warning, about all parts that are too short if parts have their own figures."""
        work = facts.work
        parts = work.parts_s or ({"": work.measured_s} if work.measured_s is not None else {})
        shortest_s = SLICED_SHORTEST_S if work.sliced else SHORTEST_S
        whole = SLICED_SHORTEST_S if work.sliced else _WHOLE_RUN  # how long each runs depends on the others
        short = {name: seconds for name, seconds in parts.items() if seconds < shortest_s * _TOLERANCE}
        asked = work.asked_s
        if asked is not None and work.measured_s is not None and (
            short or work.measured_s < whole * asked
        ):  # fmt: skip
            yield self.warning(
                f"the tool measured for only {work.measured_s:.3g} s; it was asked for {asked:g} s",
                measured_s=work.measured_s, asked_s=asked, shortest_s=max(shortest_s, whole * asked),
            )  # fmt: skip
        elif short:
            yield self.warning(
                f"{_took(short)}: below {shortest_s:g} s the start and the end of the run affect the figure",
                severity=Severity.WARNING, seconds=short, shortest_s=shortest_s,
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
