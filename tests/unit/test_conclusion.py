"""Tests of the conclusion of a report: which stack is best, how certain this is, what to do; on one screen."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from rich.cells import cell_len
from tests.unit.terminal import printed
from tests.unit.test_report import (
    BTRFS,
    EXT4,
    IOPS,
    LATENCY,
    MEDIUM,
    METRICS,
    RANDOM,
    SYNCED,
    XFS,
    cells,
    report,
    trial,
)

from fslab.analysis.standings import ComparedRow, StandingCertainty, standing
from fslab.analysis.table_rows import Mark
from fslab.answers.ratio import Question, answer
from fslab.cell import Cell, MachineSpec, StackSpec, WorkloadSpec
from fslab.claims.model import ClaimAnswer, ClaimVerdict, EvaluatedClaim
from fslab.report import conclusion_terminal, model, paper_table
from fslab.report.conclusion import Conclusion, conclude
from fslab.report.conclusion_terminal import show
from fslab.report.model import GuestSummary, Report
from fslab.report.row_words import line
from fslab.store.campaign import CampaignStatus
from fslab.trial_record import Metric, Provenance, Severity, Slices, Status, TrialRecord, ValidityWarning
from fslab.units import Direction, Unit, format_duration

SCREEN = 22
STACKS = {"ext4": EXT4, "xfs": XFS, "btrfs": BTRFS}
TAIL = Metric(name="fsync_p99", unit=Unit.NANOSECONDS, better=Direction.LOWER)


def measured(
    planned: Sequence[Cell], middle: Mapping[str, float], *, noise: float = 0.01, blocks: int = 5,
    metrics: Sequence[Metric] = (IOPS,), validity: Sequence[ValidityWarning] = (),
) -> list[TrialRecord]:  # fmt: skip
    """Return trials with values around ``middle``, given by file system, with normally distributed noise."""
    draw = random.Random(1)

    def value(cell: Cell, metric: Metric) -> float:
        speed = middle[cell.stack.filesystem or ""] * (1 + draw.gauss(0, noise))
        return 1000 * (1 / speed if metric.better is Direction.LOWER else speed)

    return [
        trial(cell, block, {metric: value(cell, metric) for metric in metrics}, validity=tuple(validity))
        for cell in planned
        for block in range(blocks)
    ]


def stacks_of(middle: Mapping[str, float], work: WorkloadSpec = RANDOM, **more: Any) -> Report:
    """Return a report of these file systems with trials around ``middle``."""
    planned = cells([STACKS[name] for name in middle], work)
    return report(planned, measured(planned, middle, **more))


def three(**more: object) -> Report:
    planned = cells((EXT4, XFS, BTRFS), RANDOM)
    settings = {"noise": 0.01, "blocks": 5, "validity": (), **more}
    return report(planned, measured(planned, {"ext4": 1.0, "xfs": 2.0, "btrfs": 0.5}, **settings))  # type: ignore[arg-type]


def told(found: Report, width: int = 80) -> str:
    return printed(show, found, conclude(found), width=width)


def sparse(stacks_each: int = 4, works: int = 16) -> Report:
    """Return a report with twelve stacks and 32 metrics. Every other workload runs on only three of the stacks."""
    options = ["defaults", *(f"noatime,commit={number}" for number in range(1, stacks_each))]
    stacks = [
        StackSpec(name=f"{name} {mount}", medium=MEDIUM, filesystem=name, mount_options=mount)
        for name in ("ext4", "xfs", "btrfs")
        for mount in options
    ]
    planned = [
        Cell(stack=stack, workload=WorkloadSpec(name=f"work-{number}", tool="sync"))
        for number in range(works)
        for stack in stacks
        if number % 2 == 0 or stack.mount_options == "defaults"
    ]
    middle = {"ext4": 1.0, "xfs": 1.0, "btrfs": 0.5}
    return report(tuple(planned), measured(planned, middle, metrics=(IOPS, LATENCY), noise=0.02))


def test_a_winner_is_told_with_how_much_and_how_sure() -> None:
    found = conclude(three())
    assert found.sentence == "xfs is best."
    (only,) = found.standings
    assert (only.certainty, only.labels, only.next_stack) == (StandingCertainty.BEST, ("xfs",), "ext4")
    text = told(three())
    assert "★ xfs" in text
    assert "2.0" in text
    assert "× ext4 (" in text
    assert "to decide the open ones" not in text


def test_lower_is_better_is_said_as_multiples_of_time() -> None:
    found = stacks_of({"ext4": 2.0, "xfs": 1.0}, SYNCED, metrics=(LATENCY,))
    latency = next(each for each in conclude(found).standings if each.metric == "fsync_mean")
    assert latency.labels == ("ext4",)
    assert "as long (" in told(found)


def test_a_sign_means_the_same_in_the_table_and_in_the_conclusion() -> None:
    both = set(model.SIGN.values()) & set(conclusion_terminal.SIGN.values())
    assert both == {"★", " "}


def test_a_tie_says_within_what() -> None:
    found = stacks_of({"ext4": 1.0, "xfs": 1.0})
    names = conclude(found).sentence.removesuffix(" are alike (± 10 %).")
    assert names in {"ext4 and xfs", "xfs and ext4"}
    assert "≈ alike (± 10 %)" in told(found)


@pytest.mark.parametrize(("metric", "margins"), [(TAIL, {0.1, 0.25}), (LATENCY, {0.1})])
def test_tails_of_latencies_have_a_larger_margin(
    metric: Metric, margins: set[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal stacks whose spread of 8 % is too much for ± 10 %."""
    monkeypatch.setitem(METRICS, "sync", (IOPS, metric))
    planned = cells((EXT4, XFS), SYNCED)
    trials = measured(planned, {"ext4": 1.0, "xfs": 1.0}, metrics=(IOPS,))
    noisy = measured(planned, {"ext4": 1.0, "xfs": 1.0}, noise=0.08, blocks=5, metrics=(metric,))
    both = [
        one.model_copy(update={"metrics": {**one.metrics, **more.metrics}})
        for one, more in zip(trials, noisy, strict=True)
    ]
    found = report(planned, both)
    alike = [each for each in conclude(found).standings if each.certainty is StandingCertainty.ALIKE]
    assert {each.margin for each in alike} == margins
    if len(margins) == 2:
        assert conclude(found).sentence.endswith("are alike (± 10 %, tails ± 25 %) in all 2 metrics.")
        assert "≈ alike (± 10 %, tails ± 25 %)" in told(found)


