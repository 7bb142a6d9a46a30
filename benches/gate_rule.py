"""Simulates the gates of ``fslab compare``, ``--fail-if-slower 5%`` and ``--fail-if-different``: how often they fail
with and without a slowdown.

Two campaigns have no blocks in common. With ``--write``, replaces the table of docs/simulations.md. Fixed seeds; takes
three minutes on one CPU.

    python benches/gate_rule.py [--runs 200] [--write docs/simulations.md]
"""

import random
import sys
from math import exp, sqrt
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches.simulations_page import main, table

from fslab.analysis import regression_gate
from fslab.analysis.campaign_comparison_lines import CampaignComparison, Line, Side
from fslab.answers.ratio import Question, answer, fit_correlation, of_two_campaigns
from fslab.cell import Cell, MediumSpec, StackSpec, WorkloadSpec
from fslab.trial_record import Metric
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
COMMAND = "benches/gate_rule.py"
HEAD = [
    "CoV", "AR", "trials each", "campaigns shift by", "fails without a change %", "the same, any difference %",
    "lines left unsure %", "one line slower by 7 % found %", "10 %", "15 %",
]  # fmt: skip
# CoV, autocorrelation from trial to trial, trials, shift; noise of the first campaign ÷ that of the second, share of
# the lines with autocorrelation.
CASES = (
    (0.02, 0.0, 5, 0.0, 1, 1.0), (0.02, 0.0, 8, 0.0, 1, 1.0), (0.05, 0.0, 8, 0.0, 1, 1.0),
    (0.1, 0.0, 8, 0.0, 1, 1.0), (0.02, 0.0, 8, 0.0, 5, 1.0), (0.02, 0.0, 8, 0.02, 1, 1.0),
    (0.02, 0.0, 20, 0.02, 1, 1.0), (0.02, 0.5, 5, 0.0, 1, 1.0), (0.02, 0.5, 8, 0.0, 1, 1.0),
    (0.02, 0.5, 40, 0.0, 1, 1.0), (0.02, 0.5, 8, 0.0, 1, 0.5), (0.02, 0.5, 12, 0.0, 1, 0.5),
)  # fmt: skip


def series(rng: random.Random, trials: int, scatter: float, along: float) -> list[float]:
    """Return logarithms of figures: an AR(1) series with the autocorrelation ``along``."""
    found = [rng.gauss(0, scatter)]
    for _ in range(trials - 1):
        found.append(along * found[-1] + sqrt(1 - along**2) * rng.gauss(0, scatter))
    return found


def compared(
    slowdown: float, *, trials: int, scatter: float, seed: int, shift: float = 0.0, along: float = 0.0,
    louder: float = 1.0, correlated: float = 1.0,
) -> CampaignComparison:  # fmt: skip
    """Return the comparison of log-normal figures of two campaigns; in the second, the first line is slower.

    ``scatter``: standard deviation of the logarithm of a figure; in the first campaign ``louder`` times that.
    ``shift``: that of a factor common to all figures of a campaign. ``along``: autocorrelation from trial to trial, of
    the share ``correlated`` of the lines, from the last one on.
    """
    rng, asked = random.Random(seed), []
    base = [rng.gauss(0, shift) if shift else 0.0 for _ in "AB"]
    logs: tuple[list[dict[int, float]], list[dict[int, float]]] = [], []
    for line in range(LINES):
        rho = along if line >= LINES * (1 - correlated) else 0.0
        for own, level, noise in zip(logs, base, (louder * scatter, scatter), strict=True):
            own.append({block: level + value for block, value in enumerate(series(rng, trials, noise, rho))})
    prior = of_two_campaigns(*map(fit_correlation, logs))
    for number, both in enumerate(zip(*logs, strict=True)):
        of = Cell(
            stack=STACK,
            workload=WorkloadSpec(
                name=f"w{number}", tool="fio", parameters={"rw": "randwrite", "size": "1g"}
            ),
        )
        middles = 100.0, 100.0 * (1 - slowdown if number == 0 else 1)
        a, b = (
            {block: middle * exp(value) for block, value in own.items()}
            for middle, own in zip(middles, both, strict=True)
        )
        question = Question(
            over=b,
            under=a,
            names=("B", "A"),
            better=Direction.HIGHER,
            margin=LIMIT,
            paired=False,
            prior=prior,
        )
        asked.append(Line(cells=(of, of), trials=((), ()), metric=IOPS, sampled="trials", question=question))
    found = answer([each.question for each in asked])
    lines = tuple(each.answered(own) for each, own in zip(asked, found, strict=True))
    return CampaignComparison(
        a=SIDE, b=SIDE, coverage=0.95, differences=(), lines=lines, means=(), only_a=(), only_b=()
    )


def judged(slowdown: float, **data: float) -> regression_gate.GateVerdict:
    """Return the verdict of ``--fail-if-slower`` on what ``compared`` returns."""
    return regression_gate.judge(compared(slowdown, **data), slower=LIMIT, different=False)  # type: ignore[arg-type]


def share(slowdown: float, *, runs: int, **data: float) -> float:
    """Return the share of runs in which the gate fails; with a slowdown, in which it fails for the slow line."""
    fails = (judged(slowdown, seed=seed, **data).fails for seed in range(runs))
    return sum(any(not slowdown or each.workload == "w0" for each in found) for found in fails) / runs


def row(
    scatter: float, along: float, trials: int, shift: float, louder: float, correlated: float, runs: int
) -> list[str]:
    data = {
        "trials": trials, "scatter": scatter, "shift": shift, "along": along, "louder": louder,
        "correlated": correlated,
    }  # fmt: skip
    same = [compared(0.0, seed=seed, **data) for seed in range(runs)]  # type: ignore[arg-type]
    slower = [regression_gate.judge(each, slower=LIMIT, different=False) for each in same]
    different = [regression_gate.judge(each, slower=None, different=True) for each in same]
    shares = [
        sum(bool(each.fails) for each in slower) / runs,
        sum(bool(each.fails) for each in different) / runs,
        sum(len(each.unsure) for each in slower) / runs / LINES,
        *(share(slowdown, runs=runs, **data) for slowdown in (0.07, 0.1, 0.15)),
    ]
    return [
        f"{100 * louder * scatter:g} and {100 * scatter:g} %" if louder != 1 else f"{100 * scatter:g} %",
        f"{along:g}" + (" in half the lines" if correlated != 1 else ""),
        str(trials),
        f"{100 * shift:g} %",
        *(f"{100 * one:.0f}" for one in shares),
    ]


def tables(runs: int) -> str:
    about = (
        f"{LINES} lines, a limit of {100 * LIMIT:g} %, log-normal data, {runs} runs. *Shift*: standard deviation of a "
        "factor common to all figures of a campaign. *Any difference*: `--fail-if-different`."
    )
    return "\n\n".join(
        [f"Made by `{COMMAND}`.", about, table(HEAD, [row(*case, runs) for case in CASES], words=0)]
    )


if __name__ == "__main__":
    sys.exit(main(__doc__, "gate-rule", ("--runs", 200), tables))
