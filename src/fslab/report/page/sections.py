"""Builds one section per workload of a page: its tables, figures, commands and raw output. Pure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fslab.analysis.workload_groups import Group
from fslab.cell import WorkloadSpec, shown
from fslab.report.build import MEDIAN_COVERAGE
from fslab.report.figures import Figure, costs, over_time, points, requests
from fslab.report.figures.styles import StackStyles
from fslab.report.model import Report, Row, StackColumn, Summary
from fslab.report.page import heat, observed
from fslab.report.page.model import PageCell, PageTable, Recipe, Section
from fslab.report.page.packing import Packer
from fslab.units import Direction, Unit, format_value, metric_text

# Kernel counter → heading of its row. A page shows the counters whose values are known.
COUNTED = {
    "write_amplification": "write amplification",
    "read_amplification": "read amplification",
    "device_written_bytes_flushed": "written to the device, with writeback",
    "device_flushes": "flushes",
    "space_per_byte": "space in use per byte of the files",
    "device_write_amplification": "write amplification of the SSD",
    "disk_sequential": "requests that follow the one before",
    "disk_seek_p50": "distance between requests (median)",
    "disk_journal_bytes": "written to the journal",
    "device_busy": "device busy",
    "machine_cpu_busy": "CPUs busy",
    "tool_max_rss": "peak memory of the tool",
}
LEFT_OUT = (
    "Latency percentiles, rates over time, CPU time, the other figures, commands and tool output are omitted, because "
    "the campaign is so large. The store has them all."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SectionBuilder:
    """Builds sections. ``brief``: only the essential parts, for a campaign too large for one page."""

    report: Report
    packer: Packer
    brief: bool
    rows_of: Mapping[str, tuple[Row, ...]] = field(init=False)

    def __post_init__(self) -> None:
        found: dict[str, tuple[Row, ...]] = {}
        for row in self.report.rows:
            found[row.workload] = (*found.get(row.workload, ()), row)
        object.__setattr__(self, "rows_of", found)

    def section(self, group: Group, anchor: str) -> Section:
        """Return the section of one workload."""
        looks = StackStyles.of(self.report.stacks)
        rows = self.rows_of.get(group.label, ())
        return Section(
            anchor=anchor,
            label=group.label,
            about=about(group.workload),
            rows=rows,
            tables=tuple(self._table(row, group) for row in rows),
            figures=tuple(self._figures(group, rows, anchor, looks)),
            more=() if self.brief else tuple(self._more(group)),
            recipes=() if self.brief else tuple(self._recipes(group)),
            left_out=LEFT_OUT if self.brief else "",
        )

    def _table(self, row: Row, group: Group) -> PageTable:
        best = heat.best_of(row)
        rank = {label: place.rank for place in row.ranking for label in place.stacks}
        columns = [
            "median",
            f"{MEDIAN_COVERAGE * 100:g} % CI of the median",
            "relative to the best",
            "rank",
            "usable trials",
        ]
        return PageTable(
            caption=f"{metric_text(row.metric)}{', lower is better' * (row.better is Direction.LOWER)}",
            columns=tuple(columns),
            rows=tuple(
                (stack.label, self._fields(row, summary, best, rank.get(stack.label)))
                for stack, summary in zip(self.report.stacks, row.summaries, strict=True)
                if stack.id in group.trials
            ),
        )

    def _fields(
        self, row: Row, summary: Summary, best: float | None, rank: int | None
    ) -> tuple[PageCell, ...]:
        how_good = heat.share(row, summary, best)
        interval = summary.interval
        total = summary.n_usable + summary.n_invalid + summary.n_failed
        span = "–"
        if interval is not None:
            span = f"{format_value(interval.low, row.unit)} – {format_value(interval.high, row.unit)}"
        return (
            PageCell(
                text=format_value(summary.median, row.unit),
                sort=summary.median,
                unit=row.unit.value,
                notes=summary.notes,
            ),
            PageCell(text=span, sort=interval.low if interval else None),
            PageCell(text="–" if how_good is None else f"{how_good:.2f}", sort=how_good),
            PageCell(text="–" if rank is None else f"{rank}.", sort=rank),
            PageCell(
                text=f"{summary.n_usable}" + (f" of {total}" if total > summary.n_usable else ""),
                sort=summary.n_usable,
            ),
        )

    def _figures(
        self, group: Group, rows: Sequence[Row], anchor: str, looks: StackStyles
    ) -> Iterator[Figure]:
        labels = {stack.id: stack.label for stack in self.report.stacks}
        for row in rows:
            found = tuple(_points(group, row, labels))
            if found:
                yield points.points_figure(
                    f"{anchor}-{row.metric.replace('_', '-')}", row, found, looks, heat.best_of(row)
                )
        if self.brief:
            return
        seen = {labels[key]: observed.seen(labels[key], trials) for key, trials in group.trials.items()}
        for operation in dict.fromkeys(name for each in seen.values() for name in each.latencies):
            curves = {
                label: each.latencies[operation]
                for label, each in seen.items()
                if operation in each.latencies
            }
            yield points.percentiles_figure(
                f"{anchor}-latency-{operation}", group.label, operation, curves, looks
            )
        for what in dict.fromkeys(name for each in seen.values() for name in each.courses):
            courses = [
                course for each in seen.values() for course in each.courses.get(what, ()) if course.is_line
            ]
            if not courses:
                continue
            unit = Unit.BYTES_PER_SECOND if what.endswith("bandwidth") else Unit.OPERATIONS_PER_SECOND
            yield over_time.rate_figure(
                f"{anchor}-{what.replace(' ', '-')}-over-time", group.label, what, unit, courses, looks
            )
        spent = {
            labels[key]: used for key, trials in group.trials.items() if (used := observed.cpu_shares(trials))
        }
        if spent:
            yield costs.cpu_figure(f"{anchor}-cpu", group.label, spent, looks)
        yield from _of_disks(group, anchor, looks, labels)

    def _more(self, group: Group) -> Iterator[PageTable]:
        counted = self._medians(group, list(COUNTED), COUNTED)
        if counted.columns:
            yield counted
        shown = {row.metric for row in self.rows_of.get(group.label, ())}
        names = dict.fromkeys(
            name for trials in group.trials.values() for trial in trials for name in trial.metrics
        )
        others = self._medians(group, [name for name in names if name not in shown], {})
        if others.columns:
            yield others

    def _medians(self, group: Group, names: Sequence[str], titles: Mapping[str, str]) -> PageTable:
        """Return a table with medians of the usable trials, a column per stack."""
        stacks = [stack for stack in self.report.stacks if stack.id in group.trials]
        rows = []
        for name in names:
            values = {stack.id: observed.figures(group.trials[stack.id], name) for stack in stacks}
            unit = _unit(group, name)
            if unit is None or not any(values.values()):
                continue
            middle = [statistics.median(values[stack.id]) if values[stack.id] else None for stack in stacks]
            fields = tuple(
                PageCell(text=format_value(value, unit), sort=value, unit=unit.value) for value in middle
            )
            rows.append((titles.get(name, metric_text(name)), fields))
        caption = (
            "Kernel counters during the run (medians)"
            if titles
            else "All other figures of the tool (medians)"
        )
        return PageTable(
            caption=caption, columns=tuple(stack.label for stack in stacks) if rows else (), rows=tuple(rows)
        )

    def _recipes(self, group: Group) -> Iterator[Recipe]:
        for stack in self.report.stacks:
            trials = group.trials.get(stack.id, [])
            shown = next((trial for trial in trials if trial.provenance.commands), None)
            if shown is None:
                continue
            before = self.packer.skipped
            raw = tuple(packed for trial in trials for packed in self.packer.pack(trial))
            yield Recipe(
                stack=stack.label,
                options=_options(stack),
                commands=shown.provenance.commands,
                raw=raw,
                no_room=self.packer.skipped - before,
            )


def _of_disks(group: Group, anchor: str, looks: StackStyles, labels: Mapping[str, str]) -> Iterator[Figure]:
    """Yield what only a virtual disk knows: its requests, and how much an SSD wrote to its flash."""
    logged = {
        labels[key]: maps for key, trials in group.trials.items() if (maps := observed.requests(trials))
    }
    if logged:
        first = {label: each[0] for label, each in logged.items()}
        disks = max(len(each) for each in logged.values())
        yield requests.request_figure(f"{anchor}-requests", group.label, first, disks, looks)
        yield requests.distance_figure(f"{anchor}-distances", group.label, first, looks)
    factors = {
        labels[key]: found
        for key, trials in group.trials.items()
        if (found := observed.amplification(trials))
    }
    if factors:
        yield costs.amplification_figure(f"{anchor}-amplification", group.label, factors, looks)


def about(workload: WorkloadSpec) -> str:
    """Return the tool and its parameters: ``fio: rw=randwrite, bs=4k, …``."""
    options = ", ".join(f"{name}={shown(value)}" for name, value in workload.parameters.items())
    return f"{workload.tool}: {options}" if options else workload.tool


def _points(group: Group, row: Row, labels: Mapping[str, str]) -> Iterator[points.PlotPoint]:
    for key, trials in group.trials.items():
        for trial in trials:
            figure = trial.metrics.get(row.metric)
            if figure is not None and figure.value is not None:
                kind = observed.kind_of(trial)
                yield points.PlotPoint(
                    stack=labels[key], block=trial.key.block, value=figure.value, kind=kind
                )


def _unit(group: Group, name: str) -> Unit | None:
    for trials in group.trials.values():
        for trial in trials:
            figure = trial.metrics.get(name) or trial.probes.get(name)
            if figure is not None:
                return figure.unit
    return None


def _options(stack: StackColumn) -> str:
    told = [f"on {stack.medium}", f"layout {stack.layout}"]
    told += [f"mkfs {stack.mkfs_options}"] if stack.mkfs_options else []
    return ", ".join([*told, f"mounted with {stack.mount_options}", *filter(None, [stack.settings])])
