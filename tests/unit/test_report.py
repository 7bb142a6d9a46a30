"""Tests of reports as a whole: what is counted, compared and noted, and the output at a fixed width."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console
from tests import made
from tests.unit.terminal import printed

from fslab.analysis.standings import StandingCertainty
from fslab.analysis.table_rows import Mark
from fslab.analysis.workload_groups import headline_metrics
from fslab.cell import Cell, MachineSpec, MediumSpec, StackSpec, WorkloadSpec
from fslab.report import paper_table
from fslab.report.build import build
from fslab.report.conclusion import conclude, important
from fslab.report.conclusion_terminal import show as show_conclusion
from fslab.report.model import Report
from fslab.report.notes import NoteBook
from fslab.report.row_words import slices_words
from fslab.report.terminal import show
from fslab.store.campaign import CampaignStatus
from fslab.trial_record import (
    Metric,
    Provenance,
    Severity,
    Slices,
    Status,
    TrialRecord,
    ValidityWarning,
    Value,
)
from fslab.units import Direction, Unit

CREATED = datetime(2026, 11, 20, 21, 49, tzinfo=UTC)
MEDIUM = MediumSpec(name="memory", type="ram", options={"size": "1g"})
EXT4, XFS, BTRFS = (StackSpec(name=name, medium=MEDIUM, filesystem=name) for name in ("ext4", "xfs", "btrfs"))
RANDOM = WorkloadSpec(name="rand-write-4k", tool="fio", parameters={"bs": "4k"})
SYNCED = WorkloadSpec(name="commit", tool="sync")
IOPS = Metric(name="write_iops", unit=Unit.IOPS)
LATENCY = Metric(name="fsync_mean", unit=Unit.NANOSECONDS, better=Direction.LOWER)
METRICS = {"fio": (IOPS,), "sync": (IOPS, LATENCY)}
STEPS = (0.98, 0.99, 1.0, 1.01, 1.02)


def warning(severity: Severity, message: str = "the CPUs were 97 % busy") -> ValidityWarning:
    return ValidityWarning(kind="cpu_saturated", severity=severity, message=message, hint="fewer jobs")


def trial(cell: Cell, block: int, metrics: dict[Metric, float | None], **more: Any) -> TrialRecord:
    values = {metric.name: Value(value=value, unit=metric.unit) for metric, value in metrics.items()}
    return made.trial(block, cell, **{"metrics": values, **more})


def five(cell: Cell, base: dict[Metric, float], **more: Any) -> list[TrialRecord]:
    return [
        trial(cell, block, {metric: value * step for metric, value in base.items()}, **more)
        for block, step in enumerate(STEPS)
    ]


def cells(stacks: Iterable[StackSpec], *workloads: WorkloadSpec) -> tuple[Cell, ...]:
    return tuple(Cell(stack=stack, workload=workload) for workload in workloads for stack in stacks)


def report(planned: tuple[Cell, ...], trials: list[TrialRecord], **more: Any) -> Report:
    fields = {
        "study_id": "quick", "study_title": "Quick", "cells": planned, "status": CampaignStatus.FINISHED,
        "machine": {"kernel": "6.18.44", "cpu": "Xeon 1234", "cpus": 2, "memory_bytes": 24 * 2**30},
    }  # fmt: skip
    campaign = made.campaign("20261120-k3f", **{**fields, **more})
    return build(campaign, trials, known=lambda workload: METRICS[workload.tool])


def shown(found: Report, width: int = 80, *, notes: bool = False) -> str:
    return printed(show, found, width=width, notes=notes)


def in_effect(*options: str, changed: dict[str, str | None] | None = None) -> dict[str, Any]:
    found = ValidityWarning(
        kind="options_not_in_effect", severity=Severity.WARNING, message="m", data={"options": changed}
    )
    observed = {"options_in_effect": options}
    return {"provenance": Provenance(observed=observed), "validity": (found,) if changed else ()}


def test_stacks_of_which_the_kernel_made_the_same_are_not_compared() -> None:
    """``discard`` is dropped. ``noatime`` differs. A trial of another version of fslab does not tell."""
    variants = [
        EXT4.model_copy(update={"mount_options": each}) for each in ("defaults", "discard", "noatime", "sync")
    ]
    planned = cells(variants, RANDOM)
    trials = five(planned[0], {IOPS: 1000}, **in_effect("rw"))
    trials += five(planned[1], {IOPS: 2000}, **in_effect("rw", changed={"discard": None}))
    trials += five(planned[2], {IOPS: 1500}, **in_effect("rw", "noatime")) + five(planned[3], {IOPS: 1200})
    found = report(planned, trials)
    assert [stack.same_as for stack in found.stacks] == [None, found.stacks[0].label, None, None]
    (row,) = found.rows
    compared = {label for one in row.answers for label in (one.over, one.under)}
    assert compared == {stack.label for stack in found.stacks} - {found.stacks[1].label}
    assert row.summaries[0].mark == row.summaries[1].mark
    concluded = conclude(found)
    (standing,) = concluded.standings
    assert standing.certainty is StandingCertainty.BEST
    assert standing.not_compared == ()
    (same,) = [each.what for each in concluded.warnings if "same stack" in each.what]
    assert same.endswith("are the same stack here (the kernel dropped or changed 'discard')")


@pytest.fixture
def quick() -> Report:
    """Return a report of ext4, xfs and btrfs. btrfs has warnings in one workload and fails in the other."""
    planned = cells((EXT4, XFS, BTRFS), RANDOM, SYNCED)
    trials = five(planned[0], {IOPS: 61700}) + five(planned[1], {IOPS: 119_000})
    trials += five(planned[2], {IOPS: 61800}, validity=(warning(Severity.WARNING),))
    trials += five(planned[3], {IOPS: 2000, LATENCY: 4e5}) + five(planned[4], {IOPS: 1000, LATENCY: 8e5})
    error = "fio exited 1: No space left on device"
    trials += five(planned[5], {}, status=Status.FAILED, failure="no_space", error=error)
    return report(planned, trials)


def test_table_at_80_columns(quick: Report) -> None:
    assert (
        shown(quick)
        == """\
