"""Lets the tools of several trials take turns in slices of time, so that noise that comes and goes hits all of them.

Each tool runs in a freezer; all but one are frozen. Between two slices of a tool, every other tool has one or two: the
order is random, and each order is followed by its reverse. Must not build stacks or compute figures: ``trial`` builds,
``sliced_figures`` computes.
Sources: Bulej et al., "Duet Benchmarking", ICPE 2020; Abedi & Brecht, "Conducting Repeatable Experiments in Highly
Variable Cloud Computing Environments", ICPE 2017.
"""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Self

from fslab.errors import FslabError
from fslab.plan.expand import LEAST_SLICES
from fslab.system import cgroup, freezer, priority, proc, processes, sysfs, waiting

# How long a tool may run before its first slice: until it does I/O or makes an entry in the workload's directory, so
# that no start is in a slice.
START_S = 2.0
START_EVERY_S = 0.002
STARTED_BYTES = 256 << 10  # what a program reads of its own files before it works is less
STARTED_REQUESTS = 16  # to open files, a program has blocks of a cold file system read: some requests
SECTOR_BYTES = 512
LATE_S = 0.5  # after the end of a slice: so late, the end of a tool was not seen
# How long the disks may take to answer the requests that are in flight when a tool is frozen.
ANSWER_LIMIT_S = 60.0
ANSWER_EVERY_S = 0.0002
LEAST_BYTES = 1 << 20


