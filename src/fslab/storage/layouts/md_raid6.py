"""md RAID 6: striped with two rotating parities. md(4), mdadm(8)."""

from pydantic import Field

from fslab.storage import layouts
from fslab.storage.layouts import _md


class MdRaid6Options(_md.BitmappedChunked):
    """The two parities take the space of two disks."""

    disks: int = Field(
        4, ge=4, le=layouts.MOST_DISKS, description="number of disks; the parities take the space of two"
    )


class MdRaid6(_md.Striped[MdRaid6Options]):
    """Two rotating parities (left-symmetric), created with `--assume-clean`, as for RAID 5."""

    summary = "md RAID 6: striped with two rotating parities"
    modules = ("raid456",)
    level = 6
    redundant = True
    parities = 2
    Options = MdRaid6Options
