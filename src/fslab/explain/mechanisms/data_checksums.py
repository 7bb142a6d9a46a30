"""Checksums of file data: computed for each block written and kept in a tree. btrfs(5), nodatasum."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism
from fslab.explain.seen import Seen
from fslab.explain.statement import Certainty, Statement
from fslab.explain.switch import Switch


class DataChecksums(Mechanism):
    """Each checksum is one more item in a tree, and since Linux 6.15 direct writes go through the page cache so
    that data cannot change under its checksum."""

    summary = "a checksum for each block of data"
    cause = "data checksums"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return seen.filesystem == "btrfs" and not {"nodatasum", "nodatacow"} & seen.mount_options

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mount=("nodatasum",), instead=("datasum",))

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        tool, kernel = (
            seen.figure("tool_cpu_system_s", "CPU of the tool in the kernel"),
            seen.figure("kernel_threads_cpu"),
        )
        written = seen.written_bytes
        if written and tool is not None and kernel is not None:
            spent_ns = (tool.value + kernel.value) * 1e9 / (written / 4096)
            yield self.said(
                seen,
                f"Each 4 KiB written cost {spent_ns / 1000:.0f} µs of CPU in the kernel, checksums among it.",
                tool,
                kernel,
                weight=0.1,
                certainty=Certainty.COINCIDES,
            )
