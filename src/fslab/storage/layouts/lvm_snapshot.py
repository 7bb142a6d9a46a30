"""An LVM volume of which a snapshot is taken before each run: what a snapshot costs. lvcreate(8), lvmthin(7)."""

from collections.abc import Sequence

from pydantic import Field

from fslab.storage.layouts import Argv, LayoutPlan, _lvm
from fslab.units import Size, format_size, parse_size

# Percent of the group. A snapshot gets the other half, with room for the list of its chunks, so that it cannot become
# full even if all chunks of the volume are written: the kernel drops a full snapshot, and writes are cheap again.
SHARE = 45
LEAST_CHUNK_BYTES, LARGEST_CHUNK_BYTES = 4 << 10, 512 << 10  # lvcreate(8), --chunksize


class LvmSnapshotOptions(_lvm.ThinOptions):
    """The kind of the snapshot. Volumes with and without one have the same size."""

    chunk: Size | None = Field(
        None, description="bytes that are copied at once, a power of two; default: 4k, with `thin` 64k"
    )
    snapshot: bool = Field(
        True, description="take the snapshot; `[false, true]` compares without and with one"
    )
    thin: bool = Field(False, description="use a thin volume and a thin snapshot, which shares its chunks")

    @property
    def chunk_bytes(self) -> int:
        return parse_size(self.chunk or (_lvm.THIN_CHUNK if self.thin else "4k"))

    def check_chunk(self) -> None:
        """Raise ValueError for a chunk that lvcreate does not accept."""
        if self.thin:
            super().check_chunk()
        elif not _lvm.is_chunk(self.chunk_bytes, LEAST_CHUNK_BYTES, LARGEST_CHUNK_BYTES):
            least, most = format_size(LEAST_CHUNK_BYTES), format_size(LARGEST_CHUNK_BYTES)
            raise ValueError(f"chunk '{self.chunk}' is not a power of two from {least} to {most}")


class LvmSnapshot(_lvm.LvmVolume[LvmSnapshotOptions]):
    """A volume on one disk. Its snapshot is taken when the files of the workload are there, directly before the run."""

    summary = "LVM: a volume with a snapshot, taken before each run"
    modules = ("dm_mod", "dm_snapshot", "dm_thin_pool")
    least_disk_bytes = _lvm.THIN_LEAST_BYTES
    Options = LvmSnapshotOptions

    def usable_bytes(self, options: LvmSnapshotOptions, disk_bytes: int) -> int:
        return _lvm.share_bytes(disk_bytes, SHARE, options.chunk_bytes if options.thin else _lvm.EXTENT_BYTES)

    def multiplies(self, options: LvmSnapshotOptions) -> bool:
        return options.snapshot or options.thin  # of a thin pool, the rest of a new chunk is zeros

    def passes_zeros(self, options: LvmSnapshotOptions) -> bool:
        return not options.thin  # as for a thin volume; a snapshot is taken only after mkfs

    def plan(self, options: LvmSnapshotOptions, devices: Sequence[str], campaign: str) -> LayoutPlan:
        """Return the plan: the volume, and the command that takes the snapshot."""
        group = _lvm.group_of(campaign)
        room: Argv = ()
        if options.thin:
            volumes = _lvm.thin(devices, campaign, options.chunk_bytes)
        else:
            words = ("--extents", f"{SHARE}%VG", "--name", _lvm.VOLUME, group)
            volumes = (_lvm.command("lvcreate", devices, *_lvm.NO_WIPE, *words),)
            room = ("--extents", "50%VG", "--chunksize", f"{options.chunk_bytes >> 10}k")
        taken = ("--snapshot", *room, "--name", "kept", f"{group}/{_lvm.VOLUME}")
        snapshot = (_lvm.command("lvcreate", devices, *taken),) if options.snapshot else ()
        removed = (_lvm.command("lvremove", devices, "--force", f"{group}/kept"),) if options.snapshot else ()
        return self.planned(devices, campaign, *volumes, before_run=snapshot, after_run=removed)
