"""Disk in UML: User-Mode Linux cut the requests to a virtual disk into pages. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class DiskInUml(TrialRule):
    """arch/um/drivers/ubd_kern.c: one process does the I/O of all disks, with one pread(2) or pwrite(2) per page."""

    summary = "User-Mode Linux cut the requests to the virtual disk into pages"
    severity = Severity.DOUBT
    hint: ClassVar[str] = "measure on the host (--on host), or in QEMU with KVM (--on qemu)"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """A disk that no model delays is the image that any guest has."""
        if facts.machine == "uml" and facts.disk_profile is not None:
            yield self.warning(
                f"User-Mode Linux reads and writes the disk ({facts.disk_profile}) 4 KiB at a time and one disk after "
                "another: sequential rates, and the gain from several disks, are not those of the modelled disk",
                profile=facts.disk_profile,
            )  # fmt: skip
