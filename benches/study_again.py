"""Simulates campaigns of a study: its schedule and verdicts, with the levels and durations of a stored campaign.

    python benches/study_again.py STORE STUDY [--campaigns 20] [--noise 2] [--budget 65m] [--order cheapest]

A trial gets the median level and the median duration of its cell in the last campaign of STUDY in STORE, and log-normal
noise of ``--noise`` percent. Prints how many claims the campaigns decide, and after how many minutes the last of them.
``--order cheapest``: claims only by their own effort, not by what they share (see fslab.claims.pursue). Takes about 4
seconds per campaign of 90 cells. Fixed seeds.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.methods_page import table

from fslab.campaign.schedule import Schedule
from fslab.claims import pursue
from fslab.record import TrialRecord
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.units import parse_duration

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """What a trial of each cell gives. ``example``: a stored record. ``level``: logarithms, by cell and metric."""

    campaign: Campaign
    example: dict[str, TrialRecord]
    level: dict[tuple[str, str], float]
    cost_s: dict[str, float]

    def trial(self, cell: str, block: int, at_s: float, seed: int, noise: float) -> TrialRecord:
        """Return a random trial. The same seed, cell and block give the same one."""
        example, chance = self.example[cell], random.Random(f"{seed} {cell} {block}")
        metrics = {
            name: value.model_copy(
                update={"value": math.exp(self.level[cell, name] + chance.gauss(0, noise))}
            )
            for name, value in example.metrics.items()
            if (cell, name) in self.level
        }
        return example.model_copy(
            update={
                "key": example.key.model_copy(update={"campaign": "simulated", "block": block}),
                "metrics": {**example.metrics, **metrics},
                # Without the speed of the CPU, by which values would be corrected.
                "provenance": example.provenance.model_copy(update={"observed": {}}),
                "started": BEGIN + timedelta(seconds=at_s),
                "duration_s": self.cost_s[cell],
                "validity": (),
            }
        )


def model_of(store: Path, study: str) -> Model:
    """Return the model of the last campaign of ``study``. LookupError if there is none."""
    logs: dict[tuple[str, str], list[float]] = defaultdict(list)
    durations: dict[str, list[float]] = defaultdict(list)
    example: dict[str, TrialRecord] = {}
    with Store.open(str(store), create=False) as opened:
        campaigns = [each for each in opened.campaigns() if each.study_id == study]
        if not campaigns:
            raise LookupError(f"{store} has no campaign of '{study}'")
        for record in opened.trials(campaigns[-1].id):
            cell = record.cell.id
            example[cell] = record.model_copy(update={"raw": {}})
            durations[cell].append(record.duration_s)
            for name, value in record.metrics.items():
                if value.value:
                    logs[cell, name].append(math.log(value.value))
    return Model(
        campaign=campaigns[-1],
        example=example,
        level={key: statistics.median(values) for key, values in logs.items()},
        cost_s={cell: statistics.median(each) for cell, each in durations.items()},
    )


@dataclass(kw_only=True, slots=True)
class Course:
    """A simulated campaign. ``decided``: number of decided claims, by minute."""

    records: list[TrialRecord] = field(default_factory=list)
    at_s: float = 0.0
    decided: list[tuple[float, int]] = field(default_factory=list)


def campaign(model: Model, seed: int, noise: float, budget_s: float) -> Course:
    """Simulate one campaign."""
    stored, course = model.campaign, Course()
    schedule = Schedule(
        cells=stored.cells, stopping=stored.stopping, seed=seed, claims=stored.claims,
        memory_bytes=stored.machine.get("memory_bytes"), budget_s=budget_s,
    )  # fmt: skip
    number = 0
    while True:
        while number < len(schedule.trials) and course.at_s < budget_s:
            block, cell = schedule.trials[number]
            number += 1
            course.records.append(model.trial(cell.id, block, course.at_s, seed, noise))
            course.at_s += model.cost_s[cell.id]
        planned = len(schedule.trials)
        seen = schedule.look(course.records) if course.at_s < budget_s else None
        result = seen or schedule.analysis.look(course.records, schedule.blocks, 0.0)
        course.decided.append((course.at_s / 60, len(result.claims.decided) if result.claims else 0))
        if seen is None or len(schedule.trials) == planned:
            return course


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", type=Path, metavar="STORE")
    parser.add_argument("study", metavar="STUDY")
    parser.add_argument("--campaigns", type=int, default=20)
    parser.add_argument("--noise", type=float, default=2.0, metavar="PERCENT")
    parser.add_argument("--budget", type=parse_duration, default=65 * 60.0, metavar="TIME")
    parser.add_argument("--order", choices=("shared", "cheapest"), default="shared")
    arguments = parser.parse_args()
    model = model_of(arguments.store, arguments.study)
    order = {"shared": pursue.most_verdicts, "cheapest": pursue.in_order}[arguments.order]
    with patch.object(pursue, "most_verdicts", order):
        courses = [
            campaign(model, seed, arguments.noise / 100, arguments.budget)
            for seed in range(arguments.campaigns)
        ]
    decided = sorted(course.decided[-1][1] for course in courses)
    last = [
        next(minute for minute, number in course.decided if number >= course.decided[-1][1])
        for course in courses
    ]
    head = ["campaigns", "claims", "decided: mean", "fewest", "most", "last verdict, minutes: median"]
    row = [
        len(courses),
        len(model.campaign.claims),
        f"{statistics.mean(decided):.1f}",
        decided[0],
        decided[-1],
    ]
    print(table(head, [[*map(str, row), f"{statistics.median(last):.0f}"]], words=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
