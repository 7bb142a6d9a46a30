"""Compares ``fslab-engine iozone`` with IOzone: runs alternate, on a file in tmpfs and on ext4 on a loop device.

Prints for each test and record size the medians of both, the median and the quartiles of the ratios of neighbouring
runs, and the ratio of the upper deciles, which other load on the machine affects least. Needs root. IOzone is the one
on PATH, or that of ``packaging/iozone.sh``:

    packaging/iozone.sh target/iozone && python benches/iozone.py --rounds 40
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fslab.units import parse_size

TESTS = ("write", "rewrite", "read", "reread", "random-read", "random-write")
ROW = re.compile(r"^ +\d+ +\d+ +(\d[\d ]*)$", re.MULTILINE)
HERE = Path(__file__).parents[1]


def run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def real(program: str, directory: Path, size: str, record: str) -> list[float]:
    tests = ("-i", "0", "-i", "1", "-i", "2")
    text = run(program, "-e", "-c", *tests, "-s", size, "-r", record, "-f", str(directory / "f"))
    found = ROW.search(text)
    if found is None:
        raise SystemExit(f"iozone printed no table: {text}")
    return [_whole(parse_size(size), float(kib) * 1024) for kib in found[1].split()]


def _whole(bytes_: int, rate: float) -> float:
    """Return the rate (bytes/s) for the time that IOzone measured.

    IOzone subtracts the resolution of its clock, 1 µs, from each time. That is 5 % of the 20 µs to read 512 KiB.
    """
    return bytes_ / (bytes_ / rate + 1e-6)


def ours(program: str, directory: Path, size: str, record: str) -> list[float]:
    given = ("--flush", "--close", "--latency", "off", "--size", size, "--record", record, "--json")
    tests = json.loads(run(program, "iozone", str(directory), *given))["answer"]["tests"]
    return [test["bandwidth_bytes_per_second"] for test in tests]


@contextmanager
def tmpfs(work: Path) -> Iterator[Path]:
    run("mount", "-t", "tmpfs", "-o", "size=512m", "fslab-bench", str(work))
    try:
        yield work
    finally:
        run("umount", str(work))


@contextmanager
def ext4(work: Path) -> Iterator[Path]:
    """Yield the mount point of an ext4 whose image is in memory, so that no disk adds noise."""
    with tmpfs(work):
        image, mounted = work / "image", work / "mounted"
        # The whole image is allocated, because the first write of a block takes longer than later ones.
        run("dd", "if=/dev/zero", f"of={image}", "bs=1M", "count=400", "status=none")
        mounted.mkdir()
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", str(image))
        run("mount", "-o", "loop", str(image), str(mounted))
        try:
            yield mounted
        finally:
            run("umount", str(mounted))


def _best(values: list[float]) -> float:
    """Return the upper decile: the rate of runs that other load on the machine did not disturb."""
    return sorted(values)[-1 - len(values) // 10]


def table(name: str, arguments: argparse.Namespace, directory: Path) -> None:
    for record in arguments.records:
        pairs = []
        for round_ in range(arguments.rounds):
            first, second = (real, ours) if round_ % 2 else (ours, real)
            programs = {real: arguments.iozone, ours: arguments.engine}
            done = {each: each(programs[each], directory, arguments.size, record) for each in (first, second)}
            pairs.append((done[ours], done[real]))
        for index, test in enumerate(TESTS):
            mine, theirs = [pair[0][index] for pair in pairs], [pair[1][index] for pair in pairs]
            ratios = sorted(a / b for a, b in zip(mine, theirs, strict=True))
            quarter, best = len(ratios) // 4, _best(mine) / _best(theirs)
            print(
                f"| {name} | {test} | {record} | {statistics.median(mine) / 1e6:,.0f} "
                f"| {statistics.median(theirs) / 1e6:,.0f} | {statistics.median(ratios):.3f} "
                f"| {ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f} | {best:.3f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--size", default="16m")
    parser.add_argument("--records", nargs="+", default=["4k", "64k", "1m"])
    parser.add_argument("--iozone", default=shutil.which("iozone") or str(HERE / "target/iozone/iozone"))
    parser.add_argument("--engine", default=str(HERE / ".venv/bin/fslab-engine"))
    arguments = parser.parse_args()
    print(
        "| file system | test | record | engine MB/s | IOzone MB/s | ratio | quartiles | ratio of upper deciles |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, made in (("tmpfs", tmpfs), ("ext4", ext4)):
        with tempfile.TemporaryDirectory(prefix="fslab-iozone-") as work, made(Path(work)) as directory:
            table(name, arguments, directory)


if __name__ == "__main__":
    main()
