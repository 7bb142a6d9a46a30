"""Access times: a read may cause a write. mount(8), relatime and noatime."""

from collections.abc import Iterator

from fslab.cell import Cache
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size


class Atime(Mechanism):
    """relatime writes an access time if the old one precedes the last change or is a day old; strictatime always."""

    summary = "reads write access times"
    cause = "access times"
    off = Switch(mount=("noatime",), instead=("relatime", "strictatime", "atime"))

    def applies(self, evidence: Evidence) -> bool:
        return "noatime" not in evidence.mount_options and not writes(evidence)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        if evidence.cell.cache is Cache.WARM:  # what the preparation logged may be written later (XFS)
            return
        written = evidence.figure(
            "device_written_bytes_flushed", "bytes written by a workload that only reads"
        )
        if written is not None and written.value >= 64 << 10:
            yield self.explanation(
                evidence,
                f"{format_size(written.value)} were written by a workload that only reads, possibly access times.",
                written,
                weight=0.3,
                certainty=Certainty.COINCIDES,
            )
