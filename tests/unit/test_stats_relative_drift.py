"""Tests of series that drift relative to the others of their group, with series whose trends are known."""

from __future__ import annotations

from math import exp, factorial
from random import Random

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.stats import norm

from fslab.stats.relative_drift import BLOCKS_LEAST, relative_drifts


def group(
    stacks: int, blocks: int, *, drift: float = 0.0, spread: float = 0.01, seed: int = 1
) -> list[dict[int, float]]:
    """Return logarithms of which the first series changes by ``drift``, and all go up and down together."""
    rng = Random(seed)
    common = [rng.gauss(0, 0.2) + 0.1 * block for block in range(blocks)]
    return [
        {
            block: stack + level + rng.gauss(0, spread) + (drift * block / (blocks - 1)) * (stack == 0)
            for block, level in enumerate(common)
        }
        for stack in range(stacks)
    ]


@pytest.mark.parametrize("stacks", [2, 3, 6])
def test_finds_the_series_that_goes_down_among_others_that_vary_more_together(stacks: int) -> None:
    (found,) = relative_drifts([group(stacks, 12, drift=-0.3), group(stacks, 12, seed=2)])
    assert (found.group, found.blocks) == (0, 12)
    assert found.p_value < 0.01
    if stacks == 2:  # the other one becomes faster relative to it; all become faster
        assert found.member == 1
        assert found.change == pytest.approx(0.35, abs=0.03)
    else:
        assert found.member == 0
        assert found.change == pytest.approx(-0.26, abs=0.03)  # exp(-0.3) - 1


def test_of_two_the_one_that_changes_more_by_itself_is_named() -> None:
    steady = {block: 0.001 * (block % 3) for block in range(12)}
    falling = {block: -0.03 * block + 0.001 * (block % 2) for block in range(12)}
    for pair, member in (([steady, falling], 1), ([falling, steady], 0)):
        (found,) = relative_drifts([pair])
        assert found.member == member
        assert found.change < -0.2


def test_two_drifts_in_one_group_are_both_found() -> None:
    members = group(5, 16)
    for member, change in ((1, 0.02), (3, -0.03)):
        members[member] = {block: value + change * block for block, value in members[member].items()}
    assert {(one.member, one.change > 0) for one in relative_drifts([members])} == {(1, True), (3, False)}


def test_small_changes_and_few_blocks_are_no_drift() -> None:
    assert relative_drifts([group(3, 12, drift=0.04, spread=0.001)], least=0.05) == ()
    assert relative_drifts([group(3, BLOCKS_LEAST - 1, drift=1.0)]) == ()
    assert relative_drifts([group(1, 12, drift=1.0)]) == ()
    assert relative_drifts([]) == ()


def test_series_that_lack_different_blocks_are_compared_with_the_levels_of_the_others() -> None:
    members = group(4, 14, drift=-0.4)
    for member, missing in ((1, 0), (2, 13), (3, 6)):
        del members[member][missing]
    (found,) = relative_drifts([members])
    assert (found.member, found.blocks) == (0, 14)
    still = group(4, 14)
    still[1] = {block: value for block, value in still[1].items() if block < 7}  # got no more trials
    assert relative_drifts([still]) == ()


def test_trials_that_resemble_the_ones_before_need_a_stronger_trend() -> None:
    """The same trend is found among independent values, and not among series whose autocorrelation is 0.9."""

    def found(along: float) -> int:
        count = 0
        for seed in range(40):
            rng, members = Random(seed), []
            for _ in range(4):
                values = [rng.gauss(0, 1)]
                for _ in range(19):
                    values.append(along * values[-1] + (1 - along**2) ** 0.5 * rng.gauss(0, 1))
                members.append({block: 0.05 * value for block, value in enumerate(values)})
            count += bool(relative_drifts([members]))
        return count

    assert found(0.0) <= 4
    assert found(0.6) <= 6


def test_what_all_have_in_common_and_the_number_of_the_first_block_do_not_matter() -> None:
    members, rng, level, common = group(8, 16, drift=-0.1), Random(5), 0.0, []
    for _ in range(16):
        level += rng.gauss(0, 0.2)
        common.append(level)
    (found,) = relative_drifts([members])
    assert found.p_value < 1e-5
    for shared in ([0.0] * 16, common):
        moved = [{block + 30: value + shared[block] for block, value in logs.items()} for logs in members]
        (other,) = relative_drifts([moved])
        assert (other.member, other.blocks) == (found.member, found.blocks)
        # Median polish does not remove all of what is common.
        assert other.change == pytest.approx(found.change, rel=0.05 if any(shared) else 1e-9)
        assert other.p_value < 1e-5, "with the autocorrelation of what is common, it would be 0.01"


def test_a_trend_is_divided_by_how_much_autocorrelation_widens_its_scatter() -> None:
    """Nine blocks do not show an autocorrelation: 0.5 is assumed. The scatter is that of least squares."""
    (found,) = relative_drifts([[{block: 0.1 * block for block in range(9)}, dict.fromkeys(range(9), 0.0)]])
    steps = np.arange(9) - 4
    scatter = steps @ toeplitz(0.5 ** np.arange(9)) @ steps / (steps @ steps)
    assert found.p_value == pytest.approx(2 * norm.cdf(norm.ppf(1 / factorial(9)) / scatter**0.5))
    assert found.change == pytest.approx(exp(0.8) - 1)
