"""Tests of reading traces: lines as Linux 6.18 prints them. Expected values by hand."""

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
