"""A tree of text files from a seed, with the sizes of a kernel's sources: made, changed, and compared with the seed;
packed, unpacked, read and removed by tar(1), grep(1) and rm(1)."""

from __future__ import annotations

import errno
import math
import os
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import ClassVar

from pydantic import Field

from fslab import scaling
from fslab.applications import DriveRequest, StepLoad, run_program
from fslab.errors import ToolFailedError, ToolOutputError
from fslab.system.tools import Tool

_TAR = Tool(program="tar", package="tar")
_GREP = Tool(program="grep", package="grep")
_RM = Tool(program="rm", package="coreutils")
TOOLS = (_TAR, _GREP, _RM)

# Share of the files → size: the 78,579 files of Debian's linux-source-6.1 (6.1.192); mean 16.5 kB, and 15.0 kB here,
# because the largest files are left out, of which a smaller tree would have one or none.
_SIZES = (
    (0.0, 1), (0.01, 73), (0.05, 254), (0.1, 446), (0.2, 959), (0.3, 1621), (0.4, 2525), (0.5, 3874), (0.6, 5910),
    (0.7, 9044), (0.8, 14833), (0.9, 28759), (0.95, 48093), (0.98, 83945), (0.99, 124858), (0.995, 191202),
    (0.999, 1120270), (1.0, 3500000),
)  # fmt: skip
MEAN_BYTES = sum(
    (after - before) * (large - small) / math.log(large / small)
    for (before, small), (after, large) in pairwise(_SIZES)
)
_PER_DIRECTORY = 16  # 78,579 files in 5,096 directories
_AROUND_BYTES = 4608  # of a file, on average: half a block, an inode, names and its share of a directory
_TEXT_BYTES = 4 << 20
_WORDS = 1000
_LEAST_FILES = 100
_MARKED = 10  # each tenth file has the word that ``marked`` counts
MARK = "fslab-marked"
CHANGED_SHARE = 100


def space_bytes(files: int) -> int:
    return round(files * (MEAN_BYTES + _AROUND_BYTES))


def is_marked(number: int) -> bool:
    """Return whether a file contains ``MARK``, at its end."""
    return number % _MARKED == 0


