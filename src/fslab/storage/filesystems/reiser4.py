"""Reiser4: atomic operations, extensible by plug-ins, never part of Linux. mkfs.reiser4(8).

The last patches are for Linux 5.16. It needs a kernel that the user patches and builds.
"""

from fslab.filesystem_abilities import Ability, Limits
from fslab.storage.filesystems import FileSystem, Kernels, naming, options, valued
from fslab.system.tools import Tool


class Reiser4(FileSystem):
    """Atomic operations, packed small files, plug-ins for everything."""

    summary = "atomic operations, packed small files; needs a patched kernel"
    tools = (Tool(program="mkfs.reiser4", package="reiser4progs", version_argv=("-V",)),)
    mkfs = ("mkfs.reiser4", "-y", "-f")  # -y: do not ask
    mkfs_discards = ("-d",)
    mount_type = "reiser4"
    kernels = Kernels(outside="patches for kernels up to 5.16")
    min_size_bytes = 16 << 20
    limits = Limits(
        lacks={
            Ability.XATTR: "reiser4 stores none",
            Ability.REFLINK: "no two files share blocks",
        }
    )
    mkfs_flags = valued("-b --block-size -o --override") | naming("-U --uuid -L --label")
    mount_options = options("discard dont_load_bitmap onerror=remount-ro txmod=hybrid|journal|wa")
