"""Kernel error: the kernel logged errors of file systems, block devices or of itself. Pure."""

import re
from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

SERIOUS = re.compile(
    r"EXT4-fs error|EXT4-fs \([^)]*\): (?:Remounting filesystem read-only|error)|Aborting journal"
    r"|JBD2: .*(?:error|corrupt)"
    r"|XFS \([^)]*\): .*(?:corrupt|I/O error|shut.{0,3}down|Internal error)"
    r"|BTRFS(?: error| critical|: error)|BTRFS warning .*csum failed"
    r"|\bI/O error|critical (?:medium|target|space allocation) error|lost (?:async|sync) page write"
    r"|\bBUG:|kernel BUG at|^WARNING: |\bOops\b|general protection fault|soft lockup"
    r"|blocked for more than \d+ seconds|self-detected stall|Out of memory: Killed",
    re.IGNORECASE,
)
WARNED = re.compile(r"EXT4-fs warning|BTRFS warning|XFS \([^)]*\): .*(?:possible memory allocation deadlock)")
_LINES_SHOWN = 20


class KernelError(TrialRule):
    """An error makes the trial invalid; a warning of the kernel does not. Only lines about its devices are facts.

    If the tool mounts other damaged file systems, only lines about the devices under test count. If it makes the disk
    under test fail, lines about this disk do not count.
    """

    summary = "the kernel logged errors"
    severity = Severity.INVALID
    when = (
        "the kernel log reports an error of the file system or of the device, an oops, or a hung task; a "
        "warning if it only warns. Messages about other devices do not count"
    )
    hint = "read the kernel log (dmesg) before you rely on this device or file system"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Give one warning for all errors, and one for all other suspicious lines."""
        lines = facts.texts.get("kernel_log", ())
        if facts.work.mounts_damaged:
            lines = tuple(line for line in lines if _names(line, facts.devices))
        if facts.work.disk_fails:
            lines = tuple(line for line in lines if not _names(line, facts.devices))
        errors = [line for line in lines if SERIOUS.search(line)]
        warned = [line for line in lines if line not in errors and WARNED.search(line)]
        for severity, found in ((Severity.INVALID, errors), (Severity.WARNING, warned)):
            if found:
                more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
                yield self.warning(
                    f"the kernel logged: {found[0]}{more}",
                    severity=severity, lines=found[:_LINES_SHOWN], count=len(found),
                )  # fmt: skip


def _names(line: str, devices: tuple[str, ...]) -> bool:
    return any(re.search(rf"\b{name}\b", line) for name in devices)
