"""What stands in a page, as plain values that templates only lay out. Text is text: escaping is the template's."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fslab.report.conclusion import Conclusion
from fslab.report.figures import Figure
from fslab.report.model import Report, Row


@dataclass(frozen=True, kw_only=True, slots=True)
class PageStatement:
    """Why something is as it is: one sentence, its evidence line by line, and how sure that is."""

    says: str
    about: str = ""
    sure: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PageClaim:
    """A claim of the study: the sentence, what was published, what this machine says, and what decides it."""

    says: str
    published: str
    verdict: str
    evidence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatTile:
    """A field of the heat map: ``share`` 1 is the best median, 0.5 half as good; None: no value, ``words`` says why.

    ``decided``: it is shown to be the best, or to be worse than the leader. ``asked``: the study has this stack do
    this work.
    """

    stack: str
    share: float | None
    value: str
    words: str
    decided: bool
    asked: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatRow:
    """A figure of a workload across the stacks; ``take`` names the best, or those that may be, ``sure`` what that
    rests on.
    """

    workload: str
    anchor: str
    metric: str
    lower: bool
    tiles: tuple[HeatTile, ...]
    take: str
    sure: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PageCell:
    """A field of a table: what is read, and what it is sorted by; ``unit`` where a page may change it."""

    text: str
    sort: float | None = None
    unit: str = ""
    notes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PageTable:
    """A table that sorts by its columns; the first column is its rows' heading."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PageCell, ...]], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PageCommand:
    """A command as it was run, ready to be pasted."""

    stage: str
    line: str
    duration: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RawOutput:
    """What a tool wrote in one trial: ``packed`` is gzip in base64; ``left_out``: bytes cut from its end."""

    name: str
    trial: str
    size: str
    packed: str
    left_out: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """How one stack was measured: the commands of a trial, and what its tools wrote; ``no_room``: of how many texts
    the page has none of."""

    stack: str
    options: str
    commands: tuple[PageCommand, ...]
    raw: tuple[RawOutput, ...]
    no_room: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """One workload. ``left_out`` says what a page of very many trials does not show of it."""

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
    """One campaign. ``left_out``: headings of what a page of very many trials does not show, and where to find it."""

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
    statements: tuple[PageStatement, ...] = ()
    claims: tuple[PageClaim, ...] = ()
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
    """Everything; ``made`` says with which program."""

    title: str
    made: str
    parts: tuple[Part, ...]
    comparisons: tuple[PageComparison, ...] = field(default=())
