"""The kernel's trace ring: the kernel writes it while the workload runs; fslab reads it afterwards. Root only.

Uses a separate instance (Documentation/trace/ftrace.rst, "Instances"), so that it does not disturb other tracing.
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fslab.system import namespaces
from fslab.tracing import SECTOR_BYTES, RingFigures, Sectors, Split, Traffic, kind_of

log = logging.getLogger("fslab.tracing")
BUFFER_KIB = 64 << 10  # in total; some 100 bytes per event
_EVENTS = ("block/block_rq_complete", "block/block_bio_queue")
_COMMITS = ("jbd2/jbd2_start_commit", "jbd2/jbd2_end_commit")
_WORK = ("workqueue/workqueue_execute_start", "workqueue/workqueue_execute_end")
_LINE = re.compile(r"^\s*(.*)-(\d+)\s+\[\d+\] \S+\s+([\d.]+): (\w+): (.*)$")
_REQUEST = re.compile(r"(\d+),(\d+) (\w+) (?:\(.*\) )?(\d+) \+ (\d+)")
_COMMIT = re.compile(r"dev (\d+),(\d+) transaction (\d+)")
_FUNCTION = re.compile(r"work struct (\S+?):? function (\S+)")


class Ring:
    """Records from construction to :meth:`stop`; :meth:`close` removes the instance. OSError without root."""

    def __init__(self, tracefs: Path, devices: Sequence[int], volume: int | None, name: str) -> None:
        """``devices``, and ``volume`` with the file system, are numbered as in tracepoints: major << 20 | minor.
        ``name``: of the instance."""
        self._instance = _instance(tracefs, name)
        self._instance.mkdir()
        try:
            cpus = os.cpu_count() or 1
            self._write("buffer_size_kb", str(BUFFER_KIB // cpus))
            self._write("trace_clock", "mono")
            for event in _EVENTS:
                self._enable(event, " || ".join(f"dev == {device}" for device in devices))
            for event in _COMMITS if volume is not None else ():
                self._enable(event, f"dev == {volume}")
            for event in _WORK:
                self._enable(event, None)
            self._write("tracing_on", "1")
        except OSError:
            self.close()
            raise

    def stop(self) -> None:
        self._write("tracing_on", "0")

    def read(self, sectors: Sectors) -> tuple[Split, RingFigures]:
        with (self._instance / "trace").open(encoding="utf-8", errors="replace") as lines:
            return figures(lines, sectors, self._overruns())

    def close(self) -> None:
        """Remove the instance. Can be called twice."""
        _remove(self._instance)

    def _overruns(self) -> int:
        texts = [file.read_text() for file in self._instance.glob("per_cpu/*/stats")]
        lost = re.compile(r"^(?:overrun|commit overrun|dropped events): (\d+)", re.MULTILINE)
        return sum(int(number) for text in texts for number in lost.findall(text))

    def _enable(self, event: str, only: str | None) -> None:
        directory = self._instance / "events" / event
        if not directory.is_dir():
            return  # the event is in a module that is not loaded
        if only:
            (directory / "filter").write_text(only)
        (directory / "enable").write_text("1")

    def _write(self, name: str, text: str) -> None:
        (self._instance / name).write_text(text)


def remove(name: str) -> None:
    """Remove an instance that a killed process left: it records until then. OSError if that fails."""
    try:
        tracefs = namespaces.tracefs()
    except OSError as error:  # without root, or with kernel lockdown: then none was made
        log.debug("no tracefs: %s", error)
        return
    _remove(_instance(tracefs, name))


def _instance(tracefs: Path, name: str) -> Path:
    return tracefs / "instances" / name


def _remove(instance: Path) -> None:
    if instance.exists():
        for event in (*_EVENTS, *_COMMITS, *_WORK):
            switch = instance / "events" / event / "enable"
            if switch.exists():
                switch.write_text("0")
        instance.rmdir()


@dataclass(kw_only=True, slots=True)
class _Sums:
    sectors: Sectors
    split: Counter[tuple[str, str]] = field(default_factory=Counter)
    places: Counter[tuple[str, str]] = field(default_factory=Counter)
    submitted: Counter[str] = field(default_factory=Counter)
    work_s: dict[str, float] = field(default_factory=dict)
    commits: list[tuple[float, float]] = field(default_factory=list)
    begun: dict[str, float] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    sizes: Counter[int] = field(default_factory=Counter)
    sequential: int = 0

    def event(self, task: str, time_s: float, name: str, rest: str) -> None:
        match name:
            case "block_rq_complete":
                self._completed(rest)
            case "block_bio_queue":
                request = _REQUEST.match(rest)
                if request and kind_of(request[3])[0] == "W":
                    self.submitted[task] += int(request[5]) * SECTOR_BYTES
            case "jbd2_start_commit" | "jbd2_end_commit":
                self._commit(name, rest, time_s)
            case "workqueue_execute_start" | "workqueue_execute_end":
                self._worked(name, rest, time_s)

    def _completed(self, rest: str) -> None:
        request = _REQUEST.match(rest)
        if request is None:
            return
        device, kind = f"{request[1]}:{request[2]}", kind_of(request[3])
        start, count = int(request[4]), int(request[5])
        self.split[kind, "bytes"] += count * SECTOR_BYTES
        self.split[kind, "requests"] += 1
        if kind[0] != "W" or not count:
            return
        self.sequential += self.ends.get(device) == start
        self.ends[device] = start + count
        self.sizes[count * SECTOR_BYTES] += 1
        place = self._place(start, kind)
        self.places[place, "bytes"] += count * SECTOR_BYTES
        self.places[place, "requests"] += 1

    def _place(self, start: int, kind: str) -> str:
        if any(low <= start < high for low, high in self.sectors.journal or ()):
            return "journal"
        if any(low <= start < high for low, high in self.sectors.superblocks):
            return "superblock"
        if not kind.endswith("M"):
            return "data"
        return "metadata_and_journal" if self.sectors.journal is None else "metadata"

    def _commit(self, name: str, rest: str, time_s: float) -> None:
        commit = _COMMIT.search(rest)
        if commit is None:
            return
        if name == "jbd2_start_commit":
            self.begun[f"commit {commit[3]}"] = time_s
        elif (begun := self.begun.pop(f"commit {commit[3]}", None)) is not None:
            self.commits.append((begun, time_s))

    def _worked(self, name: str, rest: str, time_s: float) -> None:
        work = _FUNCTION.search(rest)
        if work is None:
            return
        if name == "workqueue_execute_start":
            self.begun[work[1]] = time_s
        elif (begun := self.begun.pop(work[1], None)) is not None:
            self.work_s[work[2]] = self.work_s.get(work[2], 0.0) + time_s - begun


def figures(lines: Iterable[str], sectors: Sectors, overruns: int = 0) -> tuple[Split, RingFigures]:
    """Compute the figures from the text of a trace. Pure."""
    sums = _Sums(sectors=sectors)
    for task, time_s, name, rest in _events(lines):
        sums.event(task, time_s, name, rest)
    split, places = _traffic(sums.split), _traffic(sums.places)
    return split, RingFigures(
        written=sum(places.values(), Traffic()),
        by_place=places,
        sequential=sums.sequential,
        submitted=dict(sums.submitted.most_common()),
        work_s=dict(sorted(sums.work_s.items(), key=lambda each: -each[1])),
        commits_s=tuple(sums.commits),
        overruns=overruns,
        sizes=dict(sums.sizes),
    )


def _events(lines: Iterable[str]) -> Iterator[tuple[str, float, str, str]]:
    for line in lines:
        found = _LINE.match(line)
        if found:
            yield found[1], float(found[3]), found[4], found[5]


def _traffic(counted: Counter[tuple[str, str]]) -> dict[str, Traffic]:
    keys = dict.fromkeys(key for key, _ in counted)
    return {key: Traffic(bytes=counted[key, "bytes"], requests=counted[key, "requests"]) for key in keys}
