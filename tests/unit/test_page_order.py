"""Tests of the figure of all trials over time: how the points of a large campaign are combined."""

from fslab.report.figures.over_time import OrderPoint
from fslab.report.page import assemble


def test_an_invalid_trial_is_never_part_of_a_usable_point() -> None:
    count = 2 * assemble.MOMENTS
    points = [
        OrderPoint(
            stack="xfs", workload="w", usable=number % 5 != 0, minutes=float(number),
            ratio=1.0 if number % 5 else 0.1,
        )
        for number in range(count)
    ]  # fmt: skip
    found = assemble._thinned(points)
    assert len(found) <= assemble.MOMENTS + 2
    assert sum(each.trials for each in found) == count
    assert {each.ratio for each in found if each.usable} == {1.0}
    assert {each.ratio for each in found if not each.usable} == {0.1}
    assert sum(each.trials for each in found if not each.usable) == count // 5
