"""Simulates the combination of machines: how often its intervals contain the true value. Prints a Markdown table.

    python benches/fleet_rule.py --runs 1000

Machines differ by normal effects. ``unequal``: the noise of each machine is between 1/3 and 3 times ``NOISE``. With
1,000 runs, a percentage near 95 % has a standard error of 0.7 %. Takes about ten minutes on one CPU.
"""

import argparse
import random
from itertools import product
from math import exp, log, sqrt
from statistics import fmean, stdev

from fslab.stats import random_effects
from fslab.stats.random_effects import Estimate, combine

MACHINES, BLOCKS, SPREADS = (5, 8, 20), (4, 10), (0.0, 0.03, 0.1, 0.3)
NOISE = 0.1  # standard deviation of the logarithm of one quotient of two trials, each with a CoV of 7 %


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    random_effects.DRAWS = 1000
    runs = parser.parse_args().runs
    print(
        "| machines | blocks | machines differ by | noise | average held | its width | prediction held | its width |"
    )
    print("|---:|---:|---:|---|---:|---:|---:|---:|")
    for machines, blocks, spread, unequal in product(MACHINES, BLOCKS, SPREADS, (False, True)):
        average, width, another, ahead = simulate(machines, blocks, spread, unequal=unequal, runs=runs)
        print(
            f"| {machines} | {blocks} | ± {spread:.0%} | {'unequal' if unequal else 'equal'} | {average:.1%} "
            f"| ± {width:.0%} | {another:.1%} | ± {ahead:.0%} |",
            flush=True,
        )


def simulate(
    machines: int, blocks: int, spread: float, *, unequal: bool, runs: int
) -> tuple[float, float, float, float]:
    """Return the fraction of runs in which an interval contains the truth, and the geometric mean of its half-width.

    First for the interval of the average, then for the prediction of another machine. A half-width is a fraction: 0.1
    is 10 %.
    """
    chosen = random.Random(1)
    held: list[int] = [0, 0]
    widths: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        given = []
        for _ in range(machines):
            here, own = chosen.gauss(0, spread), NOISE * 3 ** (chosen.uniform(-1, 1) if unequal else 0)
            values = [chosen.gauss(here, own) for _ in range(blocks)]
            given.append(Estimate(mean=fmean(values), error=stdev(values) / sqrt(blocks), size=blocks))
        found = combine(given)
        for number, (interval, truth) in enumerate(
            ((found.interval, 0.0), (found.prediction, chosen.gauss(0, spread)))
        ):
            if interval is not None:
                held[number] += interval.low <= truth <= interval.high
                widths[number].append(exp((interval.high - interval.low) / 2) - 1)
    middle = [exp(fmean(map(log, each))) for each in widths]
    return held[0] / runs, middle[0], held[1] / runs, middle[1]


if __name__ == "__main__":
    main()
