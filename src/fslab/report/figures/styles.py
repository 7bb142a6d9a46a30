"""Styles of stacks in figures: the colour of their file system, and a shape and a dash per stack. Shared by figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import palette
from fslab.report.model import StackColumn


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
        slots = palette.slots(names)
        variants = [names[:position].count(name) for position, name in enumerate(names)]
        # With more than eight file systems, colours repeat: then the shape must distinguish them.
        shared = [[*slots].index(name) // 8 for name in names]
        return cls(
            labels=tuple(stack.label for stack in stacks),
            slot=tuple(slots[name] for name in names),
            variant=tuple(a + b for a, b in zip(variants, shared, strict=True)),
        )

    def colour(self) -> dict[str, Any]:
        return self._channel([palette.colour(f"s{slot}") for slot in self.slot])

    def shape(self) -> dict[str, Any]:
        """Return the shape channel; all shapes differ if there are few, so that not only colours distinguish."""
        few = len(self.labels) <= len(palette.SHAPES)
        variants = range(len(self.labels)) if few else self.variant
        return self._channel([palette.SHAPES[variant % len(palette.SHAPES)] for variant in variants])

    def dash(self) -> dict[str, Any]:
        """Return the dash channel. It distinguishes the lines of stacks of one colour."""
        return self._channel([palette.DASHES[variant % len(palette.DASHES)] for variant in self.variant])

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
