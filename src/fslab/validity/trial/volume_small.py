"""Volume small: the volume is so small that it slows the file system down. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.units import format_size
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class VolumeSmall(TrialRule):
    """The driver of each file system defines the smallest volume on which a comparison is fair."""

    summary = "the volume is too small for its file system"
    severity = Severity.WARNING
    when = (
        "the volume is smaller than the file system's driver calls fair: btrfs below 16 GiB, where "
        "reservations of metadata space force early commits"
    )
    hint = "use a larger medium"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Warn only if both sizes are known."""
        size, fair = facts.volume_bytes, facts.fair_volume_bytes
        if size is not None and fair is not None and size < fair:
            yield self.warning(
                f"the volume has {format_size(size)}; {facts.filesystem} is slower below {format_size(fair)} than on a "
                "large volume, most of all with metadata",
                size_bytes=size, fair_size_bytes=fair,
            )  # fmt: skip