Quick
                        ext4           xfs          btrfs
─────────────────────────────────────────────────────────
rand-write-4k     61.7k IOPS   ★ 119k IOPS     61.8k IOPS
write IOPS           ± 2.0 %       ± 2.0 %      ± 2.0 % ¹
commit             ★ 2k IOPS       1k IOPS              –
write IOPS           ± 2.0 %       ± 2.0 %       failed ²
                    ★ 400 µs        800 µs              –
fsync mean ↓         ± 2.0 %       ± 2.0 %       failed ²

rand-write-4k: xfs 1.93 × ext4 (1.87–1.99), 1.93 × btrfs (1.87–1.98)
  ranked: 1. xfs · 2.= btrfs, ext4
commit, write IOPS: ext4 2.00 × xfs (1.94–2.06); btrfs: no usable value
commit, fsync mean ↓: xfs 2.00 × ext4 (1.94–2.06); btrfs: no usable value
★ better than all others at 95 % · ↓ lower is better · median of 5 trials ± half
  their range · × with 95 % CI

¹ warning, cpu saturated: CPU-bound: not a storage result (5 of 5 on btrfs,
  rand-write-4k)
² failed, no space: fio exited 1: No space left on device (5 of 5 on btrfs,
  commit)
Details and remedies: fslab results 20261120-k3f --notes
kernel 6.18.44 · 2 × Xeon 1234 · 24 GiB memory · on ram (size=1g)
campaign 20261120-k3f · 2026-11-20 21:49 UTC · 30 trials: 25 usable, 5 of them
  with warnings, 5 failed"""
    )


def test_what_is_shown_of_others_than_the_leader_is_told() -> None:
    """ext4, with the best median, is too noisy to be compared. xfs is 10 % better than btrfs in each block."""
    planned = cells((EXT4, XFS, BTRFS), RANDOM)
    steps = (
        (1.3, 0.7, 1.2, 0.9, 1.1),
        (1.0,) * 5,
        (0.9 * step for step in (1.001, 1.0, 0.999, 1.002, 0.998)),
    )
    trials = [
        trial(cell, block, {IOPS: 1000 * step})
        for cell, own in zip(planned, steps, strict=True)
        for block, step in enumerate(own)
    ]
    found = report(planned, trials)
    assert "  ranked: 1.= xfs, ext4, btrfs (xfs before btrfs)\n" in shown(found)
    (standing,) = conclude(found).standings
    assert (standing.labels, standing.worse) == (("ext4", "xfs"), ("btrfs",))
    assert (standing.next, standing.costs) == (None, (None,)), "of ext4, nothing is shown"


def test_metrics_with_the_same_result_share_a_line() -> None:
    planned = cells((EXT4, XFS), SYNCED)
    trials = [each for cell in planned for each in five(cell, {IOPS: 1000, LATENCY: 4e5})[:2]]
    words = shown(report(planned, trials)).splitlines()
    assert [line for line in words if line.startswith("commit, ")] == [
        "commit, write IOPS, fsync mean ↓: too few trials to compare ext4 with xfs (2"
    ]


def test_notes_in_full_tell_what_they_rest_on_each_place_and_what_to_do() -> None:
    planned = cells((EXT4, XFS), RANDOM, SYNCED)
    warned = (warning(Severity.WARNING),)
    trials = [
        *five(planned[0], {IOPS: 10}, validity=warned),
        *five(planned[1], {IOPS: 10})[:4],
        trial(planned[1], 4, {IOPS: 10}, validity=warned),
        *five(planned[2], {IOPS: 10, LATENCY: 10}),
    ]
    found = report(planned, trials)
    full = """\
