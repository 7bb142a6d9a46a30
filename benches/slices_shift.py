"""Measures by how much the length of slices shifts the ratio of two file systems, for each operation of ``quick``.

A slice measures slightly different work than a whole run: its tool has just slept, and caches and journal are those of
others. A round has one trial of each workload, with each length and whole, in random order on copies of the same files.
Prints the ratio of whole runs and, for each length, by how much its ratio is larger, with the standard error over the
rounds; with ``--write``, replaces the table of docs/simulations.md. Needs root, and a quiet machine.

    python benches/slices_shift.py [--minutes 6] [--lengths 30ms,100ms,250ms,1s] [--write docs/simulations.md]
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.simulations_page import replace_between, table

from fslab import load
from fslab.analysis.workload_groups import headline_metrics
from fslab.campaign import cleanup as workspaces
from fslab.campaign import trial_loop
from fslab.campaign.prepared_states import PreparedStates
from fslab.campaign.sliced_rounds import run_in_slices
from fslab.campaign.trial import run_trial
from fslab.cell import Cell, TrialKey, by_workload
from fslab.machine import facts
from fslab.plan.expand import expand, tool_seed
from fslab.plan.shared_states import groups
from fslab.storage import Workspace
from fslab.trial_record import TrialRecord
from fslab.units import counted, format_duration, parse_duration

WHOLE = 0.0
SEED = 1
# Logarithms of ratios: (workload, metric) → length of a slice in s → one for each round that has it, by its number.
Ratios = dict[tuple[str, str], dict[float, dict[int, float]]]


def main() -> int:
    """Run rounds until the time is over, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--lengths", default="30ms,100ms,250ms,1s")
    parser.add_argument("--filesystems", default="ext4, xfs")
    parser.add_argument("--runtime", default="1s", help="of the workloads with a set time")
    parser.add_argument(
        "--workloads", default="", help="only these of quick, such as random-read,small-files"
    )
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    lengths = [parse_duration(each) for each in arguments.lengths.split(",")]
    only = {name for name in arguments.workloads.split(",") if name}
    study = load("quick", [f"stacks.fs.filesystem=[{arguments.filesystems}]"])
    cells = [_timed(cell, arguments.runtime) for cell in expand(study)]
    works = [each for each in by_workload(cells) if not only or each[0].workload.name in only]
    found: Ratios = defaultdict(lambda: defaultdict(dict))
    deadline, number = time.monotonic() + 60 * arguments.minutes, 0
    with workspaces.opened_workspace(trial_loop.new_id(), frozenset()) as workspace:
        states = PreparedStates(workspace=workspace, groups=groups(cells))
        while time.monotonic() < deadline:
            for own, length_s in _order(works, [WHOLE, *lengths], number):
                if time.monotonic() < deadline:
                    _note(found, number, length_s, _round(own, length_s, number, workspace, states))
            number += 1
    text = _told(found, lengths, arguments.filesystems)
    print(text)
    if arguments.write:
        replace_between(arguments.write, "slices-shift", text)
    return 0


def _timed(cell: Cell, runtime: str) -> Cell:
    if "runtime" not in cell.workload.parameters:
        return cell
    parameters = {**cell.workload.parameters, "runtime": runtime}
    return cell.model_copy(update={"workload": cell.workload.model_copy(update={"parameters": parameters})})


def _order(
    works: Sequence[Sequence[Cell]], lengths: Sequence[float], number: int
) -> list[tuple[Sequence[Cell], float]]:
    pairs = [(own, length_s) for own in works for length_s in lengths]
    return random.Random(f"{SEED}:{number}").sample(pairs, len(pairs))


def _round(
    cells: Sequence[Cell], length_s: float, number: int, workspace: Workspace, states: PreparedStates
) -> list[TrialRecord]:
    """Run one trial of each cell, in slices of this length or one after the other."""
    key = TrialKey(campaign=workspace.campaign, block=number, seed=tool_seed(SEED, number))
    machine = facts.gather()
    if length_s == WHOLE:
        records = {}
        for cell in random.Random(f"{key.seed}:{length_s}").sample(cells, len(cells)):
            turn = states.begin(cell, key, "host")
            record = run_trial(cell, key, workspace, machine=machine, prepared=states.prepared(turn))
            records[cell.id] = states.end(turn, record)
        return [records[cell.id] for cell in cells]
    sliced = [cell.model_copy(update={"slice_s": length_s}) for cell in cells]
    turns = [states.begin(cell, key, "host") for cell in sliced]
    prepared = list(map(states.prepared, turns))
    done = run_in_slices(sliced, key, workspace, machine=machine, drain=False, prepared=prepared)
    return list(map(states.end, turns, done))


def _note(found: Ratios, number: int, length_s: float, records: Sequence[TrialRecord]) -> None:
    first, second = records
    for metric in headline_metrics(first.cell.workload):
        one, other = (
            record.metrics[metric.name].value if metric.name in record.metrics else None
            for record in (first, second)
        )
        name = first.cell.workload.name
        if one and other:
            found[name, metric.name][length_s][number] = math.log(one / other)
            told = f"{one / other:.3f}"
        else:
            told = f"no ratio: {first.error or second.error}"
        how = format_duration(length_s) if length_s else "whole"
        print(f"  {number + 1} {name} {metric.name} {how}: {told}", file=sys.stderr, flush=True)


def _told(found: Ratios, lengths: Sequence[float], filesystems: str) -> str:
    first, second = filesystems.split(",")
    rounds = max((len(by_round) for each in found.values() for by_round in each.values()), default=0)
    said = (
        "Made by `python benches/slices_shift.py --write docs/simulations.md` on a quiet machine, disks in memory, "
        f"{counted(rounds, 'round')}.\n\nThe ratio {first.strip()} ÷ {second.strip()} of whole runs (its standard "
        "error), and by how much the ratio in slices of each length is larger (± standard error over the rounds):"
    )
    rows = []
    for (workload, metric), each in found.items():
        whole = each.get(WHOLE, {})
        row = [f"{workload}: {metric.replace('_', ' ')}", _ratio(list(whole.values()))]
        for length_s in lengths:
            by_round = each.get(length_s, {})
            row.append(_shift([by_round[number] - whole[number] for number in by_round if number in whole]))
        rows.append(row)
    head = ["operation", "whole", *(format_duration(length_s) for length_s in lengths)]
    return f"{said}\n\n{table(head, rows)}"


def _ratio(logs: Sequence[float]) -> str:
    if not logs:
        return "–"
    return f"{math.exp(statistics.fmean(logs)):.2f} ({100 * _error(logs):.1f} %)"


def _shift(logs: Sequence[float]) -> str:
    if not logs:
        return "–"
    shift = 100 * math.expm1(statistics.fmean(logs))
    return f"{shift:+.1f} ± {100 * _error(logs):.1f} %".replace("-", "−")


def _error(logs: Sequence[float]) -> float:
    """Return the standard error of a mean; infinite with one value."""
    return statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("needs root")
    sys.exit(main())
