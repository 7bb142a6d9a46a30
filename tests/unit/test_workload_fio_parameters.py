"""Tests of the parameters of the workload ``fio``: their consequences, and the messages about mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fslab.workloads import REGISTRY, Job
from fslab.workloads._fio_options import ALIASES, KNOWN, LEFT_OUT, ORDER, REFUSED
from fslab.workloads._fio_parameters import FioParameters

FIO = REGISTRY.get("fio")
LEAST = {"rw": "read", "size": "1g"}


def mistakes(**raw: Any) -> dict[str, str]:
    """Return the mistakes that fslab finds, by key."""
    with pytest.raises(ValidationError) as caught:
        FioParameters.model_validate(raw)
    return {str(found["loc"][0]): found["msg"] for found in caught.value.errors()}


@pytest.mark.parametrize(
    ("rw", "reads", "writes", "random", "in_place", "laid_out"),
    [
        ("read", True, False, False, False, True),
        ("randread", True, False, True, False, True),
        ("write", False, True, False, False, False),
        ("randwrite", False, True, True, True, True),
        ("rw", True, True, False, True, True),
        ("randrw", True, True, True, True, True),
        ("write:64k", False, True, False, False, False),
    ],
)
def test_what_a_mode_implies(
    rw: str, reads: bool, writes: bool, random: bool, in_place: bool, laid_out: bool
) -> None:
    job = FioParameters(rw=rw, size="1g")
    assert (job.reads, job.writes, job.one.random) == (reads, writes, random)
    assert (job.in_place, job.laid_out) == (in_place, laid_out)


def test_overwrite_can_be_asked_for_and_refused() -> None:
    assert FioParameters(rw="write", size="1g", overwrite=True).laid_out
    assert not FioParameters(rw="randwrite", size="1g", overwrite=False).laid_out


def test_direct_jobs_are_asynchronous_unless_told_otherwise() -> None:
    assert FioParameters(rw="read", size="1g", direct=True).engine == "libaio"
    assert FioParameters(rw="read", size="1g").engine == "psync"
    assert FioParameters(rw="read", size="1g", direct=True, ioengine="io_uring").engine == "io_uring"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, True),
        ({"direct": True}, False),
        ({"fsync": 1}, False),
        ({"fdatasync": 8}, False),
        ({"fsync": 1, "end_fsync": True}, True),
        ({"end_fsync": False}, False),
    ],
)
def test_buffered_writes_end_with_an_fsync(raw: dict[str, Any], expected: bool) -> None:
    assert FioParameters.model_validate({"rw": "write", "size": "1g", **raw}).final_fsync is expected


def test_reads_end_without_an_fsync() -> None:
    assert not FioParameters(rw="randread", size="1g").final_fsync


def test_a_runtime_is_kept_to_unless_told_otherwise() -> None:
    assert FioParameters(rw="read", size="1g", runtime="2s").timed
    assert not FioParameters(rw="read", size="1g", runtime="2s", time_based=False).timed
    assert not FioParameters(rw="read", size="1g").timed


def test_numbers_of_a_study_file_become_text() -> None:
    job = FioParameters.model_validate({"rw": "read", "size": 1048576, "bs": 4096, "runtime": 5})
    assert (job.size, job.bs, job.runtime) == ("1048576", "4096", "5")
    assert job.total_bytes == 1048576
    assert job.one.runtime_s == 5.0


def test_all_jobs_count_for_the_size() -> None:
    assert FioParameters(rw="read", size="64m", numjobs=3).total_bytes == 3 * 64 * 1024 * 1024


def test_other_options_pass_as_fio_spells_them() -> None:
    job = FioParameters.model_validate(
        {**LEAST, "norandommap": True, "rate_iops": 500, "bssplit": "4k/50:64k/50"}
    )
    assert job.others == {"norandommap": "1", "rate_iops": "500", "bssplit": "4k/50:64k/50"}


def test_a_typo_gets_a_suggestion() -> None:
    assert mistakes(**LEAST, rwmixraed=70) == {
        "rwmixraed": "fio has no such option: did you mean 'rwmixread'?"
    }


def test_an_unknown_option_far_from_all_others_points_to_fio() -> None:
    assert mistakes(**LEAST, xyzzy=1) == {
        "xyzzy": "fio has no such option: delete it, or see fio --cmdhelp=all"
    }


def test_all_mistakes_are_found_at_once() -> None:
    found = mistakes(rw="raed", size="64MiX", bs="4kx", iodept=3, filename="/dev/sda", direct="perhaps")
    assert set(found) == {"rw", "size", "bs", "iodept", "filename", "direct"}


def test_missing_keys_are_found_with_wrong_ones() -> None:
    assert set(mistakes(iodept=3)) == {"rw", "size", "iodept"}


@pytest.mark.parametrize("key", ["opendir", "read_iolog", "aux-path", "verify_state_load", "create_only"])
def test_keys_that_reach_outside_are_refused(key: str) -> None:
    assert "not allowed: " in mistakes(**LEAST, **{key: "x"})[key]


@pytest.mark.parametrize("name", ["/dev/sda", "..", "a:../b", "-", ""])
def test_names_of_files_have_no_directory(name: str) -> None:
    assert "must be plain file names" in mistakes(**LEAST, filename=name)["filename"]
    assert FIO.space_bytes(FIO.parse_parameters({**LEAST, "filename": "a", "numjobs": 4})) == 1 << 30


@pytest.mark.parametrize("key", ["exec_prerun", "exec_postrun", "trigger"])
def test_keys_that_run_commands_are_refused(key: str) -> None:
    assert "may not run commands" in mistakes(**LEAST, **{key: "reboot"})[key]


@pytest.mark.parametrize(
    "key", ["ioscheduler", "cgroup", "uid", "gid", "client", "stonewall", "scale", "variables.A"]
)
def test_keys_that_fslab_owns_are_refused(key: str) -> None:
    assert key in mistakes(**LEAST, **{key: "1"})


def test_keys_that_place_files_or_write_logs_are_left_out_with_a_notice() -> None:
    parameters = FIO.parse_parameters(
        {**LEAST, "directory": "/srv", "write_bw_log": "x", "group_reporting": True}
    )
    job = Job(directory=Path("/d"), scratch=Path("/s"), seed=1)
    assert not [word for word in FIO.commands(parameters, job).run if "srv" in word or word.endswith("=x")]
    assert FIO.notices(parameters) == ("left out: directory, write_bw_log, group_reporting",)


@pytest.mark.parametrize(
    ("key", "value"),
    [("ramp_time", "2"), ("filesize", "1m"), ("randrepeat", "1"), ("randseed", "5"), ("invalidate", "0"),
     ("pre_read", "1"), ("ss", None), ("filename", "data"), ("steadystate", "iops:5%")],
)  # fmt: skip
def test_a_job_and_a_job_file_have_the_same_options(key: str, value: str | None) -> None:
    if value is None:
        assert mistakes(**LEAST, **{key: "x"}) == {key: f"write it as '{ALIASES[key]}'"}
        return
    alone = FIO.parse_parameters({**LEAST, key: value})
    file = {"file": "x.fio", "file_text": f"[a]\nsize=1g\n{key}={value}\n"}
    form = FIO.of(file)
    job = Job(directory=Path("/d"), scratch=Path("/s"), seed=1)
    assert f"--{key}={value}" in FIO.commands(alone, job).run
    assert f"{key}={value}" in form.commands(form.parse_parameters(file), job).inputs["jobs.fio"]


def test_file_names_hidden_in_values_are_refused() -> None:
    assert mistakes(**LEAST, mem="mmaphuge:/etc/passwd") == {"mem": "file names are not allowed here"}
    assert "buffer_pattern" in mistakes(**LEAST, buffer_pattern="'secret'")


def test_a_second_name_of_an_option_points_to_the_first() -> None:
    assert mistakes(**LEAST, blocksize="4k") == {"blocksize": "write it as 'bs'"}


@pytest.mark.parametrize("size", ["64MiX", "20%", "0", "-1", "1e3"])
def test_an_invalid_size_is_refused(size: str) -> None:
    assert "is not a size" in mistakes(rw="read", size=size)["size"]


@pytest.mark.parametrize(
    ("written", "told"), [("64MiB", "64m"), ("1.5m", "1536k"), ("64kb", "64k"), (3000, "3000"), ("2G", "2G")]
)
def test_fio_is_told_sizes_as_it_reads_them(written: str | int, told: str) -> None:
    parameters = FIO.parse_parameters({"rw": "write", "size": written, "bs": "8KiB,0.5k", "io_size": "1MiB"})
    argv = FIO.commands(parameters, Job(directory=Path("/d"), scratch=Path("/s"), seed=1)).run
    assert {f"--size={told}", "--bs=8k,512", "--io_size=1m"} <= set(argv)


@pytest.mark.parametrize(
    ("written", "passed"), [("1.5", "1500ms"), ("1h30m", "5400000ms"), ("0.25s", "250ms"), ("10s", "10s")]
)
def test_run_times_that_fio_cuts_are_given_in_milliseconds(written: str, passed: str) -> None:
    assert FioParameters.model_validate({**LEAST, "runtime": written}).runtime == passed


@pytest.mark.parametrize(("runtime", "told"), [("two", "is not a duration"), ("0.1ms", "less than a milli")])
def test_times_that_fio_cannot_run_are_refused(runtime: str, told: str) -> None:
    assert told in mistakes(**LEAST, runtime=runtime)["runtime"]


@pytest.mark.parametrize(
    ("option", "value"),
    [("io_size", "2.5m"), ("offset", "1.5m"), ("rate", "1.5m"), ("rate", "10 m"), ("rate_iops", "0.5k"),
     ("bsrange", "1.5k-4k"), ("thinktime_blocks", 1.5)],
)  # fmt: skip
def test_a_number_of_which_fio_reads_only_the_first_digits_is_refused(
    option: str, value: str | float
) -> None:
    """With a rate of 1.5m, fio would transfer one byte per second."""
    assert "only the first digits" in mistakes(**LEAST, **{option: value})[option]


@pytest.mark.parametrize("value", ["0.5", "2.5ms", "1m30s", "30sec", "300 ms"])
def test_a_time_that_fio_reads_otherwise_is_refused(value: str) -> None:
    """To fio, 1m30s and 30sec are microseconds."""
    assert f"fio reads '{value}' as another time" in mistakes(**LEAST, startdelay=value)["startdelay"]


def test_a_number_that_fio_reads_as_written_may_have_a_point() -> None:
    read = {"random_distribution": "zipf:1.2", "latency_percentile": 99.9, "io_size": "1.5MiB"}
    assert FioParameters.model_validate({**LEAST, **read}).others["io_size"] == "1536k"


def test_fio_rounds_io_size_up_to_one_request() -> None:
    assert FioParameters(**{**LEAST, "bs": "64k", "io_size": "4k"}).others["io_size"] == "4k"


def test_depth_needs_an_asynchronous_engine() -> None:
    assert (
        "no effect above 1 with the synchronous I/O engine psync" in mistakes(**LEAST, iodepth=32)["iodepth"]
    )
    assert FioParameters(rw="read", size="1g", iodepth=32, direct=True).iodepth == 32
    assert FioParameters(rw="read", size="1g", iodepth=32, ioengine="io_uring").iodepth == 32


@pytest.mark.parametrize("rw", ["trim", "randtrim", "trimwrite"])
def test_trim_is_refused(rw: str) -> None:
    assert "trims block devices only" in mistakes(rw=rw, size="1g")["rw"]


def test_engines_that_do_no_file_io_are_refused() -> None:
    assert "transfers no data" in mistakes(**LEAST, ioengine="filecreate")["ioengine"]
    assert "did you mean 'libaio'" in mistakes(**LEAST, ioengine="libiao")["ioengine"]
    assert "ioengine" in mistakes(**LEAST, ioengine="exec")
    assert "ioengine" in mistakes(**LEAST, ioengine="external:/tmp/x.so")


def test_time_based_needs_a_runtime() -> None:
    assert mistakes(**LEAST, time_based=True) == {"time_based": "needs 'runtime'"}


@pytest.mark.parametrize(
    ("nrfiles", "told"),
    [
        ("abc", "'abc' is not a whole number in digits"),
        ("4k", "'4k' is not a whole number in digits"),
        ("2000000000", "2000000000 files cannot share 1g: less than one byte each"),
    ],
)
def test_a_number_of_files_that_is_none(nrfiles: str, told: str) -> None:
    assert mistakes(**LEAST, nrfiles=nrfiles) == {"nrfiles": told}


def test_fsync_needs_writes() -> None:
    assert mistakes(**LEAST, fsync=1) == {"fsync": "needs an 'rw' that writes"}


def test_lists_of_names_do_not_contradict_each_other() -> None:
    assert not KNOWN & set(REFUSED)
    assert not KNOWN & set(ALIASES)
    assert not (LEFT_OUT | ORDER) & (KNOWN | set(REFUSED) | set(ALIASES))
    assert set(ALIASES.values()) <= KNOWN | ORDER
    assert set(FioParameters.model_fields) - {"file", "scale"} <= KNOWN


@pytest.mark.parametrize(
    ("keys", "wrong"),
    [
        ({"bs": "2g"}, "bs"), ({"thinktime_spin": 5}, "thinktime_spin"), ({"loops": -1}, "loops"),
        ({"rw": "read", "verify_pattern": "0xff"}, "verify"), ({"nrfiles": 4, "bs": "512m"}, "bs"),
        ({"rw": "rw", "bs": "4k,2g"}, "bs"),
        ({"rw": "randread", "verify": "md5"}, "verify"), ({"verify": "md5", "verify_only": True}, "verify"),
        ({"rw": "rw", "create_on_open": True}, "create_on_open"), ({"zonesize": "64k"}, "zonesize"),
        ({"zonemode": "zbd"}, "zonemode"), ({"allow_file_create": False}, "allow_file_create"),
        ({"nrfiles": 0}, "nrfiles"), ({"iodepth": 0}, "iodepth"), ({"description": ""}, "description"),
        ({"rw": "rw", "rwmixread": 100, "fsync": 1}, "fsync"),
    ],
)  # fmt: skip
def test_a_job_that_fio_would_not_run_as_written(keys: dict[str, Any], wrong: str) -> None:
    assert list(mistakes(**{**LEAST, "rw": "write", **keys})) == [wrong]
