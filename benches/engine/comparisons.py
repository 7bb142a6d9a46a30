"""The comparisons: for each task, the command of fslab-engine and those of its peers, on the same files.

A side prepares (not measured), runs, and returns seconds: of the process, or as reported by the program itself.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

FILES = 10_000
# Enough files, because bonnie++ reports no rate for a test of less than half a second.
BONNIE_FILES = 192 * 1024
NEEDLE = "fslab-needle"


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of the two programs. ``run`` returns the seconds by metric name, and an answer to compare (or None)."""

    name: str
    run: Callable[[], tuple[dict[str, float], object]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One task, done by the engine and by a peer."""

    work: str
    threads: int
    ours: Side
    peer: Side


def run(argv: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=cwd
    )
    # Exit status 1 means "no match" for programs like grep, and "cannot read a file" for du.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr[-500:]}")
    return done.stdout


class Bench:
    """The data sets and comparisons in one directory."""

    def __init__(self, engine: Path, bare: Path | None, place: Path, tree_files: int) -> None:
        self.engine, self.bare, self.place = str(engine), bare, place
        self.tree, self.set = place / "tree", place / "set"
        self.tree_files = tree_files

    def make_data(self) -> None:
        self.tree.mkdir(parents=True)
        shape = ["--files", str(self.tree_files), "--dirs", str(self.tree_files // 100), "--size", "1"]
        run([self.engine, "small-files", str(self.tree), "--operations", "create", *shape])
        classes = ["--class", "small:20000:16k", "--class", "medium:100:2m", "--class", "large:4:50m"]
        run([self.engine, "populate", str(self.set), *classes])

    def all(self, threads: int) -> Iterator[Comparison]:
        yield from self._small_files(threads)
        yield from self._walks(threads)
        yield from self._contents(threads)
        yield from self._changes(threads)
        if threads == 1:
            yield from self._metadata()

    def _compare(self, work: str, threads: int, ours: Side, *peers: Side | None) -> Iterator[Comparison]:
        for peer in filter(None, peers):
            yield Comparison(work=work, threads=threads, ours=ours, peer=peer)

    def _engine(
        self,
        command: str,
        *arguments: str,
        prepare: Callable[[], None] | None = None,
        answer: str | None = None,
    ) -> Side:
        """Return the engine's side. The whole process is timed, as for the other programs."""

        def go() -> tuple[dict[str, float], object]:
            if prepare:
                prepare()
            argv = [self.engine, command, *arguments, "--json"]
            start = time.perf_counter()
            text = run(argv)
            seconds = time.perf_counter() - start
            found = json.loads(text)["answer"]
            return {"": seconds}, found[answer] if answer else None

        return Side(name="fslab-engine", run=go)

    def _peer(
        self,
        argv: list[str],
        prepare: Callable[[], None] | None = None,
        answer: Callable[[str], object] | None = None,
    ) -> Side | None:
        if shutil.which(argv[0]) is None:
            return None

        def go() -> tuple[dict[str, float], object]:
            if prepare:
                prepare()
            start = time.perf_counter()
            text = run(argv)
            return {"": time.perf_counter() - start}, answer(text) if answer else None

        return Side(name=argv[0], run=go)

    def _small_files(self, threads: int) -> Iterator[Comparison]:
        bare = self.bare
        if bare is None:
            return
        shape = [str(FILES), "4096", str(threads), str(threads)]

        def loop() -> tuple[dict[str, float], object]:
            rows = (line.split() for line in run([str(bare), str(self.place), *shape]).splitlines())
            return {name: float(seconds) for name, seconds in rows}, None

        for latency in ("off", "syscalls"):
            argv = [
                self.engine,
                "small-files",
                str(self.place),
                "--files",
                str(FILES),
                "--threads",
                str(threads),
                "--dirs",
                str(threads),
                "--no-syncfs",
                "--latency",
                latency,
                "--json",
            ]

            def go(argv: list[str] = argv) -> tuple[dict[str, float], object]:
                operations = json.loads(run(argv))["operations"]
                return {operation["name"]: operation["seconds"] for operation in operations}, None

            ours = Side(name="fslab-engine", run=go)
            yield from self._compare(
                f"4 KiB files, latency {latency}", threads, ours, Side(name="bare C loop", run=loop)
            )

    def _walks(self, threads: int) -> Iterator[Comparison]:
        tree, count = str(self.tree), str(threads)
        ours = self._engine("analyze", tree, "--threads", count, answer="allocated_bytes")
        du = self._peer(["du", "-s", "--block-size=1", tree], answer=lambda text: int(text.split()[0]))
        dust = self._peer(["dust", "-d", "0", "-T", count, tree])
        diskus = self._peer(["diskus", "-j", count, tree])
        dua = self._peer(["dua", "-t", count, "aggregate", tree])
        yield from self._compare(
            f"disk-space analysis, {self.tree_files} files", threads, ours, du, dust, diskus, dua
        )

    def _contents(self, threads: int) -> Iterator[Comparison]:
        data, count = str(self.set), str(threads)
        ours = self._engine("duplicates", data, "--threads", count, answer="redundant_files")

        def redundant(text: str) -> object:
            found = re.search(r"(\d+) duplicate files|Redundant: .* in (\d+) files", text)
            return int(found.group(1) or found.group(2)) if found else None

        jdupes = self._peer(["jdupes", "-r", "-m", "-q", data], answer=redundant)
        fclones = self._peer(
            ["fclones", "group", "-t", count, "--hidden", "--no-ignore", "-f", "json", data],
            answer=lambda text: json.loads(text)["header"]["stats"]["redundant_file_count"],
        )
        yield from self._compare("duplicate search", threads, ours, jdupes, fclones)
        ours = self._engine("search", data, "--pattern", NEEDLE, "--threads", count, answer="lines_matched")
        rg = self._peer(
            ["rg", "-uuu", "-a", "-c", "-j", count, NEEDLE, data],
            answer=lambda text: sum(int(line.rsplit(":", 1)[1]) for line in text.splitlines()),
        )
        yield from self._compare("file search, literal", threads, ours, rg)
        regex = "fslab-[mn]e+dle|zebra[0-9]{3}"
        ours = self._engine(
            "search", data, "--regex", "--pattern", regex, "--threads", count, answer="lines_matched"
        )
        rg = self._peer(
            ["rg", "-uuu", "-a", "-c", "-j", count, regex, data],
            answer=lambda text: sum(int(line.rsplit(":", 1)[1]) for line in text.splitlines()),
        )
        yield from self._compare("file search, regex", threads, ours, rg)

    def _changes(self, threads: int) -> Iterator[Comparison]:
        copy, victim, count = self.place / "copy", self.place / "victim", str(threads)

        def no_copy() -> None:
            shutil.rmtree(copy, ignore_errors=True)
            subprocess.run(["sync"], check=True)

        def make_victim() -> None:
            shutil.rmtree(victim, ignore_errors=True)
            victim.mkdir()
            run(
                [
                    self.engine,
                    "small-files",
                    str(victim),
                    "--operations",
                    "create",
                    "--files",
                    "30000",
                    "--dirs",
                    "300",
                    "--size",
                    "4k",
                ]
            )

        ours = self._engine(
            "sync-write", str(self.set), str(copy), "--sync", "none", "--threads", count, prepare=no_copy
        )
        cp = self._peer(["cp", "-a", str(self.set), str(copy)], prepare=no_copy)
        rsync = self._peer(["rsync", "-a", f"{self.set}/", str(copy)], prepare=no_copy)
        yield from self._compare("sync-write", threads, ours, cp, rsync)
        shutil.rmtree(copy, ignore_errors=True)
        ours = self._engine("delete", str(victim), "--no-syncfs", "--threads", count, prepare=make_victim)
        rm = self._peer(["rm", "-rf", str(victim)], prepare=make_victim)
        yield from self._compare("delete, 30000 files", threads, ours, rm)

    def _metadata(self) -> Iterator[Comparison]:
        """Compare with programs that report rates. The seconds for FILES files are computed from these rates."""
        peers = [
            ("fio", self._fio, FILES),
            ("fs_mark", self._fs_mark, FILES),
            ("bonnie++", self._bonnie, BONNIE_FILES),
        ]
        for name, function, files in peers:
            if shutil.which(name):
                ours = Side(name="fslab-engine", run=partial(self._steps, files))
                yield from self._compare("metadata", 1, ours, Side(name=name, run=function))

    def _steps(self, files: int) -> tuple[dict[str, float], object]:
        """Run the engine with ``files`` files and return the seconds of each operation, scaled to FILES files."""
        argv = [self.engine, "small-files", str(self.place), "--files", str(files), "--no-syncfs", "--json"]
        operations = json.loads(run(argv))["operations"]
        return {operation["name"]: operation["seconds"] / files * FILES for operation in operations}, None

    def _fio(self) -> tuple[dict[str, float], object]:
        directory = self.place / "fio"
        directory.mkdir()
        seconds = {}
        common = [
            "--name=x",
            f"--directory={directory}",
            "--filesize=4k",
            f"--nrfiles={FILES}",
            "--file_service_type=sequential",  # otherwise fio spends most of the time choosing the next file
            "--fallocate=none",
            "--output-format=json",
        ]
        for name, engine in (("create", "filecreate"), ("stat", "filestat"), ("delete", "filedelete")):
            report = json.loads(run(["fio", *common, f"--ioengine={engine}"], cwd=self.place))
            seconds[name] = FILES / report["jobs"][0]["read"]["iops"]
        shutil.rmtree(directory)
        # fio's filecreate only opens and closes a file; the engine's create also writes 4 KiB: not comparable.
        del seconds["create"]
        return seconds, None

    def _bonnie(self) -> tuple[dict[str, float], object]:
        size = f"{BONNIE_FILES // 1024}:4096:4096:1"
        text = run(["bonnie++", "-d", str(self.place), "-s", "0", "-n", size, "-u", "root", "-q"])
        fields = text.strip().splitlines()[-1].split(",")
        rates = {"create": fields[26], "delete": fields[30]}
        # bonnie++ prints plus signs instead of a rate if a test was too short.
        return {name: FILES / float(rate) for name, rate in rates.items() if "+" not in rate and rate}, None

    def _fs_mark(self) -> tuple[dict[str, float], object]:
        directory = self.place / "fs_mark"
        directory.mkdir()
        text = run(
            [
                "fs_mark",
                "-d",
                str(directory),
                "-n",
                str(FILES),
                "-s",
                "4096",
                "-S",
                "0",
                "-t",
                "1",
                "-L",
                "1",
            ],
            cwd=self.place,
        )
        shutil.rmtree(directory)
        rows = [line.split() for line in text.splitlines()]
        rates = [float(row[3]) for row in rows if len(row) >= 5 and row[1] == str(FILES)]
        return ({"create": FILES / rates[-1]} if rates else {}), None
