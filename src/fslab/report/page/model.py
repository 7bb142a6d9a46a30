"""The contents of a page as plain values. Templates lay them out and escape them; text here is not escaped."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from fslab.claims.model import EvaluatedClaim
from fslab.explain.evidence import Explanation
from fslab.report.conclusion import Conclusion
from fslab.report.figures import Figure
from fslab.report.model import Report, Row
from fslab.trial_record import Command
from fslab.units import Unit, format_value, ratio_text


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatTile:
    """A field of the heat map. ``share``: 1 for the best median, 0.5 for half as good, None if not comparable.

    ``words``: the result in words; without a value, the reason. ``decided``: shown to be the best, or to be worse than
    the leader. ``asked``: whether the study runs this workload on this stack.
    """

    stack: str
    share: float | None
    value: str
    words: str
    decided: bool
    asked: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatRow:
    """A metric of a workload on all stacks.

    ``take``: the best stack, or those that may be the best. ``sure``: by how much, with the interval.
    """

    workload: str
    anchor: str
    metric: str
    lower: bool
    tiles: tuple[HeatTile, ...]
    take: str
    sure: str

    @property
    def is_relative(self) -> bool:
        """Whether its tiles show shares of the best median, and not the medians."""
        return any(tile.share is not None for tile in self.tiles)


@dataclass(frozen=True, kw_only=True, slots=True)
class PageCell:
    """A field of a table: the text, the sort key, and the ``unit`` if a page can change it."""

    text: str
    sort: float | None = None
    unit: str = ""
    notes: tuple[int, ...] = ()

    @classmethod
    def of(cls, value: float | None, unit: Unit, notes: tuple[int, ...] = ()) -> Self:
        """Return the field of a value."""
        return cls(text=format_value(value, unit), sort=value, unit=unit.value, notes=notes)

    @classmethod
    def ratio(cls, ratio: float | None) -> Self:
        return cls(text="–" if ratio is None else ratio_text(ratio)[0], sort=ratio)


@dataclass(frozen=True, kw_only=True, slots=True)
class PageTable:
    """A table that can be sorted by its columns. The first column has the headings of the rows."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PageCell, ...]], ...]

    @classmethod
    def of(
        cls, caption: str, columns: tuple[str, ...], rows: Iterable[tuple[str, Iterable[PageCell | str]]]
    ) -> Self:
        """Return a table. A field can be a text."""
        made = (
            (name, tuple(PageCell(text=each) if isinstance(each, str) else each for each in fields))
            for name, fields in rows
        )
        return cls(caption=caption, columns=columns, rows=tuple(made))


@dataclass(frozen=True, kw_only=True, slots=True)
class RawOutput:
    """Output of a tool in one trial. ``packed``: gzip in base64. ``left_out``: size of what was cut from its end."""

    name: str
    trial: str
    size: str
    packed: str
    left_out: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """How one stack was measured: the commands of a trial, and the output of its tools.

    ``no_room``: number of outputs that are omitted because the page is full.
    """

    stack: str
    options: str
    commands: tuple[Command, ...]
    raw: tuple[RawOutput, ...]
    no_room: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """One workload. ``left_out``: a text on what a page of very many trials omits."""

    anchor: str
    label: str
    about: str
    rows: tuple[Row, ...]
    tables: tuple[PageTable, ...]
    figures: tuple[Figure, ...]
    more: tuple[PageTable, ...]
    recipes: tuple[Recipe, ...]
    left_out: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One campaign. ``left_out``: omitted heading → why a page of very many trials omits it, and where to find it."""

    report: Report
    status: str
    asked: str
    machine: str
    conclusion: Conclusion
    lines: tuple[str, ...]
    sure: str
    heat: tuple[HeatRow, ...]
    tradeoffs: tuple[Figure, ...]
    sweeps: tuple[Figure, ...]
    sections: tuple[Section, ...]
    order: tuple[Figure, ...]
    method: tuple[PageTable, ...]
    study: str
    statements: tuple[Explanation, ...] = ()
    other_statements: tuple[Explanation, ...] = ()
    differing_settings: str | None = None
    claims: tuple[EvaluatedClaim, ...] = ()
    conditions: PageTable | None = None
    published: tuple[Figure, ...] = ()
    published_values: tuple[PageTable, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PageComparison:
    """Two campaigns side by side."""

    title: str
    differing: tuple[PageTable, ...]
    tables: tuple[PageTable, ...]
    figures: tuple[Figure, ...]
    alone: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A complete page. ``made``: the program and version that made it."""

    title: str
    made: str
    parts: tuple[Part, ...]
    comparisons: tuple[PageComparison, ...] = field(default=())
