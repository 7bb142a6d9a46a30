"""Tests of the engine while another process replaces directories with symbolic links: nothing outside is changed.

The assertions hold for every interleaving of the two processes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fslab.system import proc

# RENAME_EXCHANGE (2) is atomic, so that the name always exists. Directories that are links, or below a link, are not
# exchanged.
EXCHANGE = """
import ctypes, itertools, os, sys
numbers = itertools.count()
libc, tree, links, victim = ctypes.CDLL(None), *sys.argv[1:]
print("ready", flush=True)
while True:
    for place, names, _ in os.walk(tree):
        for name in names:
            path, link = os.path.join(place, name), os.path.join(links, str(next(numbers)))
            if not os.path.islink(path):
                os.symlink(victim, link)
                libc.renameat2(-100, path.encode(), -100, link.encode(), 2)
"""


def made(directory: Path) -> Path:
    for number in range(40):
        (inner := directory / f"d{number}/inner").mkdir(parents=True)
        for place in (inner, inner.parent):
            (place / "file").write_text("of the tree")
    return directory


def found(directory: Path) -> dict[str, tuple[int, str | None]]:
    return {
        str(path): (path.stat().st_mode, path.read_text() if path.is_file() else None)
        for path in (directory, *directory.rglob("*"))
    }


@pytest.mark.parametrize("verb", ["delete", "sync-write", "populate"])
def test_a_directory_exchanged_for_a_link_leads_nowhere(verb: str, tmp_path: Path) -> None:
    victim, tree, links = made(tmp_path / "victim"), tmp_path / "tree", tmp_path / "links"
    links.mkdir()
    before = found(victim)
    argv = {
        "delete": lambda: [str(made(tree)), "--yes", "--no-syncfs"],
        "sync-write": lambda: [str(made(tmp_path / "source")), str(tree), "--sync", "none"],
        "populate": lambda: [
            str(tree),
            "--class",
            "text:500:1k",
            "--files-per-directory",
            "5",
            "--no-syncfs",
        ],
    }[verb]()
    exchanger = subprocess.Popen(
        [sys.executable, "-c", EXCHANGE, str(tree), str(links), str(victim)], stdout=subprocess.PIPE
    )
    try:
        assert exchanger.stdout is not None
        exchanger.stdout.readline()
        proc.run(["fslab-engine", verb, *argv, "--threads", "2"], check=False)
    finally:
        exchanger.kill()
        exchanger.communicate()
    assert found(victim) == before
