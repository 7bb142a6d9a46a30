"""data=ordered: the journal commits metadata only after the data it speaks of: admin-guide/ext4.rst."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.switch import Switch


class OrderedMode(Mechanism):
    """A commit waits for data that happens to be dirty then; data=writeback does not."""

    summary = "commits wait for data"
    cause = "ordered mode"

    def applies(self, evidence: Evidence) -> bool:
        return (
            evidence.filesystem in {"ext3", "ext4"}
            and writes(evidence)
            and "data=ordered" in evidence.mount_options
        )

    def switch(self, evidence: Evidence) -> Switch | None:  # noqa: ARG002
        return Switch(mount=("data=writeback",))

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        mean, commits = (
            evidence.figure("journal_commit_mean", "mean commit"),
            evidence.figure("journal_commits"),
        )
        if mean is not None and commits is not None and commits.value > 1 and mean.value > 1e6:
            yield self.explanation(
                evidence,
                f"A commit of the journal took {mean.value / 1e6:.1f} ms on average, waiting for data included.",
                mean,
                commits,
                weight=0.2,
                certainty=Certainty.COINCIDES,
            )
