"""The stopping rule against a fixed number of trials and against rerunning until the spread is small. By simulation.

Two cells whose true ratio is known are measured in blocks; each rule says when to stop and what it concludes. Prints
the tables that stand in docs/methods.md; ``--write`` puts them there. Fixed seeds; about 2 minutes.

    python benches/stopping_rule.py [--repetitions 200] [--write docs/methods.md]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from statistics import NormalDist, fmean, stdev

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.stopping_data import MOST, SHAPES, Cell, Shape, measure

from fslab.stats.compare import RatioEstimate
from fslab.stats.goal import Compared, Goal, State, settled, state_of
from fslab.stats.interval import Interval
from fslab.stats.paired import compare_blocks
from fslab.stats.sequential import Looks, compare_at_look
from fslab.stats.student import mean_and_error, two_sided_quantile

SPREADS = (0.003, 0.01, 0.03, 0.1, 0.3)
RATIOS = (1.0, 1.02, 1.05, 1.2, 2.0)
PRECISION, FIRST = 0.05, 5
LOOKS = Looks(first=FIRST)
COMMAND = "python benches/stopping_rule.py --write docs/methods.md"
BEGIN, END = "<!-- stopping-rule: begin -->", "<!-- stopping-rule: end -->"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a rule made of one pair of cells: ``covered`` if no interval that it looked at missed the truth."""

    covered: bool
    state: State
    trials: float


Rule = Callable[[Cell, Cell, float], Outcome]
Look = Callable[[dict[int, float], dict[int, float], int], RatioEstimate]


def repeat(a: Cell, b: Cell, ratio: float, *, goal: Goal, look: Look) -> Outcome:
    """Look at the scheduled numbers of blocks, and at the end, until the goal is reached."""
    covered, blocks = True, 0
    while blocks < MOST:
        blocks = min(MOST, LOOKS.next_after(blocks))
        found = look(dict(enumerate(a[:blocks])), dict(enumerate(b[:blocks])), blocks)
        covered = covered and covers(found.interval, ratio)
        compared = Compared(cells=("a", "b"), estimate=found)
        if settled([compared], goal=goal, precision=PRECISION)[0]:
            break
    return Outcome(covered=covered, state=state_of(found, precision=PRECISION), trials=blocks)


def until(goal: Goal) -> Rule:
    """fslab's rule."""
    return lambda a, b, ratio: repeat(
        a, b, ratio, goal=goal, look=lambda x, y, blocks: compare_at_look(x, y, looks=LOOKS, blocks=blocks)
    )


def at_level(level: Callable[[int], float]) -> Rule:
    """Other ways to choose the level of each look."""
    return lambda a, b, ratio: repeat(
        a, b, ratio, goal=Goal.DECIDED, look=lambda x, y, blocks: compare_blocks(x, y, coverage=level(blocks))
    )


def union_bound(blocks: int) -> float:
    """What is spent up to this look less what was spent before: valid however the looks depend on each other."""
    sizes = [LOOKS.at(number) for number in range(20)]
    place = sizes.index(min(size for size in sizes if size >= blocks))
    spent = [1 - 0.7 * FIRST / size for size in sizes]
    return 1 - 0.05 * (spent[place] - (spent[place - 1] if place else 0))


def mixture(blocks: int) -> float:
    """The anytime-valid sequential t test with a normal prior (variance 3) of the effect in standard deviations.

    Lai, Ann. Statist. 4 (1976) 265; Wang & Ramdas, arXiv:2310.03722 (2024), theorem 4.
    """
    scale = 1 + 3 * blocks
    bound = (scale / 0.05**2) ** (1 / blocks)
    if bound >= scale:
        return 1 - 1e-9
    limit = sqrt((blocks - 1) * (bound - 1) / (1 - bound / scale))
    low, high = 1e-9, 1.0
    for _ in range(50):
        middle = sqrt(low * high)
        low, high = (low, middle) if two_sided_quantile(middle, blocks - 1) < limit else (middle, high)
    return 1 - high


