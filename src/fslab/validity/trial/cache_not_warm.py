"""Cache not warm: reads of a warm buffered run came from the device. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.units import format_size
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

_METADATA_BYTES = 1 << 20
_WARM_SHARE = 0.05  # share of a warm run's reads that may come from the device


class CacheNotWarm(TrialRule):
    """The data was evicted from the cache, or was never in it."""

    summary = "warm reads that came from the device"
    severity = Severity.WARNING
    when = (
        f"a buffered run with `cache: warm`: more than {_WARM_SHARE:.0%} of the bytes that it read, and "
        f"more than {format_size(_METADATA_BYTES)}, came from the device"
    )
    needs = ("device_read_bytes",)
    hint = "use a file set that fits in memory, or measure cold reads"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Warn if the device read more than the metadata limit and more than 5 % of what the tool read."""
        work, device_bytes = facts.work, facts.known("device_read_bytes")
        if not work.read_bytes or facts.cold or work.direct:
            return
        if device_bytes > max(_METADATA_BYTES, work.read_bytes * _WARM_SHARE):
            yield self.warning(
                f"{format_size(device_bytes)} of {format_size(work.read_bytes)} read with a warm cache came from the "
                "device",
                read_bytes=work.read_bytes, device_read_bytes=device_bytes,
            )  # fmt: skip
