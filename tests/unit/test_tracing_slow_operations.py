"""Tests of slow operations that coincide with commits: shares calculated by hand, and samples that are too small."""

from __future__ import annotations

import pytest

from fslab.tracing import slow_operations

COMMITS = [(10.0, 10.1), (20.0, 20.05), (20.04, 20.1)]


SLOW_S = 0.002


def operations(count: int, slow_at: list[float]) -> list[tuple[float, float]]:
    """Return fast operations from second 30 on, outside every commit, and slow ones that end at ``slow_at``."""
    quick = [(30 + index / 1000, 1e-4) for index in range(count - len(slow_at))]
    return quick + [(end, SLOW_S) for end in slow_at]


def apart(begin_s: float, count: int) -> list[float]:
    return [begin_s + 0.003 * index for index in range(count)]


def test_shares_of_slow_and_of_all() -> None:
    # 32 of 32 000 operations are slow: 24 during a commit, 8 before the first commit.
    slow_at = apart(10.01, 12) + apart(20.01, 12) + apart(9.0, 8)
    found = slow_operations.coincidence(COMMITS, operations(32_000, slow_at))
    assert found is not None
    assert (found.count, found.slow, found.threshold_s) == (32_000, 32, SLOW_S)
    assert found.share_slow == pytest.approx(0.75)
    assert found.share_all == pytest.approx(24 / 32_000)


def test_operations_in_flight_at_one_stall_are_one() -> None:
    """32 requests that wait for one commit show what one request shows: nothing."""
    assert slow_operations.coincidence(COMMITS, operations(32_000, [10.05] * 32)) is None
    found = slow_operations.coincidence(COMMITS, operations(33_000, [10.05] * 3 + apart(9.0, 30)))
    assert found is not None
    assert found.slow == 31
    assert found.share_slow == pytest.approx(1 / 31)


def test_long_operations_meet_a_commit_by_chance() -> None:
    """With a commit of 1 ms every 100 ms, about 52 % of operations of 50 ms overlap one by chance.

    (50 ms + 1 ms + the log's resolution of 1 ms) / 100 ms.
    """
    commits = [(index / 10, index / 10 + 0.001) for index in range(101)]
    quick = [(index / 3000, 1e-6) for index in range(30_001)]
    found = slow_operations.coincidence(commits, [*quick, *((index / 3, 0.05) for index in range(1, 31))])
    assert found is not None
    assert found.share_chance == pytest.approx(0.52, abs=0.02)
    assert found.share_all == pytest.approx(0.02, abs=0.01)


def test_the_base_rate_is_what_chance_gives() -> None:
    found = slow_operations.coincidence([(0.0, 100.0)], operations(30_000, apart(50.0, 30)))
    assert found is not None
    assert found.share_slow == found.share_all == 1.0


def test_thirty_slow_ones_are_the_least() -> None:
    assert slow_operations.coincidence(COMMITS, operations(29_000, apart(9.0, 29))) is None
    assert slow_operations.coincidence(COMMITS, operations(29_001, apart(9.0, 30))) is not None


@pytest.mark.parametrize(
    ("end", "latency", "inside"),
    [
        (9.99, 0.001, False), (9.9995, 1e-4, True), (10.05, 1e-4, True), (10.2, 0.11, True), (10.2, 0.05, False),
        (25.0, 16.0, True), (25.0, 0.1, False),
    ],
)  # fmt: skip
def test_what_overlaps_a_commit(end: float, latency: float, inside: bool) -> None:
    """The log has the end in whole milliseconds, so an operation can have ended up to 1 ms later."""
    slowest = [(100.0 + 20 * index, 17.0) for index in range(30)]
    found = slow_operations.coincidence(COMMITS, [(end, latency)] * 29_970 + slowest)
    assert found is not None
    assert found.share_all == pytest.approx(29_970 / 30_000 if inside else 0.0)


def test_fio_s_log() -> None:
    """Lines of fio 3.33 with log_alternate_epoch_clock_id=1 are read as end and latency in seconds."""
    text = "19161452, 1211684, 1, 4096, 0\n19161453, 1185353, 0, 4096, 0\n"
    assert [*slow_operations.logged(text.splitlines())] == [
        (19161.452, 0.001211684),
        (19161.453, 0.001185353),
    ]
