"""Tests of a covariate: what it explains is taken away, and it is not used where it would mislead."""

from random import Random
from statistics import mean, stdev

import pytest

from fslab.stats import covariate
from fslab.stats.covariate import FREEDOM_LEAST

Cell = dict[int, tuple[float, float]]


def cells(
    seed: int, *, slope: float, cells: int = 6, blocks: int = 6, apart: float = 0.0, hour: float = 0.0
) -> list[Cell]:
    """Return cells whose y is ``slope`` · x and noise of a fifth.

    x differs between cells by ``apart``, and x and y, independently, between blocks by ``hour`` (standard deviation).
    """
    chance = Random(seed)
    hours = [(chance.gauss(0, hour), chance.gauss(0, hour)) for _ in range(blocks)]
    found = []
    for number in range(cells):
        own: Cell = {}
        for block, (x_hour, y_hour) in enumerate(hours):
            x = chance.gauss(apart * number, 1) + x_hour
            own[block] = (x, number + slope * x + chance.gauss(0, 0.2) + y_hour)
        found.append(own)
    return found


def scatter(cells: list[dict[int, float]]) -> float:
    return mean(stdev(cell.values()) for cell in cells)


def adjusted(cells: list[Cell]) -> list[dict[int, float]] | None:
    """Return the adjusted values of one workload."""
    (found,) = covariate.adjusted([cells], 0.0)
    return found


@pytest.mark.parametrize("slope", [-0.5, 0.5, 2.0])
def test_what_the_covariate_explains_is_gone_and_differences_between_cells_stay(slope: float) -> None:
    given = cells(1, slope=slope, blocks=9)
    found = adjusted(given)
    assert found is not None
    assert [cell.keys() for cell in found] == [cell.keys() for cell in given]
    measured = [{block: y for block, (_, y) in cell.items()} for cell in given]
    assert 0.15 < scatter(found) < 0.3 < scatter(measured)
    means = [mean(cell.values()) - number for number, cell in enumerate(found)]
    assert max(means) - min(means) < 0.35


def test_a_covariate_that_explains_all_leaves_the_differences_between_cells() -> None:
    exact = [
        {block: (x, 10 * number - 2 * x) for block, (x, _) in cell.items()}
        for number, cell in enumerate(cells(1, slope=0))
    ]
    found = adjusted(exact)
    assert found is not None
    assert scatter(found) == pytest.approx(0, abs=1e-9)
    assert mean(found[1].values()) - mean(found[0].values()) == pytest.approx(10)


def test_all_trials_are_taken_to_one_value_of_the_covariate() -> None:
    exact = [
        {block: (x, 10 * number - 2 * x) for block, (x, _) in cell.items()}
        for number, cell in enumerate(cells(1, slope=0))
    ]
    (found,) = covariate.adjusted([exact], 3.0)
    assert found is not None
    assert [*found[1].values()] == pytest.approx([10 - 2 * 3.0] * 6)


def test_the_error_of_the_slope_is_part_of_the_noise() -> None:
    """The same trials with a copy of each cell: more degrees of freedom, a smaller stretch of what differs by block."""
    given = cells(1, slope=-0.5)
    few, many = adjusted(given), adjusted([*given, *given])
    assert few is not None
    assert many is not None
    freedom, freedom_twice = 36 - (6 + 5) - 1, 72 - (12 + 5) - 1
    spreads = [stdev(found[0][block] - found[1][block] for block in found[0]) for found in (few, many)]
    assert spreads[0] / spreads[1] == pytest.approx((1 + 2 / freedom) / (1 + 2 / freedom_twice))


def test_hours_cancel_between_cells_that_ended_early_and_others() -> None:
    """Three stacks, of which one has half of the blocks, on a machine that becomes faster and faster."""
    given = [{block: xy for block, xy in cell.items() if block < ends} for cell, ends in zip(
        cells(1, slope=-0.5, cells=4, blocks=10), (10, 10, 5, 10), strict=True)]  # fmt: skip
    drifting = [{block: (x, y + block) for block, (x, y) in cell.items()} for cell in given]
    plain, drifted = adjusted(given), adjusted(drifting)
    assert plain is not None
    assert drifted is not None
    for block in range(5):
        assert drifted[0][block] - drifted[2][block] == pytest.approx(plain[0][block] - plain[2][block])
    means = [mean(found[0][block] - found[2][block] for block in range(5)) for found in (plain, drifted)]
    assert means[0] == pytest.approx(means[1])


def test_the_mean_of_a_ratio_is_not_stretched() -> None:
    """Without noise beside the covariate and the hours, ratios are exact whichever blocks a cell has."""
    hours = [0.0, 3.0, -1.0, 7.0, 2.0, 9.0]
    chance = Random(1)
    exact = [
        {
            block: (x, 10 * number - 2 * x + hour)
            for block, hour in enumerate(hours)
            if (x := chance.gauss(0, 1)) is not None and (number != 3 or block < 4)
        }
        for number in range(5)
    ]
    found = adjusted(exact)
    assert found is not None
    for block in range(4):
        assert found[3][block] - found[0][block] == pytest.approx(30)


def test_without_a_connection_there_is_hardly_ever_a_correction() -> None:
    found = [adjusted(cells(seed, slope=0.0)) for seed in range(300)]
    assert sum(each is not None for each in found) <= 6


