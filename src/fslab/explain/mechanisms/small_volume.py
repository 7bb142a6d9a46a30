"""Metadata reservations on a small btrfs: it writes back early because space could run out, not because it has to."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size, parse_size


class SmallVolume(Mechanism):
    """btrfs reserves metadata space for the worst case. On a small volume, this is more than there is."""

    summary = "metadata reservations exceed the metadata space"
    cause = "the small volume"
    alters = True
    filesystems = frozenset({"btrfs"})

    def switch(self, evidence: Evidence) -> Switch | None:
        return Switch(medium={"size": "20g"}) if "size" in evidence.cell.stack.medium.options else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        reserved = evidence.figure("btrfs_metadata_reserved", "reserved for metadata at the end")
        total = evidence.figure("btrfs_metadata_total", "space for metadata")
        size = evidence.cell.stack.medium.options.get("size")
        small = size is not None and parse_size(str(size)) < 16 << 30
        if reserved is not None and total is not None and small and reserved.value > total.value:
            yield self.explanation(
                evidence,
                f"The volume ({size}) is too small for a fair comparison: metadata reservations "
                f"({format_size(reserved.value)}) exceed the metadata space ({format_size(total.value)}), so that "
                "btrfs writes back early.",
                reserved,
                total,
                evidence.figure("btrfs_commits", "commits"),
                weight=4.0,
                refuted_by="equally slow on a volume of 20g or more",
            )
        elif small and "volume_small" in {
            warning.kind for trial in evidence.trials for warning in trial.validity
        }:
            yield self.explanation(
                evidence,
                f"The volume ({size}) is small for btrfs, which reserves metadata space for the worst "
                "case: compare on 20g.",
                total,
                weight=0.3,
                refuted_by="equally slow on a volume of 20g or more",
                certainty=Certainty.COINCIDES,
            )
