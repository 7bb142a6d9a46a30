"""Mechanisms of the disk and its size. Pure."""

from collections.abc import Iterator

from fslab.cell import Geometry
from fslab.explain.evidence import Certainty, Evidence, EvidenceFigure, Explanation
from fslab.explain.mechanisms import NOTICEABLE, Mechanism, Switch, writes
from fslab.units import counted, format_size, format_value, listed

_NOTICEABLE = 1 << 20
_SHORTEST_NS = 10_000  # about what the way to a disk takes
_REQUESTS = ("read", "write", "flush")


class Discard(Mechanism):
    """Discards during the run: of freed space at each commit with mount -o discard, or by fstrim(8)."""

    summary = "freed space is discarded"
    cause = "discards"
    off = Switch(mount=("nodiscard",), instead=("discard",))
    needs = ("device_discarded_bytes",)

    def applies(self, evidence: Evidence) -> bool:
        return any(each.partition("=")[0] == "discard" for each in evidence.mount_options)

    def present(self, evidence: Evidence) -> bool:
        return self.applies(evidence) or (evidence.value("device_discarded_bytes") or 0) >= _NOTICEABLE

    def switch(self, evidence: Evidence) -> Switch | None:
        return self.off if self.applies(evidence) else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        discarded = evidence.figure("device_discarded_bytes", "discarded")
        if discarded is not None and discarded.value >= _NOTICEABLE:
            text = f"{format_size(discarded.value)} were discarded during the run."
            yield self.explanation(evidence, text, discarded, weight=0.5)


class DiskTime(Mechanism):
    """The time in which the disk itself answers: of a hard disk mostly seeks and rotation, of an SSD its flash.

    A virtual disk's model reports it, with what ``slow`` and stuck requests add. Of other disks, the kernel counts it
    (Documentation/block/stat.rst); in memory, it is the CPU's. Both have the wait in the disk's queue. A disk without a
    volatile cache answers flushes at once.
    """

    summary = "the time in which the disk itself answers"
    cause = "the disk's own time"
    writing = False
    general = True

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        mean = evidence.figure("disk_service_mean", "mean time of the disk")
        share = evidence.share_of_run("device_busy", evidence.disks_at_once, without="device_flush_time")
        if mean is None and evidence.cell.stack.medium.type == "ram":
            return
        of = "device" if mean is None else "disk"
        names = {f"{name}es" if name == "flush" else f"{name}s": f"{of}_{name}_mean" for name in _REQUESTS}
        known = {name: found for name, probe in names.items() if (found := evidence.figure(probe))}
        decisive = [*known.values()] if mean is None else [mean]
        if not any(figure.value >= _SHORTEST_NS for figure in decisive):
            return
        told = known or {"requests": decisive[0]}
        answered = [f"{name}{_sized(evidence, name)} after {_shown(found)}" for name, found in told.items()]
        moved = evidence.figure("disk_movements", "movements of the heads")
        crossed = evidence.figure("disk_seek_cylinders", "cylinders that a movement crossed")
        busy = (
            "" if share is None else f" It was busy for {100 * share:.0f} % of the run, apart from flushes."
        )
        heads = ""
        if moved and crossed:
            often = counted(round(moved.value), "time")
            far = counted(round(crossed.value), "cylinder")
            heads = f" Its heads moved {often}, over {far} on average."
        yield self.explanation(
            evidence,
            f"The disk answered {listed(answered)} on average.{busy}{heads}",
            mean,
            *known.values(),
            moved,
            crossed,
            evidence.figure("device_busy", "busy"),
            takes=share,
            refuted_by="equally slow on a faster disk" + " (profile: none)" * (mean is not None),
        )


def _sized(evidence: Evidence, requests: str) -> str:
    """Return the mean size of reads, in words; nothing if it is unknown, and of others: some of the requests that count
    as writes are empty flushes."""
    whole, number = evidence.value("device_read_bytes"), evidence.value("device_read_requests")
    return f" of {format_size(whole / number)}" if requests == "reads" and whole and number else ""


def _shown(figure: EvidenceFigure) -> str:
    return format_value(figure.value, figure.unit)


class FlashCollection(Mechanism):
    """Garbage collection of an SSD: valid pages of a block are copied before it is erased (Desnoyers, SYSTOR 2012).

    Only the model of a virtual SSD reports the bytes written to its flash. What goes through an SLC cache is written
    twice, because the cache is emptied, also of what was written before the run: that is no garbage collection, which
    erases blocks.
    """

    summary = "the SSD writes more to its flash than the host writes to it"
    cause = "garbage collection of the SSD"

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        ratio = evidence.figure("device_write_amplification", "flash bytes per byte written by the host")
        flash = evidence.figure("flash_written_bytes", "written to the flash")
        if ratio is None or flash is None:
            return
        collected = ratio.value - evidence.has_slc
        erases = evidence.figure("flash_erases_per_block", "times that a block was erased")
        if collected < NOTICEABLE or (erases is not None and not erases.value):
            return
        yield self.explanation(
            evidence,
            f"The SSD wrote {format_size(flash.value)} to its flash, {ratio.value:.2f} bytes for each byte that the "
            "host wrote.",
            ratio,
            flash,
            erases,
            evidence.figure("ssd_years_at_this_rate", "years to the rated endurance at this rate"),
            weight=collected - 1,
            refuted_by="equally slow on an SSD with more over-provisioning, or on an empty one (steady: false)",
        )


class StripeMisalignment(Mechanism):
    """Unaligned stripes: the file system does not know the stripe size, so that its writes cross stripes."""

    summary = "writes are not aligned to stripes"
    cause = "unaligned stripes"
    off = Switch(geometry=Geometry.ALIGNED)

    def applies(self, evidence: Evidence) -> bool:
        aligned = evidence.cell.stack.geometry is Geometry.ALIGNED or evidence.stripes_in_use
        return not aligned and writes(evidence) and evidence.takes_stripe

    def state(self, evidence: Evidence) -> Iterator[Explanation]:  # noqa: ARG002
        """Yield nothing: no counter shows where writes begin. ``ParityUpdates`` states what they cost on RAID 5."""
        yield from ()


class ParityUpdates(Mechanism):
    """Parity of a stripe of which only a part is written: its other data, or its old data and parity, are read first.

    So it is on RAID 5 and 6 however the file system is aligned, if single writes are smaller than a stripe. md(4).
    """

    summary = "parts of stripes are read to compute parity"
    cause = "updates of parity"
    needs = ("device_read_bytes",)

    def applies(self, evidence: Evidence) -> bool:
        return writes(evidence) and evidence.has_parity

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        read = evidence.figure("device_read_bytes", "bytes read from the disks by a workload that writes")
        written = evidence.written_bytes
        if read is None or not written or evidence.value("read_amplification") is not None:
            return
        if read.value > 0.2 * written:
            yield self.explanation(
                evidence,
                f"Writing {format_size(written)} caused {format_size(read.value)} of reads from the disks: where a "
                "part of a stripe is written, others are read to compute its parity.",
                read,
                weight=1.0,
                certainty=Certainty.COINCIDES,
                refuted_by="as many reads where whole stripes are written",
            )
