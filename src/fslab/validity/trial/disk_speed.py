"""Disk speed: a virtual disk ran faster or slower than the disk that it models. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class DiskSpeed(TrialRule):
    """The speed of the processors does not change with it, so their share of each figure differs."""

    summary = "the virtual disk did not run at the speed of its model"
    severity = Severity.WARNING
    when = "`speed` of a virtual disk is not 1"
    hint = "compare only what is bound by the disk, and confirm it with 'speed: 1'"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Name the speed."""
        if facts.disk_speed != 1:
            yield self.warning(
                f"the virtual disk ran {facts.disk_speed:g} times as fast as its model, but not the CPUs and the "
                "file system's timers: their share of the figures differs from that on a real disk",
                speed=facts.disk_speed,
            )  # fmt: skip
