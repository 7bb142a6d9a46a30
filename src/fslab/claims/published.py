"""Reads published figures from CSV, finds their cells in a study, and judges claims by them. Pure.

A printed figure is one number, so a value computed from it has no interval. Tables are kept apart, because a
publication may print one figure twice with different values.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import combinations
from math import inf, log, prod

from fslab.cell import Cell
from fslab.claims import metric_units
from fslab.claims.claim_words import answer_words
from fslab.claims.model import ClaimAnswer, ClaimVerdict, PartFinding
from fslab.claims.parts import Bounds, Part, Quotient
from fslab.claims.schema import Published
from fslab.claims.scope import Scope, kind, workload_is
from fslab.claims.verdict import distance_inside, part_finding
from fslab.errors import StudyError
from fslab.trial_record import Metric

COLUMNS = ["table", "workload", "filesystem", "variant", "metric", "unit", "value"]
PLAIN = "defaults"
Printed = Mapping[tuple[str, str], tuple[float, ...]]  # figures by cell id and metric name


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedFigure:
    """One printed figure. ``value``: in the unit of its metric here. ``cells``: the cells that it is a figure of.

    ``metric`` is None and ``cells`` is empty if the study has no such figure.
    """

    table: str
    workload: str
    filesystem: str
    variant: str
    label: str
    value: float
    cells: tuple[Cell, ...]
    metric: Metric | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedFigures:
    """All printed figures of a publication, in the order of the file."""

    printed: tuple[PublishedFigure, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.table for one in self.printed))

    def of(self, table: str) -> dict[tuple[str, str], float]:
        """Return the figures of one table by cell id and metric."""
        return {
            (cell.id, one.metric.name): one.value
            for one in self.printed
            if one.table == table and one.metric is not None
            for cell in one.cells
        }

    def by_cell(self, tables: Sequence[str] | None = None) -> Printed:
        """Return all figures (of some tables) by cell id and metric: several tables may print one."""
        found: dict[tuple[str, str], tuple[float, ...]] = {}
        for table in self.tables if tables is None else tables:
            for key, value in self.of(table).items():
                found[key] = (*found.get(key, ()), value)
        return found

    def anywhere(self, tables: Sequence[str]) -> dict[tuple[str, str], float]:
        """Return the figures of several tables, except those that are printed with different values."""
        seen = self.by_cell(tables)
        return {key: values[0] for key, values in seen.items() if len(set(values)) == 1}

    def answer(self, parts: Sequence[Part], missing: Sequence[str], tables: Sequence[str]) -> ClaimAnswer:
        """Judge a claim with these parts by the figures of ``tables``; by those of all tables if there are none."""
        if not self.printed:
            return ClaimAnswer(verdict=ClaimVerdict.UNKNOWN, words="not printed", parts=len(parts))
        chosen = [table for table in self.tables if not tables or table in tables]
        findings = [finding for part in parts for finding in self._findings(part, chosen)]
        verdict = _together([finding.verdict for finding in findings], complete=not missing)
        words = answer_words(verdict, findings, missing, absent="not printed")
        if verdict is ClaimVerdict.CONTRADICTED:
            words += self._upheld(findings)
        return ClaimAnswer(verdict=verdict, words=words, parts=len(parts), findings=tuple(findings))

    def _findings(self, part: Part, tables: Sequence[str]) -> list[PartFinding]:
        """Return one finding for each table that has all figures of the part.

        If no table has all of them, return one finding from the figures of all tables together.
        """
        found = [one for table in tables if (one := _found(part, self.of(table), table))]
        known = self.anywhere(tables)
        if not found and (mixed := _found(part, known, None)):
            found = [mixed]
        if found:
            return found
        lacking = [one for one in part.figures if one.key not in known]
        why = part.name
        if lacking:
            metric, cell = lacking[0].metric, lacking[0].cell
            why = f"{metric.name} of {cell.workload.name} on {cell.stack.name}"
        return [part_finding(part, ClaimVerdict.UNKNOWN, why=why)]

    @staticmethod
    def _upheld(findings: Sequence[PartFinding]) -> str:
        """Return text that names the tables in which the claim holds, if only other tables contradict it."""
        against = {one.table for one in findings if one.verdict is ClaimVerdict.CONTRADICTED}
        held = dict.fromkeys(one.table for one in findings if one.table and one.table not in against)
        return f"; holds in table {', '.join(held)}" if held and None not in against else ""


def read_figures(text: str, name: str, published: Published, scope: Scope) -> PublishedFigures:
    """Return the figures of a CSV file. Raises StudyError with the line of a row that cannot be read."""
    reader = csv.DictReader(StringIO(text))
    if reader.fieldnames != COLUMNS:
        hint = f"the first line must be: {','.join(COLUMNS)}"
        raise StudyError("wrong columns for published figures", where=name, hint=hint)
    found = []
    for number, row in enumerate(reader, start=2):
        try:
            found.append(_printed(row, published, scope))
        except (ValueError, TypeError) as error:
            raise StudyError(f"cannot be read: {error}", where=f"{name}:{number}") from error
    return PublishedFigures(printed=tuple(found))


def _printed(row: dict[str, str], published: Published, scope: Scope) -> PublishedFigure:
    workload = published.workloads.get(row["workload"], row["workload"])
    asked = published.metrics.get(row["metric"], row["metric"])
    cells = [
        cell
        for cell in scope.cells
        if workload_is(workload, cell)
        and kind(cell) == row["filesystem"]
        and is_variant(cell, row["variant"])
    ]
    known = [(cell, metric) for cell in cells if (metric := metric_units.metric(cell.workload, asked))]
    stored_in = known[0][1].unit if known else None
    value = metric_units.printed(float(row["value"]), row["unit"], stored_in)
    if not 0 < value < inf:
        raise ValueError(f"'{row['value']}' must be a number greater than 0")
    return PublishedFigure(
        table=row["table"], workload=row["workload"], filesystem=row["filesystem"], variant=row["variant"],
        label=row["metric"], value=value, cells=tuple(cell for cell, _ in known),
        metric=known[0][1] if known else None,
    )  # fmt: skip


def is_variant(cell: Cell, variant: str) -> bool:
    """Return whether a cell has the mount options, or the stack name, that a publication calls ``variant``."""
    mount = cell.stack.mounted_with
    return sorted(mount.split(",")) == sorted(variant.split(",")) or cell.stack.name == variant


def _together(verdicts: Sequence[ClaimVerdict], *, complete: bool) -> ClaimVerdict:
    if ClaimVerdict.CONTRADICTED in verdicts:
        return ClaimVerdict.CONTRADICTED
    if set(verdicts) <= {ClaimVerdict.UNKNOWN}:
        return ClaimVerdict.UNKNOWN
    return ClaimVerdict.HOLDS if complete and ClaimVerdict.UNKNOWN not in verdicts else ClaimVerdict.IN_PART


def _found(part: Part, values: dict[tuple[str, str], float], table: str | None) -> PartFinding | None:
    if any(figure.key not in values for figure in part.figures):
        return None
    value = _value(part, values)
    verdict = ClaimVerdict.HOLDS if _holds(part.bounds, value) else ClaimVerdict.CONTRADICTED
    inside = distance_inside(part.bounds, value, value)
    return part_finding(part, verdict, value=value, table=table, margin=inside)


def _holds(bounds: Bounds, value: float) -> bool:
    """Return whether a value lies within the bounds, both rounded: the mean of 2 and 2 is 2, also by roots."""
    exact, rounded = replace(bounds, low=_rounded(bounds.low), high=_rounded(bounds.high)), _rounded(value)
    return exact.hold(rounded, rounded)


def _rounded(value: float) -> float:
    return float(f"{value:.12g}")


def _value(part: Part, values: dict[tuple[str, str], float]) -> float:
    if isinstance(part, Quotient):
        over, under = (
            prod(values[figure.key] ** (way * weight) for figure, weight in part.weights if way * weight > 0)
            for way in (1, -1)
        )
        ratio: float = over / under
        return ratio
    one, other = (_range([values[figure.key] for figure in side]) for side in (part.ones, part.others))
    return one / other


def _range(values: Sequence[float]) -> float:
    """Return the largest ratio of two of the values; 1 for fewer than two values."""
    ratios = [max(x / y, y / x) for x, y in combinations(values, 2)]
    return max(ratios, key=log, default=1.0)
