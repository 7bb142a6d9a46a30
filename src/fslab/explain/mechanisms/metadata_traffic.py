"""Writes in addition to data: trees, inodes, journals and superblocks, as marked by the kernel."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation


class MetadataTraffic(Mechanism):
    """Split by REQ_META and by the location of journal and superblocks; needs a traced trial that passed its checks."""

    summary = "metadata is written in addition to data"
    cause = "metadata"
    unless = ("data=journal",)  # with it, data is also marked as metadata

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        whole = evidence.of_trace("traced_written_bytes", "written")
        meta = evidence.of_trace("traced_metadata_bytes", "of metadata")
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        if (
            whole is not None
            and meta is not None
            and whole.value
            and amplified is not None
            and meta.value > 0.02 * whole.value
        ):
            yield self.explanation(
                evidence,
                f"The device received {amplified.value:.3g} bytes for each byte written; "
                f"{100 * meta.value / whole.value:.0f} % "
                "of that was marked as metadata.",
                amplified,
                meta,
                *(
                    evidence.of_trace(f"traced_{place}_written_bytes", place)
                    for place in ("data", "metadata", "journal", "superblock")
                ),
                weight=meta.value / max(whole.value - meta.value, 4096),
                refuted_by="another tracing method counts less metadata",
            )
