"""Tests of the matrix of a running campaign: it fills as trials end, names the leader, and fits the terminal."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console

from fslab.analysis.interim import InterimResult, RepeatedQuestion
from fslab.cell import Cell, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.cli.live import LiveView
from fslab.cli.progress import look_lines, replaced_words
from fslab.record import Status, TrialRecord, Value
from fslab.report.matrix_terminal import Matrix
from fslab.stats.compare import RatioEstimate
from fslab.stopping import StoppingRule
from fslab.store.campaign import Campaign
from fslab.units import Unit

NO_RATIO = RatioEstimate(n_a=1, n_b=1, ratio=None, interval=None, p_value=None, reason=None, needed=3)
MEDIUM = MediumSpec(name="memory", type="ram", options={"size": "1g"})
BEGUN = datetime(2026, 11, 20, tzinfo=UTC)


def cells(stacks: int, workloads: int) -> tuple[Cell, ...]:
    works = [
        WorkloadSpec(
            name=f"work{number}",
            tool="fio",
            parameters={"rw": "randwrite", "bs": "4k", "size": "64m", "iodepth": 32, "direct": True},
        )
        for number in range(workloads)
    ]
    each = [
        StackSpec(name=f"fs{number}", medium=MEDIUM, filesystem=f"fs{number}") for number in range(stacks)
    ]
    return tuple(Cell(stack=stack, workload=work) for work in works for stack in each)


def campaign(planned: tuple[Cell, ...]) -> Campaign:
    return Campaign(
        id="c", study_id="s", study_title="", study_source="", seed=1, cells=planned, trials=4, created=BEGUN
    )


def trial(cell: Cell, block: int, iops: float) -> TrialRecord:
    return TrialRecord(
        key=TrialKey(campaign="c", block=block, seed=0), cell=cell, status=Status.OK, started=BEGUN, duration_s=1.0,
        metrics={"write_iops": Value(value=iops, unit=Unit.IOPS)}, raw={"stdout": "x"},
    )  # fmt: skip


def shown(matrix: Matrix, width: int = 120, height: int = 40) -> list[str]:
    console = Console(width=width, color_system=None, file=io.StringIO(), record=True)
    console.print(matrix.table(width, height))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_it_fills_in() -> None:
    """Each trial updates median, spread and leader. After three trials, half the range is 9 % of the median: 10k of
    110k and 19k of 222k."""
    planned = cells(2, 2)
    matrix = Matrix(cells=planned, stopping=StoppingRule(trials=4))
    assert not any("IOPS" in line for line in shown(matrix))
    matrix.enter(trial(planned[0], 0, 100_000))
    matrix.enter(trial(planned[1], 0, 200_000))
    (row,) = [line for line in shown(matrix) if line.startswith("work0")]
    assert "×" not in row  # one trial of each cell is too few for an interval
    for block, (first, second) in enumerate(((110_000, 222_000), (120_000, 238_000)), start=1):
        matrix.enter(trial(planned[0], block, first))
        matrix.enter(trial(planned[1], block, second))
    (row,) = [line for line in shown(matrix) if line.startswith("work0")]
    assert "110k IOPS ±9% ▪▪▪▫" in row
    assert "222k IOPS ±9% ▪▪▪▫" in row
    for cell, iops in ((planned[0], 110_000), (planned[1], 220_000)):
        matrix.enter(trial(cell, 3, iops))
    (row,) = [line for line in shown(matrix) if line.startswith("work0")]
    assert "fs1 2.00 × fs0 (" in row
    (other,) = [line for line in shown(matrix) if line.startswith("work1")]
    assert other.count("▫▫▫▫") == 2


def test_a_resumed_campaign_begins_with_what_is_stored() -> None:
    planned = cells(2, 2)
    stored = [
        trial(cell, block, iops * (1 + block / 100))
        for block in range(4)
        for cell, iops in ((planned[0], 110_000.0), (planned[1], 220_000.0))
    ]
    view = LiveView(Console(width=120, height=40, color_system=None, file=io.StringIO()))
    view.campaign_started(campaign(planned), done=8, total=16, stored=stored)
    assert view.matrix is not None
    (row,) = [line for line in shown(view.matrix) if line.startswith("work0")]
    assert row.count("▪▪▪▪") == 2
    assert "fs1 2.00 × fs0 (" in row
    assert view.matrix.records[planned[0].id][0].raw == {}


def test_it_keeps_no_output_of_tools() -> None:
    planned = cells(1, 1)
    matrix = Matrix(cells=planned, stopping=StoppingRule(trials=4))
    matrix.enter(trial(planned[0], 0, 1.0))
    assert matrix.records[planned[0].id][0].raw == {}


def test_a_failure_is_named() -> None:
    planned = cells(1, 1)
    matrix = Matrix(cells=planned, stopping=StoppingRule(trials=2))
    failed = trial(planned[0], 0, 1.0).model_copy(
        update={"status": Status.FAILED, "failure": "crashed", "metrics": {}}
    )
    matrix.enter(failed)
    assert any("failed ▪▫" in line for line in shown(matrix))


def test_it_fits_and_shows_where_it_is() -> None:
    """The table fits and contains the cell that is running. In 80 columns there is room for 2 of 9 stacks, and for the
    number of the others (+7). In 20 lines there is room for 12 of 30 workloads."""
    planned = cells(9, 30)
    matrix = Matrix(cells=planned, stopping=StoppingRule(trials=4), running=planned[20 * 9 + 5].id)
    lines = shown(matrix, width=80, height=20)
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("work") for line in lines) == 12
    assert any(line.startswith("work20 ") for line in lines)
    assert "fs5" in lines[0]
    assert "+7" in lines[0]


def test_one_is_not_a_plural() -> None:
    question = RepeatedQuestion(
        workload="w", metric="m", a="ext4", b="xfs", cells=("1", "2"), ratio=None, interval=None, settled=False,
        further=1,
    )  # fmt: skip
    said = [*look_lines(InterimResult(blocks=1, questions=(question,)))]
    assert said == [
        "after 1 trial each: 0 of 1 comparison settled",
        "    open: w, ext4 no ratio yet xfs, about 1 more trial",
    ]
    assert replaced_words(1, 1).startswith("1 trial is invalid: running 1 more trial (")
