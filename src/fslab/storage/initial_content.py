"""What a mounted file system gets before any trial uses it: attributes of the work directory, and files that fill it.

The mistakes are found without the machine. The rest runs on the mounted file system under test only.
"""

import errno
import os
import random
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from fslab.cell import StackSpec
from fslab.errors import ToolFailedError, UnsupportedError
from fslab.storage import Workspace
from fslab.system import mounts, waiting
from fslab.system.tools import Tool

CHATTR = Tool(program="chattr", package="e2fsprogs", version_argv=("-V",))
# chattr(1), without those that keep a workload from writing (a, i) and those that only the kernel can set.
ATTRIBUTES = "AcCdDFjmPsStTux"
FILL = re.compile(r"([0-9]|[1-8][0-9]|90)%")
FILLED = "fill"  # the directory of the files
PER_DIRECTORY = 500
MOST_FILES = 20_000
LEAST_BYTES, LARGEST_BYTES = 16 << 10, 16 << 20
HOLES, PEAK = (
    0.25,
    0.95,
)  # the share of bytes that are deleted again; less if the file system would be fuller before
APART = 4
FREED_DEADLINE_S = 10.0
PRECISION = 0.02
SEED = 1


def attribute_mistakes(value: str) -> Iterator[str]:
    """Yield what is wrong with letters that chattr does not have, or that no workload could work with."""
    if set(value) - set(ATTRIBUTES) or len(set(value)) < len(value):
        yield f"'{value}' is not a list of attributes of chattr(1), each once, of {ATTRIBUTES}: such as C"


def fill_mistakes(value: str) -> Iterator[str]:
    """Yield what is wrong with a share that cannot be filled."""
    if value and not FILL.fullmatch(value):
        yield f"'{value}' is not a share from 0% to 90%, such as 80%"


def command_mistakes(command: str) -> Iterator[str]:
    """Yield why a command is not one line with a program. The empty text is not a command."""
    if len(command.splitlines()) > 1:
        yield f"'{command}' has several lines: give one command, such as sh -c '…'"
    try:
        if command and not any(shlex.split(command)[:1]):
            yield f"'{command}' names no program"
    except ValueError as error:
        yield f"'{command}': {error}"


def mistakes(spec: StackSpec) -> Iterator[str]:
    """Yield what is wrong with a stack that need not come from a study that was just checked."""
    yield from attribute_mistakes(spec.attributes)
    yield from fill_mistakes(spec.fill)
    yield from command_mistakes(spec.after_mount)


def commands(spec: StackSpec, work: Path) -> Iterator[tuple[str, ...]]:
    """Yield the commands that a stack runs after a mount. Pure."""
    if spec.after_mount:
        yield command_argv(spec.after_mount, str(work))
    if spec.attributes:
        yield tuple(chattr_argv(spec.attributes, work))


def command_argv(command: str, work: str) -> tuple[str, ...]:
    """Return a command of the study with ``{directory}`` replaced. Pure."""
    return tuple(word.replace("{directory}", work) for word in shlex.split(command))


def chattr_argv(attributes: str, work: Path) -> list[str]:
    """Return the command that sets the attributes of the work directory, which new files inherit. Pure."""
    return ["chattr", f"+{attributes}", str(work)]


def set_attributes(attributes: str, work: Path, workspace: Workspace) -> str:
    """Set the attributes, and return those that the directory has then. UnsupportedError if one is missing."""
    try:
        workspace.run("prepare", chattr_argv(attributes, work))
    except ToolFailedError as error:
        raise UnsupportedError(
            f"the file system refuses attribute {attributes} ({error.what})",
            where="attributes",
            hint="remove it for this file system",
        ) from error
    listed = workspace.run("prepare", ["lsattr", "-d", str(work)]).stdout.partition(" ")[0]
    if missing := sorted(set(attributes) - set(listed)):
        raise UnsupportedError(
            f"the file system ignores attribute {', '.join(missing)}",
            where="attributes",
            hint="remove it for this file system",
        )
    return listed.replace("-", "")


def fill(share: float, target: Path) -> None:
    """Fill the mounted file system to ``share`` of its size: files of many sizes, of which some are deleted again.

    The sizes follow from the size of the file system alone. Blocks are allocated without writing data to them, where
    the file system can do that. Does nothing if the files are there already. UnsupportedError if it is full before.
    """
    directory = target / FILLED
    if directory.exists():
        return
    directory.mkdir(mode=0o700)
    total, used, _ = usage(target)
    wanted = int(total * share)
    holes = min(HOLES, max(0.0, 1 - share / PEAK))
    made = _made(max(0, wanted - used), holes, directory)
    mounts.flush(target)
    used = usage(target)[1]
    _wait_freed(target, used - _delete(made, used - wanted) * 99 // 100)
    with suppress(OSError):  # judged by its result
        _allocate(directory / "rest", max(0, wanted - usage(target)[1]))
    mounts.flush(target)
    reached = usage(target)[1] / total
    if abs(reached - share) > PRECISION:
        raise UnsupportedError(
            f"the file system is in use to {reached:.0%} and cannot be filled to {share:.0%}",
            where="fill",
            hint="use a larger medium, or another share",
        )


def _made(needed: int, holes: float, directory: Path) -> list[Path]:
    """Make files, and return them. Stops when the file system is full."""
    made: list[Path] = []
    for number, size in enumerate(_sizes(needed / (1 - holes))):
        path = directory / str(number // PER_DIRECTORY) / str(number)
        path.parent.mkdir(exist_ok=True)
        made.append(path)
        try:
            _allocate(path, size)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            break
    return made


def _delete(made: Sequence[Path], size: int) -> int:
    """Delete files of so many bytes: every fourth one, from the first on, then every fourth one from the second on.
    Return the size of what was deleted."""
    deleted = 0
    for path in (path for first in range(APART) for path in made[first::APART]):
        if deleted >= size:
            break
        deleted += path.stat().st_blocks * 512
        path.unlink()
    return deleted


def _wait_freed(target: Path, used: int) -> None:
    """Wait until no more than ``used`` bytes are in use: XFS and btrfs free the blocks of deleted files later."""

    def freed() -> bool:
        mounts.flush(target)
        return usage(target)[1] <= used

    waiting.until(freed, FREED_DEADLINE_S)


def _allocate(path: Path, size: int) -> None:
    with path.open("xb") as file:
        if size:
            os.posix_fallocate(file.fileno(), 0, size)


def usage(target: Path) -> tuple[int, int, int]:
    """Return the size of a file system, its used and its available space, in bytes, as statvfs reports them."""
    found = os.statvfs(target)
    size = found.f_frsize
    return found.f_blocks * size, (found.f_blocks - found.f_bfree) * size, found.f_bavail * size


def _sizes(needed: float) -> Iterator[int]:
    """Yield sizes with the needed sum, uniform in their logarithm.

    The random generator has a fixed seed, so that equal file systems get equal files. There are at most about
    ``MOST_FILES``: on a large device, they are larger.
    """
    draw = random.Random(SEED)  # noqa: S311 - not a secret
    least = max(LEAST_BYTES, int(needed / MOST_FILES))
    largest = max(LARGEST_BYTES, 4 * least)
    while needed > 0:
        size = min(int(least * (largest / least) ** draw.random()), int(needed) + 1)
        needed -= size
        yield size
