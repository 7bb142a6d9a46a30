"""md RAID 0: striping by the kernel's software RAID. md(4), mdadm(8)."""

from fslab.storage import Stripe, layouts
from fslab.storage.layouts import _md


class MdRaid0Options(layouts.Chunked):
    """The number of disks and the chunk."""


class MdRaid0(_md.Striped[MdRaid0Options]):
    """An array for one campaign, created and assembled without mdadm.conf."""

    summary = "md RAID 0: striped, no redundancy"
    modules = ("raid0",)
    level = 0
    redundant = False
    Options = MdRaid0Options

    def striping(self, options: MdRaid0Options) -> Stripe:
        return self.stripe(options)
