"""Mechanisms of the way data is stored. Pure."""

from collections.abc import Iterator

from fslab.cell import Cache
from fslab.explain.evidence import Certainty, Evidence, EvidenceFigure, Explanation
from fslab.explain.mechanisms import SLIGHT, Mechanism, Switch, writes
from fslab.workloads import Switchable

_OFF = Switch(mount=("compress=none",), instead=("compress-force",))


class DataCompression(Mechanism):
    """Transparent compression: btrfs(5) "compress"; f2fs and bcachefs have mount options of similar names.

    Fewer bytes reach the device, at the cost of CPU time.
    """

    name = "compression"
    summary = "data is compressed"
    cause = "compression"
    speeds_up = None
    attribute = "c"

    def applies(self, evidence: Evidence) -> bool:
        return evidence.compresses

    def known(self, evidence: Evidence) -> bool:
        amplified = evidence.figure("write_amplification" if writes(evidence) else "read_amplification")
        return not self.present(evidence) or amplified is not None

    def switch(self, evidence: Evidence) -> Switch | None:
        return self.without(_OFF, evidence) if evidence.filesystem == "btrfs" else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        received, sent = evidence.value("device_written_bytes_flushed"), _sent_bytes(evidence)
        if amplified is not None and received and sent and received < 0.9 * sent:
            zeros = ", and the tool writes hardly anything but zeros" if evidence.zeros else ""
            text = f"Compression: the device received {received / sent:.2f} bytes for each byte sent to it{zeros}."
            yield self.explanation(
                evidence,
                text,
                amplified,
                evidence.figure("volume_written_back_bytes_flushed", "written back"),
                weight=sent / received,
            )
        read = evidence.figure("read_amplification", "device bytes per byte read")
        if (
            read is not None
            and read.value < 0.9
            and evidence.cell.cache is Cache.COLD
            and not writes(evidence)
        ):
            yield self.explanation(
                evidence,
                f"The device delivered {read.value:.2f} bytes for each byte read: data is compressed, or came from the "
                "page cache.",
                read,
                weight=1 / max(read.value, 0.01),
                certainty=Certainty.COINCIDES,
            )
        if (cpu := _cpu_of_writes(evidence, "compression")) is not None:
            yield self.explanation(evidence, *cpu, weight=0.1, certainty=Certainty.COINCIDES)


def _sent_bytes(evidence: Evidence) -> float | None:
    """Return the bytes of the application that left the page cache: what was overwritten or deleted there was not
    compressed. Without root, only what the whole machine wrote back until the tool ended is known."""
    written = evidence.written_bytes
    if written is None or evidence.traits.direct is True:
        return written
    back = evidence.value("volume_written_back_bytes_flushed")
    known = evidence.value("page_cache_written_bytes") if back is None else back
    return written if known is None else min(written, known)


def _cpu_of_writes(evidence: Evidence, including: str) -> tuple[str, EvidenceFigure, EvidenceFigure] | None:
    """Return what each 4 KiB took of the kernel's CPU time, in words, with the figures; None if there were reads."""
    tool = evidence.figure("tool_cpu_system_s", "system CPU time of the tool")
    kernel = evidence.figure("kernel_threads_cpu")
    written = evidence.written_bytes
    if not written or tool is None or kernel is None or evidence.traits.reads is True:
        return None
    spent_us = (tool.value + kernel.value) * 1e6 / (written / 4096)
    return (
        f"Each 4 KiB written took {spent_us:.0f} µs of CPU time in the kernel, including {including}.",
        tool,
        kernel,
    )


class CopyOnWrite(Mechanism):
    """Copy-on-write: an overwritten block gets a new place, and the tree above it is rewritten. btrfs(5), nodatacow.

    Overwriting a file fragments it. Each fsync writes a path of the tree instead of one inode.
    """

    summary = "overwritten blocks are stored in a new place"
    cause = "copy-on-write"
    speeds_up = None
    filesystems = frozenset({"btrfs"})
    unless = ("nodatacow",)
    unswitchable = frozenset({"bcachefs", "nilfs2", "zfs"})
    off = Switch(mount=("nodatacow",), instead=("datacow", "datasum"))
    needs = ("file_extents_before",)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        before, after = (
            evidence.value("file_extents_before"),
            evidence.figure("file_extents", "extents afterwards")
            or evidence.of_trace("file_extents", "extents afterwards"),
        )
        least = evidence.figure("file_extents_at_least", "extents afterwards, at least")
        grown = after or least
        if grown is not None and before and grown.value > 10 * before:
            yield self.explanation(
                evidence,
                f"The run fragmented its files into {'' if after else 'at least '}{grown.value:.0f} extents "
                f"(before: {before:.0f}): each overwritten block is stored in a new place.",
                grown,
                evidence.of_trace("traced_sequential", "sequential device writes")
                or evidence.figure("disk_sequential", "sequential requests to the disk"),
                weight=grown.value / before,
            )