def test_what_a_block_has_in_common_makes_no_connection() -> None:
    """x and y change from hour to hour, each for itself: six hours are six values, not 36."""
    found = [adjusted(cells(seed, slope=0.0, hour=5.0)) for seed in range(300)]
    assert sum(each is not None for each in found) <= 6


def test_a_covariate_that_differs_between_cells_is_not_used() -> None:
    assert adjusted(cells(1, slope=-0.5, apart=3.0)) is None


def test_hours_do_not_hide_that_it_differs_between_cells() -> None:
    assert adjusted(cells(1, slope=-0.5, hour=20.0)) is not None
    assert adjusted(cells(1, slope=-0.5, apart=2.0, hour=20.0)) is None


def test_cells_need_not_have_the_same_blocks() -> None:
    given = cells(1, slope=-0.5, hour=5.0, cells=8)
    partly = [{b: xy for b, xy in cell.items() if (b + number) % 3} for number, cell in enumerate(given)]
    found = adjusted(partly)
    assert found is not None
    assert [cell.keys() for cell in found] == [cell.keys() for cell in partly]


def test_a_cell_with_one_trial_is_corrected_and_says_nothing_about_the_slope() -> None:
    given = cells(1, slope=-0.5)
    plain, more = adjusted(given), adjusted([*given, {0: (0.0, 7.0)}, {}])
    assert plain is not None
    assert more is not None
    assert [*more[-2:]] == [{0: 7.0}, {}]
    assert [*more[0].values()] == pytest.approx([*plain[0].values()])


def test_few_trials_are_not_corrected() -> None:
    known = cells(1, slope=-0.5, cells=4, blocks=5)
    assert sum(map(len, known)) - (4 + 4) - 1 == FREEDOM_LEAST - 1
    assert adjusted(known) is None
    assert adjusted([]) is None
    assert adjusted([{0: (0.0, float(number))} for number in range(40)]) is None


def test_a_covariate_that_never_changes_explains_nothing() -> None:
    chance = Random(1)
    assert adjusted([{block: (1.0, chance.gauss(0, 1)) for block in range(8)} for _ in range(6)]) is None


def test_a_figure_in_coarse_steps_is_not_corrected() -> None:
    """The correction would turn its ties into differences."""
    given = cells(1, slope=-0.5)
    coarse = [{block: (x, float(round(y))) for block, (x, y) in cell.items()} for cell in given]
    assert adjusted(given) is not None
    assert adjusted(coarse) is None


def test_small_workloads_share_a_slope_that_none_of_them_shows_alone() -> None:
    small = [cells(seed, slope=-0.5, cells=3, blocks=4) for seed in range(6)]
    assert all(adjusted(each) is None for each in small)
    found = covariate.adjusted(small, 0.0)
    known = [each for each in found if each is not None]
    assert len(known) >= 5
    for own, given in zip(found, small, strict=True):
        if own is not None:
            measured = [{block: y for block, (_, y) in cell.items()} for cell in given]
            assert spread(own) < spread(measured)


def test_a_workload_that_does_not_follow_the_others_stays_as_it_is() -> None:
    small = [cells(seed, slope=-0.5, cells=3, blocks=4) for seed in range(6)]
    *others, deaf = covariate.adjusted([*small, cells(9, slope=0.5, cells=3, blocks=4)], 0.0)
    assert any(others)
    assert deaf is None


def test_a_workload_whose_cells_change_the_covariate_gets_no_slope_of_others() -> None:
    small = [cells(seed, slope=-0.5, cells=3, blocks=4) for seed in range(6)]
    *others, apart = covariate.adjusted([*small, cells(9, slope=-0.5, cells=3, blocks=4, apart=5.0)], 0.0)
    assert any(others)
    assert apart is None


def test_no_workloads_and_empty_workloads_have_no_answer() -> None:
    assert covariate.adjusted([], 0.0) == []
    assert covariate.adjusted([[], [{}]], 0.0) == [None, None]


def spread(cells: list[dict[int, float]]) -> float:
    """Return the standard deviation of the differences between the first two cells by block."""
    return stdev(cells[0][block] - cells[1][block] for block in cells[0])


def test_a_kind_that_does_not_follow_the_covariate_stays_as_measured_and_does_not_change_the_slope() -> None:
    follow, still = cells(1, slope=-0.5), cells(2, slope=0.0, cells=3)
    given = [*follow, *still]
    (found,) = covariate.adjusted([given], 0.0, [["many"] * 6 + ["one"] * 3])
    alone = adjusted(follow)
    assert found is not None
    assert alone is not None
    assert found[6:] == [{}, {}, {}]
    assert [*found[0].values()] == pytest.approx([*alone[0].values()])
    assert adjusted(given) != found


def test_kinds_that_follow_it_alike_change_nothing() -> None:
    given = cells(1, slope=-0.5, cells=9)
    assert covariate.adjusted([given], 0.0, [["many"] * 6 + ["one"] * 3]) == covariate.adjusted([given], 0.0)


def test_too_few_trials_do_not_show_that_a_kind_is_unlike_the_others() -> None:
    given = [*cells(1, slope=-0.5), *cells(2, slope=0.0, cells=2, blocks=4)]
    (found,) = covariate.adjusted([given], 0.0, [["many"] * 6 + ["one"] * 2])
    assert found is not None
    assert all(found)
