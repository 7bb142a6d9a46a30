"""Runs the fast tests several times, in a different order each time, and prints which tests failed.

    python tests/repeat.py ROUNDS [--loaded ROUNDS] [PYTEST ARGUMENT …]

A loaded round runs while all CPUs are busy and data is written to the disk. These rounds come first, since they find
most. Exit status 1 if any test failed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

WRITTEN_BYTES = 256 << 20
BUSY = "while True: pass"
WRITE = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)
while True:
    for offset in range(0, int(sys.argv[2]), 1 << 20):
        os.pwrite(file, os.urandom(1 << 20), offset)
    os.fsync(file)
"""


@contextlib.contextmanager
def load() -> Iterator[None]:
    """Keep all CPUs busy, and repeatedly write and fsync a file on the disk of this checkout."""
    target = Path(__file__).parents[1] / "target"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as directory:
        argvs = [[sys.executable, "-c", BUSY]] * (os.cpu_count() or 1)
        argvs.append([sys.executable, "-c", WRITE, f"{directory}/load", str(WRITTEN_BYTES)])
        started = [subprocess.Popen(argv) for argv in argvs]
        try:
            yield
        finally:
            for process in started:
                process.kill()
                process.wait()


def run(seed: int, more: list[str]) -> tuple[int, list[str]]:
    """Run one round. Return the number of tests, and the names of those that failed.

    ``more``: further arguments for pytest.
    """
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        argv = [
            sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-n", str(3 * (os.cpu_count() or 1)),
            "--dist", "worksteal", f"--randomly-seed={seed}", f"--junit-xml={report.name}", *more,
        ]  # fmt: skip
        with subprocess.Popen(argv) as session:
            try:
                session.wait()
            finally:  # an interrupted session still removes what its tests made
                session.terminate()
        if not Path(report.name).stat().st_size:
            return 0, ["pytest itself"]
        cases = list(ET.parse(report.name).iter("testcase"))
    failed = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return len(cases), failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rounds", type=int)
    parser.add_argument("--loaded", type=int, default=0, help="so many of the rounds under load")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    options, more = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    failures: Counter[str] = Counter()
    lines = []
    for number in range(options.rounds):
        loaded = number < options.loaded
        begun = time.monotonic()
        with load() if loaded else contextlib.nullcontext():
            count, failed = run(options.seed + number, more)
        failures.update(failed)
        lines.append(
            f"round {number + 1}, seed {options.seed + number}{', under load' if loaded else ''}: "
            f"{count} tests, {len(failed)} failed, {time.monotonic() - begun:.0f} s"
        )
        print(lines[-1], flush=True)
    print("\n".join(["", *lines, ""]))
    for name, times in failures.most_common():
        print(f"{times} of {options.rounds}: {name}")
    print("no failure" if not failures else f"{len(failures)} tests failed at least once")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
