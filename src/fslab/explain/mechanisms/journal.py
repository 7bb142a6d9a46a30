"""The journal itself: metadata is written twice, and a commit needs cache flushes. ext4(5), has_journal."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size


class JournalWrites(Mechanism):
    """Without a journal, the file system is inconsistent after a crash until e2fsck has run."""

    summary = "metadata is written to a journal first"
    cause = "the journal"
    filesystems = frozenset({"ext3", "ext4"})
    unless = ("^has_journal", "data=journal")
    unswitchable = frozenset({"xfs", "bcachefs"})
    off = Switch(mkfs="-O ^has_journal", instead=("data", "commit", "journal_checksum"))

    def present(self, evidence: Evidence) -> bool:
        """Return whether it has a journal, also one that data goes through."""
        return super().present(evidence) or (
            "data=journal" in evidence.mount_options and evidence.filesystem in self.filesystems
        )

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        """Yield a statement about the metadata in the journal: ``data_journalling`` states what data costs there."""
        if "data=journal" in evidence.mount_options:
            return
        journal = evidence.figure("journal_bytes", "bytes written to the journal")
        written = evidence.written_bytes
        commits = evidence.figure("journal_commits")
        if journal is not None and commits is not None and written and journal.value > 0.05 * written:
            yield self.explanation(
                evidence,
                f"{format_size(journal.value)} were written to the journal for {format_size(written)} of data, in "
                f"{commits.value:.0f} commits.",
                journal,
                commits,
                evidence.figure("journal_bytes_error", "uncertainty"),
                evidence.per_sync("journal_commits", "commits per fsync"),
                weight=journal.value / written,
            )
