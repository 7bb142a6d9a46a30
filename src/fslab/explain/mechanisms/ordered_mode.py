"""data=ordered: the journal commits metadata only after the data that belongs to it: admin-guide/ext4.rst."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.switch import Switch


class OrderedMode(Mechanism):
    """A commit waits for data that is dirty at that moment; with data=writeback it does not wait."""

    summary = "commits wait for data"
    cause = "ordered mode"
    filesystems = frozenset({"ext3", "ext4"})
    wants = ("data=ordered",)
    off = Switch(mount=("data=writeback",))

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        mean = evidence.figure("journal_commit_mean", "mean commit")
        commits = evidence.figure("journal_commits")
        if mean is not None and commits is not None and commits.value > 1 and mean.value > 1e6:
            yield self.explanation(
                evidence,
                f"A commit of the journal took {mean.value / 1e6:.1f} ms on average, including the wait for data.",
                mean,
                commits,
                weight=0.2,
                certainty=Certainty.COINCIDES,
            )