¹ warning, cpu saturated: the CPUs were 97 % busy (5 of 5 on ext4,
  rand-write-4k; 1 of 5 on xfs, rand-write-4k) → fewer jobs
kernel"""
    assert full in shown(found, notes=True)
    short = """\
¹ warning, cpu saturated: CPU-bound: not a storage result (6 trials of 2 cells)
Details and remedies: fslab results 20261120-k3f --notes
kernel"""
    assert short in shown(found)


def test_notes_in_full_name_the_first_of_many_cells() -> None:
    stacks = [
        EXT4.model_copy(update={"name": f"ext4 {number}", "mount_options": f"commit={number}"})
        for number in range(5)
    ]
    planned = cells(stacks, RANDOM)
    warned = (warning(Severity.WARNING),)
    trials = [one for each in planned[:-1] for one in five(each, {IOPS: 10}, validity=warned)]
    text = " ".join(shown(report(planned, [*trials, *five(planned[-1], {IOPS: 10})]), notes=True).split())
    assert (
        "(20 trials of 4 cells: 5 of 5 on ext4 0, rand-write-4k; 5 of 5 on ext4 1, rand-write-4k; "
        "5 of 5 on ext4 2, rand-write-4k; and 1 more) → fewer jobs"
    ) in text
    text = " ".join(shown(report(planned[:-1], trials), notes=True).split())
    assert "the CPUs were 97 % busy (all 20 trials) → fewer jobs" in text


def test_a_campaign_that_repeats_until_it_is_sure_tells_the_least_and_the_most() -> None:
    planned = cells((EXT4, XFS, BTRFS), RANDOM)
    trials = [item for cell in planned[:2] for item in five(cell, {IOPS: 1000})]
    trials.append(trial(planned[2], 0, {}, status=Status.UNSUPPORTED, error="no btrfs here"))
    settings = {"stopping": {"trials": 5, "precision": 0.05, "max_trials": 40}}
    found = report(planned, trials, status=CampaignStatus.BUDGET_SPENT, settings=settings)
    # two cells with 5 to 40 trials each, and one that is unsupported and therefore has a single trial
    assert (found.counts.planned, found.counts.planned_most, found.counts.stored) == (11, 81, 11)
    assert (
        "budget spent: 11 trials are stored, of 11 to 81 (as many as needed); finish it with: "
        "fslab run --resume 20261120-k3f"
    ) in shown(found, 140)


def test_where_no_trial_is_sound_no_median_is_spoken_of() -> None:
    planned = cells((EXT4, XFS), RANDOM)
    invalid = (warning(Severity.INVALID),)
    trials = [item for cell in planned for item in five(cell, {IOPS: 10}, validity=invalid)]
    said = shown(report(planned, trials))
    assert "no usable value" in said
    assert "trial each" not in said
    assert "median" not in said


def test_a_label_too_long_for_a_line_continues_indented() -> None:
    """At the margin, its other lines would look like the name of another stack."""
    options = ("defaults", "noatime,nodiratime,lazytime")
    stacks = [
        StackSpec(
            name=f"small {mkfs} {mount}", medium=MEDIUM, filesystem="ext4", mkfs_options=mkfs, mount_options=mount
        )
        for mkfs in ("-b 1024 -O ^has_journal", "-b 4096")
        for mount in options
    ]  # fmt: skip
    planned = cells(stacks, RANDOM)
    said = shown(
        report(planned, [item for cell in planned for item in five(cell, {IOPS: 1e5})]), 56
    ).splitlines()
    assert f"    {options[1]}" in said
    assert not any(line.startswith("noatime") for line in said)


def test_many_variants_stand_down_and_show_ties_and_unlabelled_options() -> None:
    options = ("defaults", "noatime,data=journal", "noatime,data=writeback,barrier=0")
    stacks = [
        *(
            StackSpec(name=f"ext4 {text}", medium=MEDIUM, filesystem="ext4", mount_options=text)
            for text in options
        ),
        StackSpec(
            name="xfs", medium=MEDIUM, filesystem="xfs", mount_options="noatime", mkfs_options="-i size=1024"
        ),
    ]
    planned = cells(stacks, RANDOM)
    factors = (1.0, 0.5, 1.001, 0.4)
    trials = [
        item
        for cell, factor in zip(planned, factors, strict=True)
        for item in five(cell, {IOPS: 1e5 * factor})
    ]
    assert (
        shown(report(planned, trials))
        == """\
