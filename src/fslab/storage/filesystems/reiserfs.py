"""ReiserFS 3.6: one tree for all data and metadata, small files packed. mkreiserfs(8), mount options in mount(8)."""

from fslab.filesystem_abilities import Ability, Limits
from fslab.storage.filesystems import FileSystem, Kernels, Made, OptionSwitch, naming, options, valued
from fslab.system.tools import Tool


class Reiserfs(FileSystem):
    """Journalled, one balanced tree that also contains the tails of files."""

    summary = "journalled, one tree, small files packed; removed from Linux 6.13"
    tools = (Tool(program="mkreiserfs", package="reiserfsprogs", version_argv=("-V",)),)
    mkfs = ("mkreiserfs", "-q", "-f", "-f")  # the second -f: do not ask; it never discards
    mount_type = "reiserfs"
    kernels = Kernels(last=(6, 12))
    log_prefixes = ("REISERFS", "ReiserFS", "reiserfs")
    made = Made(data_tib_bytes=33 << 20, least_zero_bytes=32 << 20)  # bitmaps; journal
    min_size_bytes = 33 << 20  # the journal alone has 8193 blocks; mkreiserfs refuses 32 MiB
    own_bytes = 32 << 20  # mostly its journal
    limits = Limits(
        lacks={
            Ability.FALLOCATE: "reiserfs has no fallocate(2)",
            Ability.REFLINK: "no two files share blocks",
        }
    )
    switches = {
        "xattr": OptionSwitch(mount="user_xattr"),
        "acl": OptionSwitch(mount="acl"),
        "quotas": OptionSwitch(mount="usrquota"),
    }
    mkfs_flags = {
        **valued("-b --block-size -s --journal-size -t --transaction-max-size -h --hash"),
        **naming("-u --uuid -l --label"),
    }
    mount_options = options(
        "acl noacl user_xattr nouser_xattr attrs noattrs barrier=none|flush block-allocator=any "
        "commit=int conv data=journal|ordered|writeback hash=rupasov|tea|r5|detect nolog notail "
        "tails=on|off|small expose_privroot usrquota grpquota"
    )

    # fs/reiserfs/super.c, reiserfs_show_options; seen with Linux 6.1.
    listed_as = {"tails=off": "notail", "block-allocator": "block-allocator="}
    unlisted = frozenset(
        {"barrier=flush", "data=ordered", "noacl", "noattrs", "nouser_xattr", "tails=on", "tails=small"}
    )
    unshown = frozenset({"conv", "hash", "nolog"})

    def grow_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        """Return ``resize_reiserfs``, which can grow mounted file systems."""
        return ["resize_reiserfs", "-f", "-q", device]
