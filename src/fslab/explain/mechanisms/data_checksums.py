"""Checksums of file data, computed for each block written and stored in a tree. btrfs(5), nodatasum."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.switch import Switch


class DataChecksums(Mechanism):
    """Each checksum is an additional item in a tree. Since Linux 6.15, direct writes go through the page cache.

    Therefore data cannot change after its checksum is computed.
    """

    summary = "each block of data has a checksum"
    cause = "data checksums"
    filesystems = frozenset({"btrfs"})
    writing = False
    unless = ("nodatasum", "nodatacow")
    off = Switch(mount=("nodatasum",), instead=("datasum",))

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        tool = evidence.figure("tool_cpu_system_s", "system CPU time of the tool")
        kernel = evidence.figure("kernel_threads_cpu")
        written = evidence.written_bytes
        if written and tool is not None and kernel is not None:
            spent_ns = (tool.value + kernel.value) * 1e9 / (written / 4096)
            yield self.explanation(
                evidence,
                f"Each 4 KiB written took {spent_ns / 1000:.0f} µs of CPU time in the kernel, including checksums.",
                tool,
                kernel,
                weight=0.1,
                certainty=Certainty.COINCIDES,
            )
