"""Stops all processes of a program and lets them continue, so that several programs can take turns on one machine.

By the kernel's freezer of control groups (version 2: ``cgroup.freeze``; version 1: ``freezer.state``), and where no
group may be made by SIGSTOP and SIGCONT. Must not decide who runs when: ``campaign.time_slices`` does.
Source: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/freezer-subsystem.rst.
"""

import contextlib
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from fslab.errors import ToolTimeoutError
from fslab.system import cgroup, processes, waiting
from fslab.system.files import opened

_PAUSE_S = 0.0002
_STOPPED = frozenset("Tt") | processes.ENDED
PREFIX = "fslab-"  # of the names of groups


class Freezer(ABC):
    """The processes of one program. ``limit_s``: how long freezing may take; a process that waits for a device stops
    only when the device has answered."""

    limit_s = 60.0

    @abstractmethod
    def adopt(self, leader: int) -> None:
        """Take over a child that was just started, with all processes of its session."""

    @abstractmethod
    def freeze(self) -> None:
        """Stop all processes; return when the last one has stopped. ToolTimeoutError after ``limit_s``."""

    @abstractmethod
    def thaw(self) -> None:
        """Let all processes continue."""

    def end(self) -> None:
        """Let what is left continue and give the group back. Can be called twice."""
        self.thaw()


@dataclass(kw_only=True, slots=True)
class GroupFreezer(Freezer):
    """A control group. ``switch``: the file that freezes it, with the words for on and off; ``state``: the file, and
    the text in it that says that all processes are frozen."""

    group: cgroup.ControlGroup
    switch: str
    words: tuple[str, str]
    state: str
    frozen: bytes

    def adopt(self, leader: int) -> None:
        members = self.group.path / "cgroup.procs"

        def all_in() -> bool:
            outside = [pid for pid in processes.session(leader) if pid not in self.group.processes()]
            for pid in outside:
                with contextlib.suppress(ProcessLookupError):
                    members.write_text(str(pid))
            return not outside

        # A process can fork before it is moved: repeat until no process of the session is outside.
        if not waiting.until(all_in, self.limit_s, 0):
            raise ToolTimeoutError(
                f"processes of the program escaped for {self.limit_s:.0f} s, each by starting another one",
                hint="measure without slices: slices: off",
            )

    def freeze(self) -> None:
        self._write(self.words[0])
        with opened(self.group.path / self.state, os.O_RDONLY) as file:
            _wait_until(lambda: self.frozen in os.pread(file, 4096, 0), self.limit_s)

    def thaw(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._write(self.words[1])

    def end(self) -> None:
        self.thaw()
        self.group.end()

    def _write(self, word: str) -> None:
        (self.group.path / self.switch).write_text(word)


@dataclass(kw_only=True, slots=True)
class SignalFreezer(Freezer):
    """SIGSTOP and SIGCONT to a process and its descendants. A descendant that lost its parent is not reached.

    ``stopped``: descriptors (pidfd) of the processes that are stopped."""

    leader: int | None = None
    stopped: list[int] = field(default_factory=list)

    def adopt(self, leader: int) -> None:
        self.leader = leader

    def freeze(self) -> None:
        sent: set[int] = set()
        # A process that has not stopped yet can still fork.
        while new := [pid for pid in self._members() if pid not in sent]:
            with processes.sent(new, signal.SIGSTOP, self._members) as found:
                self.stopped += map(os.dup, found.values())
                for pid in found:
                    _wait_until(partial(_is_stopped, pid), self.limit_s)
            sent.update(new)

    def thaw(self) -> None:
        while self.stopped:
            pidfd = self.stopped.pop()
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGCONT)
            os.close(pidfd)

    def _members(self) -> list[int]:
        return [] if self.leader is None else [self.leader, *processes.descendants(self.leader)]


def create(name: str, will_make: cgroup.Told = lambda _: None) -> Freezer:
    """Return a freezer. ``name``: of its control group, below this process's own; begins with ``PREFIX``. The caller
    must ``end`` it."""
    if (group := cgroup.create(name, will_make=will_make)) is not None:
        if (group.path / "cgroup.freeze").exists():
            return GroupFreezer(
                group=group,
                switch="cgroup.freeze",
                words=("1", "0"),
                state="cgroup.events",
                frozen=b"frozen 1",
            )
        group.end()
    return version_1(name, will_make) or SignalFreezer()


def version_1(name: str, will_make: cgroup.Told = lambda _: None) -> Freezer | None:
    """Return a freezer of the version 1 hierarchy; None if there is none or that is not allowed. Else as ``create``."""
    if (group := cgroup.create_v1(name, "freezer", will_make=will_make)) is None:
        return None
    return GroupFreezer(
        group=group,
        switch=cgroup.STATE,
        words=("FROZEN", cgroup.THAWED),
        state=cgroup.STATE,
        frozen=b"FROZEN\n",
    )


def let_end(pid: int) -> None:
    """Thaw the group of a process that was killed, because one that version 1 has frozen does not end before.

    For the processes of an fslab that was itself killed.
    """
    own = cgroup.path_v1(pid, "freezer")
    if own is not None and own.name.startswith(PREFIX):
        with contextlib.suppress(OSError):  # it has ended
            (own / cgroup.STATE).write_text(cgroup.THAWED)


def _is_stopped(pid: int) -> bool:
    """Return whether all threads of a process have stopped, or it has ended."""
    return _STOPPED.issuperset(processes.states(pid))


def _wait_until(condition: Callable[[], bool], limit_s: float) -> None:
    if not waiting.until(condition, limit_s, _PAUSE_S):
        raise ToolTimeoutError(
            f"the program did not stop within {limit_s:.0f} s: it waits for its device",
            hint="measure without slices: slices: off",
        )
