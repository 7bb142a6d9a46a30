"""Tests of fslab-disk: contents, power cuts, faults and log. No test depends on the speed of the machine."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.disk_server import BINARY, MIB, SIZE
from tests.limits import ran

from fslab.system import disk_server, proc


def test_a_file_system_lives_on_it(serve: Any, tmp_path: Path) -> None:
    server = serve("--memory", str(64 * MIB))
    loop = server.attach()
    proc.run(["mkfs.ext4", "-q", "-F", str(loop)])
    target = tmp_path / "mounted"
    target.mkdir()
    proc.run(["mount", str(loop), str(target)])
    try:
        (target / "file").write_bytes(b"contents" * 1000)
        os.sync()
    finally:
        proc.run(["umount", str(target)])
    proc.run(["e2fsck", "-fn", str(loop)])
    statistics = server.ask("statistics")
    assert statistics["operations"]["flush"]["requests"] > 0
    assert 0 < statistics["stored_bytes"] < 64 * MIB


def test_chunks_lie_on_the_drives_in_turn(serve: Any) -> None:
    chunk = 64 << 10
    server = serve("--profile", "hdd-7200", "--cache", "none", "--drives", "4", "--chunk", str(chunk))
    server.ask("pace", real=False)

    def writes() -> list[int]:
        return [each["media_writes"] for each in server.ask("statistics")["model"]["members"]]

    with server.disk.open("r+b", buffering=0) as disk:
        for number in range(8):
            before = writes()
            data = bytes([number + 1]) * chunk
            assert os.pwrite(disk.fileno(), data, number * chunk) == chunk
            after = writes()
            assert [now > then for now, then in zip(after, before, strict=True)] == [
                drive == number % 4 for drive in range(4)
            ]
        assert os.pwrite(disk.fileno(), b"x" * 4 * chunk, 2 * chunk) == 4 * chunk
        assert all(now > then for now, then in zip(writes(), after, strict=True)), "a row concerns all"
        expected = b"".join(bytes([each]) * chunk for each in (1, 2)) + b"x" * 4 * chunk
        assert os.pread(disk.fileno(), 6 * chunk, 0) == expected


@pytest.mark.parametrize("wrong", [["--drives", "3"], ["--drives", "2", "--chunk", "5000"]])
def test_an_array_of_parts_of_chunks_is_refused(tmp_path: Path, wrong: list[str]) -> None:
    argv = [str(BINARY), "serve", str(tmp_path / "disk"), "--control", str(tmp_path / "control")]
    done = ran([*argv, "--size", str(SIZE), *wrong])
    assert done.returncode == 1
    assert "multiple of" in done.stderr
    assert not (tmp_path / "disk").exists()


def test_a_discard_gives_memory_back(serve: Any) -> None:
    server = serve()
    with server.disk.open("r+b", buffering=0) as disk:
        disk.write(b"x" * MIB)
        proc.run(["fallocate", "--punch-hole", "--offset", "4096", "--length", "524288", str(server.disk)])
        assert server.ask("statistics")["stored_bytes"] == MIB - 524288
        assert os.pread(disk.fileno(), MIB, 0) == b"x" * 4096 + bytes(524288) + b"x" * (MIB - 528384)


@pytest.mark.parametrize("options", [[], ["--timed"]])
def test_requests_need_not_be_whole_sectors(serve: Any, options: list[str]) -> None:
    """A guest's drive can use the disk's file directly, so that requests need not consist of whole sectors."""
    server = serve(*options)
    with server.disk.open("r+b", buffering=0) as disk:
        os.pwrite(disk.fileno(), b"x" * 10000, 0)
        os.pwrite(disk.fileno(), b"abc", 4094)
        assert os.pread(disk.fileno(), 7, 4092) == b"xxabcxx"


def test_memory_has_a_bound(serve: Any) -> None:
    server = serve("--memory", str(8 * MIB), size=1 << 40)
    with server.disk.open("r+b", buffering=0) as disk:
        disk.seek(1 << 39)
        with pytest.raises(OSError, match="No space left"):
            for _ in range(16):
                disk.write(bytes([1]) * MIB)
    assert server.ask("statistics")["no_space"] > 0
    assert server.ask("statistics")["stored_bytes"] <= 8 * MIB


def resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Pss_Anon")).split()[1]) * 1024


@pytest.mark.parametrize("stride", [4096, 64 << 10, 1 << 24])
def test_memory_is_what_was_written(serve: Any, stride: int) -> None:
    server = serve("--memory", str(128 * MIB), size=1 << 40)
    before = resident(server.process.pid)
    pages = 16384
    with server.disk.open("r+b", buffering=0) as disk:
        for page in range(pages):
            os.pwrite(disk.fileno(), b"x" * 4096, page * stride)
    assert resident(server.process.pid) - before <= 1.1 * pages * 4096


def test_a_power_cut_keeps_what_was_flushed(serve: Any) -> None:
    server = serve("--cache", "volatile")
    with server.disk.open("r+b", buffering=0) as disk:
        disk.write(b"a" * MIB)
        os.fsync(disk.fileno())
        disk.write(b"b" * MIB)
        os.pwrite(disk.fileno(), b"c" * 4096, 0)
        cut = server.ask("cut", unflushed="lost")["cut"]
        assert cut["lost_bytes"] == cut["unflushed_bytes"] == MIB + 4096
        with pytest.raises(OSError, match="Input/output error"):
            os.pread(disk.fileno(), 512, 0)
        server.ask("power_on")
        assert os.pread(disk.fileno(), MIB, 0) == b"a" * MIB
        assert os.pread(disk.fileno(), MIB, MIB) == bytes(MIB)


@pytest.mark.parametrize("options", [[], ["--cache", "volatile"]])
def test_a_power_cut_at_the_nth_write(serve: Any, options: list[str]) -> None:
    server = serve(*options)
    server.ask("cut", unflushed="kept", after={"writes": 3})
    with server.disk.open("r+b", buffering=0) as disk:
        for number in range(3):
            os.pwrite(disk.fileno(), b"x" * 4096, number * 4096)
        with pytest.raises(OSError, match="Input/output error"):
            os.pwrite(disk.fileno(), b"x" * 4096, 3 * 4096)
        server.ask("power_on")
        assert os.pread(disk.fileno(), 5 * 4096, 0) == b"x" * 3 * 4096 + bytes(2 * 4096)


def test_faults(serve: Any) -> None:
    server = serve("--timed")
    with server.disk.open("r+b", buffering=0) as disk:
        os.pwrite(disk.fileno(), b"x" * 8192, 0)
        server.ask("arm", effect="latent", start=0, end=4096)
        with pytest.raises(OSError, match="Input/output error"):
            os.pread(disk.fileno(), 512, 0)
        os.pwrite(disk.fileno(), b"y" * 4096, 0)
        assert os.pread(disk.fileno(), 4096, 0) == b"y" * 4096
        server.ask("arm", effect="bit-rot", op="read", times=1)
        rotten = os.pread(disk.fileno(), 4096, 4096)
        assert sum((a ^ b).bit_count() for a, b in zip(rotten, b"x" * 4096, strict=True)) == 1
        assert os.pread(disk.fileno(), 4096, 4096) == rotten
        server.ask("arm", effect="shorn", op="write", times=1)
        os.pwrite(disk.fileno(), b"z" * 4096, 0)
        shorn = os.pread(disk.fileno(), 4096, 0)
        assert shorn != b"z" * 4096
        assert shorn == shorn.rstrip(b"y").ljust(4096, b"y")
        server.ask("arm", effect="stuck", delay_ns=50_000_000, times=1)
        os.pread(disk.fileno(), 512, 0)
        assert server.ask("statistics")["operations"]["read"]["service_ns"]["max"] >= 49_000_000
    assert "stuck" in json.dumps(server.ask("statistics")["faults"])
    assert not server.ask("arm", effect="stcuk")["ok"]


def test_what_was_longest_before_a_run_is_not_of_the_run(serve: Any) -> None:
    server = serve("--timed")
    server.ask("arm", effect="stuck", delay_ns=50_000_000, times=1)
    with server.disk.open("rb", buffering=0) as disk:
        os.pread(disk.fileno(), 512, 0)
        server.ask("clear")
        os.pread(disk.fileno(), 512, 0)
    read = server.ask("statistics")["operations"]["read"]["service_ns"]
    assert (read["count"], read["max"]) == (1, read["p50"])


def test_the_log_has_every_request(serve: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = serve("--log", str(log), "--log-data")
    with server.disk.open("r+b", buffering=0) as disk:
        os.pwrite(disk.fileno(), b"first" + bytes(507), 4096)
        os.fsync(disk.fileno())
        server.ask("phase", name="run")
        os.pwrite(disk.fileno(), b"second" + bytes(506), 8192)
    server.ask("sync")
    records = [
        fields for fields in struct.iter_unpack("<5Q2IH2B12x", log.read_bytes()[64:]) if fields[8] != 0
    ]
    assert [(fields[3], fields[5], fields[6], fields[7], fields[8]) for fields in records] == [
        (4096, 512, 0, 0, 1),
        (0, 0, 0, 0, 2),
        (8192, 512, 1, 1, 1),
    ]
    assert json.loads((tmp_path / "log.json").read_text())["phases"] == ["", "run"]


def test_a_flush_covers_what_was_answered_before(serve: Any, tmp_path: Path) -> None:
    """A flush counts as arriving after the completion of each write that has been answered.

    Answers are sent early by the round-trip time, so that a flush can arrive before the drive has completed the
    write.
    """
    log = tmp_path / "log"
    server = serve("--profile", "ssd-sata", "--log", str(log), "--log-data")
    with server.disk.open("r+b", buffering=0) as disk:
        for number in range(60):
            os.pwrite(disk.fileno(), b"x" * 4096, number * 4096)
            os.fsync(disk.fileno())
    server.ask("sync")
    rows = disk_server.read_log(log)
    done = dict(zip(rows["id"], rows["done_ns"], strict=True))
    flushes = rows.filter(rows["op"] == "flush")
    assert len(flushes) == 60
    for identity, arrived in zip(flushes["id"], flushes["arrived_ns"], strict=True):
        assert arrived >= done[identity - 1], "the write that was waited for"


def test_a_snapshot_is_the_disk(serve: Any, tmp_path: Path) -> None:
    server = serve()
    with server.disk.open("r+b", buffering=0) as disk:
        os.pwrite(disk.fileno(), b"x" * 5000, 100 * 4096)
    assert server.ask("snapshot", path=str(tmp_path / "image"))["bytes"] == 8192
    image = (tmp_path / "image").read_bytes()
    assert len(image) == SIZE
    assert image[100 * 4096 : 100 * 4096 + 5001] == b"x" * 5000 + b"\0"


@pytest.mark.parametrize("options", [[], ["--profile", "hdd-7200"]])
def test_kept_contents_come_back_on_a_disk_like_new(serve: Any, options: list[str]) -> None:
    server = serve("--memory", str(2 * MIB), *options)
    server.ask("pace", real=False)
    with server.disk.open("r+b", buffering=0) as disk:
        os.pwrite(disk.fileno(), b"a" * MIB, MIB)
        assert server.ask("keep", name="made")["bytes"] == MIB
        os.pwrite(disk.fileno(), b"b" * MIB, 0)
        os.pwrite(disk.fileno(), b"b" * 4096, MIB)
        for _ in range(2):
            assert server.ask("restore", name="made")["ok"]
            statistics = server.ask("statistics")
            assert statistics["operations"]["write"]["requests"] == 0
            assert statistics["stored_bytes"] == statistics["kept_bytes"] == MIB
            assert os.pread(disk.fileno(), 2 * MIB, 0) == bytes(MIB) + b"a" * MIB
            os.pwrite(disk.fileno(), b"c" * MIB, MIB)
        os.pwrite(disk.fileno(), b"d" * MIB, 0)
        assert "this is full" in server.ask("keep", name="second")["error"]
        assert server.ask("keep", name="made")["bytes"] == 2 * MIB
        server.ask("forget", name="made")
        server.ask("forget", name="made")
        assert "nothing is kept" in server.ask("restore", name="made")["error"]
        assert os.pread(disk.fileno(), MIB, 0) == b"d" * MIB, "a refused request changes nothing"


def test_contents_are_not_kept_where_earlier_writes_determine_the_speed(serve: Any) -> None:
    server = serve("--profile", "ssd-sata")
    assert "depends on what was written" in server.ask("keep", name="made")["error"]


def test_a_drive_does_not_tidy_up_while_the_host_computes(serve: Any) -> None:
    """Unpaced time skips only what the host waits for. An idle SSD empties its SLC cache."""
    server = serve("--profile", "ssd-nvme", "--speed", "1e-6", "--memory", str(64 * MIB))
    server.ask("pace", real=False)
    with server.disk.open("r+b", buffering=0) as disk:
        for number in range(20):
            os.pwrite(disk.fileno(), b"x" * 4096, number * 100 * 4096)
            server.ask("statistics")
    model = server.ask("statistics")["model"]
    assert model["slc_bytes"] >= 16 * 4096, "written to flash, and still there"


def test_a_halted_disk_answers_nothing_and_its_time_stands_still(serve: Any) -> None:
    server = serve("--profile", "hdd-7200")
    halted_s = 0.5
    with server.disk.open("r+b", buffering=0) as disk, ThreadPoolExecutor() as others:
        assert server.ask("halt", halted=True)["ok"]
        stood = server.ask("statistics")["time_ns"]
        reading = others.submit(os.pread, disk.fileno(), 4096, SIZE // 2)
        while "in flight" not in server.ask("reset").get("error", ""):
            time.sleep(0.01)
        time.sleep(halted_s)
        halted = server.ask("statistics")
        assert (halted["time_ns"], halted["halted"], reading.done()) == (stood, True, False)
        assert halted["operations"]["read"]["requests"] == 0
        server.ask("halt", halted=False)
        assert reading.result(60) == bytes(4096)
    read = server.ask("statistics")["operations"]["read"]
    assert read["requests"] == 1
    assert 0 < read["service_ns"]["max"] < halted_s * 1e9, "the time in which it stood still is not in it"


def test_a_disk_without_deadlines_has_no_time_to_halt(serve: Any) -> None:
    assert "--timed" in serve().ask("halt", halted=True)["error"]


def test_a_read_across_the_end_is_short(serve: Any) -> None:
    server = serve()
    with server.disk.open("r+b", buffering=0) as disk:
        assert len(os.pread(disk.fileno(), MIB, SIZE - 4096)) == 4096
        assert os.pread(disk.fileno(), MIB, SIZE) == b""
        assert os.pread(disk.fileno(), MIB, SIZE + 4096) == b""


@pytest.mark.parametrize("options", [["--cache", "none"], ["--cache", "volatile"]])
def test_zeros_are_as_durable_as_other_writes(serve: Any, options: list[str]) -> None:
    server = serve("--timed", *options)
    with server.disk.open("r+b", buffering=0) as disk:
        disk.write(b"a" * MIB)
        os.fsync(disk.fileno())
        zero_range = 0x10  # FALLOC_FL_ZERO_RANGE; fallocate(1) would also flush
        length = ctypes.c_int64(4096)
        assert ctypes.CDLL(None).fallocate(disk.fileno(), zero_range, ctypes.c_int64(0), length) == 0
        cut = server.ask("cut", unflushed="lost")["cut"]
        server.ask("power_on")
        kept = os.pread(disk.fileno(), 4096, 0) == bytes(4096)
    assert (kept, cut["lost_bytes"]) == ((True, 0) if "none" in options else (False, 4096))


def test_the_lifeline(serve: Any, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    argv = [str(BINARY), "serve", str(tmp_path / "fslab-disk"), "--control", str(tmp_path / "control")]
    argv += ["--size", str(SIZE), "--lifeline", str(reader)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, pass_fds=[reader])
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        os.close(reader)
        os.close(writer)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
    assert not (tmp_path / "fslab-disk").exists()
    assert not (tmp_path / "control").exists()


def test_only_its_user_can_change_the_disk_whatever_the_umask(serve: Any, tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        server = serve("--timed", "--log", str(log := tmp_path / "log"))
    finally:
        os.umask(umask)
    server.ask("offer", socket=str(socket := tmp_path / "guest"), serial="s")
    assert [path.stat().st_mode & 0o077 for path in (server.control, log, socket)] == [0] * 3


def test_a_control_path_that_is_taken_stays(serve: Any, tmp_path: Path) -> None:
    """If the control path exists, the server mounts nothing and removes nothing.

    Tested with the socket of another server and with a file.
    """
    server = serve()
    taken = tmp_path / "file"
    taken.write_text("data")
    other = tmp_path / "other"
    for path in (server.control, taken):
        told = ran([str(BINARY), "serve", str(other), "--control", str(path), "--size", str(SIZE)])
        assert told.returncode == 1
        assert f"cannot create the socket {path}" in told.stderr
        assert not other.exists()
    assert taken.read_text() == "data"
    assert server.ask("statistics")["powered"]


def test_a_server_that_cannot_start_unmounts(tmp_path: Path) -> None:
    """With too few file descriptors for its threads, the server ends, also after it has mounted. It leaves no mount."""
    mounts = Path("/proc/self/mountinfo")
    for most in range(6, 16):
        argv = [str(BINARY), "serve", str(tmp_path / "disk"), "--control", str(tmp_path / "control")]
        argv = ["prlimit", f"--nofile={most}", *argv, "--size", str(SIZE), "--threads", "16"]
        told = ran(argv)
        assert told.returncode == 1, told.stderr
        assert os.fsencode(tmp_path / "disk") not in mounts.read_bytes(), most
        assert not list(tmp_path.iterdir()), most
