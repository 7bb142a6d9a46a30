"""md RAID 5: striped with rotating parity. md(4), mdadm(8)."""

from pydantic import Field

from fslab.storage import layouts
from fslab.storage.layouts import _md


class MdRaid5Options(_md.BitmappedChunked):
    """Parity takes the space of one disk."""

    disks: int = Field(
        3,
        ge=3,
        le=layouts.MOST_DISKS,
        description="number of disks; parity takes the space of one",
    )


class MdRaid5(_md.Striped[MdRaid5Options]):
    """Rotating parity (left-symmetric), created with `--assume-clean`, so that no synchronisation runs during a trial.

    Writes cost the same, but the parity of stripes that were never fully written can be wrong. Such an array has no
    redundancy.
    """

    summary = "md RAID 5: striped with rotating parity"
    modules = ("raid456",)
    level = 5
    redundant = True
    parities = 1
    Options = MdRaid5Options
