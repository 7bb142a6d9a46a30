"""Mechanisms of journals, logs and their commits. Pure."""

from collections.abc import Iterator

from fslab.explain.evidence import Certainty, Evidence, EvidenceFigure, Explanation
from fslab.explain.mechanisms import SLIGHT, Mechanism, Switch
from fslab.units import counted, format_size

_LEAST_PER_TRANSACTION = 512  # below, transactions hardly write
_FEW_FLUSHES = 0.2  # of each device, for each fsync
_LAST = 0.04  # less than any difference of times: how long commits waited for data is unknown
_PLAIN_TRANSACTION = 32 << 10  # some pages of a database, and those of its log


class JournalWrites(Mechanism):
    """The journal itself: metadata is written twice, and a commit needs cache flushes. ext4(5), has_journal.

    Without a journal, the file system is inconsistent after a crash until e2fsck has run. JFS has one, too, unless it
    is mounted with nointegrity: Documentation/admin-guide/jfs.rst.
    """

    name = "journal"
    summary = "metadata is written to a journal first"
    cause = "the journal"
    speeds_up = None
    filesystems = frozenset({"ext3", "ext4", "jfs"})
    unless = ("^has_journal", "data=journal", "nointegrity")
    unswitchable = frozenset({"bcachefs", "reiser4", "reiserfs", "xfs"})
    off = Switch(mkfs="-O ^has_journal", instead=("data", "commit", "journal_checksum"))
    off_of_jfs = Switch(mount=("nointegrity",), instead=("integrity",))

    def switch(self, evidence: Evidence) -> Switch | None:
        return self.off_of_jfs if evidence.filesystem == "jfs" else super().switch(evidence)

    def known(self, evidence: Evidence) -> bool:
        return not self.present(evidence) or _journal(evidence) is not None

    def present(self, evidence: Evidence) -> bool:
        """Return whether it has a journal, also one that data goes through."""
        return super().present(evidence) or (
            "data=journal" in evidence.file_options and evidence.filesystem in self.filesystems
        )

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        """Yield a statement about the metadata in the journal: ``data_journalling`` states what data costs there."""
        if "data=journal" in evidence.file_options:
            return
        journal, written = _journal(evidence), evidence.written_bytes
        commits = evidence.figure("journal_commits")
        if journal is not None and written and journal.value > 0.05 * written:
            often = f", in {counted(round(commits.value), 'commit')}" if commits else ""
            yield self.explanation(
                evidence,
                f"{format_size(journal.value)} were written to the journal for {format_size(written)} of data{often}.",
                journal,
                commits,
                evidence.figure("journal_bytes_error", "uncertainty"),
                evidence.per_sync("journal_commits", "commits per fsync"),
                weight=journal.value / written,
                moved=journal.value,
            )


def _journal(evidence: Evidence) -> EvidenceFigure | None:
    """Return the bytes written to the journal, that of XFS included, which is its log."""
    name = "xfs_log_bytes" if evidence.filesystem == "xfs" else "journal_bytes"
    return evidence.figure(name, "bytes written to the journal")


class DataJournalling(Mechanism):
    """File data is written to the journal first and to its place later: Documentation/filesystems/ext4/journal.rst.

    Data is written twice, unless it is overwritten before it is written to its place. O_DIRECT is not honoured.
    """

    summary = "data goes through the journal"
    cause = "journalling of data"
    speeds_up = None
    filesystems = frozenset({"ext3", "ext4"})
    wants = ("data=journal",)
    off = Switch(mount=("data=ordered",))
    attribute = "j"
    needs = ("journal_bytes",)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        journal = evidence.figure("journal_bytes", "bytes written to the journal")
        written = evidence.written_bytes
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        if journal is not None and written and amplified is not None and journal.value > written / 2:
            yield self.explanation(
                evidence,
                f"Data went through the journal ({format_size(journal.value)} for {format_size(written)} of data), "
                f"then to its place: {amplified.value:.3g} bytes on the device for each byte written.",
                amplified,
                journal,
                evidence.figure("journal_bytes_error", "uncertainty"),
                evidence.figure("journal_commits"),
                weight=amplified.value,
                moved=journal.value,
            )


class OrderedMode(Mechanism):
    """data=ordered: the journal commits metadata only after the data that belongs to it: admin-guide/ext4.rst.

    A commit waits for data that is dirty at that moment; with data=writeback it does not wait.
    """

    summary = "commits wait for data"
    cause = "ordered mode"
    filesystems = frozenset({"ext3", "ext4"})
    wants = ("data=ordered",)
    off = Switch(mount=("data=writeback",))
    needs = ("journal_commit_mean",)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        mean = evidence.figure("journal_commit_mean", "moving average of the commit time")
        commits = evidence.figure("journal_commits")
        if mean is not None and commits is not None and commits.value > 1 and mean.value > 1e6:
            text = f"The last commits of the journal took {mean.value / 1e6:.1f} ms, including the wait for data."
            yield self.explanation(evidence, text, mean, commits, weight=_LAST, certainty=Certainty.COINCIDES)


