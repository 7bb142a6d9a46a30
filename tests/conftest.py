"""Fixtures for every test: a state and data directory of its own, so that nothing of the user's is touched.

All files of a session lie in memory: on a file system of its own with a bound as root, else below /dev/shm.
Tests neither wait for the disk nor depend on how quick it is.
"""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings
from tests import caches, leaks
from tests.directories import SESSION, set_directories, sharing
from tests.hold import Hold
from tests.starter import Starter

from fslab.__main__ import GARBAGE
from fslab.system import mounts

GIB = 1 << 30
ROOT = os.geteuid() == 0
WITH_DEVICES = {"root", "e2e", "guest"}
MEASURE = {"root", "e2e", "browser"}

# IOzone is in no free component: packaging/iozone.sh brings it into this directory, or into another one.
_IOZONE = os.environ.get("FSLAB_IOZONE") or str(Path(__file__).parents[1] / "target/iozone")
os.environ["PATH"] = f"{os.environ['PATH']}:{_IOZONE}"

# How long one example takes says nothing on a busy machine.
settings.register_profile("fslab", deadline=None, derandomize=True)
settings.load_profile("fslab")


def _available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


def _session_directory() -> Path | None:
    """A directory in memory: its own tmpfs, which bounds what a test can write; None where there is no room."""
    size = min(_available_bytes() // 3, 8 * GIB)
    if size < GIB:
        return None
    if ROOT:
        made = Path(tempfile.mkdtemp(prefix=f"{SESSION}{os.getpid()}-", dir="/var/tmp"))
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "fslab-test", str(made)]
        if subprocess.run(mount, check=False, capture_output=True).returncode == 0:
            return made
        made.rmdir()  # a container may not mount
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shutil.disk_usage(shared).free < GIB:
        return None
    return Path(tempfile.mkdtemp(prefix=f"{SESSION}{os.getpid()}-", dir=shared))


def _reap() -> None:
    """Remove what sessions left that were killed."""
    for parent in ("/var/tmp", "/dev/shm"):
        for directory in Path(parent).glob(f"{SESSION}*"):
            owner = directory.name.removeprefix(SESSION).partition("-")[0]
            if (
                owner.isdigit()
                and not Path(f"/proc/{owner}").exists()
                and directory.lstat().st_uid == os.geteuid()  # a link of somebody else is theirs
            ):
                leaks.detach_below(directory)
                _remove(directory)
    for link in leaks.links():
        owner = link.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            link.unlink(missing_ok=True)


def _end(directory: Path) -> None:
    """Remove what is ours, also of workers that an interrupted session ended in the middle of a test."""
    leaks.detach_below(directory)
    _remove(directory)
    _reap()


def _remove(directory: Path) -> None:
    for mount in reversed([each for each in mounts.mounted() if each.target.is_relative_to(directory)]):
        # Lazily: a test that left something busy has failed already and said so.
        subprocess.run(["umount", "--lazy", str(mount.target)], check=True)
    shutil.rmtree(directory)


caches.guard()


def _interrupt(*_: object) -> NoReturn:
    """As Ctrl-C does, also where a shell started it in the background: there SIGINT is ignored."""
    raise KeyboardInterrupt


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Workers of xdist are given a directory below the one made here."""
    gc.set_threshold(GARBAGE)  # as fslab itself: a tenth of the time went into looking for garbage
    if hasattr(config, "workerinput") or config.option.basetemp:
        return
    signal.signal(signal.SIGTERM, _interrupt)  # so that it ends in good order
    # Tests send them to fslab, which would ignore them as nohup(1) and a shell's background jobs do.
    for signum, usual in (
        (signal.SIGHUP, signal.SIG_DFL), (signal.SIGQUIT, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler),
    ):  # fmt: skip
        if signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, usual)
    _reap()
    made = _session_directory()
    if made is not None:
        config.option.basetemp = str(made / "t")
        config.add_cleanup(lambda: _end(made))


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """What fslab finds out about a machine once, it finds out once for all tests."""
    own = tmp_path_factory.getbasetemp()
    made = (own if worker_id == "master" else own.parent) / "cache"
    made.mkdir(exist_ok=True)
    return made


@pytest.fixture(scope="session")
def starter() -> Iterator[Starter]:
    """Starts fslab without importing it anew."""
    made = Starter()
    yield made
    made.close()


_numbers = itertools.count()


@pytest.fixture(autouse=True)
def own_directories(
    tmp_path_factory: pytest.TempPathFactory, session_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Directories of this test only; also where its subprocesses look. Short, since sockets' names are."""
    home = tmp_path_factory.getbasetemp() / f"x{next(_numbers)}"
    home.mkdir()
    set_directories(monkeypatch, home)
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_cache))
    return home


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Hold]:
    """Holds a campaign in a trial until the test lets it go on."""
    directory = tmp_path / "hold"
    directory.mkdir()
    made = Hold(directory)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test marked ``alone`` drops the machine's caches or changes its settings, which spoils the trials of others: it
    runs while no other test measures, in whichever session."""
    alone = request.node.get_closest_marker("alone") is not None
    caches.allow(alone)
    if request.path.parent.name not in MEASURE:
        yield
        return
    with sharing(alone=alone):
        yield


@pytest.fixture(autouse=True)
def leaves_nothing(request: pytest.FixtureRequest, own_directories: Path) -> Iterator[None]:
    """Whatever a test with devices, campaigns or guests leaves behind fails it."""
    if request.path.parent.name not in WITH_DEVICES:
        yield
        return
    directories = [own_directories]
    if "tmp_path" in request.fixturenames:
        directories.append(request.getfixturevalue("tmp_path"))
    yield
    assert leaks.settled(*directories) == set(), "left behind"


def pytest_collection_finish() -> None:
    """The tests themselves stay: nobody looks for garbage among them."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `root` are skipped for other users, and say so."""
    if not ROOT:
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(pytest.mark.skip(reason="needs root: sudo make test"))
