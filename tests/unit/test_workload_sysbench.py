"""Tests of the workload ``sysbench``, with output of sysbench 1.0.20 (Linux 6.18, ext4 on a loop device)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

GOLDEN = Path(__file__).parents[1] / "golden/sysbench-1.0.20"
SYSBENCH = REGISTRY.get("sysbench")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=7)
NO_FSYNC = {"file-fsync-end": False, "file-fsync-freq": 0}
SMALL = {"file-total-size": "64M", "file-num": 4, "time": 1}


def reading(name: str, **raw: Any) -> Reading:
    parameters = SYSBENCH.parse_parameters(raw)
    text = (GOLDEN / f"{name}.stdout").read_text()
    found = SYSBENCH.read(parameters, ToolOutput(stdout=text, stderr="", duration_s=1.1))
    assert set(found.metrics) == {metric.name for metric in SYSBENCH.metrics(parameters)}
    return found


def test_reads_and_writes_are_kept_apart() -> None:
    found = reading("rndrw-threads2", **{**SMALL, "file-test-mode": "rndrw", "threads": 2})
    assert found.metrics == {
        "read_iops": 25654.17,
        "write_iops": 17102.78,
        # 16 KiB each; sysbench prints 400.85 and 267.23 MiB/s
        "read_bandwidth": pytest.approx(420317921.28),
        "write_bandwidth": pytest.approx(280211947.52),
        "fsync_rate": 1716.26,
        # 1985.38 ms for 44614 requests.
        "latency_mean": pytest.approx(44501.28, abs=0.01),
        "latency_p95": None,  # printed as 0.01 ms, without a histogram
        "latency_max": 6210000.0,
    }
    # 44614 events and 2 x 4 final fsyncs are 25740 reads, 17160 writes and 1722 fsyncs
    assert found.read_bytes == 25740 * 16384
    assert found.written_bytes == 17160 * 16384
    assert found.measured_s == 1.0019
    assert (found.asked_s, found.passes, found.flushed) == (1.0, None, True)


def test_sysbench_does_not_time_asynchronous_requests() -> None:
    found = reading("rndrw-threads2", **{**SMALL, "file-test-mode": "rndrw", "file-io-mode": "async"})
    assert {"read_iops", "write_iops", "fsync_rate"} <= found.metrics.keys()
    assert not [name for name in found.metrics if "latency" in name]


def test_a_sequential_write_that_starts_over() -> None:
    found = reading("seqwr", **{**SMALL, "file-test-mode": "seqwr"})
    assert found.metrics["write_bandwidth"] == pytest.approx(640.2345 * 1048576, rel=1e-5)
    # 42741 events and 4 final fsyncs are 41100 writes and 1645 fsyncs; 64 MiB are 4096 writes
    assert found.written_bytes == 41100 * 16384
    assert found.passes == pytest.approx(41100 / 4096)


def test_a_number_of_events_is_a_set_amount() -> None:
    found = reading(
        "seqwr-events-short",
        **{"file-test-mode": "seqwr", "file-total-size": "16M", "file-num": 1, "events": 1024},
    )
    # Every 100th request is an fsync of the only file: 1014 writes and 10 fsyncs, and one more fsync at the end.
    assert found.written_bytes == 1014 * 16384
    assert found.asked_s is None


def test_fsync_after_each_write_is_part_of_the_write() -> None:
    found = reading(
        "rndwr-fsync-all",
        **{
            "file-test-mode": "rndwr", "file-total-size": "16M", "file-num": 2, "time": 1,
            "file-fsync-all": True, "file-fsync-end": False,
        },
    )  # fmt: skip
    assert found.written_bytes == 3497 * 16384
    assert found.metrics["fsync_rate"] == 3491.94
    # 996.97 ms for 3497 requests.
    assert found.metrics["latency_mean"] == pytest.approx(285092.94, abs=0.01)


@pytest.mark.parametrize(
    ("mode", "requests", "mean_ns"), [("seqrd", 405889, 2309.08), ("rndrd", 511389, 1767.79)]
)
def test_what_is_too_fast_to_print_is_unknown(mode: str, requests: int, mean_ns: float) -> None:
    found = reading(mode, **{**SMALL, "file-test-mode": mode})
    assert (found.read_bytes, found.written_bytes) == (requests * 16384, 0)
    assert found.metrics["latency_p95"] is None  # printed as 0.00 ms
    assert found.metrics["latency_mean"] == pytest.approx(mean_ns, abs=0.01)
    assert "write_iops" not in found.metrics


def test_a_percentile_is_not_rounded_to_ten_microseconds() -> None:
    """The report says 0.01 ms for anything from 5 to 15 µs, so that equal stacks could differ by a factor of two."""
    parameters = {**SMALL, "file-test-mode": "rndwr"}
    text = (GOLDEN / "rndwr-histogram.stdout").read_text()
    assert "95th percentile:                        0.01\n" in text
    slower = re.sub(r"(?m)^( +)0\.0(\d\d) \|", lambda found: f"{found[1]}0.1{found[2]} |", text)
    known = []
    for said in (text, slower):
        output = ToolOutput(stdout=said, stderr="", duration_s=1.1)
        known.append(SYSBENCH.read(SYSBENCH.parse_parameters(parameters), output).metrics)
    # 1900 of 2000 latencies are at most 6 µs, which the histogram too rounds by 8 %; or 106 µs.
    assert [each["latency_p95"] for each in known] == [None, 106000.0]
    assert [each["latency_max"] for each in known] == [8.17e6, 8.17e6]


@pytest.mark.parametrize(
    ("raw", "flushed"),
    [
        ({}, True),
        ({"file-fsync-end": False}, True),  # after each 100 requests
        ({"file-fsync-end": False, "file-fsync-freq": 100_000}, False),
        (NO_FSYNC, False),
        ({**NO_FSYNC, "file-fsync-all": True}, True),
        ({**NO_FSYNC, "file-extra-flags": "sync,dsync"}, True),
        ({**NO_FSYNC, "file-extra-flags": "sync"}, True),
        ({**NO_FSYNC, "file-extra-flags": "direct"}, False),
        # Stores to a mapping are not writes, and O_SYNC applies only to writes (open(2)).
        ({**NO_FSYNC, "file-extra-flags": "sync", "file-io-mode": "mmap"}, False),
    ],
)
def test_what_flushes_the_data(raw: dict[str, Any], flushed: bool) -> None:
    assert reading("seqwr", **{**SMALL, "file-test-mode": "seqwr", **raw}).flushed is flushed
    assert reading("rndrd", **{**SMALL, "file-test-mode": "rndrd", **raw}).flushed is None


def test_with_fewer_requests_than_an_fsync_needs_nothing_is_flushed() -> None:
    text = re.sub(r"fsyncs/s: +[\d.]+", "fsyncs/s: 0.00", (GOLDEN / "seqwr.stdout").read_text())
    parameters = SYSBENCH.parse_parameters({**SMALL, "file-test-mode": "seqwr", "file-fsync-end": False})
    assert SYSBENCH.read(parameters, ToolOutput(stdout=text, stderr="", duration_s=1.1)).flushed is False


def test_commands() -> None:
    raw = {"file-test-mode": "rndrw", "file-total-size": "512M", "time": 30, "file-extra-flags": "direct"}
    commands = SYSBENCH.commands(SYSBENCH.parse_parameters(raw), JOB)
    options = (
        "sysbench fileio --file-test-mode=rndrw --file-total-size=512M --file-num=128 --file-block-size=16K"
        " --file-io-mode=sync --file-extra-flags=direct --file-fsync-freq=100 --file-fsync-all=off"
        " --file-fsync-end=on --file-fsync-mode=fsync --file-rw-ratio=1.5 --rand-type=special --threads=1 --time=30"
        " --events=0 --percentile=95 --histogram=on --rand-seed=8"
    )
    assert [" ".join(argv) for argv in commands.prepare] == [f"{options} prepare"]
    assert " ".join(commands.run) == f"{options} run"
    assert [" ".join(argv) for argv in commands.cleanup] == [f"{options} cleanup"]


def test_seqwr_makes_its_own_files() -> None:
    commands = SYSBENCH.commands(SYSBENCH.parse_parameters({"file-test-mode": "seqwr"}), JOB)
    assert commands.prepare == ()
    assert "--time=10" in commands.run


def test_events_replace_the_time_limit() -> None:
    commands = SYSBENCH.commands(SYSBENCH.parse_parameters({"file-test-mode": "seqrd", "events": 5}), JOB)
    assert {"--time=0", "--events=5"} <= set(commands.run)


@pytest.mark.parametrize("seed", [0, 2**31 - 2, 2**31 - 1, 2**63])
def test_seeds_fit_what_sysbench_reads(seed: int) -> None:
    job = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=seed)
    argv = SYSBENCH.commands(SYSBENCH.parse_parameters({"file-test-mode": "seqrd"}), job).run
    (drawn,) = (int(option.partition("=")[2]) for option in argv if option.startswith("--rand-seed="))
    assert 0 < drawn < 2**31


@pytest.mark.parametrize(
    ("total", "files", "block", "told"),
    [("128M", 10, "16K", "with direct I/O, such as 131040k"), ("120M", 8, "1000", "multiple of 512 bytes"),
     ("10K", 3, "16K", "such as 48k")],
)  # fmt: skip
def test_with_direct_io_each_file_is_a_whole_number_of_requests(
    total: str, files: int, block: str, told: str
) -> None:
    raw = {
        "file-test-mode": "rndrw", "file-total-size": total, "file-num": files, "file-block-size": block,
        "file-extra-flags": "direct",
    }  # fmt: skip
    with pytest.raises(ValidationError, match=told):
        SYSBENCH.parse_parameters(raw)
    assert SYSBENCH.parse_parameters({**raw, "file-extra-flags": ""})


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ({"rate": 40}, ("latency_mean", "write_iops")),
        ({}, ("write_iops",)),
        ({"rate": 40, "file-io-mode": "async"}, ("write_iops",)),
    ],
)
def test_the_latency_comes_before_a_rate_that_the_study_asks_for(
    given: dict[str, Any], first: tuple[str, ...]
) -> None:
    parameters = SYSBENCH.parse_parameters({**SMALL, **given, "file-test-mode": "rndwr"})
    assert SYSBENCH.headline(parameters) == first
    assert tuple(metric.name for metric in SYSBENCH.metrics(parameters))[: len(first)] == first
