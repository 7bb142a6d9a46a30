"""Fixtures for all tests. Each test has its own state and data directories, and does not touch files of the user.

All files of a session are in memory: for root in a tmpfs of limited size, otherwise below /dev/shm. Therefore tests do
not wait for the disk and do not depend on its speed.
"""

from __future__ import annotations

import contextlib
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
from tests.order import arranged, measures
from tests.starter import ROUND_S, Forker, Starter

from fslab.__main__ import GARBAGE
from fslab.system import cpu_speed, mountinfo

GIB = 1 << 30
_FORKER = "FSLAB_TEST_FORKER"
ROOT = os.geteuid() == 0
WITH_DEVICES = {"root", "e2e", "guest"}

# IOzone is not in Debian's main component: packaging/iozone.sh installs it into this directory, or into another one.
_IOZONE = os.environ.get("FSLAB_IOZONE") or str(Path(__file__).parents[1] / "target/iozone")
os.environ["PATH"] = f"{os.environ['PATH']}:{_IOZONE}"

# Each trial measures the speed of the machine twice, and ``fslab doctor`` 30 times. How precisely decides no test.
cpu_speed.ROUND_S = ROUND_S

# No deadline: on a busy machine, the duration of one example means nothing.
settings.register_profile("fslab", deadline=None, derandomize=True)
settings.load_profile("fslab")


def _available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


def _session_directory() -> Path | None:
    """Make a directory in memory and return it; None if there is not enough memory.

    For root it is a separate tmpfs, whose size limits what tests can write.
    """
    size = min(_available_bytes() // 3, 8 * GIB)
    if size < GIB:
        return None
    if ROOT:
        made = Path(tempfile.mkdtemp(prefix=f"{SESSION}{os.getpid()}-", dir="/var/tmp"))
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "fslab-test", str(made)]
        if subprocess.run(mount, check=False, capture_output=True).returncode == 0:
            return made
        made.rmdir()  # containers often have no permission to mount
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shutil.disk_usage(shared).free < GIB:
        return None
    return Path(tempfile.mkdtemp(prefix=f"{SESSION}{os.getpid()}-", dir=shared))


def _reap() -> None:
    """Remove the directories and device links of sessions that were killed."""
    for parent in ("/var/tmp", "/dev/shm"):
        for directory in Path(parent).glob(f"{SESSION}*"):
            owner = directory.name.removeprefix(SESSION).partition("-")[0]
            if (
                owner.isdigit()
                and not Path(f"/proc/{owner}").exists()
                and directory.lstat().st_uid == os.geteuid()  # not a link of another user
            ):
                leaks.end_below(directory)
                leaks.detach_below(directory)
                _remove(directory)
    for link in leaks.links():
        owner = link.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            link.unlink(missing_ok=True)


def _end(directory: Path) -> None:
    """Remove the session's directory, with everything that interrupted tests of its workers left."""
    leaks.end_below(directory)
    leaks.detach_below(directory)
    _remove(directory)
    _reap()


def _remove(directory: Path) -> None:
    for mount in reversed([each for each in mountinfo.mounted() if each.target.is_relative_to(directory)]):
        # Lazily, because a mount can be busy. The test that left it has already failed.
        subprocess.run(["umount", "--lazy", str(mount.target)], check=True)
    with contextlib.suppress(FileNotFoundError):  # another session removes it, too
        shutil.rmtree(directory)


def _close(forker: Forker, directory: Path) -> None:
    forker.close()
    shutil.rmtree(directory, ignore_errors=True)


caches.guard()


def _interrupt(*_: object) -> NoReturn:
    """Raise KeyboardInterrupt on SIGTERM, because a session in the background of a shell ignores SIGINT."""
    raise KeyboardInterrupt


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set up signals and the session's directory. Workers of pytest-xdist get a directory below it."""
    gc.set_threshold(GARBAGE)  # as in fslab: garbage collection took a tenth of the time
    if hasattr(config, "workerinput"):
        return
    signal.signal(signal.SIGTERM, _interrupt)  # so that fixtures and cleanups still run
    # Tests send these signals to fslab. It would inherit and ignore them under nohup(1) or as a background job.
    for signum, usual in (
        (signal.SIGHUP, signal.SIG_DFL),
        (signal.SIGQUIT, signal.SIG_DFL),
        (signal.SIGINT, signal.default_int_handler),
    ):
        if signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, usual)
    _reap()
    made = None
    if not config.option.basetemp:
        made = _session_directory()
    if made is not None:
        config.option.basetemp = str(made / "t")
        config.add_cleanup(lambda: _end(made))
    own = Path(tempfile.mkdtemp(prefix=f"{SESSION}{os.getpid()}-", dir=made or "/var/tmp"))
    forker = Forker(own)
    config.add_cleanup(lambda: _close(forker, own))
    os.environ[_FORKER] = str(forker.path)  # for the workers


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return a cache directory for all tests of the session: fslab examines the machine only once."""
    own = tmp_path_factory.getbasetemp()
    made = (own if worker_id == "master" else own.parent) / "cache"
    made.mkdir(exist_ok=True)
    return made


@pytest.fixture(scope="session")
def starter() -> Iterator[Starter]:
    """Yield a ``Starter``, which runs fslab without importing it again."""
    made = Starter(Path(os.environ[_FORKER]))
    yield made
    made.close()


_numbers = itertools.count()


@pytest.fixture(autouse=True)
def own_directories(
    tmp_path_factory: pytest.TempPathFactory, session_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Make directories for this test and set the environment so that fslab and its child processes use them.

    Their path is short, because the path of a socket is limited to 107 bytes.
    """
    home = tmp_path_factory.getbasetemp() / f"x{next(_numbers)}"
    home.mkdir()
    set_directories(monkeypatch, home)
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_cache))
    return home


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Hold]:
    """Yield a ``Hold``, which stops a campaign in a trial until the test releases it."""
    directory = tmp_path / "hold"
    directory.mkdir()
    made = Hold(directory)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test marked ``alone`` only while no other test measures, in this session or another one.

    Such a test drops the machine's caches or changes its settings, which would disturb the trials of other tests. Tests
    marked ``unaffected`` run beside it.
    """
    alone = request.node.get_closest_marker("alone") is not None
    caches.allow(alone)
    if not alone and not measures(request.node):
        yield
        return
    with sharing(alone=alone):
        yield


@pytest.fixture(autouse=True)
def leaves_nothing(request: pytest.FixtureRequest, own_directories: Path) -> Iterator[None]:
    """Fail a test with devices, campaigns or guests if it leaves anything behind."""
    if request.path.parent.name not in WITH_DEVICES:
        yield
        return
    directories = [own_directories]
    if "tmp_path" in request.fixturenames:
        directories.append(request.getfixturevalue("tmp_path"))
    yield
    assert leaks.settled(*directories) == set(), "left behind"


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: they stay in use until the end. What little is garbage among
    them stays, too: to search for it takes longer than it is worth."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``root`` for other users, with a reason. Order the tests of a parallel session."""
    if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
        items[:] = arranged(items, workers)
    if not ROOT:
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(pytest.mark.skip(reason="needs root: sudo make test"))
