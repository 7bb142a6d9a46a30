"""Builds one section per workload of a page: its tables, figures, commands and raw output. Pure."""

import base64
import gzip
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from fslab.analysis import disk_request_map
from fslab.analysis.workload_groups import Group
from fslab.cell import WorkloadSpec, shown
from fslab.report.figures import Figure, costs, over_time, points
from fslab.report.figures.styles import StackStyles
from fslab.report.model import Report, Row, StackColumn, Summary
from fslab.report.page import heat, observed
from fslab.report.page.model import PageCell, PageTable, RawOutput, Recipe, Section
from fslab.stats.median import MEDIAN_CI
from fslab.trial_record import TrialRecord
from fslab.units import Direction, Unit, format_size, format_value, metric_text

Found = TypeVar("Found")
ONE_BYTES = 256 << 10  # limit of one text, before packing
ALL_BYTES = 1536 << 10  # limit of all packed texts of a campaign


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


def packed(text: str) -> str:
    """Return a text as gzip in base64. A browser unpacks it with DecompressionStream. The result is deterministic."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


@dataclass(kw_only=True)
class SectionBuilder:
    """Builds sections. ``brief``: only the essential parts, for a campaign too large for one page. ``left_bytes``: the
    space for raw output; ``skipped``: number of outputs that did not fit."""

    report: Report
    brief: bool
    left_bytes: int = field(default_factory=lambda: ALL_BYTES)
    skipped: int = 0

    @cached_property
    def rows_of(self) -> Mapping[str, Sequence[Row]]:
        """The rows of each workload."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self.report.rows:
            found[row.workload].append(row)
        return found

    def section(self, group: Group, anchor: str) -> Section:
        """Return the section of one workload."""
        looks = StackStyles.of(self.report.stacks)
        rows = self.rows_of[group.label]
        return Section(
            anchor=anchor,
            label=group.label,
            about=about(group.workload),
            rows=tuple(rows),
            tables=tuple(self._table(row, group) for row in rows),
            figures=tuple(self._figures(group, rows, anchor, looks)),
            more=() if self.brief else tuple(self._more(group)),
            recipes=() if self.brief else tuple(self._recipes(group)),
            left_out=LEFT_OUT if self.brief else "",
        )

    def _table(self, row: Row, group: Group) -> PageTable:
        best = heat.best_of(row)
        rank = {label: place.rank for place in row.ranking for label in place.stacks}
        return PageTable(
            caption=f"{metric_text(row.metric)}{', lower is better' * (row.better is Direction.LOWER)}",
            columns=("median", f"{MEDIAN_CI} of the median", "relative to the best", "rank", "usable trials"),
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
        span, of = "–", f" of {total}" if total > summary.n_usable else ""
        if interval is not None:
            span = f"{format_value(interval.low, row.unit)} – {format_value(interval.high, row.unit)}"
        return (
            PageCell.of(summary.median, row.unit, summary.notes),
            PageCell(text=span, sort=interval.low if interval else None),
            PageCell(text="–" if how_good is None else f"{how_good:.2f}", sort=how_good),
            PageCell(text="–" if rank is None else f"{rank}.", sort=rank),
            PageCell(text=f"{summary.n_usable}{of}", sort=summary.n_usable),
        )

    def _figures(
        self, group: Group, rows: Sequence[Row], anchor: str, looks: StackStyles
    ) -> Iterator[Figure]:
        labels = self.report.labels
        for row in rows:
            if found := tuple(_points(group, row, labels)):
                key = f"{anchor}-{row.metric.replace('_', '-')}"
                yield points.points_figure(key, row, found, looks, heat.best_of(row))
        if self.brief:
            return
        seen = {labels[key]: observed.seen(labels[key], trials) for key, trials in group.trials.items()}
        for operation in dict.fromkeys(name for each in seen.values() for name in each.latencies):
            known = ((label, each.latencies.get(operation)) for label, each in seen.items())
            curves = {label: curve for label, curve in known if curve is not None}
            key = f"{anchor}-latency-{operation}"
            yield points.percentiles_figure(key, group.label, operation, curves, looks)
        for what in dict.fromkeys(name for each in seen.values() for name in each.courses):
            every = (course for each in seen.values() for course in each.courses.get(what, ()))
            if courses := [course for course in every if course.is_line]:
                unit = Unit.BYTES_PER_SECOND if what.endswith("bandwidth") else Unit.OPERATIONS_PER_SECOND
                key = f"{anchor}-{what.replace(' ', '-')}-over-time"
                yield over_time.rate_figure(key, group.label, what, unit, courses, looks)
        if spent := _by_label(group, labels, observed.cpu_shares):
            yield costs.cpu_figure(f"{anchor}-cpu", group.label, spent, looks)
        yield from _of_disks(group, anchor, looks, labels)

    def _more(self, group: Group) -> Iterator[PageTable]:
        counted = self._medians(group, list(COUNTED), COUNTED)
        if counted.columns:
            yield counted
        shown = {row.metric for row in self.rows_of[group.label]}
        trials = (trial for own in group.trials.values() for trial in own)
        names = dict.fromkeys(name for trial in trials for name in trial.metrics)
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
            fields = tuple(PageCell.of(value, unit) for value in middle)
            rows.append((titles.get(name, metric_text(name)), fields))
        caption = "Kernel counters during the run" if titles else "All other figures of the tool"
        columns = tuple(stack.label for stack in stacks) if rows else ()
        return PageTable(caption=f"{caption} (medians)", columns=columns, rows=tuple(rows))

    def _recipes(self, group: Group) -> Iterator[Recipe]:
        for stack in self.report.stacks:
            trials = group.trials.get(stack.id, [])
            shown = next((trial for trial in trials if trial.provenance.commands), None)
            if shown is None:
                continue
            before = self.skipped
            raw = tuple(packed for trial in trials for packed in self._packed(trial))
            yield Recipe(
                stack=stack.label,
                options=_options(stack),
                commands=shown.provenance.commands,
                raw=raw,
                no_room=self.skipped - before,
            )

    def _packed(self, trial: TrialRecord) -> Iterator[RawOutput]:
        """Yield the tools' output of a trial, without empty texts. Cuts long texts, and skips what does not fit."""
        for name, text in trial.raw.items():
            if name == disk_request_map.NAME or not text.strip():  # the map is drawn
                continue
            kept = text.encode()[:ONE_BYTES].decode(errors="ignore")
            content = packed(kept)
            if len(content) > self.left_bytes:
                self.skipped += 1
                continue
            self.left_bytes -= len(content)
            cut = len(text.encode()) - len(kept.encode())
            yield RawOutput(
                name=name, trial=f"trial {trial.key.block + 1}", size=format_size(len(text.encode())), packed=content,
                left_out=format_size(cut) if cut else "",
            )  # fmt: skip


def _of_disks(group: Group, anchor: str, looks: StackStyles, labels: Mapping[str, str]) -> Iterator[Figure]:
    """Yield what only a virtual disk knows: its requests, and how much an SSD wrote to its flash."""
    if logged := _by_label(group, labels, observed.requests):
        first = {label: each[0] for label, each in logged.items()}
        disks = max(len(each) for each in logged.values())
        yield costs.request_figure(f"{anchor}-requests", group.label, first, disks, looks)
        yield costs.distance_figure(f"{anchor}-distances", group.label, first, looks)
    if factors := _by_label(group, labels, observed.amplification):
        yield costs.amplification_figure(f"{anchor}-amplification", group.label, factors, looks)


def _by_label(
    group: Group, labels: Mapping[str, str], of: Callable[[Sequence[TrialRecord]], Found | None]
) -> dict[str, Found]:
    """Return what the trials of each stack have, by its label; without stacks that have nothing."""
    return {labels[key]: found for key, trials in group.trials.items() if (found := of(trials))}


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
