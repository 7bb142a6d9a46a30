"""Mechanisms of commits: their size, their interval, and who waits for them. Pure."""

from collections.abc import Iterator

from fslab.explain.evidence import Certainty, Evidence, EvidenceFigure, Explanation
from fslab.explain.mechanisms import Mechanism, Switch
from fslab.units import Unit, format_size, format_value


class FastCommit(Mechanism):
    """Full commits where ext4 could log small ones: fast_commit in ext4(5), Documentation/filesystems/ext4/journal.rst.

    With fast_commit (off by default), an fsync that changed one inode writes one block, not a transaction.
    """

    summary = "a full journal commit for each fsync"
    cause = "full journal commits (mkfs -O fast_commit)"
    filesystems = frozenset({"ext4"})
    writing = False
    unless = ("fast_commit", "^has_journal", "data=journal")  # with data=journal, all commits are full
    off = Switch(mkfs="-O fast_commit")
    needs = ("journal_bytes",)

    def applies(self, evidence: Evidence) -> bool:
        return super().applies(evidence) and evidence.syncs() is not None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        commits = evidence.figure("journal_commits")
        bytes_each = evidence.per_sync("journal_bytes", "journal bytes per fsync")
        if commits is not None and bytes_each is not None and bytes_each.value > 4096:
            text = f"Each fsync wrote about {format_size(bytes_each.value)} to the journal, in full commits."
            error = evidence.per_sync("journal_bytes_error", "uncertainty per fsync")
            yield self.explanation(
                evidence,
                text,
                bytes_each,
                error,
                commits,
                weight=bytes_each.value / 4096,
                moved=evidence.value("journal_bytes"),
            )


INTERVALS_S = {"ext3": 5, "ext4": 5, "btrfs": 30}
# Further commits: one that was due when the run began, and those of the flush at its end.
_OTHERS = 3


class CommitInterval(Mechanism):
    """The interval of regular commits: commit= of ext4 (5 s) and btrfs (30 s).

    With copy-on-write, each commit writes the trees that changed. More commits write more metadata.
    """

    summary = "regular commits"
    cause = "the commit interval"
    filesystems = frozenset(INTERVALS_S)
    unless = ("commit=300", "^has_journal")
    off = Switch(mount=("commit=300",))  # commits every five minutes

    def known(self, evidence: Evidence) -> bool:
        return not self.present(evidence) or _commits(evidence) is not None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        """Yield a statement if there were clearly more commits than the interval alone makes, or several that a shorter
        interval than the default makes."""
        commits, window = _commits(evidence), evidence.value("clock_window")
        beyond, interval = _beyond(evidence), _interval_s(evidence)
        shorter = interval < INTERVALS_S[str(evidence.filesystem)]
        if commits is None or not window or not (beyond > 1 or (beyond and shorter and commits.value > 1)):
            return
        regular = window / interval
        text = f"There were {commits.value:.0f} commits in {window:.1f} s; the commit interval of {interval} s alone "
        text += f"makes {int(regular)} or {int(regular) + 1}."
        others = " The others have another cause, such as a sync, a full journal, or too little space for metadata."
        yield self.explanation(
            evidence,
            text + others * (beyond > 1),
            commits,
            weight=0.3,
            refuted_by=f"clearly fewer commits with {self.off}",
        )


def _commits(evidence: Evidence) -> EvidenceFigure | None:
    name = "btrfs_commits" if evidence.filesystem == "btrfs" else "journal_commits"
    return evidence.figure(name, "commits")


def _beyond(evidence: Evidence) -> float:
    """Return the commits as a multiple of those that the interval can make; 0 if they are unknown, or of fsyncs."""
    commits, window = _commits(evidence), evidence.value("clock_window")
    if commits is None or not window or evidence.syncs() is not None:
        return 0.0
    return commits.value / (2 * window / _interval_s(evidence) + _OTHERS)


