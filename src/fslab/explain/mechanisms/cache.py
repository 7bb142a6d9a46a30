"""Mechanisms of the page cache. Pure."""

from collections.abc import Iterator

from fslab.cell import Cache
from fslab.explain.evidence import Certainty, Evidence, EvidenceFigure, Explanation
from fslab.explain.mechanisms import NOTICEABLE, Mechanism, Switch, writes
from fslab.units import format_size
from fslab.workloads import Switchable

_WASTE = 1.5
_FEWER = 0.9
_PAGE_BYTES = 4096


class PageCacheAbsorption(Mechanism):
    """Absorption by the page cache: buffered I/O that does not reach the device in the measured time.

    Reading data again, or overwriting it before it is written back, costs no device I/O.
    """

    name = "page-cache"
    summary = "the page cache serves reads and absorbs writes"
    cause = "the page cache"
    speeds_up = True
    alters = True
    off_by = Switchable.DIRECT

    def applies(self, evidence: Evidence) -> bool:
        return evidence.traits.direct is False and evidence.traits.few_files

    def differs(self, more: Evidence, less: Evidence) -> bool:
        """Return False if the devices received alike in a set time: the faster stack then overwrote more in memory."""
        name = "device_written_bytes" if writes(more) else "device_read_bytes"
        own, other = more.value(name), less.value(name)
        return not more.traits.set_time or None in (own, other) or (own or 0.0) < _FEWER * (other or 0.0)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        name, received, written = _received(evidence)
        if writes(evidence) and written and received is not None and received.value < 0.5 * written:
            yield self.explanation(
                evidence,
                f"When the tool ended, {name} had received {format_size(received.value)} of {format_size(written)} "
                "written: the rest was in the page cache, or was never written back.",
                received,
                evidence.figure("volume_dirtied_bytes", "dirtied"),
                weight=written / max(received.value, 4096),
            )
        read = evidence.figure("read_amplification", "device bytes per byte read")
        if read is not None and read.value < 0.5 and not evidence.compresses:
            text = f"The device delivered {read.value:.2f} bytes for each byte read; the rest came from the page cache."
            yield self.explanation(evidence, text, read, weight=1.0)


def _received(evidence: Evidence) -> tuple[str, EvidenceFigure | None, float | None]:
    """Return who receives the bytes of the application, how many had been received when the tool ended, and of how
    many. If data is compressed, or zeros are not stored, the device receives fewer, with copies or parity more: then
    what left the page cache, or if that is unknown, what the device had received after the final flush."""
    device = evidence.figure("device_written_bytes", "device bytes when the tool ended")
    if not (evidence.compresses or evidence.zeros or evidence.multiplied):
        return "the device", device, evidence.written_bytes
    back = evidence.figure("volume_written_back_bytes", "written back when the tool ended")
    if back is not None:
        return "the file system", back, evidence.written_bytes
    return "the device", device, evidence.value("device_written_bytes_flushed")


class ReadAhead(Mechanism):
    """Read-ahead: the kernel reads more than was requested. Documentation/admin-guide/blockdev, read_ahead_kb.

    It speeds up sequential reads and is wasted on random reads.
    """

    summary = "more is read than was requested"
    cause = "read-ahead"
    speeds_up = None
    alters = True
    off_by = Switchable.DIRECT
    needs = ("read_amplification",)

    def applies(self, evidence: Evidence) -> bool:
        return evidence.traits.direct is False and not writes(evidence)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        """Yield a statement if the requests to the device are larger than those of the tool, and than a page. Metadata,
        and whole pages for parts of them, are read without read-ahead, too."""
        read, requests = evidence.figure("read_amplification", "device bytes per byte read"), _ahead(evidence)
        if read is not None and read.value > _WASTE and requests is not None:
            number = evidence.figure("device_read_requests")
            text = (
                f"The device delivered {read.value:.2f} bytes for each byte read, in requests of "
                f"{format_size(requests)} on average."
            )
            yield self.explanation(
                evidence, text, read, number, weight=read.value, moved=_in_addition(evidence, read.value)
            )


def _ahead(evidence: Evidence) -> float | None:
    """Return the mean size of reads from the device; None if it is not clearly larger than a page and the requests of
    the tool, or these are unknown."""
    whole, requests = evidence.value("device_read_bytes"), evidence.value("device_read_requests")
    if evidence.traits.direct is not False or not whole or not requests or not evidence.traits.request_bytes:
        return None
    mean = whole / requests
    return mean if mean > _WASTE * max(_PAGE_BYTES, *evidence.traits.request_bytes) else None


class ReadAmplification(Mechanism):
    """More bytes from the device than the application read, without read-ahead: metadata, such as inodes and maps of
    blocks, or whole blocks for parts of them, such as small files."""

    summary = "the device delivers more than is read"
    cause = "what is read in addition to data"
    writing = False
    needs = ("read_amplification",)

    def applies(self, evidence: Evidence) -> bool:
        return not writes(evidence)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        read = evidence.figure("read_amplification", "device bytes per byte read")
        if read is not None and read.value >= NOTICEABLE and _ahead(evidence) is None:
            yield self.explanation(
                evidence,
                f"The device delivered {read.value:.3g} bytes for each byte read: also metadata, or whole blocks for "
                "parts of them.",
                read,
                evidence.figure("device_read_requests"),
                weight=read.value - 1,
                moved=_in_addition(evidence, read.value),
            )


