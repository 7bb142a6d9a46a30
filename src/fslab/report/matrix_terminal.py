"""The matrix of a running campaign: a column per stack, a row per workload. It fills as trials end.

Its values, and which stack is ahead, come from the usable trials so far. Prints nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.table import Table
from rich.text import Text

from fslab.analysis.groups import Group, groups, metrics_of
from fslab.analysis.labels import stack_lines
from fslab.analysis.noise import CampaignNoise
from fslab.analysis.rows import RowAnswers, looks_of, row_answers, samples_of
from fslab.analysis.same_stacks import different, same_stacks
from fslab.answers.words import ratio_words
from fslab.cell import Cell
from fslab.record import Metric, TrialRecord
from fslab.stats.interval import half_range, median
from fslab.stopping import StoppingRule
from fslab.units import Direction, format_value

FEWEST_ROWS = 3
OVERHEAD_ROWS = 8  # heading, progress bar, and messages above the table
WIDE = 100  # columns; from this width on, the column ``ahead`` is shown


@dataclass(kw_only=True, slots=True)
class Matrix:
    """The results so far of every cell. ``stopping``: how often cells are repeated."""

    cells: Sequence[Cell]
    stopping: StoppingRule
    records: dict[str, list[TrialRecord]] = field(default_factory=dict)
    running: str | None = None
    ahead: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(init=False)
    together: list[Group] = field(init=False)

    def __post_init__(self) -> None:
        specs = {cell.stack_id: cell.stack for cell in self.cells}
        lines = stack_lines(list(specs.values()))
        self.labels = dict(zip(specs, (" ".join(each) for each in lines), strict=True))
        self.together = list(groups(self.cells, ()))

    def enter(self, record: TrialRecord) -> None:
        """Add a trial, and update which stack is ahead."""
        self.fill([record])

    def fill(self, records: Sequence[TrialRecord]) -> None:
        """Add several trials, such as those that a resumed campaign already has."""
        for record in records:
            self.records.setdefault(record.cell.id, []).append(record.model_copy(update={"raw": {}}))
        touched = {record.cell.id for record in records}
        noise = CampaignNoise(trials=[one for found in self.records.values() for one in found])
        for group in self.together:
            if any(cell.id in touched for cell in group.cells.values()):
                self.ahead[group.label] = self._ahead(group, noise)

    def table(self, width: int, height: int) -> Table:
        """Return the table, fitted to the terminal. Of too many workloads it shows those around the running one."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("")
        shown = self._shown_stacks(width)
        for stack in shown:
            table.add_column(Text(self.labels[stack]), justify="right", no_wrap=True)
        hidden = len(self.labels) - len(shown)
        if hidden:
            table.add_column(f"+{hidden}", style="dim")
        elif width >= WIDE:
            table.add_column("ahead", overflow="ellipsis", no_wrap=True)
        for group in self._shown_groups(height):
            row = [self._field(group, stack) for stack in shown]
            rest = [Text("…")] if hidden else [Text(self.ahead.get(group.label, ""))] if width >= WIDE else []
            table.add_row(Text(group.label), *row, *rest)
        return table

    def _shown_stacks(self, width: int) -> list[str]:
        """Return the stacks whose columns fit. The stack of the running trial is always one of them."""
        room = max(1, (width - 24) // 20)
        names = list(self.labels)
        if len(names) <= room:
            return names
        running = next((cell.stack_id for cell in self.cells if cell.id == self.running), names[0])
        first = min(max(0, names.index(running) - room // 2), len(names) - room)
        return names[first : first + room]

    def _shown_groups(self, height: int) -> list[Group]:
        room = max(FEWEST_ROWS, height - OVERHEAD_ROWS)
        if len(self.together) <= room:
            return self.together
        ids = [{cell.id for cell in group.cells.values()} for group in self.together]
        place = next((number for number, found in enumerate(ids) if self.running in found), 0)
        first = min(max(0, place - room // 2), len(self.together) - room)
        return self.together[first : first + room]

    def _field(self, group: Group, stack: str) -> Text:
        """Return ``317k IOPS ±5% ▪▪▪▫▫``; empty if the study does not combine this workload and stack."""
        cell = group.cells.get(stack)
        if cell is None:
            return Text("")
        records = self.records.get(cell.id, [])
        style = "reverse" if cell.id == self.running else ""
        done = _dots(len(records), self.stopping.trials)
        found = self._filled(group)
        metric = next(_first(found), None)
        values = [*found.by_block(metric.name, stack).values()] if metric else []
        if metric is None or not values:
            word = records[-1].status_text.partition(":")[0] if records else ""
            return Text(f"{word} {done}".strip(), style=style or "dim")
        spread = half_range(values)
        told = f" ±{spread * 100:.0f}%" if spread is not None else ""
        return Text.assemble(
            (format_value(median(values), metric.unit), style), (told, "dim"), (f" {done}", "dim")
        )

    def _filled(self, group: Group) -> Group:
        trials = {stack: self.records.get(cell.id, []) for stack, cell in group.cells.items()}
        return Group(label=group.label, workload=group.workload, cells=group.cells, trials=trials)

    def _ahead(self, group: Group, noise: CampaignNoise) -> str:
        """Return ``ext4 1.07 × xfs (1.01–1.13)``: the leader against the nearest other stack; ``?`` if undecided."""
        found = self._filled(group)
        for metric in _first(found):
            trials = [trial for each in self.records.values() for trial in each]
            specs = {stack: cell.stack for stack, cell in group.cells.items()}
            samples, _ = different(samples_of(found, metric), same_stacks(specs, trials))
            row = row_answers(
                samples,
                metric.better,
                looks=looks_of(self.stopping),
                prior=noise.of_stacks(found, metric.name),
            )
            return _leader(row, self.labels)
        return ""


def _first(group: Group) -> Iterator[Metric]:
    yield from metrics_of(group)[:1]


def _leader(row: RowAnswers, labels: dict[str, str]) -> str:
    leader = row.leader
    if leader is None or row.better is Direction.NEITHER:
        return ""
    told = [
        each for each in row.oriented(leader.stack) if each.ratio is not None and each.interval is not None
    ]
    if not told:
        return ""
    nearest = min(told, key=lambda each: each.ratio or 0.0)
    sure = "" if nearest.differs else "?"
    return f"{labels[leader.stack]} {ratio_words(nearest, labels[nearest.other(leader.stack)])}{sure}"


def _dots(done: int, planned: int) -> str:
    """Return ``▪▪▪▫▫``, or ``3/8`` for more than 6 trials."""
    if max(done, planned) > 6:
        return f"{done}/{planned}" if planned >= done else f"{done}"
    return "▪" * done + "▫" * (planned - done)
