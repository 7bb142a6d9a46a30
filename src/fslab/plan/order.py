"""The order of trials: randomised blocks, the same on every machine for the same seed. Pure."""

import random
from collections.abc import Sequence

from fslab.cell import Cell, by_workload

SEED_BITS = 31


def order(cells: Sequence[Cell], trials: int, seed: int) -> list[tuple[int, Cell]]:
    """Return every trial as (block, cell), in the order of running; blocks count from 0.

    A randomised complete block design: each block contains every cell once, in a random order of its own. A drift from
    block to block (temperature, other load, an ageing device) therefore affects all cells alike, and comparisons within
    a block are free of it. Within a block, the stacks of one workload follow each other, so that what is compared is
    measured within seconds or minutes: workloads are in a random order, and so are the stacks of each. Fisher, The
    Design of Experiments (1935), ch. IV; Montgomery, Design and Analysis of Experiments, ch. 4.

    The order depends only on the seed, the block and the cells in the given order, not on the Python version's
    hashing: ``random.Random`` seeds itself from a string by SHA-512, and ``sample`` is stable since 3.2.
    """
    together = by_workload(cells)
    return [(block, cell) for block in range(trials) for cell in order_block(together, block, seed)]


def order_block(together: Sequence[Sequence[Cell]], block: int, seed: int) -> list[Cell]:
    """Return the cells of one block, in the order of running. ``together``: as :func:`by_workload` returns them."""
    drawn = random.Random(f"{seed}:{block}")  # noqa: S311 - an order, no secret
    return [cell for each in drawn.sample(together, len(together)) for cell in drawn.sample(each, len(each))]


def tool_seed(seed: int, block: int) -> int:
    """Return the tools' seed for one block: all cells of a block draw the same offsets, each block new ones.

    31 bits and never 0, because sysbench interprets 0 as "use the clock".
    """
    return random.Random(f"{seed}:{block}:tool").randrange(1, 1 << SEED_BITS)  # noqa: S311 - no secret
