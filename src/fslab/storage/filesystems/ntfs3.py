"""NTFS with the kernel's own driver. mkntfs(8), Documentation/filesystems/ntfs3.rst."""

from fslab.filesystem_abilities import Ability, Limits
from fslab.storage.filesystems import FileSystem, Kernels, Made, _foreign, naming, options, valued
from fslab.system.tools import Tool


class Ntfs3(FileSystem):
    """The file system of Windows, with the driver that is part of Linux since 5.15."""

    summary = "NTFS, the file system of Windows, with the kernel's own driver"
    tools = (Tool(program="mkfs.ntfs", package="ntfs-3g", version_argv=("--version",)),)
    mkfs = ("mkfs.ntfs", "-F", "-Q", "-q")  # -Q: do not fill the device with zeros; it never discards
    mount_type = "ntfs3"
    kernels = Kernels(since=(5, 15))
    log_prefixes = ("ntfs3",)
    made = Made(data_bytes=66 << 20, zero_tib_bytes=32 << 20)  # its log of ones, and a bitmap
    min_size_bytes = 8 << 20
    limits = Limits(lacks={Ability.REFLINK: "no two files share clusters"})
    mkfs_flags = {
        **valued("-c --cluster-size -s --sector-size -z --mft-zone-multiplier"),
        **naming("-L --label"),
        **options("-C --enable-compression -I --no-indexing"),
    }
    mount_options = {
        **_foreign.MASK_OPTIONS,
        **options(
            "acl noacl discard nodiscard force noforce hide_dot_files nohide_dot_files hidden nohidden "
            "nocase prealloc noprealloc showmeta noshowmeta sparse nosparse sys_immutable nosys_immutable "
            "windows_names nowindows_names"
        ),
    }