class DataChecksums(Mechanism):
    """Checksums of file data, computed for each block written and stored in a tree. btrfs(5), nodatasum.

    Each checksum is an additional item in a tree. Since Linux 6.15, direct writes go through the page cache. Therefore
    data cannot change after its checksum is computed.
    """

    summary = "each block of data has a checksum"
    cause = "data checksums"
    filesystems = frozenset({"btrfs"})
    writing = False
    unless = ("nodatasum", "nodatacow")
    unswitchable = frozenset({"bcachefs", "nilfs2", "zfs"})
    off = Switch(mount=("nodatasum",), instead=("datasum",))
    needs = ("kernel_threads_cpu",)

    def known(self, evidence: Evidence) -> bool:
        """Return False where data is compressed: then its checksums are part of what ``DataCompression`` states."""
        return not self.present(evidence) or (super().known(evidence) and not evidence.compresses)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        cpu = _cpu_of_writes(evidence, "checksums") if self.known(evidence) else None
        if cpu is not None:
            yield self.explanation(evidence, *cpu, weight=0.1, certainty=Certainty.COINCIDES)


_JUMP_ON_HEADS_S, _JUMP_ON_FLASH_S = 8e-3, 80e-6  # a short seek and half a turn; one more request
_OF_READ_AHEAD = 64 << 10  # at least, of a request


class Fragmentation(Mechanism):
    """Fragmentation: neighbouring parts of a file that are not neighbours on the device (FIEMAP).

    Later sequential reads become random reads. This costs requests on flash, and seeks on hard disks.
    """

    summary = "the file is fragmented"
    cause = "fragmentation"
    alters = True
    off_by = Switchable.IN_PLACE
    writing = False
    needs = ("file_pieces",)

    def applies(self, evidence: Evidence) -> bool:
        """Return whether files are read or written in parts; what btrfs writes is stated by ``CopyOnWrite``."""
        return evidence.traits.few_files and not (writes(evidence) and evidence.filesystem == "btrfs")

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        pieces = evidence.figure("file_pieces", "discontinuities")
        extents = evidence.figure("file_extents", "extents")
        if pieces is None:
            return
        if writes(evidence):
            if pieces.value > 1000:
                text = f"The files are fragmented: {pieces.value:.0f} discontinuities on the device."
                yield self.explanation(evidence, text, pieces, extents, weight=0.5)
            return
        share = _share_of_jumps(evidence, pieces.value)
        if share is not None and share >= SLIGHT:
            yield self.explanation(
                evidence,
                f"The files that were read lie in {pieces.value:.0f} pieces on the device: to get from one to the next "
                f"takes such a disk about {100 * share:.0f} % of the run.",
                pieces,
                extents,
                takes=share,
                certainty=Certainty.COINCIDES,
                refuted_by="equally slow where the files are contiguous",
            )


def _share_of_jumps(evidence: Evidence, pieces: float) -> float | None:
    """Return the share of the run in which the disk gets from one piece to the next, by what is usual of its kind, at
    most the time in which it was busy. None if that is unknown, or if requests are so small that files were read at
    random: then it does so with any file."""
    read, requests, run_s = (
        evidence.value("device_read_bytes"), evidence.value("device_read_requests"), evidence.run_s
    )  # fmt: skip
    if not pieces or not read or not requests or not run_s:
        return None
    whole = evidence.traits.working_set_bytes or read
    if read / requests < min(whole / pieces / 2, _OF_READ_AHEAD):
        return None
    jumps = (pieces - 1) * max(read / whole, 1.0)
    busy = evidence.share_of_run("device_busy", evidence.disks_at_once)
    each_s = _JUMP_ON_HEADS_S if evidence.rotates else _JUMP_ON_FLASH_S
    return min(jumps * each_s / run_s, 1.0 if busy is None else busy)
