"""An LVM thin volume (dm-thin): space is allocated when a chunk is first written. lvmthin(7)."""

from collections.abc import Sequence

from pydantic import Field

from fslab.storage.layouts import LayoutPlan, _lvm

SHARE = (
    90  # percent of the group; the rest is room for the pool's metadata, so that the pool cannot become full
)


class LvmThinOptions(_lvm.ThinOptions):
    """Chunk and zeroing of the pool."""

    zero: bool = Field(True, description="write zeros to the rest of a newly allocated chunk (LVM's default)")


class LvmThin(_lvm.LvmVolume[LvmThinOptions]):
    """A thin volume in a pool of its own, on one disk. Its first write to a chunk includes the allocation."""

    summary = "LVM: a thin volume, which allocates space when it is first written"
    modules = ("dm_mod", "dm_thin_pool")
    least_disk_bytes = _lvm.THIN_LEAST_BYTES
    Options = LvmThinOptions

    def usable_bytes(self, options: LvmThinOptions, disk_bytes: int) -> int:
        return _lvm.share_bytes(disk_bytes, SHARE, options.chunk_bytes)

    def multiplies(self, options: LvmThinOptions) -> bool:
        return options.zero

    def passes_zeros(self, options: LvmThinOptions) -> bool:  # noqa: ARG002
        return False  # dm-thin.c sets no num_write_zeroes_bios

    def plan(self, options: LvmThinOptions, devices: Sequence[str], campaign: str) -> LayoutPlan:
        """Return the plan: a pool of all extents, and a volume in it."""
        volumes = _lvm.thin(devices, campaign, options.chunk_bytes, zero=options.zero)
        return self.planned(devices, campaign, *volumes)
