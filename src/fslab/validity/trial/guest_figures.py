"""Guest figures: the trial ran in a guest machine, whose own costs are in every figure. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

EMULATED = "tcg"


class GuestFigures(TrialRule):
    """Good for a comparison within the machine and kernel. An emulated processor is good for neither: it costs
    instructions by another measure than hardware does, so even an order can turn around."""

    summary = "measured in a guest machine"
    severity = Severity.NOTE
    hint: ClassVar[str] = "compare within this machine and kernel, never with figures of another"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """User-Mode Linux: as measured with getppid(2) and fio, 20 µs instead of 0.2 µs per system call."""
        match facts.machine:
            case "uml":
                yield self.warning(
                    "measured in User-Mode Linux: one CPU, system calls cost a hundred times as much, and "
                    "flushed data only reaches the image file's page cache",
                    machine=facts.machine,
                )  # fmt: skip
            case "qemu" if facts.accelerator == EMULATED:
                yield self.warning(
                    "measured in QEMU without KVM: every instruction is emulated; this shows whether something "
                    "works, not how fast it is",
                    severity=Severity.DOUBT, hint="use a machine with KVM; without it, do not compare figures",
                    machine=facts.machine, accelerator=facts.accelerator,
                )  # fmt: skip
            case "qemu":
                yield self.warning(
                    "measured in QEMU: the disk and the memory are those of a virtual machine",
                    machine=facts.machine, accelerator=facts.accelerator,
                )  # fmt: skip
