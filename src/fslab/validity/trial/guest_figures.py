"""Guest figures: the trial ran in a guest, whose overhead is in every figure. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

EMULATED = "tcg"


class GuestFigures(TrialRule):
    """Figures of a guest are comparable within the same machine and kernel, but not if the processor is emulated.

    In emulation, the relative costs of instructions differ from those on hardware, so even a ranking can be reversed.
    """

    summary = "measured in a guest machine"
    severity = Severity.NOTE
    when = "the trial ran in a guest; a warning in QEMU without KVM, where each instruction is emulated"
    hint = "compare within this machine and kernel, never with figures of another"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Warn by type of guest. User-Mode Linux: 20 µs instead of 0.2 µs per system call (getppid(2), and fio)."""
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
                    severity=Severity.WARNING, hint="use a machine with KVM; without it, do not compare figures",
                    machine=facts.machine, accelerator=facts.accelerator,
                )  # fmt: skip
            case "qemu":
                yield self.warning(
                    "measured in QEMU: the disk and the memory are those of a virtual machine",
                    machine=facts.machine, accelerator=facts.accelerator,
                )  # fmt: skip
