"""Written again: later passes overwrote the files that the first pass created. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class WrittenAgain(TrialRule):
    """Sequential writes for a set time restart at the end of the file. From then on, they do not allocate blocks.

    If the writes are buffered, later passes overwrite data that is still in memory: then it is a warning, not a note.
    """

    summary = "sequential writes went over their files more than once"
    severity = Severity.NOTE
    when = (
        "sequential writes went over their files more than once: only the first pass allocates. A warning "
        "if they were buffered"
    )
    hint = "set an amount of work instead of a time, to write each file once"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        passes = facts.work.passes
        if passes is not None and passes > 1:
            yield self.warning(
                f"the files were written {passes:.1f} times over; only the first pass allocates",
                severity=Severity.NOTE if facts.work.direct else Severity.WARNING,
                passes=passes,
            )
