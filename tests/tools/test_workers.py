"""Tests of what runs tests in parallel: each test is run once, and one that ends its process fails alone."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.limits import LIMIT_S, wait_for

CONFTEST = """
import signal
from tests.workers import Workers

def interrupt(*_):
    raise KeyboardInterrupt

def pytest_configure(config):
    signal.signal(signal.SIGTERM, interrupt)
    config.pluginmanager.register(Workers(2))
"""
TESTS = """
import os, pytest

@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    common = tmp_path_factory.mktemp("kept").parent.parent
    yield common
    (common / f"undone-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(30))
def test_each(number, kept, capsys):
    with (kept / "ran").open("a") as ran:
        ran.write(f"{number}\\n")
    print("said by", number)
    assert capsys.readouterr().out == f"said by {number}\\n"

@pytest.mark.parametrize("number", range(3))
def test_that_ends_its_process(number):
    if number == 1:
        os._exit(7)

def test_that_fails(kept):
    print("printed before it failed")
    assert [1, 2] == [1, 3]
"""


ENDLESS = """
import time, pytest
from pathlib import Path

@pytest.fixture
def held():
    yield Path(__file__).parent
    (Path(__file__).parent / "undone").touch()

def test_without_end(held):
    (held / "runs").touch()
    time.sleep(600)
"""
ROOT = Path(__file__).parents[2]


def session(tmp_path: Path, tests: str) -> list[str | Path]:
    """Write a session of these tests and return its command line."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(tests)
    return [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={tmp_path}",
        f"--basetemp={tmp_path}/made", f"--junit-xml={tmp_path}/told.xml", "-W", "error", tmp_path,
    ]  # fmt: skip


def test_each_test_runs_once_and_what_ends_its_process_fails_alone(tmp_path: Path) -> None:
    argv = session(tmp_path, TESTS)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=ROOT)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "2 failed, 32 passed" in done.stdout
    ran = (tmp_path / "made/ran").read_text().split()
    assert sorted(map(int, ran)) == list(range(30))
    cases = list(ET.parse(tmp_path / "told.xml").iter("testcase"))
    failed = {
        str(case.get("name")): ET.tostring(case, "unicode")
        for case in cases
        if case.find("failure") is not None
    }
    assert len(cases) == 34
    assert "the process that ran it has ended (7)" in failed.pop("test_that_ends_its_process[1]")
    (told,) = failed.values()
    assert "assert [1, 2] == [1, 3]" in told
    assert "printed before it failed" in told
    # The process that died undid nothing. The one that took over did, and the other one.
    assert len([*(tmp_path / "made").glob("undone-*")]) in {1, 2}


def test_an_interrupted_session_undoes_what_its_tests_have_set_up(tmp_path: Path) -> None:
    argv = session(tmp_path, ENDLESS)
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        wait_for((tmp_path / "runs").exists)
        process.terminate()
        assert process.wait(timeout=LIMIT_S) == pytest.ExitCode.INTERRUPTED
    assert (tmp_path / "undone").exists()
