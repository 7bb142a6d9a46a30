"""O_DIRECT that is accepted but not honoured: ext4 with data=journal, btrfs with checksums (Linux 6.15)."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size


class BufferedDirectIo(Mechanism):
    """Direct writes still go through the page cache: they are copied and written back."""

    summary = "direct writes through the page cache"
    cause = "the page cache under direct writes"

    def applies(self, evidence: Evidence) -> bool:
        return evidence.traits.direct is True and writes(evidence)

    def switch(self, evidence: Evidence) -> Switch | None:
        if evidence.filesystem == "btrfs":
            return Switch(mount=("nodatasum",), instead=("datasum",))
        return Switch(mount=("data=ordered",)) if "data=journal" in evidence.mount_options else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        written = evidence.written_bytes
        own = evidence.figure("volume_dirtied_bytes", "dirtied in the page cache by this file system")
        dirtied = own or evidence.figure(
            "page_cache_dirtied_bytes", "dirtied in the page cache of the machine"
        )
        if written and dirtied is not None and dirtied.value > (0.5 if own else 0.9) * written:
            amounts = f"for {format_size(written)} written ({100 * dirtied.value / written:.0f} %)"
            yield self.explanation(
                evidence,
                f"The direct writes were not direct: {format_size(dirtied.value)} went through the page cache "
                f"{amounts}."
                if own
                else f"The direct writes were probably not direct: the machine dirtied {format_size(dirtied.value)} "
                f"of page cache {amounts}.",
                dirtied,
                weight=5.0,
                certainty=Certainty.OBSERVED if own else Certainty.COINCIDES,
            )