def marked(files: int) -> int:
    """Return how many of the files contain ``MARK``."""
    return -(-files // _MARKED)


class TreeLoad(StepLoad):
    """The keys of an application whose steps work on a tree. ``files_per_s``: a guess for any medium, for the plan."""

    laid_out = frozenset({"files", "steps"})
    files_per_s: ClassVar[float]

    files: int = Field(
        20_000,
        ge=10,
        le=10_000_000,
        description="files in the tree, 15 kB on average: text, sized as Linux' sources, which are 78,579 files in 6.1",
    )

    @property
    def prepare_s(self) -> float:
        return 1 + self.files / self.files_per_s * (1 + len(self.done_before))

    @property
    def work_s(self) -> float:
        return len(self.chosen) * self.files / self.files_per_s

    def scaled(self, factor: float) -> scaling.Changes:
        return {"files": scaling.count(self.files, factor, least=_LEAST_FILES)}


@dataclass(frozen=True, kw_only=True)
class SourceTree:
    """``files`` files below ``root``: text made of random words, which zlib makes a third as large."""

    root: Path
    files: int
    seed: int

    @cached_property
    def sizes(self) -> list[int]:
        """The sizes in bytes: the same ones for each seed, in another order."""
        found = [_size((number + 0.5) / self.files) for number in range(self.files)]
        Random(self.seed).shuffle(found)  # noqa: S311 - to be repeated
        return found

    @property
    def changed(self) -> range:
        """The numbers of the files that ``change`` changes: 1 %."""
        return range(0, self.files, min(CHANGED_SHARE, self.files))

    def path(self, number: int) -> Path:
        directory = number // _PER_DIRECTORY
        names = (
            f"{directory // 256:03d}",
            f"{directory // 16 % 16:x}",
            f"{directory % 16:x}",
            f"{number:06d}.c",
        )
        return self.root.joinpath(*names)

    def contents(self, number: int, version: int = 0) -> bytes:
        """Return the contents of a file. Another version of it is longer."""
        size = self.sizes[number]
        every = _text(self.seed)
        begin = number * 7919 % (len(every) - size)
        text = every[begin : begin + size]
        tail = f"\n{number} {version}{f' {MARK}' if is_marked(number) else ''}\n".encode()
        return text[: max(0, size - len(tail))] + tail + b"+" * version

    def make(self) -> None:
        """Write all files."""
        self.write(dict.fromkeys(range(self.files), 0))

    def write(self, versions: Mapping[int, int]) -> None:
        """Write these files, each in its version."""
        made: Path | None = None
        for number, version in versions.items():
            path = self.path(number)
            if path.parent != made:
                path.parent.mkdir(parents=True, exist_ok=True)
                made = path.parent
            path.write_bytes(self.contents(number, version))

    def change(self) -> None:
        """Write another version of 1 % of the files."""
        self.write(dict.fromkeys(self.changed, 1))

    def problem(self, changed: range = range(0)) -> str | None:
        """Compare all files with the seed, ``changed`` ones with their other version. Return the first difference."""
        return self.difference({number: int(number in changed) for number in range(self.files)})

    def difference(
        self, versions: Mapping[int, int], extended: Collection[int] = frozenset(), by: bytes = b""
    ) -> str | None:
        """Return the first difference from a tree of these files, of which the ``extended`` ones end with ``by``."""
        found = sum(1 for _ in _files(self.root))
        if found != len(versions):
            return f"{found} of {len(versions)} files are there"
        for number, version in versions.items():
            path = self.path(number)
            try:
                same = path.read_bytes() == self.contents(number, version) + by * (number in extended)
            except FileNotFoundError:
                return f"{path.relative_to(self.root)} is missing"
            if not same:
                return f"{path.relative_to(self.root)} has other contents"
        return None


def tree_of(drive: DriveRequest, place: str | Path) -> SourceTree:
    """Return the tree of a run, below a place in its directory."""
    return SourceTree(root=drive.directory / place, files=drive.load.files, seed=drive.seed)


def _files(root: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(root):
        yield from (Path(directory, name) for name in names)


def _size(share: float) -> int:
    """Return the size that is larger than this share of the sizes: between the known ones on a logarithmic scale."""
    at = bisect_right(_SIZES, share, key=lambda each: each[0])
    (before, small), (after, large) = _SIZES[at - 1], _SIZES[at]
    return round(small * math.exp(math.log(large / small) * (share - before) / (after - before)))


@lru_cache(maxsize=1)
def _text(seed: int) -> bytes:
    random = Random(seed)  # noqa: S311 - to be repeated
    letters = "etaoinshrdlucmfwypvbgkjqxz_"
    words = ["".join(random.choices(letters, k=random.randint(1, 12))) for _ in range(_WORDS)]
    often = list(accumulate(rank**-1.2 for rank in range(1, _WORDS + 1)))  # like Zipf's law
    some = random.choices(words, cum_weights=often, k=_TEXT_BYTES // 6)
    lines = (" ".join(some[begin : begin + 9]) for begin in range(0, len(some), 9))
    return "\n".join(lines).encode()


def pack(archive: str, tree: str, *, cwd: Path) -> None:
    """Pack a directory into a new archive that is not compressed, and remove it. Its files belong to root there."""
    _tar("--create", archive, "--owner=0", "--group=0", "--sort=name", tree, cwd=cwd)
    remove(tree, cwd=cwd)


def unpack(archive: str | Path, *, cwd: Path) -> None:
    _tar("--extract", archive, cwd=cwd)


def read(tree: str, marked: int, *, cwd: Path) -> None:
    """Search all files of a tree for its mark. ToolOutputError unless so many of them have it."""
    words = ("-r", "-l", "-F", "-e", MARK, "--", tree)
    found = run_program(_GREP, *words, cwd=cwd).stdout.count("\n")
    if found != marked:
        raise ToolOutputError(f"grep found {found} of {marked} files")


def remove(*names: str, cwd: Path) -> None:
    run_program(_RM, "-r", "--", *names, cwd=cwd)


def _tar(what: str, archive: str | Path, *words: str, cwd: Path) -> None:
    """Run tar. If only a part of a record fits on the disk, it does not say why."""
    try:
        run_program(_TAR, what, "--file", archive, *words, cwd=cwd)
    except ToolFailedError as error:
        if "Wrote only" in str(error):
            raise OSError(errno.ENOSPC, "No space left on device", str(cwd)) from error
        raise
