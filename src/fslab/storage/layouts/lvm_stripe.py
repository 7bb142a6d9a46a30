"""LVM: one striped logical volume over all disks, with the kernel's dm-stripe. lvcreate(8), lvmraid(7)."""

from collections.abc import Sequence, Set
from pathlib import Path

from pydantic import field_validator

from fslab.storage import Stripe
from fslab.storage.layouts import LayoutPlan, _lvm, _options
from fslab.storage.layouts._joined import JoinedLayout
from fslab.units import format_size, parse_size


class LvmStripeOptions(_options.Chunked):
    """LVM calls the chunk stripe size. Its extents have 4 MiB."""

    @field_validator("chunk")
    @classmethod
    def _within_an_extent(cls, value: str) -> str:
        if parse_size(value) > _lvm.EXTENT_BYTES:
            raise ValueError(
                f"chunk '{value}' is larger than an LVM extent ({format_size(_lvm.EXTENT_BYTES)})"
            )
        return value


class LvmStripe(JoinedLayout[LvmStripeOptions]):
    """A volume group for one campaign, with its own LVM configuration and without udev."""

    summary = "LVM: one logical volume, striped over all disks"
    tools = _lvm.TOOLS
    modules = ("dm_mod",)
    undo_kind = "volume-group"
    Options = LvmStripeOptions

    def usable_bytes(self, options: LvmStripeOptions, disk_bytes: int) -> int:
        return options.disks * _lvm.usable_bytes(disk_bytes)

    def plan(self, options: LvmStripeOptions, devices: Sequence[str], campaign: str) -> LayoutPlan:
        """Return the plan: ``vgcreate``, then ``lvcreate --stripes`` over all disks, without automatic activation."""
        group = _lvm.group_of(campaign)
        volume = f"{group}/{_lvm.VOLUME}"
        chunk = f"{options.chunk_bytes >> 10}k"
        stripes = ("--stripes", str(options.disks), "--stripesize", chunk, "--extents", "100%FREE")
        no_wipe = ("--zero", "n", "--wipesignatures", "n")  # not needed: the volume is blank or fslab's own
        return LayoutPlan(
            device=_lvm.device_of(group),
            stripe=Stripe(chunk_bytes=options.chunk_bytes, data_disks=options.disks),
            create=(
                ("wipefs", "--all", "--quiet", *devices),
                _lvm.command(
                    "vgcreate", devices, "--setautoactivation", "n", "--physicalextentsize", "4m", group, *devices
                ),
                _lvm.command("lvcreate", devices, *no_wipe, *stripes, "--name", _lvm.VOLUME, group),
            ),
            activate=(_lvm.command("lvchange", devices, "--activate", "y", volume),),
            deactivate=(_lvm.deactivate(devices, group),),
            remove=_lvm.take_down(devices, group),
        )  # fmt: skip

    def is_joined(self, block: Path, name: str, parts: Set[str]) -> bool:  # noqa: ARG002
        """Return whether device-mapper's name is that of the group's volume."""
        return _lvm.is_volume(block, name)

    def stop(self, block: Path, name: str, members: Sequence[Path]) -> None:
        """Stop the volume."""
        _lvm.stop(block, name, members)

    def name_on(self, part: Path) -> str | None:
        """Return the name of the volume group."""
        return _lvm.group_on(part)

    def blank(self, part: Path) -> None:
        """Remove the label."""
        _lvm.remove_label(part)

    def forget(self, name: str) -> None:
        """Remove the names of a removed volume."""
        _lvm.forget(name)
