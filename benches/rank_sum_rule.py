"""Simulates comparisons of two campaigns: as many or more trials on one side, which are as noisy or more.

The two do not differ. fslab's own code compares them (``stats.unpaired_differences``). Counts how often a difference is
shown, and measures how wide the interval is. Prints the table of docs/simulations.md; ``--write`` replaces it in that
file. Fixed seeds; takes about a minute on one core.

    python benches/rank_sum_rule.py [--comparisons 4000] [--write docs/simulations.md]
"""

from __future__ import annotations

import sys
from math import log
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.simulations_page import main, table

from fslab.stats.unpaired_differences import compare_ratio

COMMAND = "benches/rank_sum_rule.py"
SIZES = ((5, 5), (10, 10), (5, 40), (10, 40))
LOUDER = (1.0, 2.0, 4.0, 0.25)  # the noise of the smaller side ÷ that of the larger one
NOISE = 0.03  # standard deviation of the logarithm, of the larger side


def row(sizes: tuple[int, int], louder: float, count: int) -> list[str]:
    random = np.random.default_rng(11)
    false, width = 0, 0.0
    for _ in range(count):
        few, many = (
            np.exp(random.normal(scale=scale * NOISE, size=size))
            for scale, size in zip((louder, 1.0), sizes, strict=True)
        )
        found = compare_ratio(few.tolist(), many.tolist())
        assert found.interval is not None
        false += not found.interval.low <= 1 <= found.interval.high
        width += log(found.interval.high / found.interval.low)
    return [
        f"{sizes[0]} and {sizes[1]}",
        f"{louder:g}",
        f"{100 * false / count:.1f}",
        f"{50 * width / count:.1f}",
    ]


def tables(count: int) -> str:
    head = ["trials", "noise of the first ÷ of the second", "false differences %", "half the interval %"]
    rows = [row(sizes, louder, count) for sizes in SIZES for louder in LOUDER]
    about = f"Equal campaigns, {count} comparisons each, log-normal; CoV of the second: 3 %."
    return "\n\n".join([f"Made by `{COMMAND}`.", about, table(head, rows)])


if __name__ == "__main__":
    sys.exit(main(__doc__, "rank-sum-rule", ("--comparisons", 4000), tables))