def fixed(blocks: int) -> Rule:
    """So many blocks, and one look at 95 %."""

    def conclude(a: Cell, b: Cell, ratio: float) -> Outcome:
        found = compare_blocks(dict(enumerate(a[:blocks])), dict(enumerate(b[:blocks])))
        state = state_of(found, precision=PRECISION)
        return Outcome(covered=covers(found.interval, ratio), state=state, trials=blocks)

    return conclude


def while_spread(a: Cell, b: Cell, ratio: float) -> Outcome:
    """Phoronix Test Suite: each side for itself, 3 runs, more while their standard deviation is 2.5 % or more.

    As its increase_run_count_check does for runs of less than two minutes: up to 12, and up to 15 as long as the
    deviation has moved by less than half of what it was first. One side is run after the other. Its result is
    read with Welch's t interval at 95 % on logarithms, which is more than it gives its reader.
    """
    first = _runs(a, 0)
    second = _runs(b, len(first)) if len(first) + 15 <= MOST else _runs(b, 0)
    (mean_a, error_a), (mean_b, error_b) = (mean_and_error([*map(log, side)]) for side in (first, second))
    error = sqrt(error_a**2 + error_b**2)
    freedom = error**4 / (error_a**4 / (len(first) - 1) + error_b**4 / (len(second) - 1))
    half = two_sided_quantile(0.05, max(1, int(freedom))) * error
    middle = mean_a - mean_b
    interval = Interval(low=exp(middle - half), high=exp(middle + half), coverage=0.95)
    found = RatioEstimate(
        n_a=len(first), n_b=len(second), ratio=exp(middle), interval=interval, p_value=None, reason=None, needed=3
    )  # fmt: skip
    trials = (len(first) + len(second)) / 2
    return Outcome(covered=covers(interval, ratio), state=state_of(found, precision=PRECISION), trials=trials)


def _runs(cell: Cell, start: int) -> Cell:
    done, first = 3, None
    while True:
        runs = cell[start : start + done]
        deviation = stdev(runs) / fmean(runs)
        first = deviation if first is None else first
        more = done < 12 or (done < 15 and abs(first - deviation) < first / 2)
        if deviation < 0.025 or not more:
            return runs
        done += 1


def covers(interval: Interval | None, ratio: float) -> bool:
    return interval is None or interval.low <= ratio <= interval.high


def wrong(state: State, ratio: float) -> bool:
    match state:
        case State.A_LARGER:
            return ratio <= 1
        case State.B_LARGER:
            return ratio >= 1
        case State.EQUIVALENT:
            return abs(log(ratio)) > log(1 + PRECISION) * (1 + 1e-9)
        case _:
            return False


# -- tables

RULES: dict[str, Rule] = {
    "fslab, until decided": until(Goal.DECIDED),
    "fslab, until precise": until(Goal.PRECISE),
    "10 blocks": fixed(10),
    "40 blocks": fixed(MOST),
    "rerun while CoV > 2.5 %": while_spread,
}
LEVELS: dict[str, Rule] = {
    "error spending (fslab)": until(Goal.DECIDED),
    "the same, added up (union bound)": at_level(union_bound),
    "confidence sequence (t mixture)": at_level(mixture),
    "95 % at each look": at_level(lambda _: 0.95),
}


def simulate(rule: Rule, shape: Shape, spread: float, ratio: float, repetitions: int) -> list[Outcome]:
    rng = random.Random(f"{shape.name} {spread} {ratio}")  # the same data for each rule
    return [rule(*measure(rng, shape, spread, ratio), ratio) for _ in range(repetitions)]


def answered(state: State) -> bool:
    return state.decided or state is State.EQUIVALENT


def share(hits: Sequence[bool]) -> str:
    return f"{100 * fmean(hits):.1f}"