def _in_addition(evidence: Evidence, amplification: float) -> float:
    """Return the bytes that were read in addition to those that the tool read."""
    return (evidence.value("device_read_bytes") or 0.0) * (1 - 1 / amplification)


class DelayedAllocation(Mechanism):
    """Delayed allocation: blocks are allocated when data is written back. Documentation/filesystems/ext4/.

    Data that is deleted soon never reaches the disk, and neighbouring data is written together.
    """

    summary = "blocks are allocated at writeback"
    cause = "delayed allocation"
    speeds_up = True
    filesystems = frozenset({"ext4"})
    unless = ("nodelalloc",)
    unswitchable = frozenset({"bcachefs", "btrfs", "f2fs", "nilfs2", "reiser4", "xfs", "zfs"})
    off = Switch(mount=("nodelalloc",))
    needs = ("delayed_allocation_bytes",)

    def applies(self, evidence: Evidence) -> bool:
        return super().applies(evidence) and evidence.traits.direct is not True

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        delayed = evidence.figure("delayed_allocation_bytes", "bytes not allocated yet")
        if delayed is not None and delayed.value > 1 << 20:
            yield self.explanation(
                evidence,
                f"When the tool ended, {format_size(delayed.value)} had no blocks on the disk yet: the measured time "
                "does not include writing them.",
                delayed,
                evidence.figure("device_written_bytes", "device bytes by then"),
                weight=1.0,
            )


class BufferedDirectIo(Mechanism):
    """O_DIRECT that is accepted but not honoured: ext4 with data=journal, btrfs with checksums (Linux 6.15).

    Direct writes still go through the page cache: they are copied and written back.
    """

    name = "direct-not-honoured"
    summary = "direct writes through the page cache"
    cause = "the page cache under direct writes"
    speeds_up = None
    attribute = "j"

    def applies(self, evidence: Evidence) -> bool:
        return evidence.traits.direct is True and writes(evidence)

    def present(self, evidence: Evidence) -> bool:
        """Return whether it was found: most file systems honour O_DIRECT."""
        return self.applies(evidence) and next(self.state(evidence), None) is not None

    def known(self, evidence: Evidence) -> bool:
        return not self.applies(evidence) or None not in (_dirtied(evidence), evidence.written_bytes)

    def switch(self, evidence: Evidence) -> Switch | None:
        if evidence.filesystem == "btrfs":
            return Switch(mount=("nodatasum",), instead=("datasum",))
        off = Switch(mount=("data=ordered",))
        return self.without(off, evidence) if "data=journal" in evidence.file_options else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        written, dirtied = evidence.written_bytes, _dirtied(evidence)
        own = evidence.figure("volume_dirtied_bytes") is not None
        if written and dirtied is not None and dirtied.value > (0.5 if own else 0.9) * written:
            amounts = f"for {format_size(written)} written ({100 * dirtied.value / written:.0f} %)"
            yield self.explanation(
                evidence,
                f"The direct writes were not direct: {format_size(dirtied.value)} went through the page cache "
                f"{amounts}."
                if own
                else f"The direct writes were probably not direct: the machine dirtied {format_size(dirtied.value)} "
                f"of page cache {amounts}.",
                dirtied,
                weight=5.0,
                certainty=Certainty.OBSERVED if own else Certainty.COINCIDES,
            )


def _dirtied(evidence: Evidence) -> EvidenceFigure | None:
    """Return what was dirtied by this file system; without root, by the whole machine."""
    own = evidence.figure("volume_dirtied_bytes", "dirtied in the page cache by this file system")
    return own or evidence.figure("page_cache_dirtied_bytes", "dirtied in the page cache of the machine")


class Atime(Mechanism):
    """Access times: a read may cause a write. mount(8), relatime and noatime.

    relatime writes an access time if the old one precedes the last change or is a day old; strictatime always.
    """

    summary = "reads write access times"
    cause = "access times"
    off = Switch(mount=("noatime",), instead=("relatime", "strictatime", "atime"))
    needs = ("device_written_bytes_flushed",)

    def applies(self, evidence: Evidence) -> bool:
        return "noatime" not in evidence.file_options and not writes(evidence)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        if evidence.cell.cache is Cache.WARM:  # what the preparation logged may be written later (XFS)
            return
        written = evidence.figure(
            "device_written_bytes_flushed", "bytes written by a workload that only reads"
        )
        if written is not None and written.value >= 64 << 10:
            text = f"{format_size(written.value)} were written by a workload that only reads, possibly access times."
            yield self.explanation(evidence, text, written, weight=0.3, certainty=Certainty.COINCIDES)
