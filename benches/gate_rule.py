"""Simulates the gate of ``fslab compare --fail-if-slower 5%``: how often it fails with and without a slowdown.

Two campaigns have no blocks in common. With ``--write``, replaces the table of docs/simulations.md. Fixed seeds; takes
about a minute on one CPU.

    python benches/gate_rule.py [--runs 300] [--write docs/simulations.md]
"""

import random
import sys
from math import exp
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches.simulations_page import main, table

from fslab.analysis import gate
from fslab.analysis.campaign_comparison_lines import Line
from fslab.analysis.campaign_comparison_model import CampaignComparison, Side
from fslab.answers.question import Question, answer
from fslab.cell import Cell, MediumSpec, StackSpec, WorkloadSpec
from fslab.record import Metric
from fslab.units import Direction, Unit

LINES, LIMIT = 12, 0.05
IOPS = Metric(name="write_iops", unit=Unit.IOPS)
STACK = StackSpec(name="ext4", medium=MediumSpec(name="memory", type="ram"))
SIDE = Side(
    name="",
    campaigns=(),
    study=None,
    begun=None,
    trials=0,
    usable=0,
    with_warnings=0,
    kernels=(),
    machines=(),
)
COMMAND = "python benches/gate_rule.py --write docs/simulations.md"
HEAD = [
    "CoV", "trials each", "campaigns shift by", "fails without a change %", "lines left unsure %",
    "one line slower by 7 % found %", "10 %", "15 %",
]  # fmt: skip
CASES = ((0.02, 8, 0.0), (0.05, 8, 0.0), (0.1, 8, 0.0), (0.02, 8, 0.02), (0.02, 20, 0.02))


def judged(
    slowdown: float, *, trials: int, scatter: float, seed: int, shift: float = 0.0
) -> gate.GateVerdict:
    """Return the verdict on log-normal figures of two campaigns; in the second, the first line is slower.

    ``scatter``: standard deviation of the logarithm of a figure. ``shift``: that of a factor common to all figures of a
    campaign.
    """
    rng, asked = random.Random(seed), []
    base = [100 * exp(rng.gauss(0, shift)) if shift else 100.0 for _ in "AB"]
    for number in range(LINES):
        of = Cell(
            stack=STACK,
            workload=WorkloadSpec(
                name=f"w{number}", tool="fio", parameters={"rw": "randwrite", "size": "1g"}
            ),
        )
        middles = base[0], base[1] * (1 - slowdown if number == 0 else 1)
        a, b = ([middle * exp(rng.gauss(0, scatter)) for _ in range(trials)] for middle in middles)
        question = Question(
            over=dict(enumerate(b)), under=dict(enumerate(a)), names=("B", "A"), better=Direction.HIGHER,
            margin=LIMIT, paired=False,
        )  # fmt: skip
        asked.append(Line(cells=(of, of), trials=((), ()), metric=IOPS, sampled="trials", question=question))
    found = answer([each.question for each in asked])
    lines = tuple(each.answered(own) for each, own in zip(asked, found, strict=True))
    compared = CampaignComparison(
        a=SIDE, b=SIDE, coverage=0.95, differences=(), lines=lines, means=(), only_a=(), only_b=()
    )
    return gate.judge(compared, slower=LIMIT, different=False)


def share(slowdown: float, *, trials: int, scatter: float, runs: int, shift: float = 0.0) -> float:
    """Return the share of runs in which the gate fails; with a slowdown, in which it fails for the slow line."""
    fails = (
        judged(slowdown, trials=trials, scatter=scatter, seed=seed, shift=shift).fails for seed in range(runs)
    )
    return sum(any(not slowdown or each.workload == "w0" for each in found) for found in fails) / runs


def row(scatter: float, trials: int, shift: float, runs: int) -> list[str]:
    same = [judged(0.0, trials=trials, scatter=scatter, seed=seed, shift=shift) for seed in range(runs)]
    shares = [
        sum(bool(each.fails) for each in same) / runs,
        sum(len(each.unsure) for each in same) / runs / LINES,
        *(
            share(slowdown, trials=trials, scatter=scatter, runs=runs, shift=shift)
            for slowdown in (0.07, 0.1, 0.15)
        ),
    ]
    return [
        f"{100 * scatter:g} %",
        str(trials),
        f"{100 * shift:g} %",
        *(f"{100 * one:.0f}" for one in shares),
    ]


def tables(runs: int) -> str:
    about = (
        f"{LINES} lines, a limit of {100 * LIMIT:g} %, log-normal data, {runs} runs. *Shift*: standard deviation of a "
        "factor common to all figures of a campaign."
    )
    return "\n\n".join(
        [f"Made by `{COMMAND}`.", about, table(HEAD, [row(*case, runs) for case in CASES], words=0)]
    )


if __name__ == "__main__":
    sys.exit(main(__doc__, "gate-rule", ("--runs", 300), tables))
