"""Mechanisms of metadata: where it lies, how much is written, and who waits for it. Pure."""

from collections.abc import Iterator

from fslab.explain.evidence import Certainty, Evidence, Explanation
from fslab.explain.mechanisms import NOTICEABLE, Mechanism, Switch
from fslab.units import format_size


def _written(evidence: Evidence) -> float:
    return evidence.value("device_written_bytes_flushed") or 0.0


class MetadataTraffic(Mechanism):
    """Writes in addition to data: trees, inodes, journals and superblocks, as marked by the kernel.

    Split by REQ_META and by the location of journal and superblocks; needs a traced trial that passed its checks.
    """

    summary = "metadata is written in addition to data"
    cause = "metadata"
    unless = ("data=journal",)  # with it, data is also marked as metadata

    def known(self, evidence: Evidence) -> bool:
        return not self.present(evidence) or evidence.of_trace("traced_metadata_bytes") is not None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        whole = evidence.of_trace("traced_written_bytes", "written")
        meta = evidence.of_trace("traced_metadata_bytes", "of metadata")
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        if whole is None or meta is None or amplified is None:
            return
        if whole.value and meta.value > 0.02 * whole.value:
            yield self.explanation(
                evidence,
                f"The device received {amplified.value:.3g} bytes for each byte written; "
                f"{100 * meta.value / whole.value:.0f} % "
                "of that was marked as metadata.",
                amplified,
                meta,
                *(
                    evidence.of_trace(f"traced_{place}_written_bytes", place.replace("_", " "))
                    for place in ("data", "metadata", "metadata_and_journal", "journal", "superblock")
                ),
                weight=meta.value / max(whole.value - meta.value, 4096),
                moved=_written(evidence) * meta.value / whole.value,
                refuted_by="another tracing method counts less metadata",
            )


class Amplification(Mechanism):
    """More bytes on the device than the application wrote: what they are needs a trace, as ``MetadataTraffic`` says.

    NILFS2, for example, writes all blocks of a path to the root of its trees with each fsync:
    Documentation/filesystems/nilfs2.rst.
    """

    summary = "the device receives more than was written"
    cause = "what is written in addition to data"
    general = True
    needs = ("write_amplification",)

    def known(self, evidence: Evidence) -> bool:
        split = evidence.of_trace("traced_metadata_bytes") is not None
        return super().known(evidence) and not split and not evidence.multiplied

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        if amplified is None or not self.known(evidence) or amplified.value < NOTICEABLE:
            return
        yield self.explanation(
            evidence,
            f"The device received {amplified.value:.3g} bytes for each byte written: also metadata, a log, or whole "
            "blocks for parts of them.",
            amplified,
            weight=amplified.value - 1,
            moved=_written(evidence) * (1 - 1 / amplified.value),
        )


_ONE_COPY = 1.5  # at most


class MetadataDuplication(Mechanism):
    """Two copies of all metadata on one device: the profile DUP in mkfs.btrfs(8).

    Every write of trees and superblocks is done twice.
    """

    summary = "metadata is stored twice"
    cause = "the second copy of metadata"
    filesystems = frozenset({"btrfs"})
    unless = ("-m single",)
    unswitchable = frozenset({"zfs"})
    off = Switch(mkfs="-m single")
    needs = ("btrfs_metadata_copies", "write_amplification")

    def applies(self, evidence: Evidence) -> bool:
        copies = evidence.value("btrfs_metadata_copies")  # words of mkfs have several spellings
        return super().applies(evidence) and (copies is None or copies > _ONE_COPY)

    def known(self, evidence: Evidence) -> bool:
        return not self.present(evidence) or (super().known(evidence) and not evidence.multiplied)

    def switch(self, evidence: Evidence) -> Switch | None:
        """Return the mkfs option; None where the layout sets the profiles."""
        return None if evidence.cell.stack.layout.startswith("btrfs-") else self.off

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        if evidence.multiplied:
            return
        copies = evidence.figure("btrfs_metadata_copies", "copies of metadata")
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        if copies is None or amplified is None:
            return
        if copies.value > _ONE_COPY and amplified.value > NOTICEABLE:
            often = "twice" if round(copies.value) == 2 else f"{copies.value:.0f} times"
            profile = "RAID1" if evidence.cell.stack.layout == "btrfs-raid0" else "DUP"
            yield self.explanation(
                evidence,
                f"Metadata is stored {often} ({profile}); the device received "
                f"{amplified.value:.3g} bytes for each byte written.",
                amplified,
                copies,
                evidence.of_trace("traced_metadata_bytes", "metadata"),
                evidence.of_trace("traced_data_written_bytes", "data"),
                weight=(amplified.value - 1) * (1 - 1 / copies.value),
                moved=_written(evidence) * (1 - 1 / amplified.value) * (1 - 1 / copies.value),
            )


