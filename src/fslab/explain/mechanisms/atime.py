"""Access times: a read may write. mount(8), relatime and noatime."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.seen import Seen
from fslab.explain.statement import Certainty, Statement
from fslab.explain.switch import Switch
from fslab.units import format_size


class Atime(Mechanism):
    """relatime writes one per file and day at most; strictatime each."""

    summary = "reads write access times"
    cause = "access times"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return "noatime" not in seen.mount_options and not writes(seen)

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mount=("noatime",), instead=("relatime", "strictatime", "atime"))

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        written = seen.figure("device_written_bytes_flushed", "bytes written by a workload that only reads")
        if written is not None and written.value >= 64 << 10:
            yield self.said(
                seen,
                f"Only reading wrote {format_size(written.value)} to the device, access times among it.",
                written,
                weight=0.3,
                certainty=Certainty.COINCIDES,
            )
