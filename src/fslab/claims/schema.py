"""The keys of a study file for claims and published figures, as frozen values. Does not look up names or files."""

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from fslab.cell import Frozen
from fslab.claims.requirements import Lever
from fslab.units import Share, Size

_TEXT = {"type": "string"}


def several(value: object) -> object:
    """Return a single value as a tuple with one item."""
    if isinstance(value, list | tuple) and not value:
        raise ValueError("the list is empty")
    return value if isinstance(value, list | tuple) else (value,)


def _text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Several = Annotated[
    tuple[str, ...],
    BeforeValidator(several),
    WithJsonSchema(
        {"title": "text or list", "anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}
    ),
]


Label = Annotated[str, BeforeValidator(_text), WithJsonSchema(_TEXT)]
Names = Annotated[
    dict[str, Label], WithJsonSchema({"title": "mapping", "type": "object", "additionalProperties": _TEXT})
]


class Claim(Frozen):
    """One claim: a sentence, and the statements that must hold for it to be true."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    says: str = Field(description="the claim as a sentence, as it was published", min_length=1)
    that: Several = Field(
        description="what it means (docs/claims.md has the language), such as `xfs > ext4`; all of it must hold"
    )
    id: Label | None = Field(
        None, description="its number in the publication; default: its place in the list"
    )
    on: Several = Field(
        (), description="workloads it is about, `*` for any characters; it must hold on each; default: all"
    )
    metric: str | None = Field(
        None,
        description="the metric it is about, or the end of its name (`iops` is `write_iops`); default: the workload's "
        "first metric in tables",
    )
    tables: Several = Field(
        (),
        description="tables of the publication by which it is judged; default: each that has all figures it needs",
    )
    margin: Share | None = Field(
        None,
        description="smallest difference that matters for this claim; default: the study's `margin`, or its "
        "`tail_margin` if all figures of the claim are tails",
    )
    note: str | None = Field(
        None, description="which reading of the sentence `that` tests, where there are several"
    )
    requires: Several = Field(
        (),
        description="what must be true of the cells that decide it, such as `wait >= 0.5` (docs/claims.md lists all); "
        "default: the publication's `requires`; `none`: nothing",
    )
    lever: Lever | None = Field(
        None,
        description="what the compared cells differ in, on which further requirements depend; default: found out; "
        "`cpu`: the claim is about CPU time",
    )


class Published(Frozen):
    """The figures of a publication, and the names that this study has for what the publication measured."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    figures: str | None = Field(
        None,
        description="CSV file beside the study with the columns table, workload, filesystem, variant (mount options), "
        "metric, unit, value; default: the publication prints no figures",
    )
    workloads: Names = Field({}, description="the publication's name of a workload: its name in this study")
    metrics: Names = Field(
        {}, description="the publication's name of a metric: its name here, or the end of that"
    )
    reference: Label | None = Field(
        None, description="file system whose figures are 1 in the tables; default: the first of each table"
    )
    conditions: Names = Field(
        {},
        description="conditions of the publication's measurement, shown beside those of this machine: kernel, "
        "distribution, processors, memory, medium, machine, amounts",
    )
    requires: Several = Field((), description="what all claims require that do not say so themselves")
    memory: Size | None = Field(
        None, description="memory of the publication's machine, for claims with `for size < memory`"
    )
