"""Tests of the view of a running campaign: the bar, the last result, and what is printed above them."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console
from tests import made

from fslab.analysis.further_trials import InterimResult, RepeatedQuestion
from fslab.cli.progress import LiveView, look_lines, replaced_words, result_of
from fslab.trial_record import Status, TrialRecord, Value
from fslab.units import Unit

BEGUN = datetime(2026, 11, 20, tzinfo=UTC)
CELL = made.cell("xfs", parameters={"rw": "randwrite", "bs": "4k", "size": "64m"}, name="random")
CAMPAIGN = made.campaign(cells=(CELL,), trials=4)


def trial(block: int, **changes: object) -> TrialRecord:
    return made.trial(block, CELL, metrics=made.iops(61_000.0)).model_copy(update=changes)


def test_it_shows_how_far_it_is_and_the_last_result() -> None:
    out = io.StringIO()
    view = LiveView(Console(width=80, color_system=None, file=out))
    view.campaign_started(CAMPAIGN, done=1, total=4, cells=2)
    view.trial_started(CELL, 1)
    view.trial_ended(trial(1))
    view.trial_started(CELL, 2)
    last, bar = view._view().plain.splitlines()
    assert last == "random on xfs: 61k IOPS"
    assert bar.startswith(f"{'█' * 10}▏{' ' * 9} 2/4 · ")
    assert bar.endswith("left · random on xfs, trial 3")
    failed = trial(
        2, status=Status.FAILED, failure="crashed", error="fio: killed" + " by a signal" * 20, metrics={}
    )
    view.trial_ended(failed)
    assert "random on xfs: fio: killed by a signal" in out.getvalue()
    assert view._view().plain.startswith("random on xfs: failed:crashed\n")
    assert max(map(len, view._view().plain.splitlines())) < 80


def test_several_figures_and_counts_have_their_names() -> None:
    cuts = made.cell("xfs", tool="crash", name="cuts")
    counts = {"promises_broken": 2.0, "lost_operations": 48.0}
    figures = {name: Value(value=value, unit=Unit.COUNT) for name, value in counts.items()}
    times = {"recovery_p50": Value(value=21.4e6, unit=Unit.NANOSECONDS)}
    said = result_of(made.trial(0, cuts, metrics=figures | times))
    assert said == "promises broken 2, lost operations 48, recovery p50 21.4 ms"
    assert (
        result_of(made.trial(0, cuts, metrics={"promises_broken": figures["promises_broken"]}))
        == "promises broken 2"
    )
    assert result_of(made.trial(0, cuts, metrics=times)) == "21.4 ms"
    both = made.cell("xfs", parameters={"rw": "randrw", "size": "64m"}, name="mixed")
    rates = {f"{name}_iops": Value(value=1000.0, unit=Unit.IOPS) for name in ("read", "write")}
    assert result_of(made.trial(0, both, metrics=rates)) == "read 1k IOPS, write 1k IOPS"


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
