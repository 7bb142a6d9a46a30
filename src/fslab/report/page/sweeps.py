"""Finds workloads and stacks that differ only in numbers (threads, sizes, disks, chunk); makes their figures. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from fslab.analysis.groups import Group
from fslab.cell import Scalar
from fslab.report.figures import Figure, slug
from fslab.report.figures.styles import StackStyles
from fslab.report.figures.surface import Field
from fslab.report.figures.surface import figure as surface
from fslab.report.figures.sweep import SweepStep
from fslab.report.figures.sweep import figure as sweep
from fslab.report.model import Report, Row, Summary
from fslab.report.page import stack_numbers
from fslab.report.page.stack_numbers import number


@dataclass(frozen=True, kw_only=True, slots=True)
class _Spot:
    """One measured value. ``series``: the curve that it belongs to.

    ``numbers``: parameter → its value as a number and as text.
    """

    series: str
    numbers: Mapping[str, tuple[float, str]]
    summary: Summary


@dataclass(frozen=True, kw_only=True, slots=True)
class _Family:
    """The values of one metric of workloads with one name, or of stacks, that differ only in numbers."""

    key: str
    name: str
    row: Row
    spots: tuple[_Spot, ...]
    looks: StackStyles


def figures(report: Report, groups: Sequence[Group], prefix: str = "") -> Iterator[Figure]:
    """Yield the figures of workloads first, then those of stacks. ``prefix`` keeps ids unique."""
    for family in (*_of_workloads(report, groups), *_of_stacks(report, groups)):
        made = _figure(family)
        if made is not None:
            yield replace(made, id=f"{prefix}{made.id}")


def _of_workloads(report: Report, groups: Sequence[Group]) -> Iterator[_Family]:
    by_label = {group.label: group for group in groups}
    looks = StackStyles.of(report.stacks)

    def name_of(row: Row) -> tuple[str, str]:
        group = by_label[row.workload]
        return group.workload.name.partition("[")[0], row.metric

    rows = sorted((row for row in report.rows if row.workload in by_label), key=name_of)
    for (name, metric), alike in groupby(rows, key=name_of):
        members = list(alike)
        parameters = [by_label[row.workload].workload.parameters for row in members]
        varying = _varying(parameters)
        if len(members) < 2 or not varying:
            continue
        spots = [
            _Spot(series=label, numbers=_numbers(options, varying), summary=summary)
            for row, options in zip(members, parameters, strict=True)
            for label, summary in zip(looks.labels, row.summaries, strict=True)
        ]
        yield _Family(
            key=f"sweep-{name}-{metric}", name=name, row=members[0], spots=tuple(spots), looks=looks
        )


def _of_stacks(report: Report, groups: Sequence[Group]) -> Iterator[_Family]:
    """Yield families of stacks that differ only in numbers, such as disks × chunk, or the size of a journal."""
    specs = {key: cell.stack for group in groups for key, cell in group.cells.items()}
    columns = {stack.id: stack for stack in report.stacks if stack.id in specs}
    for varying, families in stack_numbers.families({key: specs[key] for key in columns}).items():
        names = stack_numbers.labels(families)
        if len(set(names)) < len(names):
            continue  # two curves with one name would be drawn as one
        series = {key: name for name, family in zip(names, families, strict=True) for key in family.members}
        options = {key: each for family in families for key, each in family.members.items()}
        firsts = [columns[next(iter(family.members))] for family in families]
        looks = StackStyles.of(
            [column.model_copy(update={"lines": (name,)}) for name, column in zip(names, firsts, strict=True)]
        )
        for row in report.rows:
            spots = [
                _Spot(
                    series=series[summary.stack],
                    numbers=_numbers(options[summary.stack], varying),
                    summary=summary,
                )
                for summary in row.summaries
                if summary.stack in options
            ]
            yield _Family(
                key=f"layouts-{slug('-'.join(varying))}-{row.workload}-{row.metric}",
                name=row.workload, row=row, spots=tuple(spots), looks=looks,
            )  # fmt: skip


def _varying(options: Sequence[Mapping[str, Scalar]]) -> tuple[str, ...]:
    """Return the one or two keys that differ and are numbers in all options; empty if anything else differs too."""
    keys = dict.fromkeys(key for each in options for key in each)
    differing = [key for key in keys if len({repr(each.get(key)) for each in options}) > 1]
    numeric = [
        key for key in differing if all(key in each and number(each[key]) is not None for each in options)
    ]
    return tuple(numeric) if len(numeric) == len(differing) <= 2 else ()


def _numbers(options: Mapping[str, Scalar], keys: Sequence[str]) -> dict[str, tuple[float, str]]:
    return {key: (number(options[key]) or 0.0, str(options[key])) for key in keys}


def _figure(family: _Family) -> Figure | None:
    spots = [spot for spot in family.spots if spot.summary.median is not None]
    row = family.row
    if not spots:
        return None
    keys = tuple(spots[0].numbers)
    present = [label for label in family.looks.labels if any(spot.series == label for spot in spots)]
    if len(keys) == 1:
        steps = [
            SweepStep(
                stack=spot.series, at=spot.numbers[keys[0]][0], words=spot.numbers[keys[0]][1],
                median=spot.summary.median or 0.0,
                low=spot.summary.interval.low if spot.summary.interval else None,
                high=spot.summary.interval.high if spot.summary.interval else None,
            )
            for spot in spots
        ]  # fmt: skip
        if len({step.at for step in steps}) < 2:
            return None
        return sweep(
            family.key,
            family.name,
            keys[0],
            row.metric,
            row.unit,
            row.better,
            steps,
            family.looks.only(present),
        )
    # The parameter with more values is on the x axis.
    x, y = sorted(keys, key=lambda key: -len({spot.numbers[key] for spot in spots}))
    fields = [
        Field(
            stack=spot.series, x=spot.numbers[x][0], x_words=spot.numbers[x][1], y=spot.numbers[y][0],
            y_words=spot.numbers[y][1], median=spot.summary.median or 0.0,
        )
        for spot in spots
    ]  # fmt: skip
    return surface(family.key, family.name, (x, y), row.metric, row.unit, row.better, fields, present)
