"""Simulates the warning that one stack became faster or slower relative to the others (``stack_drift``).

How often it is given without such a drift, and with one. With ``--write``, replaces the table of docs/simulations.md.
Fixed seeds; takes about ten minutes on one idle CPU.

    python benches/stack_drift_rule.py [--campaigns 500] [--write docs/simulations.md]
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.simulations_page import main, table
from benches.stopping_data import MOST, Noise, autocorrelated, normal, spiky

from fslab.analysis.table_rows import row_answers
from fslab.analysis.workload_groups import Sample
from fslab.cell import MediumSpec, StackSpec
from fslab.stats.interim_looks import Looks
from fslab.units import Direction, Unit
from fslab.validity.campaign_warnings import REGISTRY, Series

SPREAD, COMMON, MACHINE = 0.03, 0.05, 0.2
LOOKS = Looks(first=5, most=MOST)
SPEC = StackSpec(name="s", medium=MediumSpec(name="memory", type="ram"))
RULE = REGISTRY.get("stack-drift")
# Stacks, workloads, blocks (None: until decided).
CASES = (
    *((2, 1, blocks) for blocks in (5, 8, 10, 20, 40, None)),
    *((3, 1, blocks) for blocks in (5, 8, 10, 20, None)),
    *((4, 5, blocks) for blocks in (5, 6, 8, 10, 20)),
)
KINDS: tuple[tuple[str, Noise, bool], ...] = (
    ("log-normal", normal, False),
    ("spikes in one stack", spiky, True),
    ("AR 0.3", lambda rng, count: autocorrelated(rng, count, 0.3), False),
    ("AR 0.5", autocorrelated, False),
    ("AR 0.5 in one stack", autocorrelated, True),
)
DRIFTS = (0.1, 0.2, 0.4)
COMMAND = "benches/stack_drift_rule.py"

Values = list[dict[int, float]]  # of each stack of a workload, by block


def measured(
    rng: np.random.Generator, noise: Noise, alone: bool, stacks: int, blocks: int | None, drift: float
) -> Values:
    """Return the values of one workload. ``alone``: only the first stack has this noise, the others normal noise.

    All become faster by 20 % over all blocks, and vary by 5 % together; the first also becomes slower by ``drift``.
    """
    most = blocks or MOST
    logs = normal(rng, stacks)[:, :most]
    touched = slice(0, 1) if alone else slice(None)
    logs[touched] = noise(rng, stacks)[touched, :most]
    along = np.linspace(0, 1, most)
    logs = SPREAD * logs + COMMON * rng.standard_normal(most) + MACHINE * along
    logs[0] += np.log(1 - drift) * along
    values = [dict(enumerate(row)) for row in np.exp(logs).tolist()]
    return values if blocks else _until_decided(values)


def _until_decided(values: Values) -> Values:
    blocks = 0
    while blocks < MOST:
        blocks = LOOKS.next_after(blocks)
        values_so_far = [{block: own[block] for block in range(min(blocks, MOST))} for own in values]
        samples = [Sample(stack=str(stack), spec=SPEC, values=own) for stack, own in enumerate(values_so_far)]
        row = row_answers(samples, Direction.HIGHER, looks=LOOKS, unit=Unit.IOPS)
        if all(each.settled for each in row.repeated(first=True)):
            return values_so_far
    return values


def warned(campaign: list[Values]) -> set[tuple[str, str]]:
    """Return the workloads and stacks that the warning names."""
    series = tuple(
        Series(
            workload=str(workload), stack=str(stack), metric="iops", better=Direction.HIGHER, headline=True,
            values=own,
        )
        for workload, values in enumerate(campaign)
        for stack, own in enumerate(values)
    )  # fmt: skip
    return {(each.series.workload, each.series.stack) for each in RULE.findings(series) if each.series}


def shares(
    noise: Noise, alone: bool, stacks: int, workloads: int, blocks: int | None, drift: float, campaigns: int
) -> tuple[float, float]:
    """Return how often the drifting stack (without a drift: any) is warned of, and how often another one, in %."""
    seed = zlib.crc32(repr((alone, stacks, workloads, blocks, drift)).encode())
    rng, right, wrong = np.random.default_rng(seed), 0, 0
    for _ in range(campaigns):
        found = warned(
            [
                measured(rng, noise, alone, stacks, blocks, 0.0 if number else drift)
                for number in range(workloads)
            ]
        )
        # Of two stacks, each drifts relative to the other.
        true = {("0", str(stack)) for stack in range(1 if stacks > 2 else 2)} if drift else set()
        right += bool(found & true) if drift else bool(found)
        wrong += bool(found - true)
    return 100 * right / campaigns, 100 * wrong / campaigns


def rows(campaigns: int) -> Iterator[list[str]]:
    for stacks, workloads, blocks in CASES:
        false = [
            shares(noise, alone, stacks, workloads, blocks, 0.0, campaigns)[0] for _, noise, alone in KINDS
        ]
        found = [
            shares(normal, False, stacks, workloads, blocks, drift, max(1, campaigns // 5))
            for drift in DRIFTS
        ]
        yield [
            f"{stacks}, {workloads}",
            "until decided" if blocks is None else str(blocks),
            *(f"{each:.1f}" for each in false),
            *(f"{right:.0f}" for right, _ in found),
            f"{max(wrong for _, wrong in found):.1f}",
        ]


def tables(campaigns: int) -> str:
    about = (
        f"Campaigns with a noise of {100 * SPREAD:g} %, in which all stacks become faster by {100 * MACHINE:g} %. "
        f"*False*: how many of {campaigns:,} have the warning although no stack drifts relative to the others. "
        f"*Found*: how many of {max(1, campaigns // 5)} have it for the stack that becomes slower in one workload from "
        f"the first to the last block (until decided: block {MOST}), or for the only other one. *Another*: at most how "
        "many have it for a stack or workload that does not drift."
    )
    head = [
        "stacks, workloads", "blocks", *(f"{'false, ' * (n == 0)}{kind} %" for n, (kind, *_) in enumerate(KINDS)),
        *(f"{'found, ' * (n == 0)}by {100 * drift:g} %, %" for n, drift in enumerate(DRIFTS)), "another %",
    ]  # fmt: skip
    return "\n\n".join([f"Made by `{COMMAND}`.", about, table(head, rows(campaigns))])


if __name__ == "__main__":
    sys.exit(main(__doc__, "stack-drift-rule", ("--campaigns", 500), tables))
