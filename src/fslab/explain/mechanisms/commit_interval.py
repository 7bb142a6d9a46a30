"""How often everything is committed: commit= of ext4 (5 s) and btrfs (30 s)."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.explain.switch import Switch


class CommitInterval(Mechanism):
    """With copy on write each commit writes the trees that changed: the more commits, the more
    metadata."""

    summary = "regular commits"
    cause = "the commit interval"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return (
            seen.filesystem in {"ext3", "ext4", "btrfs"}
            and writes(seen)
            and "commit=300" not in seen.mount_options
        )

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mount=("commit=300",))

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        commits = seen.figure("btrfs_commits" if seen.filesystem == "btrfs" else "journal_commits", "commits")
        window = seen.value("clock_window")
        if commits is not None and window and commits.value > 2 * window / 5 and seen.syncs() is None:
            yield self.said(
                seen,
                f"There were {commits.value:.0f} commits in {window:.1f} s: more than the interval asks for.",
                commits,
                weight=0.3,
            )