def by_shape(repetitions: int) -> list[str]:
    lines = [
        "| data | rule | covered % | wrong % | answered % | trials at CoV "
        + " | ".join(f"{100 * s:g} %" for s in SPREADS) + " |",
        "|---|---|--:|--:|--:|" + "--:|" * len(SPREADS),
    ]  # fmt: skip
    for shape in SHAPES:
        for name, rule in RULES.items():
            lines.append(f"| {shape.name} | {name} | {_row(rule, shape, repetitions)} |")
    return lines


def by_level(repetitions: int) -> list[str]:
    lines = [
        "| level of each look | covered % | wrong % | answered % | trials at CoV "
        + " | ".join(f"{100 * s:g} %" for s in SPREADS) + " |",
        "|---|--:|--:|--:|" + "--:|" * len(SPREADS),
    ]  # fmt: skip
    return lines + [f"| {name} | {_row(rule, SHAPES[0], repetitions)} |" for name, rule in LEVELS.items()]


def _row(rule: Rule, shape: Shape, repetitions: int) -> str:
    covered, mistaken, known, trials = [], [], [], []
    for spread in SPREADS:
        used = []
        for ratio in RATIOS:
            found = simulate(rule, shape, spread, ratio, repetitions)
            covered += [outcome.covered for outcome in found]
            mistaken += [wrong(outcome.state, ratio) for outcome in found]
            known += [answered(outcome.state) for outcome in found]
            used += [outcome.trials for outcome in found]
        trials.append(f"{fmean(used):.1f}")
    return " | ".join([share(covered), share(mistaken), share(known), *trials])


def by_family(repetitions: int) -> list[str]:
    """Families in which nothing differs: how often is anything said to?"""
    lines = ["| cells, all alike | comparisons | families with a false difference % |", "|--:|--:|--:|"]
    for cells in (2, 4, 6):
        rng = random.Random(cells)
        said = [_false_difference(rng, cells) for _ in range(repetitions)]
        lines.append(f"| {cells} | {cells * (cells - 1) // 2} | {share(said)} |")
    return lines


def _false_difference(rng: random.Random, cells: int) -> bool:
    data = [measure(rng, SHAPES[0], 0.1, 1.0)[0] for _ in range(cells)]
    blocks = 0
    while blocks < MOST:
        blocks = min(MOST, LOOKS.next_after(blocks))
        values = [dict(enumerate(cell[:blocks])) for cell in data]
        family = [
            Compared(cells=(i, j), estimate=compare_at_look(values[i], values[j], looks=LOOKS, blocks=blocks))
            for i in range(cells)
            for j in range(i)
        ]
        # with no precision asked for, only a difference settles
        if any(settled(family, goal=Goal.DECIDED, precision=0)):
            return True
    return False


def tables(repetitions: int) -> str:
    share_of = repetitions * len(SPREADS) * len(RATIOS)
    error = NormalDist().inv_cdf(0.975) * sqrt(0.05 * 0.95 / share_of) * 100
    head = (
        f"Made by `{COMMAND}`. Each row: {share_of:,} comparisons, {repetitions} for each of the true ratios "
        f"{', '.join(f'{ratio:g}' for ratio in RATIOS)} at each CoV; 95 % is known to ± {error:.1f}."
    )
    parts = [
        head,
        "\n".join(by_shape(repetitions)),
        f"Log-normal data, until decided, looks after {', '.join(str(LOOKS.at(k)) for k in range(10))} blocks:",
        "\n".join(by_level(repetitions)),
        f"Families, Holm's correction, {10 * repetitions} of each:",
        "\n".join(by_family(10 * repetitions)),
    ]
    return "\n\n".join(parts)


def main() -> int:
    """Print the tables, or put them between the markers of a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    text = tables(arguments.repetitions)
    print(text)
    if arguments.write:
        before, rest = arguments.write.read_text().split(BEGIN)
        after = rest.split(END)[1]
        arguments.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
