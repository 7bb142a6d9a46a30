"""LVM striping (dm-stripe): a volume group of our own, one logical volume over all disks. lvm(8), lvcreate(8)."""

from collections.abc import Sequence

from pydantic import field_validator

from fslab.storage import Stripe, layouts
from fslab.storage.layouts import LayoutPlan, _lvm
from fslab.units import format_size, parse_size


class LvmStripeOptions(layouts.Chunked):
    """LVM calls the chunk stripe size. Its extents have 4 MiB."""

    @field_validator("chunk")
    @classmethod
    def _within_an_extent(cls, value: str) -> str:
        if parse_size(value) > _lvm.EXTENT_BYTES:
            raise ValueError(
                f"chunk '{value}' is larger than an LVM extent ({format_size(_lvm.EXTENT_BYTES)})"
            )
        return value


class LvmStripe(_lvm.LvmVolume[LvmStripeOptions]):
    """A striped volume."""

    summary = "LVM: one logical volume, striped over all disks"
    modules = ("dm_mod",)
    Options = LvmStripeOptions

    def striping(self, options: LvmStripeOptions) -> Stripe:
        return Stripe(chunk_bytes=options.chunk_bytes, data_disks=options.disks)

    def usable_bytes(self, options: LvmStripeOptions, disk_bytes: int) -> int:
        return options.disks * _lvm.usable_bytes(disk_bytes)

    def plan(self, options: LvmStripeOptions, devices: Sequence[str], campaign: str) -> LayoutPlan:
        """Return the plan: ``lvcreate --stripes`` over all disks."""
        chunk = f"{options.chunk_bytes >> 10}k"
        stripes = ("--stripes", str(options.disks), "--stripesize", chunk, "--extents", "100%FREE")
        names = ("--name", _lvm.VOLUME, _lvm.group_of(campaign))
        return self.planned(
            devices,
            campaign,
            _lvm.command("lvcreate", devices, *_lvm.NO_WIPE, *stripes, *names),
            stripe=self.striping(options),
        )
