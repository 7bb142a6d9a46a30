"""Measures how long it takes to rank the stacks of ``quick``: repeating until decided, and with ten trials per cell.

Runs both on this machine, one after the other. Prints the trials, the time and the outcomes of the comparisons. Needs
root.

    python benches/time_to_decide.py [--precision 5%]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FSLAB = str(Path(sys.executable).with_name("fslab"))


def main() -> int:
    """Run both and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--precision", default="5%")
    parser.add_argument("--study", default="quick")
    arguments = parser.parse_args()
    ways = {
        "until decided": ["--trials", "4", "--precision", arguments.precision, "--max-trials", "40"],
        "10 trials": ["--trials", "10"],
    }
    print("| | trials | time | comparisons decided | alike within the precision | open |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        for name, options in ways.items():
            begun = time.monotonic()
            document = campaign(Path(directory) / "store.sqlite", arguments.study, options)
            took_s = time.monotonic() - begun
            found = [item for row in document["rows"] for item in row["comparisons"]]
            decided = sum(bool(item["holds_together"]) for item in found)
            limit = 1 + float(arguments.precision.rstrip("%")) / 100
            alike = sum(
                not item["holds_together"]
                and item["interval"] is not None
                and 1 / limit <= item["interval"]["low"] <= item["interval"]["high"] <= limit
                for item in found
            )
            still = len(found) - decided - alike
            print(
                f"| {name} | {document['counts']['stored']} | {took_s:.0f} s | {decided} of {len(found)} | {alike} "
                f"| {still} |",
                flush=True,
            )
    return 0


def campaign(store: Path, study: str, options: list[str]) -> dict[str, Any]:
    """Run the study and return its report."""
    argv = [FSLAB, "run", study, *options, "--set", "budget=1h", "--json", "--store", str(store)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: exit {done.returncode}\n{done.stderr}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


if __name__ == "__main__":
    sys.exit(main())
