"""Hashed directory indexes of ext3 and ext4: dir_index in ext4(5)."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.switch import Switch


class DirectoryIndex(Mechanism):
    """Without the index, a name is searched in all blocks of its directory."""

    summary = "directories have a hash index"
    cause = "directory indexes"
    filesystems = frozenset({"ext3", "ext4"})
    writing = False
    unless = ("^dir_index",)
    off = Switch(mkfs="-O ^dir_index")

    def applies(self, evidence: Evidence) -> bool:
        return super().applies(evidence) and evidence.traits.many_files

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        files, directories = evidence.traits.files, evidence.traits.directories
        cpu = evidence.figure("tool_cpu_system_s", "system CPU time of the tool")
        if files and directories and cpu is not None and files / directories >= 10_000:
            yield self.explanation(
                evidence,
                f"Each directory had {files / directories:.0f} names, found by hash index instead of a linear search.",
                cpu,
                weight=0.05,
                certainty=Certainty.COINCIDES,
            )
