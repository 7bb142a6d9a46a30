"""Transparent compression of btrfs: btrfs(5), compress."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.explain.switch import Switch


class Compression(Mechanism):
    """Fewer bytes reach the device, for more CPU."""

    summary = "data is compressed"
    cause = "compression"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return seen.filesystem == "btrfs" and any(each.startswith("compress") for each in seen.mount_options)

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mount=("compress=none",), instead=("compress-force",))

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        amplified = seen.figure("write_amplification", "device bytes per byte written")
        if amplified is not None and amplified.value < 0.9:
            yield self.said(
                seen,
                f"Of each byte written {amplified.value:.2f} reached the device.",
                amplified,
                weight=1 / amplified.value,
            )