Quick
rand-write-4k                        write IOPS
────────────────────────────────────────────────────────
ext4
  defaults                           ☆ 100k IOPS ± 2.0 %
  noatime,data=journal                  50k IOPS ± 2.0 %
  noatime,data=writeback,barrier=0   ☆ 100k IOPS ± 2.0 %
xfs                                     40k IOPS ± 2.0 %

rand-write-4k: ext4 noatime,data=writeback,barrier=0 2.00 × ext4
  noatime,data=journal (1.94–2.06), 2.50 × xfs (2.43–2.58); ext4
  noatime,data=writeback,barrier=0 and ext4 defaults alike (± 10 %): 0.97–1.03 ×
  ranked: 1.= ext4 noatime,data=writeback,barrier=0, ext4 defaults · 3. ext4
    noatime,data=journal · 4. xfs

☆ may equal the best · median of 5 trials ± half their range · × with 95 % CI

xfs: mkfs -i size=1024, noatime
kernel 6.18.44 · 2 × Xeon 1234 · 24 GiB memory · on ram (size=1g)
campaign 20261120-k3f · 2026-11-20 21:49 UTC · 20 trials: 20 usable"""
    )


@pytest.mark.parametrize("width", [80, 250])
def test_names_with_brackets_are_shown_as_they_are(width: int) -> None:
    """Unescaped, Rich parses ``[chunk=64k]`` as a style, and ``[/x]`` causes an error."""
    medium = MediumSpec(name="m", type="ram")
    stacks = [
        StackSpec(name=f"[{chunk}k] [/x]", medium=medium, filesystem="xfs", mkfs_options=f"-d [su={chunk}k]")
        for chunk in (4, 64)
    ]
    named = RANDOM.model_copy(update={"name": "rand[bs=4k] [/x]"})
    planned = cells(stacks, named)
    text = shown(report(planned, [one for cell in planned for one in five(cell, {IOPS: 100.0})]), width)
    for name in ("[su=4k]", "[su=64k]", "rand[bs=4k] [/x]"):
        assert name in text


def test_unfinished_campaign_says_so_and_how_to_finish_it() -> None:
    planned = cells((EXT4, XFS), RANDOM)
    trials = [*five(planned[0], {IOPS: 2000})[:3], trial(planned[1], 0, {IOPS: 1000})]
    machine: dict[str, Any] = {}
    found = report(planned, trials, status=CampaignStatus.INTERRUPTED, machine=machine)
    assert (
        shown(found, 100)
        == """\
Quick
interrupted: 4 of 10 trials are stored; finish it with: fslab run --resume 20261120-k3f
                        ext4         xfs
────────────────────────────────────────
rand-write-4k     1.98k IOPS     1k IOPS
write IOPS           ± 1.0 %     1 trial

