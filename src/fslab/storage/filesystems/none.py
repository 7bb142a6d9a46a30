"""No file system: the workload reads and writes the block device itself. The baseline of what file systems cost."""

from fslab.storage.filesystems import FileSystem, Made
from fslab.system.tools import Tool


class NoFileSystem(FileSystem):
    """Nothing is made on the device but what a mkfs does first: it discards all blocks where discards are allowed."""

    summary = "no file system: fio (single jobs) and dd work on the block device itself"
    tools = (Tool(program="blkdiscard", package="util-linux"),)
    mkfs = ("blkdiscard",)
    mount_type = ""
    min_size_bytes = 4096
    made = Made(data_bytes=0)
    mkfs_flags = {}
    mount_options = {}

    def mkfs_argv(self, options: str, device: str, *, discard: bool) -> list[str]:  # noqa: ARG002
        """Return ``blkdiscard``, which opens the device exclusively; nothing without ``discard``."""
        return [*self.mkfs, device] if discard else []

    def mount_argv(self, options: str, device: str, target: str) -> list[str]:  # noqa: ARG002
        return []

    def mkfs_mistakes(self, options: str) -> list[str]:
        """Return that there is no mkfs, if there are options."""
        return [f"'{options}' has no effect: 'none' has no mkfs; leave it out"] if options.strip() else []

    def mount_mistakes(self, options: str) -> list[str]:
        """Return that nothing is mounted, if there are options."""
        given = options.strip() not in {"", "defaults"}
        return [f"'{options}' has no effect: 'none' is never mounted; leave it out"] if given else []
