"""Tests of the workload ``iozone``, with output of IOzone 3.489 (Linux 6.18, ext4 on a loop device)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.read import read, read_whole

from fslab.errors import ToolOutputError
from fslab.feasibility import programs_of
from fslab.filesystem_abilities import Ability
from fslab.plan.expand import expand
from fslab.study.load import load
from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

GOLDEN = Path(__file__).parents[1] / "golden/iozone-3.489"
IOZONE = REGISTRY.get("iozone")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=7)


def reading(name: str, **raw: Any) -> Reading:
    text = (GOLDEN / f"{name}.stdout").read_text()
    return read_whole(IOZONE, raw, ToolOutput(stdout=text, stderr="", duration_s=1.0))


def run_of(**raw: Any) -> str:
    return " ".join(IOZONE.commands(IOZONE.parse_parameters(raw), JOB).run)


def test_all_six_tests_of_one_point() -> None:
    found = reading("all-64m-64k", size="64m", record="64k")
    # IOzone prints kB/s of 1024 bytes.
    assert found.metrics == {
        "write_bandwidth": 1049770 * 1024,
        "rewrite_bandwidth": 1325512 * 1024,
        "read_bandwidth": 7397780 * 1024,
        "reread_bandwidth": 7931426 * 1024,
        "random_read_bandwidth": 8411761 * 1024,
        "random_write_bandwidth": 1292291 * 1024,
    }
    assert (found.read_bytes, found.written_bytes) == (3 * 67108864, 3 * 67108864)
    # 65536 kB / 1049770 kB/s
    assert found.parts_s["write"] == pytest.approx(0.0624289, rel=1e-5)
    # 0.0624289 + 0.0494420 + 0.0088589 + 0.0082628 + 0.0077910 + 0.0507130
    assert found.measured_s == pytest.approx(0.1874966, rel=1e-5)
    assert (found.flushed, found.direct, found.working_set_bytes) == (True, False, 67108864)
    assert found.messages == ()


def test_a_read_of_what_was_written_before() -> None:
    found = reading("read-16m-16k", tests=1, size="16m", record="16k")
    assert found.metrics == {"read_bandwidth": 4151028 * 1024, "reread_bandwidth": 7564220 * 1024}
    assert (found.read_bytes, found.written_bytes, found.flushed) == (33554432, 0, None)


def test_what_is_not_tested_again_is_no_zero() -> None:
    found = reading("no-retest-direct", tests="1,2", size="16m", record="16k", retest=False, direct=True)
    assert found.metrics == {
        "read_bandwidth": 2773652 * 1024,
        "random_read_bandwidth": 2705405 * 1024,
        "random_write_bandwidth": 1084659 * 1024,
    }
    assert found.direct
    assert (found.read_bytes, found.written_bytes) == (33554432, 16777216)


def test_processes_are_summed_by_iozone() -> None:
    found = reading("threads2", size="16m", record="64k", threads=2)
    assert found.metrics["write_bandwidth"] == pytest.approx(664153.38 * 1024)
    assert found.metrics["reread_bandwidth"] == pytest.approx(10054650.00 * 1024)
    assert found.metrics["random_write_bandwidth"] == pytest.approx(584121.75 * 1024)
    # When the first process has finished, the others no longer count what they transfer.
    assert (found.read_bytes, found.written_bytes, found.measured_s) == (None, None, None)
    assert found.working_set_bytes == 33554432


def test_processes_that_only_read() -> None:
    found = reading("threads2-no-retest", tests=1, retest=False, size="16m", record="64k", threads=2)
    assert found.metrics == {"read_bandwidth": pytest.approx(5473391.50 * 1024)}


def test_the_report_of_another_run_is_refused() -> None:
    with pytest.raises(ToolOutputError, match="0 figures for 32m in records of 64k, not 6"):
        reading("all-64m-64k", size="32m", record="64k")
    with pytest.raises(ToolOutputError, match="6 figures for 64m in records of 64k, not 2"):
        reading("all-64m-64k", tests=1, size="64m", record="64k")
    with pytest.raises(ToolOutputError, match="no throughput of 3 initial writers"):
        reading("threads2", size="16m", record="64k", threads=3)


def test_commands_of_a_point() -> None:
    assert run_of(size="4m", record="64k") == (
        "iozone -e -c -i 0 -i 1 -i 2 -w -s 4096k -r 64k -f /mnt/x/fslab.iozone"
    )
    assert run_of(size="4m", tests="0", purge=True, **{"cache-size": 1024, "cache-line": 64}) == (
        "iozone -e -c -p -S 1024 -L 64 -i 0 -w -s 4096k -r 4k -f /mnt/x/fslab.iozone"
    )
    assert run_of(size="1g", tests="2,0", flush=False, close=False, direct=True, sync=True) == (
        "iozone -I -o -i 0 -i 2 -w -s 1048576k -r 4k -f /mnt/x/fslab.iozone"
    )


def test_a_read_gets_its_file_before() -> None:
    commands = IOZONE.commands(IOZONE.parse_parameters({"tests": 1, "size": "4m", "record": "64k"}), JOB)
    assert [" ".join(argv) for argv in commands.prepare] == [
        "iozone -e -c -i 0 -+n -w -s 4096k -r 64k -f /mnt/x/fslab.iozone"
    ]
    assert " ".join(commands.run) == "iozone -e -c -i 1 -w -s 4096k -r 64k -f /mnt/x/fslab.iozone"
    assert commands.cleanup == (("rm", "-f", "/mnt/x/fslab.iozone"),)


def test_commands_of_processes() -> None:
    assert run_of(size="4m", record="64k", threads=2) == (
        "iozone -e -c -i 0 -i 1 -i 2 -w -s 4096k -r 64k -t 2 -F /mnt/x/fslab.iozone.0 /mnt/x/fslab.iozone.1"
    )


def test_room_time_and_needs() -> None:
    parameters = IOZONE.parse_parameters({"size": "64m", "tests": 1, "threads": 2, "direct": True})
    assert IOZONE.space_bytes(parameters) == 134217728
    # Written, read, read again: 3 × 128 MiB at 200 MB/s, with a pause of 3.4 s each.
    assert IOZONE.expected_s(parameters) == pytest.approx(2.01326592 + 10.2)
    assert IOZONE.needs(parameters).abilities == {Ability.DIRECT_READS, Ability.DIRECT_WRITES}
    assert IOZONE.needs(parameters).largest_file_bytes == 67108864


def test_the_engine_has_iozones_options() -> None:
    given = {"purge": True, "cache-size": 30720, "size": "4m", "record": "64k", "program": "engine"}
    assert run_of(**given, tests="2,0", retest=False, direct=True, sync=True, threads=2) == (
        "fslab-engine iozone /mnt/x --tests=0,2 --flush --close --direct --sync --no-retest --purge=31457280 "
        "--size=4194304 --record=65536 --threads=2 --latency=off --seed=7 --json --keep"
    )


def test_the_engine_reads_what_it_wrote_before() -> None:
    commands = IOZONE.commands(IOZONE.parse_parameters({"tests": 1, "size": "4m", "program": "engine"}), JOB)
    (layout,) = commands.prepare
    assert " ".join(layout).startswith(
        "fslab-engine iozone /mnt/x --tests=0 --flush --close --no-retest --size=4194304 --record=4096"
    )
    assert commands.cleanup == (("rm", "-rf", "/mnt/x/fslab-iozone"),)


def test_what_the_engine_tells() -> None:
    """Metrics are read from the golden document of the engine's tests: two threads, 256 KiB, records of 4 and 8 KiB."""
    golden = json.loads((Path(__file__).parents[2] / "engine/golden/iozone.json").read_text())
    tests = [test for test in golden["answer"]["tests"] if test["record_bytes"] == 8192]
    text = json.dumps({**golden, "answer": {"tests": tests}})
    parameters = IOZONE.parse_parameters({"program": "engine", "size": "256k", "record": "8k"})
    found = read(IOZONE, parameters, ToolOutput(stdout=text, stderr="", duration_s=1.0))
    assert set(found.metrics) == {metric.name for metric in IOZONE.metrics(parameters)}
    assert found.metrics["random_write_bandwidth"] == tests[-1]["bandwidth_bytes_per_second"]
    assert found.parts_s["write"] == pytest.approx(262144 / tests[0]["bandwidth_bytes_per_second"])
    assert found.flushed
    other = IOZONE.parse_parameters({"program": "engine", "size": "1m"})
    with pytest.raises(ToolOutputError, match="which was not requested"):
        read(IOZONE, other, ToolOutput(stdout=text, stderr="", duration_s=1.0))
    with pytest.raises(ToolOutputError, match="not as documented"):
        read(IOZONE, parameters, ToolOutput(stdout="", stderr="", duration_s=1.0))


