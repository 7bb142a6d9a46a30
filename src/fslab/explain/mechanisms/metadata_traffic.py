"""What is written beside the data: trees, inodes, journals, superblocks, by the kernel's own marks."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch


class MetadataTraffic(Mechanism):
    """Split by REQ_META and by where journal and superblocks lie; only from a traced trial that passed its
    checks."""

    summary = "metadata written beside the data"
    cause = "metadata"

    def applies(self, evidence: Evidence) -> bool:
        """Not with data=journal, where data carries the mark of metadata as well."""
        return writes(evidence) and "data=journal" not in evidence.mount_options

    def switch(self, evidence: Evidence) -> Switch | None:  # noqa: ARG002
        return None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        whole, meta = (
            evidence.of_trace("traced_written_bytes", "written"),
            evidence.of_trace("traced_metadata_bytes", "of metadata"),
        )
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
                weight=amplified.value,
                refuted_by="another method of tracing that counts otherwise",
            )
