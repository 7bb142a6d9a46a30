"""Hashed directory indexes of ext4: dir_index of ext4(5)."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism
from fslab.explain.seen import Seen
from fslab.explain.statement import Certainty, Statement
from fslab.explain.switch import Switch


class DirectoryIndex(Mechanism):
    """Without it a name is looked for in all blocks of its directory."""

    summary = "hashed directories"
    cause = "directory indexes"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return (
            seen.filesystem in {"ext3", "ext4"}
            and seen.traits.many_files
            and "dir_index" not in seen.cell.stack.mkfs_options
        )

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mkfs="-O ^dir_index")

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        files, directories = seen.traits.files, seen.traits.directories
        cpu = seen.figure("tool_cpu_system_s", "CPU of the tool in the kernel")
        if files and directories and cpu is not None and files / directories >= 10_000:
            yield self.said(
                seen,
                f"{files / directories:.0f} names in each directory were found by its index.",
                cpu,
                weight=0.05,
                certainty=Certainty.COINCIDES,
            )
