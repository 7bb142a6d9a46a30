"""Rules about the machine: its kernel, its memory, its probes, and guests."""

import re

from fslab.trial_record import Severity
from fslab.validity import Issue, Issues
from fslab.validity.facts import TrialFacts
from fslab.validity.trial_warnings import rule

EMULATED = "tcg"


@rule(
    "measured in a guest machine",
    Severity.NOTE,
    when="the trial ran in a guest; a warning in QEMU without KVM, where each instruction is emulated",
    hint="compare within this machine and kernel, never with figures of another",
)
def guest_figures(facts: TrialFacts) -> Issues:
    """Figures of a guest are comparable within the same machine and kernel, but not if the processor is emulated.

    In emulation, the relative costs of instructions differ from those on hardware, so even a ranking can be reversed.
    Warn by type of guest. User-Mode Linux: 20 µs instead of 0.2 µs per system call (getppid(2), and fio).
    """
    match facts.machine:
        case "uml":
            yield Issue(
                "measured in User-Mode Linux: one CPU, system calls cost a hundred times as much, and "
                "flushed data only reaches the image file's page cache",
                machine=facts.machine,
            )
        case "qemu" if facts.accelerator == EMULATED:
            yield Issue(
                "measured in QEMU without KVM: every instruction is emulated; this shows whether something "
                "works, not how fast it is",
                severity=Severity.WARNING,
                hint="use a machine with KVM; without it, do not compare figures",
                machine=facts.machine,
                accelerator=facts.accelerator,
            )
        case "qemu":
            yield Issue(
                "measured in QEMU: the disk and the memory are those of a virtual machine",
                machine=facts.machine,
                accelerator=facts.accelerator,
            )


# Not about what any user can name: a program that crashes, reaches its memory limit, or locks the bus; a control group;
# a network device of a user namespace; and what is in quotes, such as an option of a mount. Of the limit of memory,
# mm/oom_kill.c logs the name in several lines.
_OF_KERNEL = (
    r"^(?!(?:traps: )?.{1,15}(?:\[\d+\][ :]| invoked oom-killer:)|x86/split lock |CPU: \d+ |oom-kill:|oom_reaper: "
    r"|\[ *\d+\] |Memory cgroup |cgroup: |IPv6: |[^\s:/]{1,15}: (?:renamed from|entered |left |port \d+\())"
    r"[^'\"`]*?"
)
# What a busy machine, or one without memory, causes: no damage.
BUSY = re.compile(
    r"lockup|blocked for more than \d+ seconds|(?:self-detected stall|detected stalls)|Out of memory: Killed",
    re.IGNORECASE,
)
SERIOUS = re.compile(
    rf"{_OF_KERNEL}"
    r"(?:EXT4-fs error|EXT4-fs \([^)]*\): (?:Remounting filesystem read-only|error)|Aborting journal"
    r"|JBD2: .*(?:error|corrupt)"
    r"|XFS \([^)]*\): .*(?:corrupt|I/O error|shut.{0,3}down|Internal error)"
    r"|BTRFS(?: error| critical|: error)|BTRFS warning .*csum failed"
    r"|F2FS-fs \([^)]*\): .*(?:corrupt|inconsistent|run fsck|Stopped filesystem)"
    r"|FAT-fs \([^)]*\): (?:error|Filesystem has been set read-only)|NILFS error|^ERROR: \(device |UDF-fs: error"
    r"|REISERFS (?:error|panic)|bcachefs \([^)]*\): .*(?:error|emergency)|ntfs3: .*due to NTFS errors"
    r"|\bI/O error|critical (?:medium|target|space allocation) error|lost (?:async|sync) page write"
    r"|\bBUG:|kernel BUG at|^WARNING: |\bOops(?: - [^:]*|: (?:.*: )?[0-9a-f]+)?.{0,9} \[#|general protection fault"
    rf"|{BUSY.pattern})",
    re.IGNORECASE,
)
WARNED = re.compile(
    rf"{_OF_KERNEL}"
    r"(?:EXT4-fs warning|BTRFS warning|XFS \([^)]*\): .*(?:possible memory allocation deadlock))"
)
# With a limit of the tool's memory, and as soon as what fslab starts (system.priority), it is a process of the tool.
_KILLED_IN_GROUP = re.compile(r"^Memory cgroup out of memory: Killed .* oom_score_adj:(?:[5-9]\d\d|1000)$")
_LINES_SHOWN = 20


