"""Discards while the file system is in use: mount -o discard."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size

_NOTICEABLE = 1 << 20


class Discard(Mechanism):
    """The file system reports freed space to the device at each commit."""

    summary = "freed space is discarded"
    cause = "discards"
    off = Switch(mount=("nodiscard",), instead=("discard",))

    def applies(self, evidence: Evidence) -> bool:
        return any(each.partition("=")[0] == "discard" for each in evidence.mount_options)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        discarded = evidence.figure("device_discarded_bytes", "discarded")
        if discarded is not None and discarded.value >= _NOTICEABLE:
            yield self.explanation(
                evidence,
                f"{format_size(discarded.value)} were discarded during the run.",
                discarded,
                weight=0.5,
            )