def test_what_is_open_says_how_long_it_takes_and_what_to_do() -> None:
    found = stacks_of({"ext4": 1.0, "xfs": 1.0}, noise=0.3)
    assert conclude(found).standings[0].certainty is StandingCertainty.OPEN
    text = told(found)
    trials = re.search(r"^ *fslab run --resume 20261120-k3f --trials (\d+)$", text, re.MULTILINE)
    assert trials is not None
    assert int(trials[1]) > 5
    s = (int(trials[1]) - 5) * sum(trial(each, 0, {}).duration_s for each in cells((EXT4, XFS), RANDOM))
    assert f"to decide the open ones, with all cells in about {format_duration(s)}:" in text
    assert re.search(r"needs about \d.* more", text)
    assert "keep what you have" in " ".join(text.split())


def test_one_trial_ranks_nothing_and_says_how_many_are_needed() -> None:
    text = told(three(blocks=1))
    assert "No ranking yet: 1 complete block; 3 needed." in text
    assert "★" not in text
    assert "fslab run --resume 20261120-k3f --trials 3" in text


def test_a_disturbed_machine_is_said_once_with_what_to_do() -> None:
    kinds = ("foreign_load", "cpu_stolen", "cpu_saturated", "memory_pressure", "stalled", "not_steady")
    warnings = [
        ValidityWarning(kind=kind, severity=Severity.WARNING, message=kind, hint="stop it") for kind in kinds
    ]
    warnings.append(ValidityWarning(kind="volume_small", severity=Severity.NOTE, message="small"))
    found = conclude(three(validity=warnings))
    trust, *others = found.warnings
    assert re.match(
        r"this machine was busy in 15 of 15 trials: in half of the comparisons, differences below about .* % are "
        r"not seen \(",
        trust.what,
    )
    for each in ("other programs used the CPUs", "hypervisor", "waited for memory"):
        assert each in trust.what
    assert trust.hint == "measure in a quiet hour, or for longer"
    assert [each.hint for each in others] == ["stop it"] * 3
    assert not any("volume" in each.what for each in found.warnings)
    assert found.more == 4
    text = " ".join(told(three(validity=warnings)).split())
    assert f"! {trust.what}; 3 more warnings more: fslab results" in text
    assert "--notes (7)" in text


