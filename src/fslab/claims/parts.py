"""What a claim comes down to among given cells: ratios that must lie within bounds, and spreads to compare.

Pure. Every part of a claim must hold for the claim to hold. How a part is judged is for ``judge`` and ``published``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log

from fslab.cell import Cell
from fslab.record import Metric
from fslab.units import Direction


@dataclass(frozen=True, kw_only=True, slots=True)
class CellFigure:
    """One metric of one cell."""

    cell: Cell
    metric: Metric

    @property
    def key(self) -> tuple[str, str]:
        """Cell and metric by name."""
        return self.cell.id, self.metric.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """``low`` to ``high``; ``strict``: the ends do not belong to it. ``shown``: as the claim writes them."""

    low: float = 0.0
    high: float = inf
    strict: bool = False
    shown: str = ""

    def hold(self, low: float, high: float) -> bool:
        """Whether all from ``low`` to ``high`` lies within."""
        if self.strict:
            return (self.low < low or self.low == 0) and high < self.high
        return self.low <= low and high <= self.high

    def exclude(self, low: float, high: float) -> bool:
        """Whether nothing from ``low`` to ``high`` lies within."""
        if self.strict:
            return high <= self.low or low >= self.high
        return high < self.low or low > self.high

    @property
    def is_direction(self) -> bool:
        """Whether they only say on which side of 1 it lies."""
        return (self.low, self.high) in {(1.0, inf), (0.0, 1.0)}

    @property
    def side(self) -> Bounds | None:
        """The side of 1 that all within lies on; None where 1 itself lies within."""
        return BETTER if self.low >= 1 else WORSE if 0 < self.high <= 1 else None

    @property
    def half_width(self) -> float:
        """Half the distance of the ends, on logarithms; infinite where there is only one."""
        return log(self.high / self.low) / 2 if self.low > 0 and self.high < inf else inf


BETTER = Bounds(low=1.0, strict=True, shown="> 1")
WORSE = Bounds(high=1.0, strict=True, shown="< 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotient:
    """A product of powers of figures that must lie within ``bounds``: ``xfs / ext4``, ``ext4``, a ratio of ratios.

    ``over`` and ``under`` are what people call what is above and below the line.
    """

    over: str
    under: str
    where: str
    weights: tuple[tuple[CellFigure, float], ...]
    bounds: Bounds

    @property
    def figures(self) -> tuple[CellFigure, ...]:
        return tuple(figure for figure, _ in self.weights)

    @property
    def name(self) -> str:
        """``xfs / ext4``."""
        return f"{self.over} / {self.under}" if self.under else self.over


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """How much one varies (the largest ratio of two of its figures), against how much another does or a bound.

    ``more``: it must vary more. ``others`` are empty where it is compared with the factor ``than``.
    """

    over: str
    under: str
    where: str
    ones: tuple[CellFigure, ...]
    others: tuple[CellFigure, ...]
    more: bool
    than: float = 1.0

    @property
    def figures(self) -> tuple[CellFigure, ...]:
        return (*self.ones, *self.others)

    @property
    def name(self) -> str:
        """``spread of ext4 / of xfs``."""
        return f"spread of {self.over}" + (f" / of {self.under}" if self.others else "")

    @property
    def bounds(self) -> Bounds:
        """Where the ratio of the two spreads must lie."""
        shown = f"{'>' if self.more else '<'} {self.than:g}"
        edge = {"low": self.than} if self.more else {"high": self.than}
        return Bounds(**edge, strict=True, shown=shown)


Part = Quotient | Spread


def quotient(
    over: CellFigure, under: CellFigure, names: tuple[str, str], bounds: Bounds, where: str
) -> Quotient:
    """One figure ÷ another."""
    return Quotient(
        over=names[0], under=names[1], where=where, weights=((over, 1.0), (under, -1.0)), bounds=bounds
    )


def better(one: CellFigure, other: CellFigure, names: tuple[str, str], where: str) -> Quotient:
    """That one is better than the other; larger, where no direction is better."""
    bounds = WORSE if one.metric.better is Direction.LOWER else BETTER
    return quotient(one, other, names, bounds, where)


def within(share: float) -> Bounds:
    """At most a factor 1 + ``share`` apart."""
    return Bounds(low=1 / (1 + share), high=1 + share, shown=f"within {share * 100:g} %")


def mean_of(parts: Sequence[Quotient], where: str) -> Quotient:
    """The geometric mean of several quotients that say the same: all turned such that larger is better."""
    turned = [_turned(part) if part.bounds is WORSE else part for part in parts]
    share = 1 / len(turned)
    weights: dict[tuple[str, str], tuple[CellFigure, float]] = {}
    for part in turned:
        for figure, weight in part.weights:
            _, known = weights.get(figure.key, (figure, 0.0))
            weights[figure.key] = (figure, known + weight * share)
    return replace(turned[0], weights=tuple(weights.values()), where=where)


def _turned(part: Quotient) -> Quotient:
    weights = tuple((figure, -weight) for figure, weight in part.weights)
    return replace(part, weights=weights, bounds=BETTER)
