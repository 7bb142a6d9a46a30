"""Builds a report from a campaign and its trials. Pure: reads neither the store nor the machine, prints nothing.

Usable trials are compared. Trials with warnings get a note. Invalid and failed trials are counted and get a note.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fslab.analysis import labels
from fslab.analysis.noise_pools import CampaignNoise
from fslab.analysis.table_rows import Mark, Rank, SameStack, answers_of_row, named, same_stacks
from fslab.analysis.usable_trials import (
    has_warnings,
    is_failed,
    is_impossible,
    is_invalid,
    is_usable,
    notable,
)
from fslab.analysis.workload_groups import (
    Group,
    MetricsOf,
    by_cell,
    groups,
    headline_metrics,
    mean_s,
    metrics_of,
)
from fslab.answers.ratio import COVERAGE
from fslab.cell import Cell
from fslab.errors import UsageError
from fslab.machine.fact import alike
from fslab.machine.facts import CATALOGUE
from fslab.report.model import Counts, GuestSummary, Report, Row, StackColumn, Summary
from fslab.report.notes import NoteBook
from fslab.report.row_words import row_words
from fslab.stats.median import MEDIAN_COVERAGE, half_range, median, median_interval
from fslab.stopping_settings import StoppingRule
from fslab.store.campaign import Campaign
from fslab.trial_record import Metric, TrialRecord
from fslab.units import parse_size
from fslab.validity.campaign_warnings import Series, campaign_warnings
from fslab.workloads import traits_of


def build(
    campaign: Campaign,
    trials: Sequence[TrialRecord],
    *,
    baseline: str | None = None,
    known: MetricsOf = headline_metrics,
    together: Sequence[Group] | None = None,
    in_commands: str | None = None,
) -> Report:
    """Return the report: a row for each headline metric of each workload, in the order of the plan.

    ``trials`` may be incomplete and in any order. Each stack is compared with the best of its row, or with
    ``baseline``: the name, label, id or file system of a stack. ``together``: the trials in groups, if the caller
    already has them. ``in_commands``: how commands name the campaign; default: by its id.
    """
    same = same_stacks({cell.stack_id: cell.stack for cell in campaign.cells}, trials)
    stacks = _stacks(campaign.cells, trials, same)
    together = [*groups(campaign.cells, trials)] if together is None else together
    found = campaign_warnings(tuple(_series(together, known)))
    book = NoteBook({stack.id: stack.label for stack in stacks}, found)
    means = _Means(
        stacks=stacks, same=same, book=book, noise=CampaignNoise(trials=trials), stopping=campaign.stopping,
        baseline=_baseline(baseline, stacks),
    )  # fmt: skip
    rows = [means.row(group, metric) for group in together for metric in metrics_of(group, known)]
    facts = campaign.machine
    return Report(
        campaign=campaign.id,
        in_commands=in_commands or campaign.id,
        resumable=campaign.settings.fleet_run is None,
        study=campaign.study_id,
        title=campaign.study_title,
        status=campaign.status,
        created=campaign.created,
        kernel=facts.get("kernel"),
        cpu=facts.get("cpu"),
        cpus=facts.get("cpus"),
        memory_bytes=_memory_bytes(campaign),
        guests=_guests(trials),
        on_host=not trials or any(trial.cell.stack.machine.type == "host" for trial in trials),
        media=tuple(dict.fromkeys(labels.medium_label(cell.stack.medium) for cell in campaign.cells)),
        scale=campaign.settings.scale,
        extended_from=campaign.settings.extended_from,
        in_slices=tuple(group.label for group in together if _in_slices(group)),
        block_s=sum(mean_s(own) or 0.0 for own in by_cell(trials).values()),
        coverage=COVERAGE,
        counts=_counts(campaign, trials),
        stacks=stacks,
        rows=tuple(rows),
        notes=book.notes(),
    )


def _stacks(
    cells: Sequence[Cell], trials: Sequence[TrialRecord], same: Mapping[str, SameStack]
) -> tuple[StackColumn, ...]:
    """Return the columns. On a medium that fslab does not format, the file system is the one that trials found."""
    found = {
        trial.cell.stack_id: name
        for trial in trials
        if (name := trial.provenance.device.get("filesystem")) is not None
    }
    planned = {cell.stack_id: cell.stack for cell in cells}
    specs = {
        key: spec.model_copy(update={"filesystem": spec.filesystem or found.get(key)})
        for key, spec in planned.items()
    }
    lines = dict(zip(specs, labels.stack_lines(list(specs.values())), strict=True))
    return tuple(
        StackColumn(
            id=key, lines=lines[key], name=spec.name, filesystem=spec.filesystem, medium=spec.medium.type,
            layout=spec.striped_by, mkfs_options=spec.mkfs_options, mount_options=spec.mounted_with,
            same_as=" ".join(lines[same[key].of]) if key in same else None,
            changed=same[key].changed if key in same else (),
            settings=labels.settings_of(spec),
        )
        for key, spec in specs.items()
    )  # fmt: skip


def _in_slices(group: Group) -> bool:
    """Return whether trials of a workload were measured in slices; the plan alone does not show that."""
    return any(trial.provenance.slices is not None for own in group.trials.values() for trial in own)


def _series(together: Sequence[Group], known: MetricsOf) -> Iterator[Series]:
    """Yield the values of each metric of each cell, for the rules that judge all trials together."""
    for group in together:
        for number, metric in enumerate(metrics_of(group, known)):
            for sample in group.samples(metric):
                yield Series(
                    workload=group.label, stack=sample.stack, metric=metric.name, better=metric.better,
                    headline=number == 0, values=sample.values, set_time=traits_of(group.workload).set_time,
                )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class _Means:
    """The inputs for building rows: the columns, the notes, and how to compare."""

    stacks: tuple[StackColumn, ...]
    same: Mapping[str, SameStack]
    book: NoteBook
    noise: CampaignNoise
    stopping: StoppingRule
    baseline: str | None

    def row(self, group: Group, metric: Metric) -> Row:
        """Return the row of one metric of one workload."""
        label_of = {stack.id: stack.label for stack in self.stacks}
        row = answers_of_row(group, metric, self.stopping, noise=self.noise, same=self.same)
        marks, baseline = row.marks(), row.same.get(self.baseline or "", self.baseline)
        summaries = tuple(
            _summary(group, metric, key, self.book, marks.get(row.same.get(key, key), Mark.NONE))
            for key in label_of
        )
        chosen = next((each for each in row.samples if each.stack == baseline), row.leader)
        leader = label_of[chosen.stack] if chosen else None
        answers = named(row.oriented(chosen.stack), label_of) if chosen else ()
        not_compared = [label_of[stack] for stack in row.not_compared(chosen.stack)] if chosen else []
        without = [item for item in summaries if not item.values]
        missing = [label_of[item.stack] for item in without if not item.is_impossible and item.planned]
        impossible = [label_of[item.stack] for item in without if item.is_impossible]
        unlike = {"missing": missing, "impossible": impossible, "not_compared": not_compared}
        return Row(
            workload=group.label,
            metric=metric.name,
            unit=metric.unit,
            better=metric.better,
            margin=self.stopping.smallest(tail=metric.is_tail),
            summaries=summaries,
            leader=leader,
            answers=answers,
            behind=tuple(label_of[each.stack] for each in row.samples if each.stack in row.behind),
            ranking=tuple(_with_labels(place, label_of) for place in row.ranking()),
            words=row_words(leader, metric.better, answers, **unlike),
        )


def _with_labels(place: Rank, label_of: Mapping[str, str]) -> Rank:
    ahead = tuple((label_of[first], label_of[second]) for first, second in place.ahead)
    return Rank(rank=place.rank, stacks=tuple(label_of[stack] for stack in place.stacks), ahead=ahead)


def _summary(group: Group, metric: Metric, stack: str, book: NoteBook, mark: Mark) -> Summary:
    """Return a field of a row. ``stack``: id."""
    trials = group.trials.get(stack, [])
    odd = notable(trials)
    usable = [trial for trial in trials if is_usable(trial)] if odd else trials
    figures = [trial.metrics.get(metric.name) for trial in usable]
    values = [figure.value for figure in figures if figure is not None and figure.value is not None]
    interval = median_interval(values, coverage=MEDIAN_COVERAGE)
    return Summary(
        stack=stack,
        mark=mark,
        values=tuple(values),
        median=median(values),
        interval=interval,
        spread=half_range(values),
        n_usable=len(usable),
        n_with_warnings=sum(map(has_warnings, odd)),
        n_unknown=len(usable) - len(values),
        n_invalid=sum(map(is_invalid, odd)),
        n_failed=sum(map(is_failed, odd)),
        n_impossible=sum(map(is_impossible, odd)),
        planned=stack in group.trials,
        notes=book.note(group.label, stack, trials, metric.name),
    )


def _baseline(wanted: str | None, stacks: Sequence[StackColumn]) -> str | None:
    """Return the id of the stack that the user names. UsageError if no stack matches, or several."""
    if wanted is None:
        return None
    exact = [stack.id for stack in stacks if wanted in {stack.name, stack.label, stack.id}]
    found = exact or [stack.id for stack in stacks if wanted == stack.filesystem]
    if len(found) == 1:
        return found[0]
    known = ", ".join(stack.label for stack in stacks)
    what = f"'{wanted}' matches {len(found)} stacks" if found else f"no stack '{wanted}'"
    raise UsageError(what, where="--baseline", hint=f"known: {known}")


def _counts(campaign: Campaign, trials: Sequence[TrialRecord]) -> Counts:
    tried = {trial.cell.id for trial in trials if not is_impossible(trial)}
    # Cells that this machine does not support: all their trials are unsupported.
    least, most = campaign.planned(impossible=len({trial.cell.id for trial in trials} - tried))
    odd = notable(trials)
    return Counts(
        planned=least,
        planned_most=most,
        stored=len(trials),
        usable=len(trials) - len(odd) + sum(map(is_usable, odd)),
        with_warnings=sum(map(has_warnings, odd)),
        invalid=sum(map(is_invalid, odd)),
        failed=sum(map(is_failed, odd)),
        impossible=sum(map(is_impossible, odd)),
    )


def _memory_bytes(campaign: Campaign) -> int | None:
    """Return the memory of the host, or the limit of it that all stacks on the host have."""
    limits = {spec.memory for cell in campaign.cells if (spec := cell.stack.machine).type == "host"}
    if len(limits) == 1 and (limit := limits.pop()) is not None:
        return parse_size(limit)
    return campaign.machine.get("memory_bytes")


def _guests(trials: Sequence[TrialRecord]) -> tuple[GuestSummary, ...]:
    """Return the guests in which trials ran, each kind once, in the order of their first trial. The memory of one kind
    varies a little from boot to boot."""
    found: list[GuestSummary] = []
    for trial in trials:
        facts, machine = trial.provenance.machine, trial.cell.stack.machine.type
        if machine != "host" and facts:
            guest = GuestSummary(
                machine=machine,
                kernel=facts.get("kernel"),
                cpus=facts.get("cpus"),
                memory_bytes=facts.get("memory_bytes"),
            )
            if not any(_is_same_guest(guest, other) for other in found):
                found.append(guest)
    return tuple(found)


def _is_same_guest(one: GuestSummary, two: GuestSummary) -> bool:
    memory = (one.memory_bytes, two.memory_bytes)
    same = one == two.model_copy(update={"memory_bytes": one.memory_bytes})
    return same and alike(CATALOGUE["memory_bytes"], memory)
