"""What the tests of comparisons make: cells, trials around a middle, and a comparison of two lists of trials."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests import made

from fslab.analysis.campaign_comparison import Results, compare_results
from fslab.analysis.campaign_comparison_lines import CampaignComparison
from fslab.analysis.matching_cells import MatchedBy
from fslab.cell import Cell, MediumSpec, StackSpec, WorkloadSpec
from fslab.trial_record import Metric, Provenance, TrialRecord, Value
from fslab.units import Direction, Unit

BEGUN = datetime(2026, 11, 20, 21, 49, tzinfo=UTC)
MEDIUM = MediumSpec(name="memory", type="ram", options={"size": "1g"})
IOPS = Metric(name="write_iops", unit=Unit.IOPS)
CLAT = Metric(name="clat_mean", unit=Unit.NANOSECONDS, better=Direction.LOWER)
STEPS = (0.98, 0.99, 1.0, 1.01, 1.02)
FACTS = {"kernel": "6.1.0-25", "governor": "performance", "hostname": "lab", "memory_bytes": 24 << 30}


def cell(stack: str = "ext4", workload: str = "rand-4k", bs: str = "4k", **more: Any) -> Cell:
    spec = more.pop("spec", StackSpec(name=stack, medium=MEDIUM, filesystem=stack))
    return made.cell(spec, parameters={"rw": "randwrite", "size": "1g", "bs": bs}, name=workload, **more)


def trials(
    of: Cell, values: Sequence[float | None], campaign: str = "a", metric: Metric = IOPS, **facts: Any
) -> list[TrialRecord]:
    return [
        made.trial(
            block, of, campaign=campaign, started=BEGUN + timedelta(minutes=block),
            metrics={metric.name: Value(value=value, unit=metric.unit)},
            provenance=Provenance(
                machine={**FACTS, **facts}, tools={"fio": "3.33"}, device={"model": "X", "device": "loop0"}
            ),
        )
        for block, value in enumerate(values)
    ]  # fmt: skip


def around(middle: float) -> list[float]:
    return [middle * step for step in STEPS]


def metrics_of(workload: WorkloadSpec) -> tuple[Metric, ...]:
    return (CLAT,) if workload.name == "sync" else (IOPS,)


def compared(
    a: Sequence[TrialRecord], b: Sequence[TrialRecord], *, paired: bool = False, **more: Any
) -> CampaignComparison:
    """Compare two campaigns; ``paired``: two parts of one campaign, by workload."""
    sides = (Results.of_trials("A", list(a)), Results.of_trials("B", list(b)))
    if paired:
        whole = Results.of_trials("", [*a, *b])
        sides = (whole.only(sides[0].cells, "A"), whole.only(sides[1].cells, "B"))
        more["by"] = MatchedBy.WORKLOAD
    return compare_results(*sides, **{"metrics_of": metrics_of, **more})