rand-write-4k: too few trials to compare ext4 with xfs (1 complete block; 3 needed)
median of 3 trials ± half their range · × with 95 % CI

kernel unknown · CPU unknown · memory unknown · on ram (size=1g)
campaign 20261120-k3f · 2026-11-20 21:49 UTC · 4 trials: 4 usable"""
    )


def test_no_trial_yet_is_no_table() -> None:
    found = report(cells((EXT4,), RANDOM), [], status=CampaignStatus.RUNNING)
    text = shown(found, 100)
    status = "running: 0 of 5 trials are stored; finish it with: fslab run --resume 20261120-k3f"
    assert text.startswith(f"Quick\n{status}\nkernel 6.18.44")
    assert "rand-write" not in text


@pytest.mark.parametrize("width", [20, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_no_value_is_lost(quick: Report, width: int) -> None:
    text = shown(quick, width)
    assert max(map(len, text.splitlines())) <= width
    if width >= 60:
        assert all(value in text for value in ("61.7k IOPS", "★ 119k IOPS", "★ 400 µs", "800 µs"))


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_numbers_of_notes_stand_beside_their_figure(width: int) -> None:
    """No line consists of note numbers only, even with four kinds of warnings on each of twelve long stacks."""
    stacks = [
        StackSpec(name=f"{name}-{mount}", medium=MEDIUM, filesystem=name, mount_options=mount)
        for name in ("ext4", "xfs", "btrfs")
        for mount in ("defaults", "noatime", "nobarrier,noatime", "commit=60,noatime")
    ]
    planned = cells(stacks, SYNCED)
    kinds = ("cpu_saturated", "stalled", "not_steady", "foreign_load")
    validity = tuple(ValidityWarning(kind=kind, severity=Severity.WARNING, message=kind) for kind in kinds)
    trials = [each for cell in planned for each in five(cell, {IOPS: 1e5, LATENCY: 4e5}, validity=validity)]
    text = shown(report(planned, trials), width)
    marked = [line for line in text.splitlines() if line.endswith("¹ ² ³ ⁴")]
    assert len(marked) >= len(planned)
    assert all("%" in line for line in marked)
    assert max(map(len, text.splitlines())) <= width


def test_medians_of_slices_are_said_to_be_no_figures_of_whole_runs() -> None:
    """Where medians are shown. Whether trials were in slices is known from the trials, not from the plan."""
    planned = cells((EXT4, XFS), RANDOM, SYNCED)
    sliced = {"provenance": Provenance(slices=Slices(count=20, started_s=0.0, ran_s=1.0))}
    some = five(planned[0], {IOPS: 1000}, **sliced) + five(planned[1], {IOPS: 2000}, **sliced)
    others = [each for cell in planned[2:] for each in five(cell, {IOPS: 1000})]
    said = "in slices (1 of 2 workloads): medians compare stacks; whole runs differ"
    told = report(planned, some + others)
    assert slices_words(told) == said
    assert slices_words(report(planned, others)) is None
    assert slices_words(report(planned[:2], some)) == said.replace(" (1 of 2 workloads)", "")
    short = printed(show_conclusion, told, conclude(told))
    for text in (shown(told), short, paper_table.markdown(told).replace("\\", "")):
        assert said in " ".join(text.split())


def test_colour_only_repeats_what_the_signs_say(quick: Report) -> None:
    console = Console(width=80, force_terminal=True, color_system="standard", file=io.StringIO(), record=True)
    show(quick, console)
    styled = console.export_text(styles=True)
    assert "\x1b[1;32m★ 119k IOPS" in styled
    assert "61.7k IOPS" in styled
    assert styled.count("\x1b[1;32m") == 3


def test_only_sound_trials_are_compared_and_all_are_counted() -> None:
    planned = cells((EXT4, XFS), RANDOM)
    good = five(planned[0], {IOPS: 1000})
    bad = [
        trial(
            planned[1],
            0,
            {IOPS: 9e9},
            validity=(warning(Severity.INVALID, "busy"), warning(Severity.WARNING)),
        ),
        trial(planned[1], 1, {IOPS: 8e9}, status=Status.INVALID, error="clock went back"),
        trial(planned[1], 2, {}, status=Status.UNSUPPORTED, error="no xfs here"),
        trial(planned[1], 3, {IOPS: None}),
        trial(planned[1], 4, {IOPS: 500.0}, validity=(warning(Severity.NOTE),)),
    ]
    found = report(planned, [*reversed(bad), *good])
    counts = found.counts
    assert (counts.planned, counts.stored, counts.usable, counts.with_warnings, counts.invalid, counts.failed) == (
        10, 10, 7, 0, 2, 1,
    )  # fmt: skip
    summary = found.rows[0].summaries[1]
    assert (summary.values, summary.median, summary.spread, summary.interval) == ((500.0,), 500.0, None, None)
    assert (summary.n_usable, summary.n_unknown, summary.n_invalid, summary.n_failed) == (2, 1, 2, 1)
    assert [(note.severity, note.kind, note.message) for note in found.notes] == [
        ("invalid", "cpu_saturated", "busy"),
        ("invalid", "invalid", "clock went back"),
        ("unsupported", "unsupported", "no xfs here"),
        ("unknown", "unknown", "the tool did not report write_iops"),
        ("note", "cpu_saturated", "the CPUs were 97 % busy"),
    ]
    assert summary.notes == (1, 2, 3, 4, 5)
    assert [[(place.stack, place.count, place.of) for place in note.places] for note in found.notes] == (
        [[("xfs", 1, 5)]] * 5
    )


def test_a_percentile_that_no_operation_is_above_is_not_called_unreported() -> None:
    (cell,) = cells((EXT4,), RANDOM)
    book = NoteBook({cell.stack_id: "ext4"})
    tail = Metric(name="write_clat_p99_9", unit=Unit.NANOSECONDS, better=Direction.LOWER)
    book.note("w", cell.stack_id, [trial(cell, 0, {tail: None})], tail.name)
    assert [note.message for note in book.notes()] == ["too few operations to know write_clat_p99_9"]


def test_a_note_that_shows_one_of_several_evidences_says_so() -> None:
    (cell,) = cells((EXT4,), RANDOM)
    for messages, told in (
        (("took 2 s", "took 9 s"), "for example, took 2 s"),
        (("took 2 s",) * 2, "took 2 s"),
    ):
        book = NoteBook({cell.stack_id: "ext4"})
        validity = [(warning(Severity.NOTE, each),) for each in messages]
        trials = [trial(cell, number, {}, validity=each) for number, each in enumerate(validity)]
        book.note("w", cell.stack_id, trials, "x")
        assert told in [note.message for note in book.notes()]


def test_each_reason_of_a_failure_has_its_note_and_equal_ones_share_one() -> None:
    first, second = cells((EXT4,), RANDOM), cells((EXT4,), SYNCED)
    errors = ("sh (17) exited 1: no table", "sh (23) exited 1: no table", "fio exited 1: got signal 11")
    trials = [
        trial((first if number < 2 else second)[0], number, {}, status=Status.FAILED, error=error)
        for number, error in enumerate(errors)
    ]
    assert [note.message for note in report((*first, *second), trials).notes] == [errors[0], errors[2]]


def test_one_cause_that_fails_several_cells_is_one_note_with_their_names() -> None:
    planned = cells((EXT4, XFS), RANDOM, SYNCED)
    trials = [
        trial(cell, 0, {}, status=Status.FAILED, failure="crashed", error=f"sh ({number}) exited 1: full")
        for number, cell in enumerate(planned)
    ]
    failed = report(planned, [*trials, *five(planned[0], {IOPS: 10})[1:]])
    (note,) = failed.notes
    assert note.trials == 4
    assert [(place.workload, place.stack) for place in note.places] == [
        (cell.workload.name, cell.stack.name) for cell in planned
    ]
    names = [f"{cell.workload.name} on {cell.stack.name}" for cell in planned[:3]]
    assert f"4 of 8 trials failed ({', '.join(names)} and 1 more): crashed: sh (0) exited 1: full" in (
        important(note, failed.counts.stored).what
    )


def test_stacks_whose_options_are_not_in_effect_have_a_note_each() -> None:
    options = ({"dax=always": "dax=never"}, {"compress=zstd:99": "compress=zstd:15"})
    trials = [
        trial(cell, number, {IOPS: 10}, validity=(
            ValidityWarning(
                kind="options_not_in_effect", severity=Severity.WARNING, message=str(each),
                data={"options": each},
            ),
        ))
        for cell, each in zip(cells((EXT4, XFS), RANDOM), options, strict=True)
        for number in range(2)
    ]  # fmt: skip
    found = report(cells((EXT4, XFS), RANDOM), trials).notes
    assert [(note.message, note.trials) for note in found] == [(str(each), 2) for each in options]


def test_summary_has_the_range_of_five_as_interval(quick: Report) -> None:
    summary = quick.rows[0].summaries[0]
    assert summary.interval is not None
    assert summary.interval.low == pytest.approx(61700 * 0.98)
    assert summary.interval.high == pytest.approx(61700 * 1.02)
    assert summary.interval.coverage == 0.9375
    assert summary.spread == pytest.approx(0.02)
    assert [item.mark for item in quick.rows[0].summaries] == [Mark.NONE, Mark.BEST, Mark.NONE]


def test_report_survives_json(quick: Report) -> None:
    assert Report.model_validate_json(quick.model_dump_json()) == quick


def test_warning_that_befalls_two_rows_is_one_note() -> None:
    planned = cells((EXT4, XFS), SYNCED)
    trials = [
        item
        for cell in planned
        for item in five(cell, {IOPS: 10, LATENCY: 10}, validity=(warning(Severity.WARNING),) * 2)
    ]
    (note,) = report(planned, trials).notes
    assert [(place.stack, place.count, place.of) for place in note.places] == [("ext4", 5, 5), ("xfs", 5, 5)]


def test_stack_that_a_workload_does_not_run_on_is_not_missing_there() -> None:
    planned = (*cells((EXT4, XFS), RANDOM), *cells((EXT4,), SYNCED))
    trials = [item for cell in planned for item in five(cell, {IOPS: 10, LATENCY: 10})]
    found = report(planned, trials)
    assert [row.words for row in found.rows[1:]] == ["measured on ext4 only"] * 2


def test_headline_metrics_are_the_workloads_own() -> None:
    fio = WorkloadSpec(
        name="r",
        tool="fio",
        parameters={"rw": "randread", "bs": "4k", "iodepth": 32, "direct": True, "size": "1g"},
    )
    assert [(metric.name, metric.unit) for metric in headline_metrics(fio)] == [("read_iops", Unit.IOPS)]


@pytest.mark.parametrize(
    "workload",
    [
        WorkloadSpec(name="a", tool="no-such-tool"),
        WorkloadSpec(name="a", tool="fio", parameters={"rw": "sideways"}),
    ],
)
def test_workload_of_another_version_still_has_a_row(workload: WorkloadSpec) -> None:
    assert headline_metrics(workload) == ()
    planned = cells((EXT4, XFS), workload)
    trials = [item for cell in planned for item in five(cell, {LATENCY: 10})]
    (row,) = build(made.campaign(cells=planned), trials).rows
    assert (row.metric, row.unit, row.better) == ("fsync_mean", Unit.NANOSECONDS, Direction.NEITHER)


def test_what_is_not_possible_here_is_not_a_failure_and_the_scale_is_reported() -> None:
    planned = cells((EXT4, XFS), RANDOM)
    reason = "xfs on host: Linux 6.18 has no xfs\n  → possible with: --on uml"
    trials = five(planned[0], {IOPS: 61700})
    trials += five(planned[1], {}, status=Status.UNSUPPORTED, failure="unsupported", error=reason)[:1]
    text = shown(report(planned, trials, settings={"scale": 0.05}), notes=True)
    assert "not possible here" in text
    assert "possible with: --on uml" in text
    assert "xfs: not possible here" in text
    assert "5 usable, 1 not possible here" in " ".join(text.split())
    assert "failed" not in text
    assert "scale 0.05 of the study's sizes, counts and run times" in text


def test_the_memory_is_what_the_study_limits_it_to() -> None:
    limited = [each.model_copy(update={"machine": MachineSpec(memory="512m")}) for each in (EXT4, XFS)]
    assert report(cells(limited, RANDOM), []).memory_bytes == 512 << 20
    assert report(cells([limited[0], XFS], RANDOM), []).memory_bytes == 24 << 30