@rule(
    "the kernel logged errors",
    Severity.INVALID,
    when="the kernel log reports an error of the file system or of the device, an oops, a hung task, or a process "
    "killed for lack of memory; a warning if it only warns. Messages about other devices do not count, nor those about "
    "a disk with `faults`",
    hint="read the kernel log (dmesg) before you rely on this device or file system",
)
def kernel_error(facts: TrialFacts) -> Issues:
    """An error makes the trial invalid; a warning of the kernel does not. Only lines about its devices are facts.

    If the tool mounts other damaged file systems, only lines about the devices under test count. If it, or the study,
    makes the disk under test fail, lines about this disk do not count. Give one warning for all errors, and one for all
    other suspicious lines.
    """
    lines = facts.texts.get("kernel_log", ())
    if facts.work.mounts_damaged:
        lines = tuple(line for line in lines if _names(line, facts.devices))
    if facts.work.disk_fails or facts.disk_faults:
        lines = tuple(line for line in lines if not _names(line, facts.devices))
    errors = [
        line
        for line in lines
        if SERIOUS.search(line) or (facts.memory_limited and _KILLED_IN_GROUP.match(line))
    ]
    warned = [line for line in lines if line not in errors and WARNED.search(line)]
    for severity, found in ((Severity.INVALID, errors), (Severity.WARNING, warned)):
        if found:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            yield Issue(
                f"the kernel logged: {found[0]}{more}",
                severity=severity,
                lines=found[:_LINES_SHOWN],
                count=len(found),
            )


def _names(line: str, devices: tuple[str, ...]) -> bool:
    return any(re.search(rf"\b{name}\b", line) for name in devices)


WAITED_PERCENT = 10.0


@rule(
    "tasks waited for memory",
    when=f"tasks waited for memory for {WAITED_PERCENT:g} % of the time or more (PSI), and the study does not limit it",
    needs=("pressure_memory_some",),
    by_others=True,
    hint="free memory, use smaller images on a 'ram' medium, or fewer jobs",
)
def memory_pressure(facts: TrialFacts, waited: float) -> Issues:
    """Under memory pressure (PSI, "some"), the page cache is smaller than usual, and evicted pages are read again.

    It does not matter whether the tool or another program uses the memory.
    """
    if waited >= WAITED_PERCENT and not facts.memory_limited:
        yield Issue(
            f"tasks waited for memory {waited:.0f} % of the time: the machine was short of it",
            waited_percent=waited,
        )


@rule(
    "a probe could not read its source",
    Severity.NOTE,
    when="a kernel source could not be read; its figures are missing. No warning for counters that this "
    "kernel or CPU lacks",
)
def probe_failed(facts: TrialFacts) -> Issues:
    for failure in facts.probe_failures:
        yield Issue(
            f"the probe '{failure.probe}' could not read its source: {failure.error}",
            probe=failure.probe,
            moment=failure.moment,
        )


# No suspend is shorter, because it freezes tasks and stops and restarts devices. A smaller difference is a delay
# between reading the two clocks (for example, the hypervisor took the guest's processor away).
_SHORTEST_S = 0.1


@rule(
    "the machine was suspended during the run",
    Severity.INVALID,
    when=f"the machine slept during the run, for {_SHORTEST_S:g} s or longer",
    needs=("suspended",),
    hint="keep the machine awake while it measures (systemd-inhibit)",
)
def suspended(_: TrialFacts, seconds: float) -> Issues:
    """During a suspend, devices lose their caches and their speed, and requests in flight wait.

    Use the difference of two clocks: CLOCK_BOOTTIME counts suspended time, CLOCK_MONOTONIC does not.
    """
    if seconds >= _SHORTEST_S:
        yield Issue(f"the machine was suspended for {seconds:.3g} s", suspended_s=seconds)
