"""What is measured of an application: the keys that all have, and its settings. Values only."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, get_args

from pydantic import Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from fslab import scaling
from fslab.cell import EntryOptions
from fslab.errors import nearest
from fslab.units import SomeSize, SomeTime, parse_duration, parse_size

Settings = Mapping[str, str]
DEFAULT_RUNTIME = "10s"
_LEAST = 20  # transactions
_AROUND_BYTES = 256  # names, inodes and indices of a transaction
_DURABILITY: dict[str, Any] = {"durability": True}


def setting(default: str, description: str, alias: str | None = None) -> Any:
    """Return the field of a setting that decides what a power cut may take. Its type is a ``Literal`` of texts."""
    return Field(default, alias=alias, description=description, json_schema_extra=_DURABILITY)


class AnyLoad(EntryOptions):
    """What the keys of every application tell, whatever it does.

    ``laid_out``: the names of the fields that ``Application.prepare`` depends on: trials that agree in these begin with
    copies of one prepared state. ``run_s``: how long it is to run; None: it has a fixed amount of work. ``deed``: the
    key that says what it does, if there is one; of these deeds ``reading`` and ``writing`` read and write contents or
    names of files. ``parallel``: the key of how many processes or threads work at once.
    """

    laid_out: ClassVar[frozenset[str]] = frozenset()
    deed: ClassVar[str] = "operation"
    reading: ClassVar[frozenset[str]] = frozenset()
    writing: ClassVar[frozenset[str]] = frozenset()
    parallel: ClassVar[str | None] = None

    @property
    def doing(self) -> frozenset[str]:
        """What it does; empty if there is no choice."""
        return frozenset({str(self.value_of(self.deed))} if self.deed in type(self).model_fields else ())

    @property
    def run_s(self) -> float | None:
        return None

    @property
    def prepare_s(self) -> float:
        """How long ``Application.prepare`` takes, for the plan."""
        return 0.5

    @property
    @abstractmethod
    def work_s(self) -> float:
        """How long ``Application.drive`` takes on any medium, for the plan."""

    @property
    def reads(self) -> bool:
        return bool(self.reading & self.doing)

    @property
    def writes(self) -> bool:
        return bool(self.writing & self.doing) or not self.doing

    @property
    def direct(self) -> bool:
        """Whether its reads and writes bypass the page cache."""
        return False

    @property
    def is_held_back(self) -> bool:
        """Whether it pauses by the clock: its rate is then what it asks for, also on a slower disk."""
        return False

    @property
    def at_once(self) -> int | None:
        """How many processes or threads work at once; None: the study does not say."""
        found: int | None = getattr(self, self.parallel) if self.parallel else 1
        return found

    @property
    @abstractmethod
    def space_bytes(self) -> int:
        """The space that is needed, apart from ``Application.laid_out_bytes``."""

    @abstractmethod
    def scaled(self, factor: float) -> scaling.Changes:
        """Return the amounts that change for ``factor`` times as much work (``Workload.scaled``)."""


class Load(AnyLoad):
    """The keys of an application that commits transactions. ``usual_rate``: transactions per second on any medium, for
    the plan; ``rates``: those of some deeds."""

    usual_rate: ClassVar[float] = 3000.0
    rates: ClassVar[Mapping[str, float]] = {}

    runtime: SomeTime | None = Field(
        None,
        description=f"how long to run transactions; default: {DEFAULT_RUNTIME}, or none with `transactions`",
    )
    transactions: int | None = Field(
        None, ge=1, le=100_000_000, description="run this many transactions, however long they take"
    )

    @property
    def run_s(self) -> float | None:
        """How long to run transactions; None: until their number is reached."""
        return None if self.transactions is not None else parse_duration(self.runtime or DEFAULT_RUNTIME)

    @property
    def most(self) -> int:
        """The number of transactions; with a run time a guess, for any medium, that is rarely exceeded."""
        return self.transactions or max(1, round((self.run_s or 0) * self.guessed_rate))

    @property
    def guessed_rate(self) -> float:
        """Transactions per second on any medium, for the plan."""
        return next((self.rates[each] for each in self.doing if each in self.rates), self.usual_rate)

    @property
    def work_s(self) -> float:
        return self.most / self.guessed_rate if self.run_s is None else self.run_s

    def scaled(self, factor: float) -> scaling.Changes:
        """Scale the number of transactions, or the time."""
        if self.transactions is not None:
            return {"transactions": scaling.count(self.transactions, factor, least=_LEAST)}
        return {"runtime": scaling.duration(self.runtime or DEFAULT_RUNTIME, factor)}

    def settings(self) -> dict[str, str]:
        return {name: str(self.value_of(name)) for name in self.durability()}

    @classmethod
    def durability(cls) -> dict[str, tuple[str, ...]]:
        """Return the settings made by ``setting``: name → values, the default first."""
        fields = {
            field.alias or name: field
            for name, field in cls.model_fields.items()
            if field.json_schema_extra == _DURABILITY
        }
        return {name: _default_first(field) for name, field in fields.items()}

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.runtime is not None and self.transactions is not None:
            raise ValueError("'runtime' and 'transactions' cannot be combined: either ends the run")
        return self


class Records(Load):
    """The keys of an application whose transactions have contents."""

    size: SomeSize = Field("1k", description="size of the contents of a transaction, or of a row")

    @property
    def size_bytes(self) -> int:
        return parse_size(self.size)

    @property
    def space_bytes(self) -> int:
        return self.most * (2 * self.size_bytes + _AROUND_BYTES)


class Populated(Records):
    """The keys of an application whose operations work on things that are there before, except ``begins_empty``.

    ``amount``: the key of their number, ``usual`` its default; scaled, it is at least ``least``. ``made_per_s``: how
    many are made in a second, for the plan.
    """

    amount: ClassVar[str]
    usual: ClassVar[int]
    least: ClassVar[int] = 100
    made_per_s: ClassVar[float]
    begins_empty: ClassVar[str]

    @property
    def there(self) -> int:
        """How many are there before."""
        usual = 0 if self.begins_empty in self.doing else self.usual
        return int(str(self.value_of(self.amount) or usual))

    @property
    def prepare_s(self) -> float:
        return super().prepare_s + self.there / self.made_per_s

    def scaled(self, factor: float) -> scaling.Changes:
        amount = {self.amount: scaling.count(self.there, factor, least=self.least)} if self.there else {}
        return {**super().scaled(factor), **amount}


class StepLoad(AnyLoad):
    """The keys of an application of steps. ``known``: its steps in order."""

    known: ClassVar[tuple[str, ...]]

    steps: str | None = Field(
        None,
        description="the steps that are measured, such as `STEP,STEP`; default: all. Each includes a sync of the file "
        "system. Those before the first are done before, not measured: it begins with the study's `cache`",
    )

    @property
    def chosen(self) -> tuple[str, ...]:
        """The steps that are measured."""
        return tuple(self.steps.split(",")) if self.steps else self.known

    @property
    def done_before(self) -> tuple[str, ...]:
        return self.known[: self.known.index(self.chosen[0])]

    @property
    def doing(self) -> frozenset[str]:
        return frozenset(self.chosen)

    @field_validator("steps")
    @classmethod
    def _in_order(cls, value: str | None) -> str | None:
        if value is None:
            return None
        steps = [step.strip() for step in value.split(",")]
        for step in steps:
            if step not in cls.known:
                raise ValueError(f"no step '{step}': {nearest(step, cls.known) or ', '.join(cls.known)}")
        if steps != [step for step in cls.known if step in steps]:
            raise ValueError(f"'steps' must be in this order, each once: {','.join(cls.known)}")
        return ",".join(steps)


def _default_first(field: FieldInfo) -> tuple[str, ...]:
    default = str(field.default)
    return (default, *(value for value in get_args(field.annotation) if value != default))
