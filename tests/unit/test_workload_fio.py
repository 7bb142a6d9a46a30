"""Tests of the workload ``fio``, with output of fio 3.33 (Linux 6.18, ext4 on a loop device) and of other versions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.read import read, read_whole

from fslab.workloads import REGISTRY, Job, Reading, ToolOutput
from fslab.workloads._fio_output import depth_bounds, rate_over_time

GOLDEN = Path(__file__).parents[1] / "golden/fio-3.33"
FIO = REGISTRY.get("fio")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=7)


def output(text: str) -> ToolOutput:
    return ToolOutput(stdout="", stderr="", files={"fio.json": text}, duration_s=1.5)


def reading(name: str, **raw: Any) -> Reading:
    return read_whole(FIO, raw, output((GOLDEN / f"{name}.json").read_text()))


def test_random_direct_writes() -> None:
    found = reading("randwrite-4k-qd32", rw="randwrite", size="256m", iodepth=32, direct=True, runtime=1)
    assert found.metrics == {
        "write_iops": 89775.224775,
        "write_bandwidth": 367719320.0,
        "write_lat_mean": 355686.435765,
        "write_slat_mean": 2187.684382,
        "write_clat_mean": 353498.751383,
        "write_clat_p50": 362496.0,
        "write_clat_p90": 577536.0,
        "write_clat_p99": 864256.0,
        "write_clat_p99_9": 2441216.0,
        "write_clat_max": 3127073.0,
        "cpu_user": 6.6,
        "cpu_system": 22.8,
        # (1 + 2 + 4 + 8 + 16) x 0.1 % + 32 x 99.965504 %, over their sum of 100.465504 %
        "achieved_depth": pytest.approx(31.8716, abs=1e-4),
    }
    assert (found.read_bytes, found.written_bytes) == (0, 368087040)
    assert found.measured_s == 1.001
    assert found.direct
    assert (found.passes, found.flushed, found.working_set_bytes) == (None, True, 256 << 20)


def test_a_directory_whose_name_has_a_line_break() -> None:
    """fio 3.33 writes the control characters of an option as they are, which JSON does not allow."""
    text = (GOLDEN / "randwrite-4k-qd32.json").read_text()
    broken = text.replace('"directory" : "', '"directory" : "/a\n\tb')
    assert broken != text
    raw = {"rw": "randwrite", "size": "256m", "iodepth": 32, "direct": True, "runtime": 1}
    assert read_whole(FIO, raw, output(broken)) == read_whole(FIO, raw, output(text))


def test_both_directions_of_two_jobs_are_reported_as_one_group() -> None:
    found = reading(
        "randrw-70-30-jobs2",
        rw="randrw", size="64m", iodepth=4, numjobs=2, direct=True, runtime=1, rwmixread=70,
    )  # fmt: skip
    assert found.metrics["read_iops"] == 63154.845155
    assert found.metrics["write_iops"] == 27006.993007
    assert found.metrics["read_clat_p99"] == 201728.0
    assert found.metrics["write_clat_p99_9"] == 528384.0
    assert (found.read_bytes, found.written_bytes) == (258940928, 110731264)


def test_a_buffered_write_is_measured_to_the_end_of_its_fsync() -> None:
    found = reading("write-1m-buffered", rw="write", bs="1m", size="512m")
    assert found.measured_s == 3.476
    # 536870912 bytes in 3.476 s; fio rounds down to whole bytes.
    assert found.metrics["write_bandwidth"] == 154450780.0
    assert found.metrics["write_slat_mean"] is None  # psync submits and completes in one call
    assert not found.direct


def test_latency_of_fsync_is_kept_apart() -> None:
    found = reading("randwrite-4k-fsync", rw="randwrite", size="64m", fsync=1, runtime=1)
    assert found.metrics["fsync_mean"] == 412250.958671
    assert found.metrics["fsync_p99"] == 937984.0
    assert found.counts == {"fsync": 2347}
    assert found.metrics["write_clat_mean"] == 11068.896037
    assert found.metrics["achieved_depth"] == 1.0  # fio's classes add up to 200 % here


def test_what_never_happened_is_unknown_not_zero() -> None:
    found = reading("randrw-no-writes", rw="randrw", size="64m", direct=True, runtime=1, rwmixread=99)
    writes = {name: value for name, value in found.metrics.items() if name.startswith("write_")}
    assert len(writes) == 10
    assert set(writes.values()) == {None}
    assert found.metrics["read_iops"] == 44815.184815


def test_how_long_it_was_asked_to_measure() -> None:
    timed = reading("read-1m-short", rw="read", bs="1m", size="32m", direct=True, runtime=1)
    amount = reading("read-1m-short", rw="read", bs="1m", size="32m", direct=True)
    limited = reading(
        "read-1m-short", rw="read", bs="1m", size="32m", direct=True, runtime=1, time_based=False
    )
    assert [(each.measured_s, each.asked_s) for each in (timed, amount, limited)] == [
        (0.012, 1.0),
        (0.012, None),
        (0.012, None),
    ]


def test_the_depth_that_was_reached() -> None:
    asked = {"rw": "randread", "size": "64m", "direct": True, "iodepth": 32, "runtime": 1}
    found = reading("randread-shallow", **asked)
    # 95.8 x 1 + 2.6 x (2 to 3) + 0.8 x (4 to 7) + 0.8 x (8 to 15) of 100 %
    assert found.depth is not None
    assert found.depth.asked == 32
    assert found.depth.at_least == pytest.approx(1.106)
    assert found.depth.at_most == pytest.approx(1.212)
    assert found.metrics["achieved_depth"] == pytest.approx(1.106)
    for pace in ({"rate_iops": 500}, {"rate": "2m"}, {"thinktime": 2000}, {"latency_target": 5000}):
        paced = reading("randread-shallow", **asked, **pace)
        assert paced.depth is None, "the pace that the study sets needs no more requests at once"
        assert paced.metrics == found.metrics


def test_how_often_a_file_was_written() -> None:
    found = reading("write-1m-timed", rw="write", bs="1m", size="64m", direct=True, runtime=1)
    assert found.passes == pytest.approx(4675600384 / 67108864)
    in_place = reading("write-1m-timed", rw="randwrite", bs="1m", size="64m", direct=True, runtime=1)
    assert in_place.passes is None


def test_whether_what_was_written_was_flushed() -> None:
    def buffered(**more: Any) -> bool | None:
        return reading("write-1m-buffered", rw="write", bs="1m", size="64m", **more).flushed

    assert buffered() is True
    assert buffered(end_fsync=False) is False
    assert buffered(end_fsync=False, fsync=51) is True, "of 512 requests, 51 may be left"
    assert buffered(end_fsync=False, fsync=52) is False
    assert buffered(end_fsync=False, fdatasync=26, numjobs=2) is False, "26 of each process"
    assert buffered(fsync=1000) is True, "what is written after the last fsync is flushed at the end"
    assert buffered(end_fsync=False, sync=True) is True
    assert buffered(end_fsync=False, sync="dsync") is True
    assert buffered(end_fsync=False, sync="none") is False
    assert buffered(end_fsync=False, sync=1, ioengine="mmap") is False  # stores to a mapping are not writes


def test_a_queue_that_the_kernel_never_sees() -> None:
    def of(**more: Any) -> bool:
        return reading("randwrite-4k-qd32", rw="randwrite", size="64m", iodepth=32, **more).queue_in_tool

    assert of(ioengine="libaio", direct=False)
    assert not of(direct=True)
    assert not of(ioengine="io_uring", direct=False)


def test_the_bandwidth_over_time_of_all_jobs_and_directions() -> None:
    parameters = FIO.parse_parameters({"rw": "randrw", "size": "64m", "numjobs": 2, "runtime": "10s"})
    files = {
        name: (GOLDEN / file).read_text()
        for name, file in (("fio.json", "randrw-70-30-jobs2.json"), ("fio_bw.log", "randrw-jobs2_bw.log"))
    }
    found = read(FIO, parameters, ToolOutput(stdout="", stderr="", files=files, duration_s=3.0))
    (rate,) = found.rates
    assert (rate.what, rate.interval_s) == ("bandwidth", 0.2)
    # KiB/s: reads and writes of two jobs. The second interval ended at 401 ms in one job and at 400 ms in the other.
    kib = [
        34720 + 35940 + 34600 + 36920,
        41320 + 42460 + 41400 + 41480,
        44582 + 43738 + 42572 + 43819,
        46100 + 45180 + 45820 + 44960,
    ]
    assert rate.values == tuple(1024.0 * each for each in kib)


@pytest.mark.parametrize(
    ("lines", "kib"),
    [
        (["200, 10, 0, 0, 0", "400, 12, 0, 0, 0"], [10, 12]),
        # Two jobs: an interval that the second job did not reach is left out.
        (["200, 10, 0, 0, 0", "400, 12, 0, 0, 0", "600, 13, 0, 0, 0", "200, 20, 0, 0, 0", "401, 21, 0, 0, 0"],
         [30, 33]),
        # Nothing was transferred between 400 and 800 ms, and nothing was read before 200 ms.
        (["200, 7, 1, 0, 0", "400, 10, 0, 0, 0", "400, 5, 1, 0, 0", "1000, 8, 0, 0, 0"], [7, 15, 0, 0, 8]),
        # fio was late: the entries at 659 and 909 ms are for the intervals that end at 600, 800 and 1000 ms.
        (["200, 10, 0, 0, 0", "402, 11, 0, 0, 0", "659, 12, 0, 0, 0", "909, 13, 0, 0, 0"], [10, 11, 12, 13, 13]),
        # For both 620 and 690 ms, the nearest end of an interval is 600 ms.
        (["200, 10, 0, 0, 0", "400, 10, 0, 0, 0", "620, 12, 0, 0, 0", "690, 13, 0, 0, 0"], [10, 10, 12]),
    ],
)  # fmt: skip
def test_intervals_of_the_log(lines: list[str], kib: list[float]) -> None:
    assert rate_over_time("\n".join(lines)) == tuple(1024.0 * each for each in kib)


@pytest.mark.parametrize("text", ["", "fio: something\n"])
def test_a_log_without_lines_is_no_rate(text: str) -> None:
    assert rate_over_time(text) == ()


def test_the_top_class_of_depths_counts_as_reached() -> None:
    assert depth_bounds({"iodepth_level": {"32": 0.0, ">=64": 100.0}}, 256) == (64.0, 256.0)
    assert depth_bounds({"iodepth_level": {"1": 0.0}}, 1) == (None, None)


def test_messages_before_the_document_are_skipped() -> None:
    text = (GOLDEN / "note-before.json").read_text()
    assert text.startswith("note: both iodepth >= 1 and synchronous I/O engine")
    found = read(FIO, FIO.parse_parameters({"rw": "write", "bs": "64k", "size": "64m"}), output(text))
    assert found.metrics["write_bandwidth"] == 450395060.0


def test_command_lines_of_a_job_over_laid_out_files() -> None:
    parameters = FIO.parse_parameters(
        {"rw": "randwrite", "size": "1g", "iodepth": 32, "direct": 1, "runtime": "8s", "norandommap": 1}
    )
    commands = FIO.commands(parameters, JOB)
    job = (
        "fio --name=fslab --directory=/mnt/x --rw=randwrite --bs=4k --size=1g --ioengine=libaio --iodepth=32"
        " --numjobs=1 --direct=1 --runtime=8s --time_based=1 --overwrite=1 --fallocate=none --norandommap=1"
        " --randrepeat=0 --randseed=7"
    )
    report = " --group_reporting=1 --output-format=json --output=/run/s/fio.json"
    layout = (
        "fio --name=fslab --directory=/mnt/x --bs=4k --size=1g --ioengine=libaio --numjobs=1 --fallocate=none"
        " --norandommap=1 --randrepeat=0 --randseed=7 --rw=read --create_only=1"
    )
    assert [" ".join(argv) for argv in commands.prepare] == [layout]
    assert commands.prepared == ()
    rates = " --write_bw_log=/run/s/fio --log_avg_msec=200 --per_job_logs=0"
    assert " ".join(commands.run) == job + rates + report
    assert commands.outputs == ("fio.json", "fio_bw.log")


def test_command_line_of_a_sequential_write_makes_new_files() -> None:
    commands = FIO.commands(FIO.parse_parameters({"rw": "write", "size": "1g", "bs": "1m"}), JOB)
    assert commands.prepare == ()
    assert " ".join(commands.run) == (
        "fio --name=fslab --directory=/mnt/x --rw=write --bs=1m --size=1g --ioengine=psync --iodepth=1"
        " --numjobs=1 --direct=0 --fallocate=none --end_fsync=1 --randrepeat=0 --randseed=7"
        " --write_bw_log=/run/s/fio --log_avg_msec=200 --per_job_logs=0"
        " --group_reporting=1 --output-format=json --output=/run/s/fio.json"
    )


def test_a_run_too_short_for_a_rate_over_time_keeps_no_log() -> None:
    commands = FIO.commands(FIO.parse_parameters({"rw": "randread", "size": "1g", "runtime": "7s"}), JOB)
    assert not [word for word in commands.run if "log" in word]
    assert commands.outputs == ("fio.json",)


def test_seeds_fit_what_fio_reads() -> None:
    job = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=2**40 + 5)
    assert "--randseed=5" in FIO.commands(FIO.parse_parameters({"rw": "read", "size": "1g"}), job).run


def test_estimates() -> None:
    timed = FIO.parse_parameters({"rw": "randread", "size": "300m", "numjobs": 2, "runtime": "10s"})
    assert FIO.space_bytes(timed) == 600 * 1024 * 1024
    assert 10 < FIO.expected_s(timed) < 15
    # 1 GiB takes 13 s at the estimated 20,000 requests of 4 KiB per second.
    assert 13 < FIO.expected_s(FIO.parse_parameters({"rw": "write", "size": "1g"})) < 15


def test_all_percentiles_that_fio_tells() -> None:
    found = reading("randwrite-4k-fsync", rw="randwrite", bs="4k", size="256m", fsync=1, runtime=1).latencies
    assert set(found) == {"write", "fsync"}
    assert (found["write"][50.0], found["write"][99.99]) == (7136.0, 250880.0)
    assert (found["fsync"][1.0], found["fsync"][99.9], len(found["fsync"])) == (207872.0, 2867200.0, 17)


VERSIONS = GOLDEN.with_name("fio-versions")


@pytest.mark.parametrize(
    ("version", "atomic"), [("3.33", "0"), ("3.38", "1"), ("3.41-8-g1", "1"), ("4.0", "1")]
)
def test_atomic_where_fio_has_it_or_it_is_off(version: str, atomic: str) -> None:
    document = json.loads((VERSIONS / "fio-3.41.json").read_text())
    document["jobs"][0]["job options"] = {"atomic": atomic}
    text = json.dumps({**document, "fio version": f"fio-{version}"})
    parameters = FIO.parse_parameters({"rw": "randrw", "size": "4000k", "direct": True, "fsync": 100})
    assert read(FIO, parameters, output(text)).metrics["write_iops"] == 2000.0


@pytest.mark.parametrize("version", ["3.1", "3.16", "3.28", "3.36", "3.41"])
def test_documents_of_other_versions(version: str) -> None:
    """The same result is read from documents of several fio versions, whose format differs (README.md next to them)."""
    parameters = FIO.parse_parameters(
        {"rw": "randrw", "size": "4000k", "iodepth": 4, "direct": True, "fsync": 100, "ioengine": "libaio"}
    )
    found = read(FIO, parameters, output((VERSIONS / f"fio-{version}.json").read_text()))
    known = {name: value for name, value in found.metrics.items() if value is not None}
    synced = {"fsync_mean": 400000.0} if version != "3.1" else {}  # of 10 calls, none is above the p99
    assert known == {
        "write_iops": 2000.0,
        "write_bandwidth": 8192000.0,  # 1000 x 4096 bytes in 0.5 s
        "write_lat_mean": 405000.0,
        "write_slat_mean": 5000.0,
        "write_clat_mean": 400000.0,
        "write_clat_p50": 382976.0,
        "write_clat_p90": 561152.0,
        "write_clat_p99": 905216.0,
        "write_clat_p99_9": 1253376.0,
        "write_clat_max": 1900000.0,
        "cpu_user": 2.0,
        "cpu_system": 8.0,
        "achieved_depth": pytest.approx(3.993),  # 0.1 % of 1, 0.2 % of 2, 99.7 % of 4
        **synced,
    }
    assert set(found.latencies) == ({"write", "fsync"} if synced else {"write"})
    assert min(found.latencies["write"]) == 1.0
    assert (found.written_bytes, found.measured_s) == (4096000, 0.5)


def test_a_synchronous_engine_submits_in_no_time_of_its_own() -> None:
    """A synchronous engine has no submission latency. Old versions of fio write 0 for it, without a sample count."""
    document = json.loads((VERSIONS / "fio-3.1.json").read_text())
    document["jobs"][0]["write"]["slat_ns"] = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0}
    found = read(
        FIO, FIO.parse_parameters({"rw": "randwrite", "size": "4000k"}), output(json.dumps(document))
    )
    assert found.metrics["write_slat_mean"] is None
    assert found.metrics["write_lat_mean"] == 405000.0


def test_the_run_time_goes_by_a_clock_that_runs_while_others_have_their_turns() -> None:
    raw = {"rw": "randread", "size": "8m", "runtime": "1s"}
    timed = FIO.parse_parameters(raw)
    assert FIO.why_whole(timed) is None
    assert "--runtime=1s" in FIO.commands(timed, JOB).run
    assert "--runtime=3000ms" in FIO.commands(timed, replace(JOB, turns=3)).run
    assert (
        FIO.why_whole(FIO.parse_parameters({**raw, "rate_iops": 100}))
        == "'rate_iops' of fio goes by the clock"
    )
