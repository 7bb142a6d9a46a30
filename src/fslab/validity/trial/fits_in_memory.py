"""Fits in memory: a buffered run that mostly used the page cache. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.units import format_size
from fslab.validity.facts import TrialFacts, WorkFacts
from fslab.validity.trial import TrialRule

_ONE_PASS = 1.05
_ALL = 0.9
_MOSTLY = 0.5


class FitsInMemory(TrialRule):
    """A set of files smaller than memory is read from the device once, and then from the page cache.

    Written data stays in the page cache unless it is flushed. There is no warning for a single pass with a cold cache,
    for writes that are flushed within the measured time, and for a study with a warm cache. It is a warning if
    less than half of the tool's I/O reached the device, or if its writes were not flushed, else a note.
    """

    summary = "a buffered run on data that fit in memory"
    severity = Severity.NOTE
    when = (
        "a cold buffered run on data that fit in memory, which accessed the data more than once: a note, "
        f"or a warning if less than {_MOSTLY:.0%} of the bytes reached the device. A warning if it wrote "
        "and did not flush in the measured time"
    )
    hint = "use a set of files larger than memory or direct I/O, read it only once, or set 'cache: warm'"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Warn only if the data was accessed more than once, or was not flushed."""
        work, size, memory = facts.work, facts.work.working_set_bytes, facts.memory_bytes
        if work.direct or not facts.cold or size is None or memory is None or size >= memory:
            return
        if work.written_bytes and work.flushed is False:
            yield self.warning(
                f"{format_size(work.written_bytes)} were written and not flushed in the measured time; they fit in "
                f"memory ({format_size(memory)})",
                severity=Severity.WARNING, working_set_bytes=size, memory_bytes=memory,
            )  # fmt: skip
        elif _moved(work) > _ONE_PASS * size * work.rounds:
            share = _share_of_device(facts)
            if share is None or share < _ALL:
                times = _moved(work) / size / work.rounds
                yield self.warning(
                    f"the workload accessed {format_size(size)} of files {times:.1f} times, and they fit "
                    f"in memory ({format_size(memory)}): the cache was cold only at the start",
                    severity=Severity.WARNING if share is not None and share < _MOSTLY else Severity.NOTE,
                    working_set_bytes=size, memory_bytes=memory, moved_bytes=_moved(work), device_share=share,
                )  # fmt: skip


def _share_of_device(facts: TrialFacts) -> float | None:
    """Return the share of the tool's I/O that reached the device; None if it is unknown."""
    seen = 0.0
    for moved, name in (
        (facts.work.read_bytes, "device_read_bytes"),
        (facts.work.written_bytes, "device_written_bytes_flushed"),
    ):
        device_bytes = facts.figure(name)
        if moved is None or (moved and device_bytes is None):
            return None
        seen += min(moved, device_bytes or 0.0)
    return seen / _moved(facts.work)


def _moved(work: WorkFacts) -> int:
    return (work.read_bytes or 0) + (work.written_bytes or 0)
