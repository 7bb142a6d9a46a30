"""Emulated disk: a guest's kernel limited the image to the rates of a kind of disk. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.units import format_size
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class EmulatedDisk(TrialRule):
    """Rate limits do not model seeks: sequential I/O is not faster than random I/O, as it is on a hard disk."""

    summary = "the disk was an image with limits"
    severity = Severity.NOTE
    when = (
        "the disk of a guest is an image with limits of rate (`model`, `iops`, `bandwidth`): seeks are "
        "not modelled"
    )
    hint = "compare stacks on it; its figures are not those of a real disk, least of all for sequential work"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        if not facts.disk_limits:
            return
        limits = [
            f"{value} requests/s" if name == "iops" else f"{format_size(value)}/s"
            for name, value in facts.disk_limits.items()
        ]
        yield self.warning(
            f"the disk is an image limited to {' and '.join(limits)}, for reads and for writes each: every request "
            "costs the same, seeks are not modelled",
            limits=dict(facts.disk_limits),
        )  # fmt: skip