def test_rounds_have_files_of_their_own_and_count_together() -> None:
    """Ten rounds of 1 MiB: space and time of all, a working set of one; each test ends after 1 s."""
    raw = {"program": "engine", "size": "1m", "record": "64k", "tests": "1", "rounds": 10}
    parameters = IOZONE.parse_parameters(raw)
    commands = IOZONE.commands(parameters, JOB)
    assert commands.prepare[0][-2:] == ("--rounds=10", "--keep")
    assert commands.run[-3:] == ("--rounds=10", "--enough=1", "--keep")
    assert IOZONE.space_bytes(parameters) == 10 << 20
    # Written, read, read again: 3 MiB at 200 MB/s in each round.
    assert IOZONE.expected_s(parameters) == pytest.approx(10 * 3 * 1048576 / 200e6)
    assert IOZONE.parse_parameters({**raw, "size": "256m", "rounds": 100}).most_rounds == 32, "8 GiB in all"
    tests = [
        {
            "name": name,
            "size_bytes": 1 << 20,
            "record_bytes": 65536,
            "bandwidth_bytes_per_second": rate,
            "rounds": 4,
        }
        for name, rate in (("read", 2 << 20), ("reread", 8 << 20))
    ]
    golden = json.loads((Path(__file__).parents[2] / "engine/golden/iozone.json").read_text())
    one = {**golden["operations"][0], "seconds": 0.5, "cpu_user_seconds": 0.1, "cpu_system_seconds": 0.2}
    at = (("read", 1.0), ("reread", 1.5), ("read", 2.0), ("reread", 2.5))
    operations = [{**one, "name": name, "began_seconds": begin} for name, begin in at]
    text = json.dumps({**golden, "operations": operations, "answer": {"tests": tests}})
    found = read(IOZONE, parameters, ToolOutput(stdout=text, stderr="", duration_s=3.0))
    assert found.parts_s == {"read": 2.0, "reread": 0.5}
    assert (found.measured_s, found.read_bytes, found.working_set_bytes) == (2.5, 8 << 20, 1 << 20)
    assert found.rounds == 4
    assert found.part_rounds == {"read": ((1.0, 1.5), (2.0, 2.5)), "reread": ((1.5, 2.0), (2.5, 3.0))}
    assert found.part_cpu_s == pytest.approx({"read": 0.6, "reread": 0.6})
    more = {**golden, "answer": {"tests": [{**test, "rounds": 11} for test in tests]}}
    with pytest.raises(ToolOutputError, match="11 rounds, not up to 10"):
        read(IOZONE, parameters, ToolOutput(stdout=json.dumps(more), stderr="", duration_s=3.0))
    large = IOZONE.parse_parameters({**raw, "size": "4g"})
    assert IOZONE.space_bytes(large) == 8 << 30


def test_each_program_is_needed_by_who_names_it() -> None:
    def needed(**raw: Any) -> list[str]:
        return [tool.program for tool in IOZONE.tools_of(IOZONE.parse_parameters({"size": "1m", **raw}))]

    assert needed() == needed(program="iozone") == ["iozone"]
    assert needed(program="engine") == ["fslab-engine"]


def test_the_shipped_study_needs_no_package_of_non_free() -> None:
    programs = {tool.program for cell in expand(load("iozone-ssd-hdd")) for tool in programs_of(cell)}
    assert "fslab-engine" in programs
    assert "iozone" not in programs


def test_it_is_not_in_debians_main() -> None:
    (tool,) = IOZONE.tools_of(IOZONE.parse_parameters({"size": "1m"}))
    assert tool.remedy.endswith("iozone3 (from the component 'non-free', which must be enabled first)")
