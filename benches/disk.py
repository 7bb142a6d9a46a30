"""Compares the virtual disk with its own model, and with a loop device on tmpfs.

    .venv/bin/python benches/disk.py --output target/disk.md

Needs root, fio, cargo and up to 1 GiB of memory. Prints three tables: fio on the bare device beside what the model
computes for the same load in virtual time (``engine/disk/model/examples/predict.rs``); the server without a model
beside a loop device on tmpfs; and ten runs of each of two workloads on ext4.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BINARY = Path(sys.executable).parent / "fslab-disk"
PREDICT = ("cargo", "run", "--release", "--quiet", "-p", "fslab-disk-model", "--example", "predict")
GIB = 1 << 30
TB = 1_000_000_000_000
# Random requests to a hard disk: so few per second that a run is this many times as long as others, and the model's
# figures are the mean of this many seeds. Their standard deviation is what chance alone makes of a run of that length.
HDD_LONGER, HDD_SEEDS = 3, 10
# A row is measured again, up to TRIES times, while more than this fraction of a CPU is stolen.
TRIES = 3
STOLEN = 0.002


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """The load of one row. ``profile``: the disk model. ``block``: bytes per request. ``size``: of the disk, in bytes.

    fio uses the bytes from ``start`` to ``end``; None: to the end of the disk. ``steady``: the SSD starts in its steady
    state.
    """

    profile: str
    rw: str
    block: int
    depth: int
    size: int
    start: int = 0
    end: int | None = None
    steady: bool = False

    @property
    def name(self) -> str:
        zone = "" if self.end is None else (" inner" if self.start else " outer")
        return f"{self.profile} {self.rw} {self.block >> 10}k depth {self.depth}{zone}"


END = TB // 4096 * 4096
OUTER, INNER = (0, 16 * GIB), (END - 16 * GIB, END)


def hdd(rw: str, block: int, depth: int, zone: tuple[int, int | None] = (0, None)) -> Load:
    """Return a load on the hard disk. ``zone``: first byte and end of the part that is used."""
    return Load(profile="hdd-7200", size=END, rw=rw, block=block, depth=depth, start=zone[0], end=zone[1])


def ssd(profile: str, rw: str, block: int, depth: int) -> Load:
    """Return a load on an SSD in steady state: filled, then overwritten at random."""
    return Load(profile=profile, size=GIB // 4, rw=rw, block=block, depth=depth, steady=True)


LOADS = [
    *[hdd("randread", 4096, depth) for depth in (1, 4, 32)],
    hdd("randread", 4096, 1, OUTER),
    hdd("randread", 4096, 32, INNER),
    *[hdd("read", 1 << 20, depth, zone) for zone in (OUTER, INNER) for depth in (1, 8)],
    hdd("read", 64 << 10, 2, OUTER),  # as a kernel reads ahead: commands come while others run
    *[ssd("ssd-sata", rw, 4096, depth) for rw in ("randread", "randwrite") for depth in (1, 8, 32)],
    ssd("ssd-sata", "read", 1 << 20, 4),
    ssd("ssd-nvme-dc", "randread", 4096, 8),
]


def ask(control: Path, **request: Any) -> dict[str, Any]:
    """Send one request to the control socket and return the reply. RuntimeError if the server reports an error."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(control))
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer: dict[str, Any] = json.loads(connection.makefile().readline())
    if not answer["ok"]:
        raise RuntimeError(answer["error"])
    return answer


@contextlib.contextmanager
def looped(image: Path) -> Iterator[str]:
    """Yield a loop device with direct I/O on a file."""
    argv = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
    device = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