QUICK = {"random-read": 0, "random-write": 1, "synced-write": 2, "sequential-write": 3}
FILES = {"small-files": ("create_rate", "delete_rate"), "large-directory": ("create_rate",)}
LOADED = ("foreign_load", "cpu_stolen", "run_queue", "cpu_saturated", "not_steady", "too_short")


def like_quick(
    noisy: Sequence[str], kinds: Sequence[str], monkeypatch: pytest.MonkeyPatch, **more: object
) -> Report:
    """Return a report with the seven rows of ``quick``. ``noisy``: workloads in which nothing is decided."""
    rates = {name: Metric(name=name, unit=Unit.FILES_PER_SECOND) for name in FILES["small-files"]}
    medium = MEDIUM.model_copy(update={"options": {"size": "16g", "room": "1536m"}})
    stacks = [each.model_copy(update={"medium": medium}) for each in (EXT4, XFS, BTRFS)]
    validity = [
        ValidityWarning(kind=kind, severity=Severity.WARNING, message=kind, hint="raise it, or stop it; see")
        for kind in kinds
    ]
    planned: tuple[Cell, ...] = ()
    trials: list[TrialRecord] = []
    for name in (*QUICK, *FILES):
        metrics = [rates[each] for each in FILES[name]] if name in FILES else [IOPS]
        monkeypatch.setitem(METRICS, name, tuple(metrics))
        own = cells(stacks, WorkloadSpec(name=name, tool=name))
        planned += own
        middle = {"ext4": 60.0, "xfs": 60.0 * (1 + 0.2 * (QUICK.get(name, 4) % 3)), "btrfs": 9.0}
        trials += measured(
            own, middle, noise=0.35 if name in noisy else 0.01, blocks=6, metrics=metrics, validity=validity
        )
    sliced = Provenance(slices=Slices(count=20, started_s=0.0, ran_s=1.0))
    trials = [
        each.model_copy(update={"provenance": sliced}) if each.cell.workload.name in QUICK else each
        for each in trials
    ]
    if noisy:
        broken = ValidityWarning(
            kind="too_short", severity=Severity.INVALID, message="short", hint="raise it"
        )
        trials[:3] = [
            each.model_copy(update={"status": Status.INVALID, "validity": (broken,)}) for each in trials[:3]
        ]
    return report(planned, trials, study_title="ext4, XFS and btrfs", **more)


