"""md RAID 6: striped with two rotating parities. md(4), mdadm(8)."""

from pydantic import Field

from fslab.storage import Stripe
from fslab.storage.layouts import _md, _options

PARITIES = 2


class MdRaid6Options(_md.BitmappedChunked):
    """The two parities take the space of two disks."""

    disks: int = Field(
        4, ge=4, le=_options.MOST_DISKS, description="number of disks; the parities take the space of two"
    )


class MdRaid6(_md.Md[MdRaid6Options]):
    """Two rotating parities (left-symmetric), created with `--assume-clean`, as for RAID 5."""

    summary = "md RAID 6: striped with two rotating parities"
    modules = ("raid456",)
    level = 6
    redundant = True
    Options = MdRaid6Options

    def stripe(self, options: MdRaid6Options) -> Stripe:
        return Stripe(chunk_bytes=options.chunk_bytes, data_disks=options.disks - PARITIES)

    def usable_bytes(self, options: MdRaid6Options, disk_bytes: int) -> int:
        return (options.disks - PARITIES) * _md.usable_bytes(disk_bytes, options.chunk_bytes)
