"""Runs the tests of a session in parallel (``-n N``), in processes that are forked when it has collected them.

Therefore the tests and what they import are loaded once, not by each process. The session gives the processes one test
after the other, and makes all reports. A process also knows its next test: pytest keeps the fixtures that both use.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.leaks import GRACE_S
from tests.order import arranged


@dataclass
class Worker:
    """A process with the indices of tests: those that it was given, the current one first, and those to be given."""

    pid: int
    left: deque[int]
    given: deque[int] = field(default_factory=deque)
    is_ending: bool = False


class Workers:
    """The plugin of a session that runs its tests in ``count`` processes; 0: in its own."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: dict[Connection, Worker] = {}
        self._made = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests, unless pytest itself does."""
        if not self._count or session.config.option.collectonly or session.testsfailed:
            return None
        places = {item: place for place, item in enumerate(session.items)}
        try:
            for items in arranged(session.items, self._count):
                self._start(session, deque(places[item] for item in items))
            while self._workers:
                for connection in wait([*self._workers]):
                    assert isinstance(connection, Connection)
                    self._hear(session, connection)
        finally:
            self._end()
        return True

    def _end(self) -> None:
        """End the processes that still run, as after an interrupt: what they do not undo soon, the session removes."""
        running = {os.pidfd_open(worker.pid): worker.pid for worker in self._workers.values()}
        for signum in (signal.SIGTERM, signal.SIGKILL):
            for pid in running.values():
                os.kill(pid, signum)
            deadline = time.monotonic() + GRACE_S
            while running and (left_s := deadline - time.monotonic()) > 0:
                for ended in select.select([*running], [], [], left_s)[0]:
                    os.waitpid(running.pop(ended), 0)
                    os.close(ended)

    def _start(self, session: pytest.Session, left: deque[int]) -> None:
        """Fork a process, which runs the tests that it is given."""
        ours, theirs = Pipe()
        name = session.config._tmp_path_factory.getbasetemp() / f"w{self._made}"  # type: ignore[attr-defined]
        self._made += 1
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            for connection in (ours, *self._workers):
                connection.close()
            _work(session, theirs, name)
        theirs.close()
        # Threads do not survive a fork. Numerical libraries have ended theirs before it, and start them again.
        threads = [(each / "comm").read_text().strip() for each in Path("/proc/self/task").iterdir()]
        assert len(threads) == 1, f"a module of tests has started threads: {threads}"
        worker = self._workers[ours] = Worker(pid, left)
        for _ in range(2):
            self._give(ours, worker)

    def _give(self, connection: Connection, worker: Worker) -> None:
        """Give a process its next test; None if none is left. One that has run its own takes half of another's."""
        if worker.is_ending:
            return
        if not worker.left:
            longest = max(self._workers.values(), key=lambda each: len(each.left)).left
            worker.left.extendleft(longest.pop() for _ in range((len(longest) + 1) // 2))
        given = worker.left.popleft() if worker.left else None
        worker.is_ending = given is None
        if given is not None:
            worker.given.append(given)
        with contextlib.suppress(BrokenPipeError):  # it has ended, which is reported when its end is read
            connection.send(given)

    def _hear(self, session: pytest.Session, connection: Connection) -> None:
        """Report the test that a process has run. If it has died, the test has failed, and another one takes over."""
        worker = self._workers[connection]
        try:
            said: list[dict[str, Any]] | str = connection.recv()
        except (EOFError, ConnectionResetError):
            said = ""
        if isinstance(said, list):
            read = session.config.hook.pytest_report_from_serializable
            reports = [read(config=session.config, data=one) for one in said]
            _report(session, session.items[worker.given.popleft()], reports)
            self._give(connection, worker)
            return
        del self._workers[connection]
        _, status = os.waitpid(worker.pid, 0)
        if worker.given:
            item = session.items[worker.given.popleft()]
            text = said or f"the process that ran it has ended ({os.waitstatus_to_exitcode(status)})"
            failed = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
            self._start(session, deque([*worker.given, *worker.left]))
            _report(session, item, [failed])


def _report(session: pytest.Session, item: pytest.Item, reports: list[pytest.TestReport]) -> None:
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


class _Reports:
    """The plugin of a process that runs tests: keeps the reports of the current one."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.of_test: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self.of_test.append(data)


def _work(session: pytest.Session, connection: Connection, directory: Path) -> NoReturn:
    """Run the tests that the session gives, in a process of its own with its own directory."""
    try:
        reports = _Reports(session.config)
        session.config.pluginmanager.register(reports)
        with _own(session.config, directory):
            for item, following in _given(session, connection):
                reports.of_test.clear()
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                connection.send(reports.of_test)
    except (KeyboardInterrupt, EOFError, BrokenPipeError):
        # The session ends: undo what the current test has set up.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with contextlib.suppress(BaseException):
            session._setupstate.teardown_exact(None)
    except BaseException:  # whatever it is, this process must not go on as the session
        with contextlib.suppress(OSError):
            connection.send(traceback.format_exc())
    finally:
        os._exit(0)


def _given(
    session: pytest.Session, connection: Connection
) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Yield each test with the next one."""
    place: int | None = connection.recv()
    while place is not None:
        following: int | None = connection.recv()
        yield session.items[place], None if following is None else session.items[following]
        place = following


@contextlib.contextmanager
def _own(config: pytest.Config, directory: Path) -> Iterator[None]:
    """Let this process capture output on its own, print nothing, and make the tests' directories in its own."""
    directory.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = directory  # type: ignore[attr-defined]
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    with Path(os.devnull).open("w") as nothing:
        config.get_terminal_writer()._file = nothing
        yield