@pytest.mark.parametrize(
    ("noisy", "kinds", "more"),
    [
        ((), (), {}),
        ((), ("too_short",), {}),
        (("random-read", "synced-write", "large-directory"), LOADED, {}),
        ((*QUICK, *FILES), LOADED, {"status": CampaignStatus.BUDGET_SPENT}),
    ],
)
def test_quick_is_told_on_one_screen_with_the_verdict_last(
    noisy: Sequence[str], kinds: Sequence[str], more: Mapping[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = like_quick(noisy, kinds, monkeypatch, **more)
    conclusion = conclude(found)
    certain = [each.certainty for each in conclusion.standings]
    assert len(certain) == 7
    assert certain.count(StandingCertainty.OPEN) == len(noisy), "as many as there are noisy workloads"
    lines = [line.rstrip() for line in told(found).rstrip().splitlines()]
    assert len(lines) <= SCREEN
    assert max(map(cell_len, lines)) <= 80
    assert (
        sum(line.startswith(("random", "synced", "seq", "small", "  delete", "large")) for line in lines) == 7
    )
    assert sum(line.startswith("! ") for line in lines) == bool(kinds)
    last = " ".join(" ".join(lines[lines.index("") + 1 :]).split())
    assert last.startswith(conclusion.sentence)
    if more:
        assert last.endswith("to finish it: fslab run --resume 20261120-k3f")
    elif noisy:
        assert re.search(r"to decide the open ones, .*: fslab run --resume 20261120-k3f --trials \d+$", last)


def test_a_campaign_that_runs_needs_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found = like_quick(("random-read",), (), monkeypatch, status=CampaignStatus.RUNNING)
    assert "--resume" not in told(found)


def test_the_first_sentence_says_what_to_take_and_what_the_others_cost() -> None:
    """btrfs is slower in all four metrics; xfs and ext4 are alike in three of them."""
    works = [WorkloadSpec(name=f"work-{number}", tool="sync") for number in range(4)]
    planned = cells((EXT4, XFS, BTRFS), *works)
    alike = measured(planned, {"ext4": 1.0, "xfs": 1.0, "btrfs": 0.5}, noise=0.02)
    apart = measured(planned, {"ext4": 1.0, "xfs": 2.0, "btrfs": 0.5}, noise=0.02)
    mixed = [b if b.cell.workload.name == "work-3" else a for a, b in zip(alike, apart, strict=True)]
    sentence = conclude(report(planned, mixed)).sentence
    assert sentence.startswith("Recommended: xfs, best or alike in all 4 metrics. Behind by up to: btrfs ")
    assert sentence.endswith(" × (work-3), ext4 2.01 × (work-3).")


def test_a_stack_that_was_measured_in_few_metrics_is_not_recommended() -> None:
    """Three pairs of stacks, each with a workload of its own: the best of one pair is none of all."""
    works = [WorkloadSpec(name=f"work-{number}", tool="sync") for number in range(3)]
    planned = tuple(
        cell.model_copy(
            update={"stack": cell.stack.model_copy(update={"name": f"{cell.stack.name} {work.name}"})}
        )
        for work in works
        for cell in cells((EXT4, XFS), work)
    )
    apart = conclude(report(planned, measured(planned, {"ext4": 1.0, "xfs": 2.0}))).sentence
    assert apart.startswith("Behind by up to: ext4 ")
    together = cells((EXT4, XFS), works[0], works[1])
    both = conclude(report(together, measured(together, {"ext4": 1.0, "xfs": 2.0}))).sentence
    assert both.startswith("Recommended: xfs")


def test_no_stack_is_taken_while_most_metrics_are_open() -> None:
    """xfs is twice as fast in one metric; in two others, noise hides whether they differ."""
    works = [WorkloadSpec(name=f"work-{number}", tool="sync") for number in range(3)]
    planned = cells((EXT4, XFS), *works)
    apart = measured(planned, {"ext4": 1.0, "xfs": 2.0}, noise=0.02)
    noisy = [
        trial(each, block, {IOPS: 1000 + 300 * (-1) ** (block + number)})
        for number, each in enumerate(planned)
        if each.workload.name != "work-0"
        for block in range(5)
    ]
    mixed = [*(each for each in apart if each.cell.workload.name == "work-0"), *noisy]
    sentence = conclude(report(planned, mixed)).sentence
    assert "Take" not in sentence
    assert sentence.startswith("Behind by up to: ext4 ")
    assert "2 of 3 metrics need more trials" in sentence
    assert sentence.endswith(". Until then, keep what you have.")
    assert conclude(report(planned, apart)).sentence.startswith("Recommended: xfs, best in all 3 metrics")


def test_a_study_with_claims_ends_with_them() -> None:
    found = stacks_of({"ext4": 1.0, "xfs": 2.0})
    answer = ClaimAnswer(verdict=ClaimVerdict.REPLICATED, words="xfs / ext4 is 2", parts=1)
    claim = EvaluatedClaim(id="1", says="XFS first", that=("xfs > ext4",), measured=answer)
    lines = printed(show, found, conclude(found, [claim]), width=80).splitlines()
    assert lines[-1] == "Claims: tested 1 of 1: replicated 1."
    for command in ("results", "explain", "claims"):  # each can be copied from one line
        assert sum(f"fslab {command} {found.campaign}" in line for line in lines) == 1
    assert conclude(found).claims is None


def test_the_table_cuts_no_word_of_a_stack_s_name() -> None:
    options = [f"noatime,data=writeback,commit={number}" for number in range(10, 15)]
    stacks = [StackSpec(name=f"plain {option}", medium=MEDIUM, filesystem="ext4") for option in options]
    planned = cells(stacks, WorkloadSpec(name="random-writes-4k", tool="sync"))
    text = told(report(planned, measured(planned, {"ext4": 1.0}, noise=0.3, metrics=(IOPS, LATENCY))), 80)
    assert "how much" in text
    assert any(option in text for option in options)
    assert max(map(cell_len, text.splitlines())) <= 80


@pytest.mark.parametrize("width", [40, 80, 200])
def test_what_is_invalid_says_how_many_at_any_width(width: int) -> None:
    """If there is no room for the whole warning, its first clause is shown, which contains the number of trials."""
    warning = ValidityWarning(kind="cache_served", severity=Severity.INVALID, message="m", hint="look")
    planned = cells((EXT4, XFS), RANDOM)
    trials = measured(planned, {"ext4": 1.0, "xfs": 2.0})
    invalid = trials[0].model_copy(update={"status": Status.INVALID, "validity": (warning,)})
    text = " ".join(told(report(planned, [invalid, *trials[1:]]), width).split())
    assert "! 1 of 10 trials is invalid" in text


@pytest.mark.parametrize(
    "why",
    [
        "mount exited 32: the kernel logged: EXT4-fs (loop1): cannot be mounted without CONFIG_UNICODE",
        "cannot be run in /run/fslab/20261128-151928-577c/mnt/work: No such file or directory",
    ],
)
def test_a_failure_says_what_the_kernel_said_and_there_is_no_table_without_rows(why: str) -> None:
    planned = cells((EXT4,), RANDOM)
    command = "mount -t ext4 -o defaults /dev/loop1 /run/fslab/20261128-151928-577c/mnt"
    failed = [
        each.model_copy(
            update={"status": Status.FAILED, "failure": "mount", "error": f"{command}: {why}", "metrics": {}}
        )
        for each in measured(planned, {"ext4": 1.0}, blocks=1)
    ]
    _, *lines = told(report(planned, failed, settings={"stopping": {"trials": 1}})).splitlines()
    text = " ".join(" ".join(lines).split())
    assert text.startswith("! 1 of 1 trials failed ")
    assert text.split(" more: ")[0].endswith(f": mount: {why}")
    assert command not in text
    assert not any("median" in line for line in lines)


def test_an_unfinished_campaign_comes_first() -> None:
    planned = cells((EXT4, XFS), RANDOM)
    found = report(
        planned, measured(planned, {"ext4": 1.0, "xfs": 2.0}, blocks=4), status=CampaignStatus.INTERRUPTED
    )
    assert conclude(found).warnings[0].what == "interrupted: 8 of 10 trials stored"
    assert told(found).count("fslab run --resume") == 1


def test_no_block_is_complete_while_a_planned_cell_has_no_trial() -> None:
    planned = cells((EXT4, XFS, BTRFS), RANDOM)
    begun = measured(planned[:2], {"ext4": 1.0, "xfs": 2.0}, blocks=1)
    found = report(planned, begun, status=CampaignStatus.INTERRUPTED)
    assert "No ranking yet: 0 complete blocks; 3 needed." in told(found)
    assert conclude(report(planned, begun[:1])).sentence == "No ranking yet: 0 complete blocks."


def test_a_stack_that_failed_in_all_trials_is_named_before_a_busy_machine() -> None:
    """Otherwise one would read only which of the others is best."""
    busy = ValidityWarning(kind="foreign_load", severity=Severity.WARNING, message="m", hint="stop it")
    planned = cells((EXT4, XFS, BTRFS), RANDOM)
    good = measured(planned[:2], {"ext4": 1.0, "xfs": 2.0}, validity=(busy,))
    failed = [
        trial(planned[2], block, {}, status=Status.FAILED, failure="no_space", error="full")
        for block in range(5)
    ]
    found = report(planned, [*good, *failed])
    first, second, *_ = conclude(found).warnings
    assert first.what == "5 of 15 trials failed (rand-write-4k on btrfs): no space: full"
    assert second.what.startswith("this machine was busy in 10 of 15 trials")
    assert "5 of 15 trials failed" in " ".join(told(found).split())


def test_a_metric_is_named_where_the_workload_alone_does_not_say_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with the jobs of a job file: sequential reads in MB/s, and random ones in IOPS, by which xfs is ahead."""
    names = Metric(name="seq_bandwidth", unit=Unit.BYTES_PER_SECOND), Metric(name="rand_iops", unit=Unit.IOPS)
    monkeypatch.setitem(METRICS, "jobs", names)
    planned = cells((EXT4, XFS), WorkloadSpec(name="jobs", tool="jobs"))
    trials = measured(planned, {"ext4": 1.0, "xfs": 2.0}, metrics=names)
    text = told(report(planned, trials))
    assert re.search(r"^jobs: seq bandwidth +★ xfs", text, re.MULTILINE)
    assert re.search(
        r"Behind by up to: ext4 2\.0\d × \(jobs: (seq bandwidth|rand IOPS)\)", " ".join(text.split())
    )


def test_metrics_of_which_only_counts_are_known_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader sees three metrics: the sentence and the lines of a short screen must not say that there are two."""
    rates = Metric(name="write_iops", unit=Unit.IOPS), Metric(name="read_iops", unit=Unit.IOPS)
    losses = Metric(name="losses", unit=Unit.COUNT, better=Direction.LOWER)
    monkeypatch.setitem(METRICS, "jobs", (*rates, losses))
    planned = cells((EXT4, XFS), WorkloadSpec(name="jobs", tool="jobs"))

    def values(cell: Cell, block: int) -> dict[Metric, float | None]:
        speed = (2000 if cell.stack == XFS else 1000) + 7.0 * (block % 3)
        return {losses: 0.0, **dict.fromkeys(rates, speed)}

    found = report(
        planned, [trial(cell, block, values(cell, block)) for cell in planned for block in range(6)]
    )
    assert conclude(found).sentence.startswith("Recommended: xfs, best in 2 of 3 metrics. ")
    monkeypatch.setattr(conclusion_terminal, "SCREEN", 12)
    lines = told(found).splitlines()
    assert any(line.startswith("★ xfs best, 2 metrics: ") for line in lines)
    assert any(line.startswith("· ") and ", 1 metric: " in line for line in lines)


def test_more_trials_for_a_known_result_are_reported() -> None:
    planned = cells((EXT4, XFS), RANDOM)
    trials = measured(planned, {"ext4": 1.0, "xfs": 2.0})
    settings = {"stopping": {"trials": 5}, "extended_from": [3]}
    assert "planned: 3 each" in conclude(report(planned, trials, settings=settings)).warnings[0].what


def test_the_sentence_names_stacks_as_the_study_does() -> None:
    found: Conclusion = conclude(sparse())
    assert found.sentence.startswith("Recommended: ext4 defaults, best or alike in 27 of 32 metrics. ")
    assert "btrfs noatime,commit=1 2.08 × (work-8: fsync mean)" in found.sentence
    assert {label.split()[0] for each in found.standings for label in each.labels} == {"ext4", "xfs"}


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("make", [three, sparse])
def test_it_fits_the_width_and_at_80_columns_one_screen(make: object, width: int) -> None:
    assert callable(make)
    lines = told(make(), width).rstrip().splitlines()
    assert max(map(cell_len, lines)) <= width
    if width >= 80:
        assert len(lines) <= SCREEN


def test_on_a_narrow_terminal_the_first_warning_is_whole() -> None:
    found = sparse(works=4)
    assert conclude(found).warnings[0].what in " ".join(told(found, 40).split())


def test_nothing_measured_is_reported() -> None:
    planned = cells((EXT4,), RANDOM)
    assert conclude(report(planned, [])).sentence == "No trial is stored yet."
    alone = conclude(report(planned, measured(planned, {"ext4": 1.0})))
    assert alone.sentence.startswith("Nothing to compare")


def test_differences_that_autocorrelation_could_make_are_counted() -> None:
    near = stacks_of({"ext4": 0.97, "xfs": 1.0, "btrfs": 0.5}, noise=0.008)
    said = [each.what for each in conclude(near).warnings]
    assert "1 of 2 differences holds only if trials are independent" in said
    hint = "run 20 blocks to check: fslab run --resume 20261120-k3f --trials 20"
    assert hint in [each.hint for each in conclude(near).warnings]
    # A campaign that repeats as needed refuses --trials.
    counts = near.counts.model_copy(update={"planned_most": 40})
    hints = [each.hint for each in conclude(near.model_copy(update={"counts": counts})).warnings]
    assert "run 20 blocks to check: a new campaign with --trials 20" in hints
    assert not any("independent" in each.what for each in conclude(three()).warnings)


def test_both_counts_are_of_all_differences() -> None:
    """``1 of 2 differences is not significant; the only difference holds only if …`` contradicts itself."""
    near = stacks_of({"ext4": 0.97, "xfs": 1.0, "btrfs": 0.5}, noise=0.008)
    (row,) = near.rows
    fragile, other = sorted((each for each in row.answers if each.differs), key=lambda each: not each.fragile)
    unsure = other.model_copy(update={"holds": False})
    told = near.model_copy(update={"rows": (row.model_copy(update={"answers": (fragile, unsure)}),)})
    said = [each.what for each in conclude(told).warnings]
    assert "1 of 2 differences is not significant after Holm correction" in said
    assert "1 of 2 differences holds only if trials are independent" in said


def test_differences_that_fail_the_correction_are_counted() -> None:
    noisy = stacks_of({"ext4": 0.95, "xfs": 1.0, "btrfs": 0.9}, noise=0.06)
    said = [each.what for each in conclude(noisy).warnings]
    assert "the only difference is not significant after Holm correction" in said


def test_a_stack_with_too_few_trials_is_no_tie() -> None:
    """xfs is better than ext4; of btrfs there is one usable trial, so nothing is known of it."""
    planned = cells((EXT4, XFS, BTRFS), RANDOM)
    trials = measured(planned, {"ext4": 1.0, "xfs": 2.0, "btrfs": 1.0})
    few = [one for one in trials if one.cell.stack.filesystem != "btrfs" or one.key.block == 0]
    found = conclude(report(planned, few))
    (only,) = found.standings
    assert only.certainty is StandingCertainty.OPEN
    assert "alike" not in found.sentence
    assert only.worse == ("ext4",)


def test_stacks_on_another_kind_of_machine_are_named_and_not_compared() -> None:
    guest = MachineSpec(type="uml")
    planned = cells((EXT4, XFS, BTRFS.model_copy(update={"machine": guest})), RANDOM)
    middle = {"ext4": 1.0, "xfs": 2.0, "btrfs": 1.9}
    found = conclude(report(planned, measured(planned, middle)))
    (only,) = found.standings
    assert (only.certainty, only.labels, only.next_stack) == (StandingCertainty.BEST, ("xfs",), "ext4")
    assert found.sentence == "xfs is best. Not compared (other machine): btrfs."
    (row,) = report(planned, measured(planned, middle)).rows
    assert [each.mark for each in row.summaries] == [Mark.NONE, Mark.MAYBE_BEST, Mark.NONE]
    screen = told(report(planned, measured(planned, middle)), 160)
    assert "not compared (other machine): btrfs" in screen
    assert "★ better than all compared;" in screen
    assert "★ better than all others;" in told(three())
    alone = report(planned[1:], measured(planned[1:], middle))
    assert conclude(alone).sentence == "Nothing to compare: the stacks ran on different kinds of machines."


def test_a_summary_names_the_kernel_that_measured() -> None:
    planned = cells((EXT4,), RANDOM)
    made = report(planned, measured(planned, {"ext4": 1.0})).model_copy(update={"kernel": "6.18.4"})
    assert "kernel 6.18.4" in told(made, 110)
    guest = GuestSummary(machine="uml", kernel="6.12.47", cpus=1, memory_bytes=1 << 30)
    inside = made.model_copy(update={"guests": (guest,), "on_host": False})
    assert "kernel 6.12.47 (uml)" in told(inside, 110)
    assert "6.18.4" not in told(inside, 110)
    assert "Linux 6.12.47 (uml)" in paper_table._origin(inside)
    both = inside.model_copy(update={"on_host": True})
    assert "kernel 6.18.4 (host), 6.12.47 (uml)" in told(both, 110)


def test_the_best_is_the_one_that_wins_where_both_were_measured() -> None:
    """In each common block xfs is 5 % faster; but its median is lower, because two of its fast blocks are invalid."""
    planned = cells((EXT4, XFS), RANDOM)
    ext4, xfs = planned
    levels = (150.0, 150.0, 150.0, 100.0, 100.0, 100.0)
    noise = (0.0, 0.001, -0.001, 0.002, -0.002, 0.0)
    trials = [trial(ext4, block, {IOPS: level}) for block, level in enumerate(levels)]
    trials += [
        trial(xfs, block, {IOPS: levels[block] * (1.05 + noise[block])}) for block in range(2, len(levels))
    ]
    made = report(planned, trials)
    found = conclude(made)
    assert found.sentence == "xfs is best."
    (only,) = found.standings
    assert (only.labels, only.next_stack, only.worse) == (("xfs",), "ext4", ("ext4",))


def test_of_many_metrics_too_lower_is_better_is_said_of_the_other_one() -> None:
    """With more metrics than lines, there is one for each answer: '(ext4 2.00 ×)', not '(2.00 × ext4)'."""
    works = [WorkloadSpec(name=f"work-{number}", tool="sync") for number in range(SCREEN)]
    planned = tuple(cell for work in works for cell in cells((EXT4, XFS), work))
    found = report(planned, measured(planned, {"ext4": 1.0, "xfs": 2.0}, metrics=(LATENCY,), noise=0.001))
    assert "(ext4 2.00 ×)" in told(found, 120)


def test_metrics_without_a_preferred_direction_name_no_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = Metric(name="cpu_user", unit=Unit.PERCENT, better=Direction.NEITHER)
    monkeypatch.setitem(METRICS, "fio", (shares,))
    planned = cells((EXT4, XFS), RANDOM)
    trials = measured(planned, {"ext4": 1.0, "xfs": 2.0}, metrics=(shares,))
    assert conclude(report(planned, trials)).sentence.startswith("No stack is better: these metrics have no")


def test_a_line_names_few_of_many_stacks_that_may_be_the_best() -> None:
    standing = conclude(sparse()).standings[0]
    many = standing.model_copy(update={"labels": tuple(f"ext4 commit={number}" for number in range(40))})
    assert "ext4 commit=3 and 36 more, " in line(many, [many])


def test_a_metric_needs_what_its_neediest_comparison_needs() -> None:
    def values(shift: int, blocks: int) -> dict[int, float]:
        return {block: 100 + (3 * block + shift) % 5 for block in range(blocks)}

    one, others = values(0, 9), {"b": values(2, 7), "c": values(3, 5)}
    answers = answer([
        Question(over=one, under=other, names=("a", name), better=Direction.HIGHER, margin=0.01, block_s=block_s)
        for (name, other), block_s in zip(others.items(), (1.0, 9.0), strict=True)
    ])  # fmt: skip
    row = ComparedRow(
        workload="w", metric="m", unit=Unit.IOPS, better=Direction.HIGHER, leader="a", answers=answers
    )
    found = standing(row, {"a": 102.0, "b": 101.0, "c": 101.0}, 9)
    further, seconds = ([getattr(each, name) for each in answers] for name in ("further", "further_s"))
    assert len(set(further)) == len(set(seconds)) == 2
    assert (found.n, found.further, found.further_s) == (5, max(further), max(seconds))
