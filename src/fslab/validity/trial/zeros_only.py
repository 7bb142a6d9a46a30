"""Zeros only: the tool wrote hardly anything but zeros, and they were not stored as data. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.units import format_size
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

_STORED_SHARE = 0.9


class ZerosOnly(TrialRule):
    """A file system that compresses, deduplicates or makes holes of zeros sends less to the device than was written.

    The bytes count once: a tool that writes its files several times may overwrite them in the page cache.
    """

    summary = "zeros that were compressed, deduplicated or stored as holes"
    severity = Severity.WARNING
    when = (
        "dd, sysbench, IOzone, bonnie++, or fio with `zero_buffers`: the device received less than "
        f"{_STORED_SHARE:.0%} of the zeros that were written: they were compressed, deduplicated or stored "
        "as holes"
    )
    needs = ("device_written_bytes_flushed",)
    hint = "write data that does not compress, with fio and without zero_buffers"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Compare the bytes that the device received, after the final flush, with those that were written."""
        work, received = facts.work, facts.known("device_written_bytes_flushed")
        if not work.zeros or not work.written_bytes:
            return
        once = min(work.written_bytes, (work.working_set_bytes or work.written_bytes) * work.rounds)
        if received < once * _STORED_SHARE:
            yield self.warning(
                f"the tool wrote hardly anything but zeros, and the device received {format_size(received)} of "
                f"{format_size(once)}: zeros were compressed, deduplicated or stored as holes, and other data is not",
                received_bytes=received, written_bytes=once,
            )  # fmt: skip
