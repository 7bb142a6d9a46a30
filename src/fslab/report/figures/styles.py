"""Styles of stacks in figures: the colour of their file system, and a shape and a dash per stack. Shared by figures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.model import StackColumn

# Hues after Okabe and Ito (2008), adjusted until each has a contrast of at least 3:1 with its page.
SERIES_LIGHT = ("#a63f88", "#0067a5", "#00795a", "#595959", "#c14a00", "#876a00", "#2b8bc4", "#7d1d4b")

SERIES_DARK = ("#e29bc4", "#61b5ec", "#35c79d", "#bdbdbd", "#f58a4b", "#dfba45", "#9bd5ff", "#e884ab")

LIGHT = {
    "paper": "#ffffff", "ink": "#1b1f24", "muted": "#5a6470", "line": "#d5dae0", "heat": "#86b9e6",
    "user": "#39434d", "system": "#7a8794", "irq": "#b3bdc7", "iowait": "#dde3e9", "steal": "#8a4b12",
}  # fmt: skip

DARK = {
    "paper": "#14171b", "ink": "#e6e9ed", "muted": "#a2abb6", "line": "#3a424c", "heat": "#1d5687",
    "user": "#dfe5eb", "system": "#9aa6b2", "irq": "#66727e", "iowait": "#3a444e", "steal": "#d59a58",
}  # fmt: skip

# Chosen so that the most common file systems have different hashed slots.
_SALT = "132"

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke", "arrow")

DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])


@dataclass(frozen=True, kw_only=True, slots=True)
class StackStyles:
    """Style of each stack, in the order of the plan.

    ``slot`` gives the colour, ``variant`` the shape and the dash.
    """

    labels: tuple[str, ...]
    slot: tuple[int, ...]
    variant: tuple[int, ...]

    @classmethod
    def of(cls, stacks: Sequence[StackColumn]) -> StackStyles:
        """Return the styles. Stacks of one file system share its colour and differ in shape and dash."""
        names = [stack.filesystem or stack.name for stack in stacks]
        slot_of = slots(names)
        variants = [names[:position].count(name) for position, name in enumerate(names)]
        # With more than eight file systems, colours repeat: then the shape must distinguish them.
        shared = [[*slot_of].index(name) // 8 for name in names]
        return cls(
            labels=tuple(stack.label for stack in stacks),
            slot=tuple(slot_of[name] for name in names),
            variant=tuple(a + b for a, b in zip(variants, shared, strict=True)),
        )

    def colour(self) -> dict[str, Any]:
        return self._channel([colour(f"s{slot}") for slot in self.slot])

    def shape(self) -> dict[str, Any]:
        """Return the shape channel; all shapes differ if there are few, so that not only colours distinguish."""
        few = len(self.labels) <= len(SHAPES)
        variants = range(len(self.labels)) if few else self.variant
        return self._channel([SHAPES[variant % len(SHAPES)] for variant in variants])

    def dash(self) -> dict[str, Any]:
        """Return the dash channel. It distinguishes the lines of stacks of one colour."""
        return self._channel([DASHES[variant % len(DASHES)] for variant in self.variant])

    def _channel(self, values: Sequence[Any]) -> dict[str, Any]:
        scale = {"domain": list(self.labels), "range": list(values)}
        return {"field": "stack", "type": "nominal", "scale": scale}

    def only(self, labels: Sequence[str]) -> StackStyles:
        """Return the styles of the given stacks only."""
        kept = [position for position, label in enumerate(self.labels) if label in labels]
        return StackStyles(
            labels=tuple(self.labels[position] for position in kept),
            slot=tuple(self.slot[position] for position in kept),
            variant=tuple(self.variant[position] for position in kept),
        )


def variables(*, dark: bool) -> dict[str, str]:
    """Return CSS variable (name without dashes) → colour."""
    series = SERIES_DARK if dark else SERIES_LIGHT
    return {**(DARK if dark else LIGHT), **{f"s{slot}": colour for slot, colour in enumerate(series)}}


def colour(name: str) -> str:
    return f"var(--{name})"


def slots(filesystems: Iterable[str]) -> Mapping[str, int]:
    """Return file system → slot: the slot of its hash if that is free, otherwise the next free one.

    With more than eight file systems, some share a slot; their shapes distinguish them.
    """
    taken: dict[str, int] = {}
    for name in sorted(set(filesystems)):
        digest = hashlib.blake2b(f"{_SALT}{name}".encode(), digest_size=4).digest()
        wanted = digest[0] % len(SERIES_LIGHT)
        order = [(wanted + step) % len(SERIES_LIGHT) for step in range(len(SERIES_LIGHT))]
        taken[name] = next((slot for slot in order if slot not in taken.values()), wanted)
    return taken
