"""Tests of reading traces: lines as Linux 6.18 prints them, and operations beside commits. Expected values by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fslab.tracing import Sectors, Trace, TraceMethod, Traffic, figures, kind_of, ondisk_layout
from fslab.tracing.ring import figures as of_ring

LINES = """# tracer: nop
             fio-4242    [001] .....   100.000001: block_bio_queue: 7,0 WS 2048 + 8 [fio]
             fio-4242    [001] ..s1.   100.000101: block_rq_complete: 7,0 WS () 2048 + 8 none,0,0 [0]
             fio-4242    [001] ..s1.   100.000201: block_rq_complete: 7,0 WS () 2056 + 16 none,0,0 [0]
    jbd2/loop0-8-77      [000] .....   100.000301: jbd2_start_commit: dev 7,0 transaction 5 sync 0
    jbd2/loop0-8-77      [000] .....   100.000302: block_bio_queue: 7,0 FWFSM 1048584 + 8 [jbd2/loop0-8]
          <idle>-0       [000] ..s1.   100.000401: block_rq_complete: 7,0 FF () 0 + 0 none,0,0 [0]
          <idle>-0       [000] ..s1.   100.000402: block_rq_complete: 7,0 FWFSM () 1048584 + 8 none,0,0 [0]
          <idle>-0       [000] ..s1.   100.000403: block_rq_complete: 7,0 WM () 128 + 8 none,0,0 [0]
          <idle>-0       [000] ..s1.   100.000404: block_rq_complete: 7,0 WM () 8000 + 8 none,0,0 [0]
    jbd2/loop0-8-77      [000] .....   100.010301: jbd2_end_commit: dev 7,0 transaction 5 sync 0 head 3
     kworker/0:1-9       [000] .....   100.020000: workqueue_execute_start: work struct 00000000ab: function loop_workfn
     kworker/0:1-9       [000] .....   100.021500: workqueue_execute_end: work struct 00000000ab: function loop_workfn
