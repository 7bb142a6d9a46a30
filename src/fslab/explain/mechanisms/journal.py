"""The journal itself: metadata is written twice, and a commit needs barriers. ext4(5), has_journal."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.explain.switch import Switch
from fslab.units import format_size


class Journal(Mechanism):
    """Without it nothing is consistent after a crash until e2fsck has run."""

    summary = "metadata is written to a journal first"
    cause = "the journal"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return (
            seen.filesystem in {"ext3", "ext4"}
            and writes(seen)
            and "has_journal" not in seen.cell.stack.mkfs_options
            and "data=journal" not in seen.mount_options
        )

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mkfs="-O ^has_journal", instead=("data", "commit", "journal_checksum"))

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        journal, written = seen.figure("journal_bytes", "bytes written to the journal"), seen.written_bytes
        commits = seen.figure("journal_commits")
        if journal is not None and commits is not None and written and journal.value > 0.05 * written:
            yield self.said(
                seen,
                f"For {format_size(written)} of data the journal wrote {format_size(journal.value)}, in "
                f"{commits.value:.0f} commits.",
                journal,
                commits,
                seen.figure("journal_bytes_error", "uncertainty"),
                seen.per_sync("journal_commits", "commits per fsync"),
                weight=journal.value / written,
            )
