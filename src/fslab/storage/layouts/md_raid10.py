"""md RAID 10: striped mirrors, two copies of each chunk (near layout). md(4), mdadm(8)."""

from pydantic import Field

from fslab.storage import Stripe, layouts
from fslab.storage.layouts import _md

COPIES = 2


class MdRaid10Options(_md.BitmappedChunked):
    """Two copies of each chunk; the number of disks may be odd."""

    disks: int = Field(4, ge=3, le=layouts.MOST_DISKS, description="number of disks; may be odd")


class MdRaid10(_md.Md[MdRaid10Options]):
    """Two copies of each chunk on adjacent disks, created with `--assume-clean`, so that no synchronisation runs during
    a trial."""

    summary = "md RAID 10: striped, two copies of each chunk"
    modules = ("raid10",)
    level = 10
    redundant = True
    Options = MdRaid10Options

    def stripe(self, options: MdRaid10Options) -> Stripe:
        """Return the stripe that the kernel reports (drivers/md/raid10.c, raid10_set_io_opt).

        With an odd number of disks, the pattern of copies repeats only after it has covered all disks.
        """
        odd = options.disks % COPIES
        return Stripe(
            chunk_bytes=options.chunk_bytes, data_disks=options.disks if odd else options.disks // COPIES
        )

    def usable_bytes(self, options: MdRaid10Options, disk_bytes: int) -> int:
        return options.disks * _md.usable_bytes(disk_bytes, options.chunk_bytes) // COPIES