@contextlib.contextmanager
def served(*options: str, size: int, calibrated: bool) -> Iterator[tuple[str, Path]]:
    """Start a server and yield a loop device on its disk, and its control socket.

    ``calibrated``: let the server measure the overhead of the device first, then reset the model.
    """
    with tempfile.TemporaryDirectory(prefix="fslab-bench-") as home:
        control, directory = Path(home, "control"), Path(home, "mount")
        argv = [str(BINARY), "serve", str(directory), "--control", str(control), "--size", str(size)]
        argv += ["--memory", str(GIB), "--die-with-parent", *options]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                json.loads(server.stdout.readline())
                with looped(directory / "disk") as device:
                    if calibrated:
                        ask(control, do="calibrate", path=device)
                        ask(control, do="reset")
                    yield device, control
            finally:
                server.terminate()
                server.wait(60)
                subprocess.run([BINARY, "clean", str(directory)], check=True)


def fio(target: str, *options: str) -> dict[str, Any]:
    """Run fio and return its figures: ``rate`` in requests per second, ``mb_s`` in MB/s, times in nanoseconds.

    ``p50`` and ``p99`` are percentiles of the completion latency, ``host`` is the mean submission latency.
    """
    with tempfile.NamedTemporaryFile() as output:
        argv = [
            "fio",
            "--name=bench",
            f"--filename={target}",
            "--ioengine=libaio",
            "--direct=1",
            "--time_based",
        ]
        argv += [
            "--randrepeat=0",
            "--norandommap",
            "--output-format=json",
            f"--output={output.name}",
            *options,
        ]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        job = json.loads(Path(output.name).read_text())["jobs"][0]
    side = job["read"] if job["read"]["total_ios"] else job["write"]
    times = side["clat_ns"]["percentile"]
    return {
        "rate": side["iops"],
        "mb_s": side["bw_bytes"] / 1e6,
        "p50": times["50.000000"],
        "p99": times["99.000000"],
        "host": side["slat_ns"]["mean"],
    }


