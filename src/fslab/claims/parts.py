"""The parts of a claim among given cells: ratios that must lie within bounds, and spreads to compare.

Pure. A claim holds if all its parts hold. ``evaluate`` and ``published`` judge the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log

from fslab.cell import Cell
from fslab.trial_record import Metric
from fslab.units import Direction


@dataclass(frozen=True, kw_only=True, slots=True)
class CellFigure:
    cell: Cell
    metric: Metric

    @property
    def key(self) -> tuple[str, str]:
        """Cell id and metric name."""
        return self.cell.id, self.metric.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """The range from ``low`` to ``high``. ``strict``: without its ends. ``shown``: the range as the claim writes it.

    ``of_figure``: the range of a figure in its unit. Otherwise it is that of a ratio, where 1 means equal.
    """

    low: float = 0.0
    high: float = inf
    strict: bool = False
    shown: str = ""
    of_figure: bool = False

    def hold(self, low: float, high: float) -> bool:
        """Return whether the whole interval from ``low`` to ``high`` lies within the bounds."""
        if self.strict:
            # '< 5' has no lower end; '> 0' has one, which a figure of 0 does not pass.
            unlimited = self.low == 0 and self.high < inf
            return (self.low < low or unlimited) and high < self.high
        return self.low <= low and high <= self.high

    def exclude(self, low: float, high: float) -> bool:
        """Return whether no value from ``low`` to ``high`` lies within the bounds.

        Of a direction: whether all lie on the other side of 1, because equal figures are not the opposite order.
        """
        if self.strict and not self.is_direction:
            return high <= self.low or low >= self.high
        return high < self.low or low > self.high

    @property
    def is_direction(self) -> bool:
        """Whether the bounds only determine on which side of 1 a ratio lies."""
        return not self.of_figure and (self.low, self.high) in {(1.0, inf), (0.0, 1.0)}

    @property
    def side(self) -> Bounds | None:
        """The side of 1 on which all ratios within the bounds lie; None if they lie on both sides."""
        if self.of_figure:
            return None
        return BETTER if self.low >= 1 else WORSE if 0 < self.high <= 1 else None

    @property
    def is_tie(self) -> bool:
        """Whether the bounds are a range of ratios around 1."""
        return not self.of_figure and 0 < self.low < 1 < self.high < inf

    @property
    def ends(self) -> list[float]:
        """The ends of the range, without 0 and infinity."""
        return [end for end in (self.low, self.high) if 0 < end < inf]

    @property
    def half_width(self) -> float:
        """Half the distance between the ends, on logarithms; infinite for a direction, and for one end of a figure.

        For one end of a ratio, its distance from 1: ``<= 1.02`` counts as narrow as ``within 2%``.
        """
        if self.is_direction or len(self.ends) < 1 + self.of_figure:
            return inf
        return abs(log(self.ends[0])) if len(self.ends) == 1 else log(self.high / self.low) / 2


BETTER = Bounds(low=1.0, strict=True, shown="> 1")
WORSE = Bounds(high=1.0, strict=True, shown="< 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotient:
    """A product of powers of figures that must lie within ``bounds``: ``xfs / ext4``, ``ext4``, a ratio of ratios.

    ``over`` and ``under``: the displayed names of the numerator and the denominator.
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
        """The displayed name, such as ``xfs / ext4``."""
        return f"{self.over} / {self.under}" if self.under else self.over


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """A spread (largest ratio of two figures of a stack) that is compared with that of ``others``. ``more``: it must be
    the larger one."""

    over: str
    under: str
    where: str
    ones: tuple[CellFigure, ...]
    others: tuple[CellFigure, ...]
    more: bool

    @property
    def figures(self) -> tuple[CellFigure, ...]:
        return (*self.ones, *self.others)

    @property
    def name(self) -> str:
        """The displayed name, such as ``spread of ext4 / of xfs``."""
        return f"spread of {self.over} / of {self.under}"

    @property
    def bounds(self) -> Bounds:
        return BETTER if self.more else WORSE


Part = Quotient | Spread


def quotient(
    over: CellFigure, under: CellFigure, names: tuple[str, str], bounds: Bounds, where: str
) -> Quotient:
    return Quotient(
        over=names[0], under=names[1], where=where, weights=((over, 1.0), (under, -1.0)), bounds=bounds
    )


def better(one: CellFigure, other: CellFigure, names: tuple[str, str], where: str) -> Quotient:
    """Return the part "``one`` is better than ``other``". Without a preferred direction, better means larger."""
    bounds = WORSE if one.metric.better is Direction.LOWER else BETTER
    return quotient(one, other, names, bounds, where)


def within(share: float) -> Bounds:
    """Return the bounds for two figures that differ by at most a factor 1 + ``share``."""
    return Bounds(low=1 / (1 + share), high=1 + share, shown=f"within {share * 100:g} %")


def mean_of(parts: Sequence[Quotient], where: str) -> Quotient:
    """Return the geometric mean of several quotients that make the same statement.

    If smaller is better for some of them and larger for others, the former are inverted first.
    """
    mixed = {BETTER, WORSE} <= {part.bounds for part in parts}
    share = 1 / len(parts)
    weights: dict[tuple[str, str], tuple[CellFigure, float]] = {}
    for part in parts:
        sign = -1 if mixed and part.bounds == WORSE else 1
        for figure, weight in part.weights:
            _, known = weights.get(figure.key, (figure, 0.0))
            weights[figure.key] = (figure, known + sign * weight * share)
    bounds = BETTER if mixed and parts[0].bounds == WORSE else parts[0].bounds
    return replace(parts[0], weights=tuple(weights.values()), where=where, bounds=bounds)
