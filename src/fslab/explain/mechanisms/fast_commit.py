"""Full commits where ext4 could log small ones: fast_commit in ext4(5), Documentation/filesystems/ext4/journal.rst."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size


class FastCommit(Mechanism):
    """With fast_commit (off by default), an fsync that changed one inode writes one block, not a transaction."""

    summary = "a full journal commit for each fsync"
    cause = "full journal commits (mkfs -O fast_commit)"
    filesystems = frozenset({"ext4"})
    writing = False
    unless = ("fast_commit", "^has_journal")
    off = Switch(mkfs="-O fast_commit")

    def applies(self, evidence: Evidence) -> bool:
        return super().applies(evidence) and evidence.syncs() is not None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        commits = evidence.figure("journal_commits")
        bytes_each = evidence.per_sync("journal_bytes", "journal bytes per fsync")
        if commits is not None and bytes_each is not None and bytes_each.value > 4096:
            yield self.explanation(
                evidence,
                f"Each fsync wrote {format_size(bytes_each.value)} to the journal on average, in full commits.",
                bytes_each,
                commits,
                weight=bytes_each.value / 4096,
            )