def _interval_s(evidence: Evidence) -> int:
    """Return the commit interval as mounted; 0 stands for the default (ext4(5))."""
    default = INTERVALS_S[str(evidence.filesystem)]
    asked = (
        option.removeprefix("commit=") for option in evidence.mount_options if option.startswith("commit=")
    )
    return next((int(text) for text in asked if text.isdigit() and int(text) > 0), default)


# So many times the commits that the interval can make. While files of 4 KiB were created on 2 and on 24 GiB, there were
# 19 to 32, and 1.
_EARLY = 2


class SmallVolume(Mechanism):
    """Metadata reservations on a small btrfs: it writes back early because space could run out, not because it has to.

    btrfs reserves metadata space for the worst case. On a large volume, it may reserve more than the metadata space,
    because there is free space to add to it (``btrfs_can_overcommit``). On a small volume, this is soon used up.
    """

    summary = "metadata reservations exceed the metadata space"
    cause = "the small volume"
    alters = True
    filesystems = frozenset({"btrfs"})

    def switch(self, evidence: Evidence) -> Switch | None:
        return Switch(medium={"size": "20g"}) if "size" in evidence.cell.stack.medium.options else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        reserved = evidence.figure("btrfs_metadata_reserved", "reserved for metadata at the end")
        total = evidence.figure("btrfs_metadata_total", "space for metadata")
        if not evidence.warns("volume_small"):
            return
        text, over = "The volume is small for btrfs, which reserves metadata space for the worst case", None
        commits, early = evidence.figure("btrfs_commits", "commits"), _beyond(evidence) > _EARLY
        if reserved and total and reserved.value > total.value:
            over = reserved
            text += (
                f". Its metadata reservations ({format_size(reserved.value)}) exceed its metadata space "
                f"({format_size(total.value)}): it may write back early"
            )
        elif commits and early:
            text += f": it may have written back early, in {commits.value:.0f} commits"
        yield self.explanation(
            evidence,
            f"{text}.",
            over,
            total,
            commits,
            weight=5.0 if over or early else 0.3,
            refuted_by="equally slow on a volume of 20g or more",
            certainty=Certainty.COINCIDES,
        )


# Percentage points: three standard errors of a share of thirty operations, at their maximum.
_LEAST_BEYOND_CHANCE = 27


class CommitStalls(Mechanism):
    """Operations that wait while the journal commits: whether the slowest operations overlap commits.

    Compares commits in a kernel trace with the tool's log of every operation. Overlap is not proof of a cause.
    """

    summary = "the slowest operations coincide with commits of the journal"
    cause = "commits of the journal"
    filesystems = frozenset({"ext3", "ext4"})
    unless = ("^has_journal",)
    # No switch: only the switch of the mechanism `journal` turns commits off.

    def known(self, evidence: Evidence) -> bool:
        return not self.present(evidence) or evidence.of_trace("traced_slow_in_commits") is not None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        slow = evidence.of_trace("traced_slow_in_commits", "slowest 0.1 % in commits")
        chance = evidence.of_trace("traced_chance_in_commits", "operations as long, at other moments")
        base = evidence.of_trace("traced_all_in_commits", "all operations in commits")
        count = evidence.of_trace("traced_slow_operations", "slowest operations")
        limit = evidence.of_trace("traced_slow_from", "their latency at least")
        if slow is None or chance is None or base is None or limit is None:
            return
        if slow.value >= chance.value + _LEAST_BEYOND_CHANCE:
            yield self.explanation(
                evidence,
                f"{slow.value:.0f} % of the slowest 0.1 % of operations ({format_value(limit.value, Unit.NANOSECONDS)} "
                f"and more; those at the same time count once) coincide with a commit of the journal. By chance "
                f"{chance.value:.2g} % of operations this long would; of all operations {base.value:.2g} % do.",
                slow,
                chance,
                base,
                count,
                limit,
                weight=slow.value / 100,
                certainty=Certainty.COINCIDES,
                refuted_by="equally many slow operations without a journal (mkfs -O ^has_journal)",
            )