def stolen_s() -> float:
    """Return the time stolen by the hypervisor since boot, summed over all CPUs: ``steal`` in proc_stat(5)."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")


def predicted(load: Load, seconds: int, seed: int = 0) -> dict[str, float]:
    """Return the figures of the model alone for a load of ``seconds``, of which the first quarter is ignored."""
    wanted = {
        "profile": load.profile, "size": load.size, "write": load.rw.endswith("write"), "block": load.block,
        "depth": load.depth, "random": load.rw.startswith("rand"), "start": load.start, "end": load.end or load.size,
        "seconds": seconds, "steady": load.steady, "seed": seed,
    }  # fmt: skip
    done = subprocess.run(PREDICT, input=json.dumps(wanted), text=True, check=True, stdout=subprocess.PIPE)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def against_the_model(load: Load, seconds: int) -> str:
    """Return one row of the first table."""
    scattered = load.profile.startswith("hdd") and load.rw.startswith("rand")
    seconds *= HDD_LONGER if scattered else 1
    options = ["--profile", load.profile, "--seed", "1"] + ["--steady"] * load.steady
    with served(*options, size=load.size, calibrated=True) as (device, control):
        span = (load.end or load.size) - load.start
        work = [
            f"--rw={load.rw}", f"--bs={load.block}", f"--iodepth={load.depth}", f"--runtime={seconds}",
            f"--ramp_time={seconds // 3}", f"--offset={load.start}", f"--size={span}",
        ]  # fmt: skip
        tries = []
        for _ in range(TRIES):  # time stolen by a hypervisor would be counted as the disk's
            ask(control, do="clear")
            before = stolen_s()
            found = fio(device, *work)
            tries.append((stolen_s() - before, found, ask(control, do="statistics")["late_ns"]))
            if tries[-1][0] <= STOLEN * seconds:
                break
        stolen, found, late = min(tries, key=lambda one: one[0])
    if scattered:  # a run as long as fio's for each seed
        said = [predicted(load, seconds * 4 // 3, seed) for seed in range(HDD_SEEDS)]
    else:
        said = [predicted(load, max(60, seconds))]
    cells = [load.name]
    for key in ("rate", "mb_s", "p50", "p99"):
        scale, digits = (1e6, 2) if key.startswith("p") else (1, 1)
        model = statistics.mean(each[key] for each in said)
        chance = (
            f", chance {statistics.stdev(each[key] for each in said) / model * 100:.1f}" if scattered else ""
        )
        off = (found[key] / model - 1) * 100
        cells.append(f"{found[key] / scale:,.{digits}f} / {model / scale:,.{digits}f} ({off:+.1f} %{chance})")
    return "| " + " | ".join([*cells, f"{late['p99'] / 1e3:.0f}", f"{stolen:.2f}"]) + " |"


def without_model(device: str, seconds: int) -> list[float]:
    """Return random reads and writes per second (4 KiB, depth 32), then sequential reads and writes in MB/s."""
    size = f"--size={GIB // 4}"
    fio(device, "--rw=write", "--bs=1m", "--iodepth=8", size, "--runtime=1")
    rates = [fio(device, f"--rw={rw}", "--bs=4k", "--iodepth=32", size, f"--runtime={seconds}")["rate"]
             for rw in ("randread", "randwrite")]  # fmt: skip
    streams = [fio(device, f"--rw={rw}", "--bs=1m", "--iodepth=8", size, f"--runtime={seconds}")["mb_s"]
               for rw in ("read", "write")]  # fmt: skip
    return rates + streams


def bare_rates(seconds: int) -> list[str]:
    """Return the rows of the second table."""
    with served(size=GIB // 4, calibrated=False) as (device, _):
        ours = without_model(device, seconds)
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as image:
        image.truncate(GIB // 4)
        with looped(Path(image.name)) as device:
            theirs = without_model(device, seconds)
    names = ["random read 4k, depth 32, 1/s", "random write 4k, depth 32, 1/s"]
    names += ["sequential read 1m, MB/s", "sequential write 1m, MB/s"]
    rows = zip(names, ours, theirs, strict=True)
    return [f"| {name} | {a:,.0f} | {b:,.0f} | {a / b * 100:.0f} % |" for name, a, b in rows]


def repeats(seconds: int, count: int) -> list[str]:
    """Return the rows of the third table: two workloads on one ext4 on the hard disk, each run ``count`` times."""
    rows = []
    options = ["--profile", "hdd-7200", "--seed", "1"]
    with served(*options, size=4 * GIB, calibrated=True) as (device, _):
        lazy = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", lazy, device], check=True)
        with tempfile.TemporaryDirectory(prefix="fslab-bench-") as target:
            subprocess.run(["mount", device, target], check=True)
            try:
                file = os.path.join(target, "file")  # noqa: PTH118  # fio needs a string
                fio(file, "--rw=write", "--bs=1m", f"--size={GIB // 4}", "--runtime=1", "--end_fsync=1")
                for name, extra in (
                    ("random read 4k", ["--rw=randread", "--direct=1"]),
                    ("write 4k + fsync", ["--rw=randwrite", "--direct=0", "--ioengine=psync", "--fsync=1"]),
                ):
                    work = ["--bs=4k", f"--size={GIB // 4}", f"--runtime={seconds}", *extra]
                    rates = [fio(file, *work)["rate"] for _ in range(count)]
                    spread = (max(rates) - min(rates)) / statistics.median(rates) * 100
                    deviation = statistics.stdev(rates) / statistics.mean(rates) * 100
                    each = ", ".join(f"{rate:.1f}" for rate in rates)
                    rows.append(f"| {name} | {each} | {deviation:.1f} % | {spread:.1f} % |")
            finally:
                subprocess.run(["umount", target], check=True)
    return rows


def main() -> None:
    """Run everything and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("/dev/stdout"))
    parser.add_argument("--seconds", type=int, default=12, help="of each fio run")
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args()
    lines = [
        "| fio / model | requests/s | MB/s | p50, ms | p99, ms | late p99, µs | stolen, s |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [against_the_model(load, arguments.seconds) for load in LOADS]
    lines += ["", "| without a model | fslab-disk | loop on tmpfs | |", "|---|---|---|---|"]
    lines += bare_rates(max(2, arguments.seconds // 4))
    lines += ["", "| ext4 on hdd-7200 | runs, 1/s | standard deviation | range |", "|---|---|---|---|"]
    lines += repeats(max(4, arguments.seconds // 2), arguments.repeats)
    arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