class WorkLeftError(Exception):
    """Tools were given up because of what they left to the slices of others. ``stacks``: those that left it."""

    def __init__(self, stacks: Sequence[str]) -> None:
        super().__init__(", ".join(stacks))
        self.stacks = tuple(stacks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """When a tool ran, in seconds of ``time.monotonic`` (CLOCK_MONOTONIC). ``ran``: begin and end of each slice, in
    order; ``worked_s``: when it was first seen to do I/O. ``left_bytes`` of ``written_bytes`` reached its devices
    while it was frozen. ``flushed``: each slice ended with a flush. ``said``: how many bytes of standard error it had
    written after each slice."""

    worked_s: float
    ended_s: float
    ran: tuple[tuple[float, float], ...]
    left_share: float | None = None
    flushed: bool = False
    said: tuple[int, ...] = ()

    @property
    def began_s(self) -> float:
        """When it was started."""
        return self.ran[0][0]

    @property
    def started_s(self) -> float:
        """How long its start took, until it was seen to work; 0 if it never was."""
        return self.worked_s - self.began_s

    def ran_s(self, begin_s: float, end_s: float) -> float:
        """Return how long the tool ran between two times."""
        return sum(max(0.0, min(end_s, end) - max(begin_s, begin)) for begin, end in self.ran)

    def together_s(self, begin_s: float, end_s: float) -> float:
        """Return how long it ran between two times before it was frozen first: while the others ran too."""
        began, ended = self.ran[0]
        return max(0.0, min(end_s, ended) - max(begin_s, began))

    def freezes(self, begin_s: float, end_s: float) -> int:
        """Return how often it was frozen between two times."""
        return sum(begin_s < end < end_s for _, end in self.ran)


@dataclass(kw_only=True, slots=True)
class SlicedRun:
    """One tool that takes turns. ``name``: of its freezer. ``will_make``: gets the directory of its control group
    before it is made. ``stack``: the name of its stack. ``start``: starts it.

    ``devices``: kernel names of the disks below its file system. ``directory``: the workload's own. ``look``: a check
    to call after each slice, which raises an error that ends the tool. ``drain``: writes back what a slice has left, or
    None; its time counts as the tool's. ``halt``: stops the time of disks that have their own (True), or lets it go on.
    ``limit_s``: how long it may run. ``error``: why it was given up, also why it was not started.
    """

    name: str
    stack: str
    start: Callable[[], proc.Running]
    devices: Sequence[str]
    directory: Path
    look: Callable[[], None]
    drain: Callable[[], None] | None
    limit_s: float
    will_make: cgroup.Told = lambda _: None
    ended: Callable[[], None] = lambda: None
    halt: Callable[[bool], None] = lambda _: None
    running: proc.Running = field(init=False)
    error: FslabError | OSError | None = None
    worked_s: float | None = None
    ran: list[tuple[float, float]] = field(default_factory=list)
    said: list[int] = field(default_factory=list)
    _freezer: freezer.Freezer = field(init=False)
    _began_bytes: int = 0
    _began_requests: int = 0
    _began_changed: int = 0
    _frozen_bytes: int = 0
    _left_bytes: int = 0

    def __enter__(self) -> Self:
        self._freezer = freezer.create(self.name, self.will_make)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(FslabError):  # a disk whose server has ended fails the trial anyway
            self.halt(False)
        self._freezer.end()

    @property
    def left_share(self) -> float | None:
        """The share of its writes that reached the disks in the slices of others. None if it wrote too little."""
        written_bytes = self._frozen_bytes - self._began_bytes
        return self._left_bytes / written_bytes if written_bytes >= LEAST_BYTES else None

    @property
    def is_over(self) -> bool:
        """Whether the tool has ended, or was given up."""
        return self.error is not None or self.running.ended_s is not None

    def begin(self) -> None:
        """Start the tool, before other programs. It runs until ``has_begun`` freezes it."""
        self._began_bytes = self._frozen_bytes = written_bytes(self.devices)
        self._began_requests = self._requests()
        self._began_changed = self._changed_ns()
        self.running = self.start()
        priority.put_first(self.running.pid)
        self._freezer.adopt(self.running.pid)

    def has_begun(self) -> bool:
        """Freeze the tool once it does I/O, or after ``START_S``. Return whether it is frozen, or has ended."""
        if self.ran:
            return True
        now_s, pid = time.monotonic(), self.running.pid
        requests = self._requests() - self._began_requests
        if (
            requests > STARTED_REQUESTS
            or transferred_bytes(pid) > STARTED_BYTES
            or self._changed_ns() != self._began_changed
        ):
            self.worked_s = now_s
        if self.running.has_ended(0.0):
            self._stop(self.running.began_s)
        elif self.worked_s is not None or now_s - self.running.began_s > START_S:
            # Nothing is waited for: others would work unseen meanwhile, and what some milliseconds leave is little.
            self._freezer.freeze()
            self._note(self.running.began_s)
            priority.put_back(pid)
        return bool(self.ran)

    def slice(self, length_s: float) -> None:
        """Let the tool run for ``length_s``, or until it ends. FslabError if it is unknown when it ended: this process
        was stopped meanwhile (Ctrl-Z), and the time until it went on is not the tool's."""
        self._left_bytes += max(0, written_bytes(self.devices) - self._frozen_bytes)
        self.halt(False)
        began_s = time.monotonic()
        self._freezer.thaw()
        self.running.has_ended(length_s)
        late_s = (self.running.ended_s or began_s) - began_s - length_s
        if late_s > LATE_S:
            raise FslabError(
                f"fslab did not run for about {late_s:.1f} s while the tool did, and did not see when it ended",
                hint="do not stop fslab (Ctrl-Z) while it measures, and leave it a CPU",
            )
        self._stop(began_s)

    def timeline(self) -> Timeline:
        """Return when it ran."""
        began_s = self.worked_s if self.worked_s is not None else self.running.began_s
        return Timeline(
            worked_s=began_s, ended_s=self.running.ended_s or time.monotonic(), ran=tuple(self.ran),
            left_share=self.left_share, flushed=self.drain is not None, said=tuple(self.said),
        )  # fmt: skip

    def _stop(self, began_s: float) -> None:
        if self.running.ended_s is None:
            self._freezer.freeze()
            self._await_answers()
        else:
            self.ended()
        if self.drain is not None:
            self.drain()
        self._note(began_s)
        if self.running.ended_s is None:
            self.look()
            if sum(end - begin for begin, end in self.ran) > self.limit_s:
                raise self.running.late(self.limit_s)

    def _note(self, began_s: float) -> None:
        self.said.append(self.running.said_bytes())
        self.ran.append((began_s, self.running.ended_s or time.monotonic()))
        self.halt(True)
        self._frozen_bytes = written_bytes(self.devices)  # of a virtual disk: it answers nothing more

    def _await_answers(self) -> None:
        """Wait for the requests that the disks have got and not answered: a slow disk with a deep queue would go on
        with them in the slices of others. Not for later ones, of a writeback that goes on."""
        expected = self._requests() + self._in_flight()
        waiting.until(
            lambda: not self._in_flight() or self._requests() >= expected, ANSWER_LIMIT_S, ANSWER_EVERY_S
        )

    def _requests(self) -> int:
        return sum(fields[0] + fields[4] for fields in map(_stat, self.devices))

    def _changed_ns(self) -> int:
        """Return when an entry of the directory was made or removed last: empty files are no I/O. What is in it is not
        looked at, because that would read inodes which a trial with a cold cache has to read itself."""
        return self.directory.stat().st_mtime_ns

    def _in_flight(self) -> int:
        return sum(_stat(name)[8] for name in self.devices)


def take_turns(turns: Sequence[SlicedRun], *, slice_s: float, seed: int, left_most: float = inf) -> None:
    """Run all tools to their ends, one at a time, each for ``slice_s`` at once. A tool that fails has an ``error``.

    They start in the order given, at the same time, and each is frozen as soon as it works, so that their clocks begin
    together. ``seed``: of the order of the slices. ``left_most``: the greatest share of what a tool writes that may
    reach its disks while it is frozen.

    Raises:
        WorkLeftError: It was more, after ``LEAST_SLICES`` slices of each. All tools still run or are frozen.
    """
    drawn = random.Random(f"{seed}:slices")  # noqa: S311 - an order, no secret
    with priority.timely():  # else slices last as long as other programs keep the CPU
        for turn in turns:
            _guarded(turn, turn.begin)
        while [turn for turn in turns if turn.error is None and not _guarded(turn, turn.has_begun)]:
            time.sleep(START_EVERY_S)
        while left := [turn for turn in turns if not turn.is_over]:
            order = drawn.sample(left, len(left))
            for turn in (*order, *reversed(order)):
                if not turn.is_over:
                    _guarded(turn, lambda turn=turn: turn.slice(slice_s))  # type: ignore[misc]
            sound = [turn for turn in turns if turn.error is None]
            if all(len(turn.ran) > LEAST_SLICES for turn in sound) and (
                leaving := [turn.stack for turn in sound if (turn.left_share or 0.0) > left_most]
            ):
                raise WorkLeftError(leaving)
        for turn in turns:
            _guarded(turn, lambda turn=turn: turn.halt(False))  # type: ignore[misc]


def written_bytes(devices: Sequence[str]) -> int:
    """Return the bytes that were written to these disks (kernel names) so far: /sys/block/NAME/stat."""
    return sum(_stat(name)[6] for name in devices) * SECTOR_BYTES


def transferred_bytes(pid: int) -> int:
    """Return what a process and its descendants have read and written with system calls (``/proc/PID/io``, proc(5))."""
    texts = [sysfs.text(Path(f"/proc/{each}/io")) or "" for each in (pid, *processes.descendants(pid))]
    counted = [line.split(": ") for text in texts for line in text.splitlines()]
    return sum(int(value) for name, value in counted if name in {"rchar", "wchar"})


def _stat(name: str) -> list[int]:
    text = sysfs.text(sysfs.SYS / "class/block" / name / "stat")
    return [int(field) for field in text.split()] if text else [0] * 11


def _guarded(turn: SlicedRun, action: Callable[[], object]) -> bool:
    """Return whether what the action returns is true. An error gives the tool up."""
    try:
        return bool(action())
    except (FslabError, OSError) as error:
        turn.error = error
        return False
