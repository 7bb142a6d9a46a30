"""Queue in the tool: requests count as in flight but reach the kernel one by one. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class QueueInTool(TrialRule):
    """Buffered requests block in io_submit(2): fio reports the depth of a queue that the kernel does not have."""

    summary = "the depth is a queue of the tool's own"
    severity = Severity.NOTE
    when = "buffered requests with libaio: the depth is the length of fio's own queue"
    hint = "set direct: true or ioengine: io_uring"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        if facts.work.queue_in_tool:
            depth = facts.work.depth
            yield self.warning(
                "buffered requests are handled one by one; the depth that the tool reports is its own queue",
                iodepth=depth.asked if depth else None,
            )
