"""The interval of regular commits: commit= of ext4 (5 s) and btrfs (30 s)."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch

INTERVALS_S = {"ext3": 5, "ext4": 5, "btrfs": 30}
# Further commits: one that was due when the run began, and those of the flush at its end.
_OTHERS = 3


class CommitInterval(Mechanism):
    """With copy-on-write, each commit writes the trees that changed. More commits write more metadata."""

    summary = "regular commits"
    cause = "the commit interval"
    filesystems = frozenset(INTERVALS_S)
    unless = ("commit=300",)
    off = Switch(mount=("commit=300",))  # commits every five minutes

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        """Yield a statement if there were clearly more commits than the interval alone makes."""
        commits = evidence.figure(
            "btrfs_commits" if evidence.filesystem == "btrfs" else "journal_commits", "commits"
        )
        window = evidence.value("clock_window")
        if commits is None or not window or evidence.syncs() is not None:
            return
        interval = _interval_s(evidence)
        regular = window / interval
        if commits.value > 2 * regular + _OTHERS:
            yield self.explanation(
                evidence,
                f"There were {commits.value:.0f} commits in {window:.1f} s; the commit interval of {interval} s alone "
                f"makes {int(regular)} or {int(regular) + 1}.",
                commits,
                weight=0.3,
            )


def _interval_s(evidence: Evidence) -> int:
    """Return the commit interval as mounted; 0 stands for the default (ext4(5))."""
    default = INTERVALS_S[str(evidence.filesystem)]
    asked = (
        option.removeprefix("commit=") for option in evidence.mount_options if option.startswith("commit=")
    )
    return next((int(text) for text in asked if text.isdigit() and int(text) > 0), default)
