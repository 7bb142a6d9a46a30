"""UDF: the file system of DVDs, here on a disk. mkudffs(8), Documentation/filesystems/udf.rst."""

from fslab.filesystem_abilities import Ability, Limits
from fslab.storage.filesystems import FileSystem, Made, naming, options, valued
from fslab.system.tools import Tool


class Udf(FileSystem):
    """A standard that most operating systems support; no journal."""

    summary = "the file system of DVDs, here on a disk; no journal"
    tools = (Tool(program="mkudffs", package="udftools", version_argv=("--help",)),)
    mkfs = ("mkudffs", "--media-type=hd")  # detects the device's block size, and never discards
    mount_type = "udf"
    log_prefixes = ("UDF-fs", "udf")
    made = Made(data_tib_bytes=256 << 20)  # a bitmap of blocks of 512 bytes
    min_size_bytes = 8 << 20
    limits = Limits(
        lacks={
            Ability.FALLOCATE: "udf has no fallocate(2)",
            Ability.XATTR: "Linux stores none on it",
            Ability.REFLINK: "no two files share blocks",
        }
    )
    mkfs_flags = {
        **valued("--udfrev -r --space --ad --bootarea --strategy"),
        **naming("--label -l"),
        **options("--noefe"),
    }
    mount_options = options(
        "uid=any gid=any umask=any mode=any dmode=any adinicb noadinicb iocharset=any longad shortad "
        "nostrict undelete unhide utf8"
    )
