"""How often everything is committed: commit= of ext4 (5 s) and btrfs (30 s)."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.explain.switch import Switch

INTERVALS_S = {"ext3": 5, "ext4": 5, "btrfs": 30}
# Beside the regular ones: one that was due as the run began, and those of the flush at its end.
_OTHERS = 3


class CommitInterval(Mechanism):
    """With copy on write each commit writes the trees that changed: the more commits, the more
    metadata."""

    summary = "regular commits"
    cause = "the commit interval"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return seen.filesystem in INTERVALS_S and writes(seen) and "commit=300" not in seen.mount_options

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """Commits every five minutes."""
        return Switch(mount=("commit=300",))

    def state(self, seen: Seen) -> Iterator[Statement]:
        """Where there were clearly more than the interval alone makes."""
        commits = seen.figure("btrfs_commits" if seen.filesystem == "btrfs" else "journal_commits", "commits")
        window = seen.value("clock_window")
        if commits is None or not window or seen.syncs() is not None:
            return
        interval = _interval_s(seen)
        regular = window / interval
        if commits.value > 2 * regular + _OTHERS:
            yield self.said(
                seen,
                f"There were {commits.value:.0f} commits in {window:.1f} s; an interval of {interval} s alone makes "
                f"{int(regular)} or {int(regular) + 1}.",
                commits,
                weight=0.3,
            )


def _interval_s(seen: Seen) -> int:
    """As mounted; 0 stands for the default (ext4(5))."""
    default = INTERVALS_S[str(seen.filesystem)]
    asked = (option.removeprefix("commit=") for option in seen.mount_options if option.startswith("commit="))
    return next((int(text) for text in asked if text.isdigit() and int(text) > 0), default)
