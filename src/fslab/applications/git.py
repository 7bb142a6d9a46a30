"""git: a transaction is one commit of one changed file. core.fsync sets what git syncs (git-config(1))."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field

from fslab.applications import (
    Contract,
    Driven,
    DriveRequest,
    DurableApplication,
    Populated,
    RecoveredData,
    Settings,
    repeated,
    setting,
)
from fslab.applications import _untrusted_data as untrusted
from fslab.errors import ToolFailedError, UnsupportedError
from fslab.storage.crash_promises import Promise, Promises
from fslab.system import proc
from fslab.system.tools import Tool, require

FILE = "file"
_COMMIT_BYTES = 16 << 10
_UNSYNCED = {"core.fsync": "none"}
_TOOL = Tool(program="git", package="git")
_OWN = {
    "user.name": "fslab", "user.email": "fslab@localhost", "commit.gpgSign": "false", "gc.auto": "0",
    "maintenance.auto": "false", "core.hooksPath": "/dev/null", "safe.directory": "*",
}  # fmt: skip


class GitLoad(Populated):
    """A transaction is `git add` and `git commit` of one changed file; `git status`; `git checkout` of the other of two
    branches, which differ in every tenth file; or `git clone` without links, and the removal of the clone. Afterwards
    `git fsck` and `git status` must find nothing, and the branch must have its commits."""

    laid_out = frozenset({"operation", "files", "size"})
    amount, usual, least, made_per_s = "files", 1000, 10, 2000.0
    begins_empty = "commit"
    reading = frozenset({"status", "checkout", "clone"})
    writing = frozenset({"commit", "checkout", "clone"})

    operation: Literal["commit", "status", "checkout", "clone"] = Field(
        "commit", description="what a transaction does"
    )
    files: int | None = Field(
        None, ge=10, le=1_000_000,
        description="files in the repository before, 100 in each directory; default: none for commit, otherwise 1000",
    )  # fmt: skip
    core_fsync: Literal["default", "all", "none"] = setting(
        "default", "what git syncs: its default, everything that it can sync, or nothing", alias="core.fsync"
    )

    @property
    def guessed_rate(self) -> float:
        per_file = {"commit": 2e-5, "status": 2e-5, "checkout": 5e-5, "clone": 3e-4}[self.operation]
        return 1 / (0.01 + self.there * per_file)

    @property
    def space_bytes(self) -> int:
        """A commit makes three files of at least a block, and directories for them. A clone has all files again."""
        each = 2 * self.size_bytes + _COMMIT_BYTES
        return 3 * self.there * each + (self.most * each if self.operation == "commit" else 0) + (256 << 10)


class Git(DurableApplication):
    """A repository with one branch."""

    summary = "git: commit, status, checkout and clone"
    tools = (_TOOL,)
    Load = GitLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        """Return no promise: core.fsync names the files that git syncs, and no value of it syncs directories."""
        return Contract(durable=_NOTHING, consistent=_NOTHING)

    def lay_out(self, directory: Path, settings: Settings) -> None:
        """Create a repository. UnsupportedError if git does not know a setting: it would ignore it."""
        known = _git(directory, {}, "help", "--config").stdout.split()
        for name, value in settings.items():
            if value != "default" and name not in known:
                raise UnsupportedError(f"this git does not know '{name}', which is in git since 2.36")
        _git(directory, settings, "init", "--quiet", "--initial-branch=main", ".")

    def prepare(self, drive: DriveRequest) -> None:
        """Create a repository; if it has files, with a second branch in which every tenth differs."""
        super().prepare(drive)
        for branch, step in (("main", 1), ("other", 10)) if drive.load.there else ():
            if branch != "main":
                _git(drive.directory, _UNSYNCED, "checkout", "--quiet", "-b", branch)
            for number in range(0, drive.load.there, step):
                path = drive.directory / f"{number // 100:05d}" / f"{number:07d}"
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(f"{branch} {number}\n".encode() + drive.contents(number))
            _git(drive.directory, _UNSYNCED, "add", ".")
            _git(drive.directory, _UNSYNCED, "commit", "--quiet", "--message", "0")
        if drive.load.there:
            _git(drive.directory, _UNSYNCED, "checkout", "--quiet", "main")

    def drive(self, drive: DriveRequest) -> Driven:
        load, directory, settings = drive.load, drive.directory, drive.load.settings()
        if load.operation == "commit":
            return super().drive(drive)
        clone = directory / ".clone"

        def status(number: int) -> None:  # noqa: ARG001
            if changed := _git(directory, settings, "status", "--porcelain").stdout:
                raise ToolFailedError(f"git status: the working tree has changes: {changed.splitlines()[0]}")

        def checkout(number: int) -> None:
            _git(directory, settings, "checkout", "--quiet", "other" if number % 2 else "main")

        def cloned(number: int) -> None:  # noqa: ARG001
            _git(directory, settings, "clone", "--quiet", "--no-hardlinks", ".", str(clone))
            shutil.rmtree(clone)

        driven = repeated(drive, {"status": status, "checkout": checkout, "clone": cloned}[load.operation])
        status(0)
        found = self.look(directory, drive.contents)
        return driven.checked(
            found.problem or (None if found.transactions == {0} else "the commits are not there")
        )

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Yield a function that runs ``git add`` and ``git commit`` for each transaction."""

        def commit(number: int, contents: bytes) -> None:
            (directory / FILE).write_bytes(contents)
            _git(directory, settings, "add", FILE)
            _git(directory, settings, "commit", "--quiet", "--message", str(number))

        yield commit

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:  # noqa: ARG002 - git has digests
        """Run ``git fsck``, and read the subjects of the branch's commits. The repository can come from another
        machine: git reads it only if its configuration is that of ``git init``."""
        if (problem := untrusted.repository_problem(directory / ".git")) is not None:
            return RecoveredData(problem=problem)
        checked = _git(directory, {}, "fsck", "--full", "--no-dangling", check=False)
        if checked.returncode != 0:
            return RecoveredData(problem=f"git fsck: {_told(checked)}")
        if _git(directory, {}, "rev-parse", "--verify", "--quiet", "HEAD", check=False).returncode != 0:
            return RecoveredData()  # no commit yet
        subjects = _git(directory, {}, "log", "--format=%s", check=False)
        if subjects.returncode != 0:
            return RecoveredData(problem=f"git log: {_told(subjects)}")
        return RecoveredData(transactions=frozenset(map(int, subjects.stdout.split())))


def _told(done: proc.Completed) -> str:
    """Return the first line of the output, or the exit status if there is none."""
    return next(iter((done.stderr or done.stdout).strip().splitlines()), f"exit {done.returncode}")


_NOTHING = Promise(
    given=False, source="git-config(1), core.fsync: which files are synced; directories are not"
)


def _git(directory: Path, settings: Settings, *words: str, check: bool = True) -> proc.Completed:
    options = {**_OWN, **{name: value for name, value in settings.items() if value != "default"}}
    given = (word for name, value in options.items() for word in ("-c", f"{name}={value}"))
    own = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_DIR": str(directory / ".git"),
    }
    argv = [require(_TOOL), "-C", str(directory), *given, *words]
    return (proc.run if check else proc.answer)(argv, timeout_s=60, env=own)
