"""Tests of the workload ``bonnie``, with output of bonnie++ 2.00a (Debian 12, Linux 6.18, ext4 on a loop device)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.read import read, read_whole

from fslab.errors import ToolOutputError
from fslab.filesystem_abilities import Ability
from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

GOLDEN = Path(__file__).parents[1] / "golden/bonnie-2.00a"
BONNIE = REGISTRY.get("bonnie")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=8)


def reading(name: str, **raw: Any) -> Reading:
    text = (GOLDEN / f"{name}.stdout").read_text()
    return read_whole(BONNIE, raw, ToolOutput(stdout=text, stderr="", duration_s=1.0))


def test_figures_are_where_bonnie_puts_them() -> None:
    found = reading(
        "all",
        **{"size": "1g", "bs": "64k", "files": 16384, "max-size": "4k", "min-size": "4k", "dirs": 10},
    )
    assert found.metrics["write_bandwidth"] == 140366 * 1024
    assert (found.metrics["write_cpu"], found.metrics["write_latency_max"]) == (3.0, 11991e3)
    assert found.metrics["rewrite_bandwidth"] == 852866 * 1024
    assert (found.metrics["rewrite_cpu"], found.metrics["rewrite_latency_max"]) == (16.0, 6067e3)
    assert (found.metrics["seq_create_rate"], found.metrics["seq_create_cpu"]) == (29280.0, 22.0)
    assert found.metrics["seq_create_latency_max"] == 12112e3
    assert found.metrics["random_delete_latency_max"] == 15908e3
    # 1048576 KiB / (140366 KiB/s); 16384 files / (29280 files/s)
    assert found.parts_s["write"] == pytest.approx(7.470299, rel=1e-6)
    assert found.parts_s["seq_create"] == pytest.approx(0.559563, rel=1e-5)
    assert found.flushed
    assert found.working_set_bytes == 1073741824 + 16384 * 4096


def test_what_was_too_fast_to_time_is_unknown_and_said() -> None:
    found = reading(
        "all",
        **{"size": "1g", "bs": "64k", "files": 16384, "max-size": "4k", "min-size": "4k", "dirs": 10},
    )
    assert found.metrics["read_bandwidth"] is None
    assert found.metrics["read_cpu"] is None
    assert found.metrics["read_latency_max"] == 5343e3
    assert found.metrics["seek_rate"] is None
    assert set(found.parts_s) == {"write", "rewrite", "seq_create"}
    assert found.measured_s is None
    (message,) = found.messages
    told, _, untold = message.partition(": ")
    assert told == "too short to measure (bonnie++ needs 0.5 s per test)"
    assert untold.split(", ") == [
        "read", "seek", "seq_stat", "seq_delete", "random_create", "random_stat", "random_delete",
    ]  # fmt: skip


def test_fsync_of_each_file() -> None:
    found = reading("fsync", size="512m", bs="8k", seeks=4096, files=102400, dirs=1000, fsync=True)
    assert found.metrics["seq_create_rate"] == 1970.0
    assert found.metrics["seq_stat_rate"] is None
    assert found.metrics["seq_delete_rate"] == 2060.0
    assert found.metrics["random_create_rate"] == 731.0
    assert found.metrics["random_delete_rate"] == 451.0
    # bonnie++ prints latencies from 0.1 s on in ms.
    assert found.metrics["random_delete_latency_max"] == 180e6
    # 102400 / 451
    assert found.parts_s["random_delete"] == pytest.approx(227.0510, rel=1e-6)


def test_byte_by_byte() -> None:
    found = reading("too-fast", size="16m", fast=False)
    assert (found.metrics["putc_bandwidth"], found.metrics["putc_cpu"]) == (2863 * 1024, 67.0)
    assert (found.metrics["getc_bandwidth"], found.metrics["getc_cpu"]) == (3043 * 1024, 50.0)
    assert (found.metrics["putc_latency_max"], found.metrics["getc_latency_max"]) == (9876e3, 9378e3)
    # bonnie++ reads and writes 3 MiB byte by byte (bonnie.h).
    assert found.parts_s["putc"] == pytest.approx(3072 / 2863)


def test_files_alone_have_no_figures_of_a_large_one() -> None:
    found = reading("files", files=16384)
    assert len(found.metrics) == 6 * 3
    assert found.metrics["seq_create_rate"] is None
    assert found.metrics["seq_create_latency_max"] == 8789e3
    assert (found.read_bytes, found.written_bytes) == (0, 0)


def test_bytes_are_unknown_where_they_are_drawn() -> None:
    assert reading("too-fast", size="16m", fast=False).written_bytes is None
    alone = reading("too-fast", size="16m", fast=False, seeks=0)
    # 16 MiB written, 16 MiB rewritten, 3 MiB byte by byte; as much is read.
    assert alone.written_bytes == alone.read_bytes == 35 * 1048576
    drawn = reading("files", **{"files": 16384, "max-size": "4k"})
    assert (drawn.read_bytes, drawn.written_bytes) == (None, None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1.98,", "1.97,", "format 1.98"),
        (",10,", ",", "format 1.98"),
        ("140366", "fast", "'fast' for write"),
        ("5343us", "5343", "'5343' as the latency of read"),
    ],
)
def test_another_form_is_refused(old: str, new: str, message: str) -> None:
    text = (GOLDEN / "all.stdout").read_text()
    assert old in text
    parameters = BONNIE.parse_parameters({"size": "1g", "files": 16384})
    with pytest.raises(ToolOutputError, match=message):
        read(BONNIE, parameters, ToolOutput(stdout=text.replace(old, new, 1), stderr="", duration_s=1.0))


def test_commands_of_the_striping_study(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = BONNIE.parse_parameters({"size": "32g", "ram": "16g", "files": 102400, "dirs": 1000})
    monkeypatch.setattr("os.geteuid", lambda: 0)
    commands = BONNIE.commands(parameters, JOB)
    assert " ".join(commands.run) == (
        "bonnie++ -q -m fslab -d /mnt/x -u root -r 16384 -s 32768:8192:8192:5 -n 100:0:0:1000 -f -z 8"
    )
    assert (commands.prepare, commands.cleanup) == ((), ())
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "-u" not in BONNIE.commands(parameters, JOB).run


def test_commands_of_the_rest() -> None:
    given = {"size": "64m", "bs": "1m", "seeks": 0, "direct": True, "fsync": True}
    run = " ".join(BONNIE.commands(BONNIE.parse_parameters(given), JOB).run)
    assert run.endswith("-r 0 -s 64:1048576:0:5 -n 0 -f -b -D -z 8")
    small = {"files": 1024, "max-size": "8k", "min-size": "1k"}
    assert " ".join(BONNIE.commands(BONNIE.parse_parameters(small), JOB).run).endswith(
        "-r 0 -s 0 -n 1:8192:1024:1 -f -z 8"
    )
    bytewise = BONNIE.commands(BONNIE.parse_parameters({"size": "64m", "fast": False}), JOB).run
    assert "-f" not in bytewise


def test_seeds_fit_what_bonnie_reads() -> None:
    job = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=2**63 + 5)
    assert BONNIE.commands(BONNIE.parse_parameters({"size": "1g"}), job).run[-2:] == ("-z", "5")


def test_room_time_and_needs() -> None:
    both = BONNIE.parse_parameters({"size": "64m", "files": 102400, "dirs": 1000, "direct": True})
    # 102400 × 1 KiB of inodes and 1000 directories of 4 KiB need more space than the file of 64 MiB.
    assert BONNIE.space_bytes(both) == 104857600 + 4096000
    # 4 × 64 MiB at 200 MB/s, 3 s before the seeks, 6 × 102400 files at 15 000/s.
    assert BONNIE.expected_s(both) == pytest.approx(1.34217728 + 3 + 40.96)
    assert BONNIE.needs(both).abilities == {Ability.DIRECT_WRITES}
    assert BONNIE.needs(both).largest_file_bytes == 67108864


def test_each_test_of_files_says_when_it_begins_and_ends() -> None:
    said = "".join(
        f"{test} files in {order} order...done.\n"
        for order in ("sequential", "random")
        for test in ("Create", "Stat", "Delete")
    )
    output = ToolOutput(stdout=(GOLDEN / "all.stdout").read_text(), stderr=said, duration_s=9.0)
    raw = {"size": "1g", "bs": "64k", "files": 16384, "max-size": "4k", "min-size": "4k", "dirs": 10}
    found = read(BONNIE, BONNIE.parse_parameters(raw), output)
    begin, end = found.marks["seq_create"]
    assert said[:begin].endswith("Create files in sequential order...")
    assert said[begin:end] == "done."
