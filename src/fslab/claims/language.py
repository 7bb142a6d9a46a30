"""The language of claims: its signs, and its statements as frozen values. ``column`` counts characters from 1.

Contains values only: ``parser`` creates them, ``resolve`` finds their meaning among the cells of a study.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum

EACH = "each"

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>'[^']*')|(?P<word>\d+(?:\.\d+)?[A-Za-z]*/s|(?:[\w+*?%:-]|\.(?!\.))+)"
    r"|(?P<sign>\.\.|>=|<=|[><=~/,\[\]]))"
)

_FIGURE = re.compile(r"(\d+(?:\.\d+)?)(%|[A-Za-zµ]+(?:/s)?)?")

# Each stack of a group is compared with each of the next group. Without a limit, a page of names would take hours.
MOST_TOKENS = 200


class Misread(Exception):  # noqa: N818 - a mistake of the study, made into a StudyError with all others
    """A mistake in a statement: what is wrong, and at which column."""

    def __init__(self, what: str, column: int) -> None:
        super().__init__(what)
        self.what = what
        self.column = column


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A word, a quoted name or a sign. ``plain``: not quoted, so that it may be a keyword."""

    text: str
    column: int
    plain: bool = True

    @property
    def is_figure(self) -> bool:
        """Whether this is a number, with or without a unit."""
        return _FIGURE.fullmatch(self.text) is not None

    @property
    def is_name(self) -> bool:
        """Whether this may be a name, which does not begin with a sign."""
        return re.match(r"[\w*?]", self.text) is not None


class Op(StrEnum):
    EQUAL = "="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """A condition: ``threads=4``, ``size < memory``. ``op`` is None for a bare word (``noatime``, ``md-raid0``)."""

    key: str
    op: Op | None = None
    value: str = ""
    column: int = 0

    def __str__(self) -> str:
        blank = " " if self.op not in {None, Op.EQUAL} else ""
        return f"{self.key}{blank}{self.op or ''}{blank}{self.value}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """A stack: its name, its conditions, and its workload if that is not the workload of the claim."""

    name: str
    conditions: tuple[Condition, ...] = ()
    workload: str | None = None
    column: int = 0

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.conditions))
        return (
            f"{self.name}{f'[{inside}]' if inside else ''}{f' on {self.workload}' if self.workload else ''}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """The range in which a figure must lie. An end is text with a unit (``4us``, ``2.5``), or None if there is no end.

    ``within``: the share by which the range is wider than from ``low`` to ``high``: ``~ 3 within 10%`` has both ends 3.
    """

    low: str | None = None
    high: str | None = None
    strict: bool = False
    within: float = 0.0

    def __str__(self) -> str:
        if self.within:
            return f"{self.low} within {self.within * 100:g} %"
        if self.low is not None and self.high is not None:
            return f"in {self.low}..{self.high}"
        sign = (">" if self.high is None else "<") + ("" if self.strict else "=")
        return f"{sign} {self.low if self.high is None else self.high}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """``xfs > ext4, btrfs``: each stack of a group is better than each stack of the next group."""

    groups: tuple[tuple[Term, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RatioForm:
    """``xfs / ext4 >= 2``: a ratio of figures, whichever direction is better."""

    over: Term
    under: Term
    range: Range


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """``ext4 in 4us..5us``: the range of one figure."""

    term: Term
    range: Range


@dataclass(frozen=True, kw_only=True, slots=True)
class Tie:
    """``ext4 ~ xfs within 10%``: no two figures differ by a larger factor than 1 + ``within``."""

    terms: tuple[Term, ...]
    within: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Extreme:
    """``xfs is first`` (``last``): better (worse) than every other stack, or than every stack of ``among`` if given."""

    terms: tuple[Term, ...]
    first: bool
    among: tuple[Term, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Varies:
    """``ext4 varies more than xfs over mount_options``: also less, most or least, or less than a share (``within``).

    Compares the largest ratio of two variants. If ``other`` and ``within`` are both None, the comparison is with every
    other stack.
    """

    term: Term
    more: bool
    keys: tuple[str, ...]
    other: Term | None = None
    within: float | None = None
    column: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Gains:
    """``f2fs gains more than ext4 from threads=1 to threads=4``: it becomes better by a larger factor."""

    one: Term
    other: Term
    more: bool
    start: tuple[Condition, ...]
    end: tuple[Condition, ...]


Form = Order | RatioForm | Level | Tie | Extreme | Varies | Gains


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """A form and the region that it is about. ``overall``: it is about the mean over that region."""

    text: str
    form: Form
    region: tuple[Condition, ...] = ()
    overall: bool = False


def names_in(statement: Statement) -> list[Term]:
    """Return the stacks of a statement, in the order in which it names them."""
    values = (getattr(statement.form, each.name) for each in fields(statement.form))
    return [term for value in values for term in _terms(value)]


def _terms(value: object) -> Iterator[Term]:
    if isinstance(value, Term):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _terms(each)


def parted(figure: str) -> tuple[float, str]:
    """Return the number and the unit of the text of a figure. Raises ValueError for other text."""
    match = _FIGURE.fullmatch(figure)
    if match is None:
        raise ValueError(f"'{figure}' is not a figure")
    return float(match[1]), match[2] or ""


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of ``text``. Raises Misread at the first character that is not part of a token."""
    found, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            column = position + len(text[position:]) - len(text[position:].lstrip()) + 1
            raise Misread(f"'{text[column - 1]}' is not allowed here", column)
        quoted = match["quoted"]
        word = quoted[1:-1] if quoted else match["word"] or match["sign"]
        start = match.start("quoted" if quoted else "word" if match["word"] else "sign")
        found.append(Token(text=word, column=start + 1, plain=not quoted))
        position = match.end()
        if len(found) > MOST_TOKENS:
            raise Misread(
                f"longer than {MOST_TOKENS} words and signs: write several statements", found[-1].column
            )
    return found
