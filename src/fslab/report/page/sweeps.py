"""Finds workloads and stacks that differ only in numbers (threads, sizes, disks, chunk); makes their figures. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from fslab.analysis.workload_groups import Group
from fslab.cell import Scalar, StackSpec
from fslab.report.figures import Figure, slug
from fslab.report.figures.styles import StackStyles
from fslab.report.figures.sweep import Spot, curve_figure, surface_figure
from fslab.report.model import Report, Row
from fslab.units import parse_size

# Matches -J size=64, -b 4096, commit=5, logbsize=256k; does not match compress=zstd:3.
_OPTION = re.compile(r"(?<![\w-])(-\w(?: [a-z_]+)?|[A-Za-z][\w-]*)([= ])(\d+[kmgtKMGT]?)(?![\w.:])")


@dataclass(frozen=True, kw_only=True, slots=True)
class StackFamily:
    """Stacks that differ only in their numbers: stack id → numbers.

    ``parts``: what the stacks have in common, in words.
    """

    parts: tuple[str, ...]
    members: dict[str, Mapping[str, Scalar]] = field(default_factory=dict)

    @property
    def varying(self) -> tuple[str, ...]:
        """The one or two numbers that differ between the stacks; empty if there are more, or a stack lacks one."""
        return _varying([*self.members.values()])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Family:
    """The values of one metric of workloads with one name, or of stacks, that differ only in numbers."""

    key: str
    name: str
    row: Row
    spots: tuple[Spot, ...]
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
            Spot(stack=label, numbers=_numbers(options, varying), summary=summary)
            for row, options in zip(members, parameters, strict=True)
            for label, summary in zip(looks.labels, row.summaries, strict=True)
        ]
        key = f"sweep-{name}-{metric}"
        yield _Family(key=key, name=name, row=members[0], spots=tuple(spots), looks=looks)


def _of_stacks(report: Report, groups: Sequence[Group]) -> Iterator[_Family]:
    """Yield families of stacks that differ only in numbers, such as disks × chunk, or the size of a journal."""
    specs = {key: cell.stack for group in groups for key, cell in group.cells.items()}
    columns = {stack.id: stack for stack in report.stacks if stack.id in specs}
    for varying, families in stack_families({key: specs[key] for key in columns}).items():
        names = family_labels(families)
        if len(set(names)) < len(names):
            continue  # two curves with one name would be drawn as one
        series = {key: name for name, family in zip(names, families, strict=True) for key in family.members}
        options = {key: each for family in families for key, each in family.members.items()}
        firsts = [columns[next(iter(family.members))] for family in families]
        named = zip(names, firsts, strict=True)
        looks = StackStyles.of([column.model_copy(update={"lines": (name,)}) for name, column in named])
        for row in report.rows:
            spots = [
                Spot(stack=series[key], numbers=_numbers(options[key], varying), summary=summary)
                for summary in row.summaries
                if (key := summary.stack) in options
            ]
            yield _Family(
                key=f"layouts-{slug('-'.join(varying))}-{row.workload}-{row.metric}",
                name=row.workload, row=row, spots=tuple(spots), looks=looks,
            )  # fmt: skip


def _varying(options: Sequence[Mapping[str, Scalar]]) -> tuple[str, ...]:
    """Return the one or two keys that differ and are numbers in all options; empty if anything else differs too."""
    keys = dict.fromkeys(key for each in options for key in each)
    differing = [key for key in keys if len({repr(each.get(key)) for each in options}) > 1]
    numeric = all(key in each and number(each[key]) is not None for key in differing for each in options)
    return tuple(differing) if numeric and len(differing) <= 2 else ()


def _numbers(options: Mapping[str, Scalar], keys: Sequence[str]) -> dict[str, tuple[float, str]]:
    return {key: (number(options[key]) or 0.0, str(options[key])) for key in keys}


def _figure(family: _Family) -> Figure | None:
    spots = [spot for spot in family.spots if spot.summary.median is not None]
    if not spots:
        return None
    keys = tuple(spots[0].numbers)
    if len(keys) == 1:
        return curve_figure(family.key, family.name, family.row, keys[0], spots, family.looks)
    # The parameter with more values is on the x axis.
    keys = tuple(sorted(keys, key=lambda key: -len({spot.numbers[key] for spot in spots})))
    present = [label for label in family.looks.labels if any(spot.stack == label for spot in spots)]
    return surface_figure(family.key, family.name, family.row, keys, spots, present)


def number(value: Scalar) -> float | None:
    """Return the value of ``4``, ``0.5`` or ``64k``; None if it is not a number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(parse_size(value))
    except ValueError:
        return None


def numbers(spec: StackSpec) -> dict[str, Scalar]:
    """Return name in figures → value: ``chunk``, ``medium size``, ``mkfs -J size``, ``mount commit``."""
    found = _numeric(spec.layout_options) | _numeric(spec.tuning)
    found |= {f"medium {key}": value for key, value in _numeric(spec.medium.options).items()}
    for tool, text in (("mkfs", spec.mkfs_options), ("mount", spec.mount_options)):
        found |= {f"{tool} {match[1]}": match[3] for match in _OPTION.finditer(text)}
    return found


def stack_families(stacks: Mapping[str, StackSpec]) -> dict[tuple[str, ...], list[StackFamily]]:
    """Return names of the varying numbers → families of two or more stacks. ``stacks``: id → stack."""
    found: dict[str, StackFamily] = {}
    for key, spec in stacks.items():
        family = found.setdefault(_rest(spec).model_dump_json(), StackFamily(parts=_parts(spec)))
        family.members[key] = numbers(spec)
    by_keys: dict[tuple[str, ...], list[StackFamily]] = {}
    for family in found.values():
        if family.varying:
            by_keys.setdefault(family.varying, []).append(family)
    return by_keys


def family_labels(together: Sequence[StackFamily]) -> list[str]:
    """Return a label per family: file system, layout, and the parts in which the families differ."""
    differ = [len(set(parts)) > 1 for parts in zip(*(family.parts for family in together), strict=True)]
    return [
        " ".join(part for place, part in enumerate(family.parts) if part and (place < 2 or differ[place]))
        for family in together
    ]


def _numeric(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {key: value for key, value in options.items() if number(value) is not None}


def _words(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {key: value for key, value in options.items() if number(value) is None}


def _parts(spec: StackSpec) -> tuple[str, ...]:
    rest = _rest(spec)
    medium = ", ".join(map(str, rest.medium.options.values())) or rest.medium.type
    options = ", ".join(f"{key}={value}" for key, value in rest.layout_options.items())
    return (
        spec.filesystem or spec.name, "" if spec.layout == "single" else spec.layout, options,
        rest.mkfs_options, rest.mount_options, " ".join(f"{key}={value}" for key, value in rest.settings.items()),
        f"on {medium}", f"geometry {spec.geometry.value}",
        " ".join(["in", *filter(None, (spec.machine.type, spec.machine.kernel, spec.machine.memory))]),
    )  # fmt: skip


def _rest(spec: StackSpec) -> StackSpec:
    """Return the stack without its numbers and its names."""
    medium = spec.medium.model_copy(update={"name": "", "options": _words(spec.medium.options)})
    changes = {
        "name": "", "medium": medium, "layout_options": _words(spec.layout_options), "tuning": _words(spec.tuning),
        "mkfs_options": _OPTION.sub(r"\1\2…", spec.mkfs_options),
        "mount_options": _OPTION.sub(r"\1\2…", spec.mount_options),
    }  # fmt: skip
    return spec.model_copy(update=changes)