class DirectoryIndex(Mechanism):
    """Hashed directory indexes of ext3 and ext4: dir_index in ext4(5).

    Without the index, a name is searched in all blocks of its directory.
    """

    summary = "directories have a hash index"
    cause = "directory indexes"
    speeds_up = True
    filesystems = frozenset({"ext3", "ext4"})
    writing = False
    unless = ("^dir_index",)
    unswitchable = frozenset(
        {"bcachefs", "btrfs", "f2fs", "jfs", "ntfs3", "reiser4", "reiserfs", "xfs", "zfs"}
    )
    off = Switch(mkfs="-O ^dir_index")

    def applies(self, evidence: Evidence) -> bool:
        return super().applies(evidence) and evidence.traits.many_files

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        files, directories = evidence.traits.files, evidence.traits.directories
        cpu = evidence.figure("tool_cpu_system_s", "system CPU time of the tool")
        if files and directories and cpu is not None and files / directories >= 10_000:
            yield self.explanation(
                evidence,
                f"Each directory had {files / directories:.0f} names, found by an index instead of a linear search.",
                cpu,
                weight=0.05,
                certainty=Certainty.COINCIDES,
            )


_SEARCHED = 1000  # so many names are searched about as fast as a file is created (Linux 6.18)
_LINEAR = frozenset({"exfat", "nilfs2", "udf", "vfat"})


class LinearDirectories(Mechanism):
    """Directories without an index: all names of a directory are read until one is found. ext4(5), ``dir_index``."""

    summary = "names are searched one by one"
    cause = "directories without an index"
    filesystems = _LINEAR | {"ext2", "ext3", "ext4"}
    writing = False

    def applies(self, evidence: Evidence) -> bool:
        off = evidence.filesystem in _LINEAR or "^dir_index" in evidence.cell.stack.mkfs_options
        return super().applies(evidence) and off and evidence.traits.many_files

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        files, directories = evidence.traits.files, evidence.traits.directories
        if files and directories and files / directories >= 2 * _SEARCHED:
            yield self.explanation(
                evidence,
                f"Each directory had {files / directories:.0f} names and no index: a name is searched among all of "
                "them.",
                evidence.figure("tool_cpu_system_s", "system CPU time of the tool"),
                weight=files / directories / _SEARCHED / 2,
                certainty=Certainty.COINCIDES,
                refuted_by="equally slow with fewer names in each directory",
            )


class LazyInitialisation(Mechanism):
    """Lazy initialisation: ext4 writes inode tables in the background during the first minutes. mke2fs(8).

    These writes happen at the same time as the workload. fslab's own mkfs command disables them.
    """

    summary = "inode tables are written in the background"
    cause = "lazy initialisation"
    filesystems = frozenset({"ext4"})
    writing = False
    wants = ("lazy_itable_init=1",)
    off = Switch(mkfs="-E lazy_itable_init=0,lazy_journal_init=0")

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        idle = evidence.of_trace("traced_idle_bytes", "written while no tool ran")
        if evidence.traced is not None and idle is None:
            record = evidence.traced.probes.get("traced_idle_bytes")
            if record is not None and record.value:
                yield self.explanation(
                    evidence, f"{format_size(record.value)} were written while no tool ran.", weight=1.0
                )


class AllocationGroups(Mechanism):
    """Allocation groups: XFS allocates in several parts of the disk in parallel. mkfs.xfs(8), agcount.

    With one group, parallel allocations wait for each other.
    """

    summary = "parallel allocation in groups"
    cause = "allocation groups"
    speeds_up = True
    filesystems = frozenset({"xfs"})
    unless = ("agcount",)
    off = Switch(mkfs="-d agcount=2")
    needs = ("xfs_allocated_extents",)

    def applies(self, evidence: Evidence) -> bool:
        return super().applies(evidence) and evidence.traits.many_files

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        extents = evidence.figure("xfs_allocated_extents", "extents allocated")
        if extents is not None and extents.value > 10_000:
            text = f"{extents.value:.0f} extents were allocated; XFS spreads them over its allocation groups."
            yield self.explanation(evidence, text, extents, weight=0.05, certainty=Certainty.COINCIDES)
