"""Cache served: direct or cold reads did not reach the device. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.units import format_size
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

_HONEST_SHARE = 0.5
_NOTICEABLE_BYTES = 16 << 20
_METADATA_BYTES = 1 << 20
_METADATA_SHARE = 0.01


class CacheServed(TrialRule):
    """Reads count as served from a cache, contrary to the study, in two cases.

    Direct reads: less than half of what the tool read came from the device, although all of it should. Cold buffered
    reads of a job that writes nothing: hardly anything but metadata came from the device. Other cold reads cannot be
    checked: a job that reads its files several times correctly finds them cached (``fits-in-memory``), and a job that
    also writes may read what it has just written.
    """

    summary = "direct or cold reads that did not come from the device"
    severity = Severity.INVALID
    when = (
        f"direct reads of which the device saw less than {_HONEST_SHARE:.0%}; cold buffered reads of at "
        f"least {format_size(_NOTICEABLE_BYTES)}, in a run that wrote nothing, of which it saw less than "
        f"{_METADATA_SHARE:.0%}"
    )
    needs = ("device_read_bytes",)
    hint = "check whether the file system honours direct I/O with these options, or measure warm reads"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Compare the bytes that the application read with those that the device read."""
        work, device_bytes = facts.work, facts.known("device_read_bytes")
        if not work.read_bytes:
            return
        if work.direct:
            cached = device_bytes < work.read_bytes * _HONEST_SHARE
        else:
            once = min(work.read_bytes, (work.working_set_bytes or work.read_bytes) * work.rounds)
            enough = facts.cold and work.written_bytes == 0 and once >= _NOTICEABLE_BYTES
            cached = enough and device_bytes < max(_METADATA_BYTES, _METADATA_SHARE * once)
        if cached:
            yield self.warning(
                f"only {format_size(device_bytes)} of {format_size(work.read_bytes)} of "
                f"{'direct' if work.direct else 'cold'} reads came from the device: the rest came from a cache, from "
                "holes or from compressed data",
                read_bytes=work.read_bytes, device_read_bytes=device_bytes,
            )  # fmt: skip
