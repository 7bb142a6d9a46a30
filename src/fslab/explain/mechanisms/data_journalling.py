"""File data is written to the journal first and to its place later: Documentation/filesystems/ext4/journal.rst."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size


class DataJournalling(Mechanism):
    """Every byte is written twice, and O_DIRECT is not honoured."""

    summary = "data goes through the journal"
    cause = "journalling of data"
    filesystems = frozenset({"ext3", "ext4"})
    wants = ("data=journal",)
    off = Switch(mount=("data=ordered",))

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        journal = evidence.figure("journal_bytes", "bytes written to the journal")
        written = evidence.written_bytes
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        if journal is not None and written and amplified is not None and journal.value > written / 2:
            yield self.explanation(
                evidence,
                f"All data was written twice: to the journal ("
                f"{format_size(journal.value)} for {format_size(written)}) and "
                f"to its place: {amplified.value:.3g} bytes on the device for each byte written.",
                amplified,
                journal,
                evidence.figure("journal_bytes_error", "uncertainty"),
                evidence.figure("journal_commits"),
                weight=amplified.value,
            )