"""


def test_letters_of_the_kernel() -> None:
    assert [kind_of(word) for word in ("WS", "FWFSM", "R", "RAM", "D", "FF", "F", "N")] == [
        "W", "WM", "R", "RM", "D", "F", "F", "F",
    ]  # fmt: skip


def test_a_ring_is_counted() -> None:
    split, ring = of_ring(
        LINES.splitlines(), Sectors(journal=((1048576, 1114112),), superblocks=((128, 136),))
    )
    assert split == {
        "W": Traffic(bytes=24 * 512, requests=2),
        "F": Traffic(bytes=0, requests=1),
        "WM": Traffic(bytes=24 * 512, requests=3),
    }
    assert ring.by_place == {
        "data": Traffic(bytes=24 * 512, requests=2),
        "journal": Traffic(bytes=4096, requests=1),
        "superblock": Traffic(bytes=4096, requests=1),
        "metadata": Traffic(bytes=4096, requests=1),
    }
    _, unknown = of_ring(LINES.splitlines(), Sectors(superblocks=((128, 136),)))
    assert {name: traffic.requests for name, traffic in unknown.by_place.items()} == {
        "data": 2, "metadata_and_journal": 2, "superblock": 1,
    }  # fmt: skip
    assert ring.sequential == 1, "only the second write begins where the one before ended"
    assert ring.submitted == {"fio": 4096, "jbd2/loop0-8": 4096}
    assert ring.commits_s == ((100.000301, 100.010301),)
    assert ring.work_s == {"loop_workfn": pytest.approx(0.0015)}


def trace(**changes: object) -> Trace:
    fields: dict[str, object] = {
        "method": TraceMethod.EBPF, "split": {"W": Traffic(bytes=996, requests=1)},
        "stat": {"W": Traffic(bytes=1000, requests=1)}, "ring": None, "idle_bytes": 0, "idle_s": 2.0,
    }  # fmt: skip
    return Trace(**{**fields, **changes})  # type: ignore[arg-type]


def test_what_withdraws_a_trace() -> None:
    assert figures.withdrawn(trace()) == []
    assert "0.6 %" in figures.withdrawn(trace(split={"W": Traffic(bytes=994, requests=1)}))[0]
    assert "iostats" in figures.withdrawn(trace(stat={}))[0]
    assert "nothing ran" in figures.withdrawn(trace(idle_bytes=4096))[0]


def test_where_xfs_keeps_its_log(tmp_path: Path) -> None:
    # 4 KiB blocks in groups of 1000 blocks (2^10 addresses each): block 6 of group 2 is block 2006, at sector 16048.
    head = bytearray(4096)
    head[:4] = b"XFSB"
    struct.pack_into(">Q", head, 48, (2 << 10) + 6)
    struct.pack_into(">I", head, 84, 1000)
    struct.pack_into(">I", head, 96, 100)
    head[120], head[124] = 12, 10
    image = tmp_path / "xfs"
    image.write_bytes(head)
    assert ondisk_layout.of(image) == Sectors(journal=((16048, 16848),))


@pytest.mark.parametrize(
    ("features", "place"), [(0, ()), (4, None)], ids=["no journal", "a map of blocks, as of ext3"]
)
def test_where_ext_keeps_its_journal_is_known_or_not(
    tmp_path: Path, features: int, place: tuple[()] | None
) -> None:
    head = bytearray(4096)
    head[0x438:0x43A] = b"\x53\xef"
    struct.pack_into("<I", head, 1024 + 0x5C, features)
    image = tmp_path / "ext"
    image.write_bytes(head)
    assert ondisk_layout.of(image).journal == place


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
    found = figures.coincidence(COMMITS, operations(32_000, slow_at))
    assert found is not None
    assert (found.count, found.slow, found.threshold_s) == (32_000, 32, SLOW_S)
    assert found.share_slow == pytest.approx(0.75)
    assert found.share_all == pytest.approx(24 / 32_000)


def test_operations_in_flight_at_one_stall_are_one() -> None:
    """32 requests that wait for one commit show what one request shows: nothing."""
    assert figures.coincidence(COMMITS, operations(32_000, [10.05] * 32)) is None
    found = figures.coincidence(COMMITS, operations(33_000, [10.05] * 3 + apart(9.0, 30)))
    assert found is not None
    assert found.slow == 31
    assert found.share_slow == pytest.approx(1 / 31)


def test_long_operations_meet_a_commit_by_chance() -> None:
    """With a commit of 1 ms every 100 ms, about 52 % of operations of 50 ms overlap one by chance.

    (50 ms + 1 ms + the log's resolution of 1 ms) / 100 ms.
    """
    commits = [(index / 10, index / 10 + 0.001) for index in range(101)]
    quick = [(index / 3000, 1e-6) for index in range(30_001)]
    found = figures.coincidence(commits, [*quick, *((index / 3, 0.05) for index in range(1, 31))])
    assert found is not None
    assert found.share_chance == pytest.approx(0.52, abs=0.02)
    assert found.share_all == pytest.approx(0.02, abs=0.01)


def test_the_base_rate_is_what_chance_gives() -> None:
    found = figures.coincidence([(0.0, 100.0)], operations(30_000, apart(50.0, 30)))
    assert found is not None
    assert found.share_slow == found.share_all == 1.0


def test_thirty_slow_ones_are_the_least() -> None:
    assert figures.coincidence(COMMITS, operations(29_000, apart(9.0, 29))) is None
    assert figures.coincidence(COMMITS, operations(29_001, apart(9.0, 30))) is not None


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
    found = figures.coincidence(COMMITS, [(end, latency)] * 29_970 + slowest)
    assert found is not None
    assert found.share_all == pytest.approx(29_970 / 30_000 if inside else 0.0)


def test_fio_s_log() -> None:
    """Lines of fio 3.33 with log_alternate_epoch_clock_id=1 are read as end and latency in seconds."""
    text = "19161452, 1211684, 1, 4096, 0\n19161453, 1185353, 0, 4096, 0\n"
    assert [*figures.logged_operations(text.splitlines())] == [
        (19161.452, 0.001211684),
        (19161.453, 0.001185353),
    ]