class Barriers(Mechanism):
    """Cache flushes that keep commits in order on disks with a volatile cache.

    Each fsync flushes the device's cache at least once, except on JFS, which never does. Without flushes, a power cut
    loses synced data. Documentation/block/writeback_cache_control.rst
    """

    summary = "cache flushes"
    cause = "cache flushes"
    filesystems = frozenset({"ext2", "ext3", "ext4", "btrfs", "f2fs", "nilfs2", "reiserfs"})
    unless = ("nobarrier", "barrier=0", "barrier=none", "fsync_mode=nobarrier")
    unswitchable = frozenset({"bcachefs", "exfat", "ntfs3", "reiser4", "udf", "vfat", "xfs", "zfs"})
    off = Switch(mount=("nobarrier",), instead=("barrier",))
    off_of_reiserfs = Switch(mount=("barrier=none",))
    needs = ("device_flushes",)

    def switch(self, evidence: Evidence) -> Switch | None:
        return self.off_of_reiserfs if evidence.filesystem == "reiserfs" else super().switch(evidence)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        """Yield a statement if flushes take time, or if there is about one for each fsync or more.

        Where only one of the two is known, that alone decides.
        """
        flushes = evidence.figure("device_flushes")
        per_sync = evidence.per_sync("device_flushes", "cache flushes per fsync")
        share = evidence.share_of_run("device_flush_time", evidence.disks_at_once)
        each = 0.0 if per_sync is None else per_sync.value / evidence.disks
        if flushes is None or (each <= _FEW_FLUSHES and (share or 0.0) < SLIGHT):
            return
        if per_sync is None:
            text = f"Cache flushes ({flushes.value:.0f}) took {100 * (share or 0.0):.0f} % of the run"
        else:
            several = evidence.disks > 1
            per_sync = per_sync.model_copy(update={"name": f"{per_sync.name}{', all devices' * several}"})
            text = f"Each fsync caused {each:.2f} cache flushes of {'each' if several else 'the'} device on average"
            text += "" if share is None else f"; they took {100 * share:.0f} % of the run"
        yield self.explanation(
            evidence,
            f"{text}.",
            per_sync,
            flushes,
            evidence.figure("device_flush_time", "time of flushes"),
            weight=each,
            takes=share,
        )


class TransactionTraffic(Mechanism):
    """What a transaction of an application costs on the disk: its own log, and the file system's blocks and flushes.

    With each fsync, ext4 and XFS write to their journals, and btrfs writes a log tree, with the nodes above each
    changed item and both copies of metadata (``fs/btrfs/tree-log.c``).
    """

    summary = "bytes and flushes for each transaction"
    cause = "what each transaction writes"
    needs = ("device_written_per_transaction", "device_flushes_per_transaction")

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        written = evidence.figure("device_written_per_transaction", "written for each transaction")
        flushes = evidence.figure("device_flushes_per_transaction", "cache flushes for each transaction")
        if written is None or flushes is None or written.value < _LEAST_PER_TRANSACTION:
            return
        yield self.explanation(
            evidence,
            f"Each transaction wrote {format_size(written.value)} to the disk and flushed its cache "
            f"{flushes.value:.2g} times, on average and with what the application's end wrote.",
            written,
            flushes,
            weight=written.value / _PLAIN_TRANSACTION,
            moved=evidence.value("device_written_bytes_flushed"),
            refuted_by="equally slow where a transaction writes and flushes less",
        )


class XfsLog(Mechanism):
    """The log of XFS and its buffers: Documentation/admin-guide/xfs.rst, logbsize, logbufs.

    Transactions wait when all in-core log buffers are full.
    """

    summary = "transactions wait for a log buffer"
    cause = "small log buffers"
    filesystems = frozenset({"xfs"})
    off = Switch(mount=("logbsize=256k",))
    needs = ("xfs_log_no_buffer",)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        waits = evidence.figure("xfs_log_no_buffer", "waits for a log buffer")
        if waits is not None and waits.value:
            yield self.explanation(
                evidence,
                f"All buffers of the log were in use {counted(round(waits.value), 'time')}: transactions waited.",
                waits,
                evidence.figure("xfs_log_bytes", "bytes written to the log"),
                evidence.figure("xfs_log_writes"),
                evidence.figure("xfs_log_forces"),
                weight=0.1,
            )
