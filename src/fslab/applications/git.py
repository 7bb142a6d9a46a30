"""git: a transaction is one commit of one changed file. core.fsync sets what git syncs (git-config(1))."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from fslab.applications import Application, Contract, Records, RecoveredData, Settings, setting
from fslab.storage.promises import Promise, Promises
from fslab.system import proc
from fslab.system.tools import Tool, require

FILE = "file"
_COMMIT_BYTES = 16 << 10
_TOOL = Tool(program="git", package="git")
_OWN = {
    "user.name": "fslab", "user.email": "fslab@localhost", "commit.gpgSign": "false", "gc.auto": "0",
    "maintenance.auto": "false", "core.hooksPath": "/dev/null", "safe.directory": "*",
}  # fmt: skip


class GitLoad(Records):
    """A transaction is `git add` and `git commit` of one changed file: three or more processes. Afterwards `git fsck`
    and the commits of the branch decide whether the trial is valid."""

    @property
    def guessed_rate(self) -> float:
        return 100.0

    @property
    def space_bytes(self) -> int:
        """A commit makes three files of at least a block, and directories for them."""
        return self.most * (2 * self.size_bytes + _COMMIT_BYTES) + (256 << 10)

    core_fsync: Literal["default", "all", "none"] = setting(
        "default", "what git syncs: its default, everything that it can sync, or nothing", alias="core.fsync"
    )


class Git(Application):
    """A repository with one branch."""

    summary = "git: commits; is the repository intact after a power cut, and are its last commits there"
    tool = _TOOL
    Load = GitLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        """Return no promise: core.fsync names the files that git syncs, and no value of it syncs directories."""
        return Contract(durable=_NOTHING, consistent=_NOTHING)

    def lay_out(self, directory: Path, settings: Settings) -> None:
        _git(directory, settings, "init", "--quiet", "--initial-branch=main", ".")

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Yield a function that runs ``git add`` and ``git commit`` for each transaction."""

        def commit(number: int, contents: bytes) -> None:
            (directory / FILE).write_bytes(contents)
            _git(directory, settings, "add", FILE)
            _git(directory, settings, "commit", "--quiet", "--message", str(number))

        yield commit

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:  # noqa: ARG002 - git has digests
        """Run ``git fsck``, and read the subjects of the branch's commits."""
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
        "GIT_CEILING_DIRECTORIES": str(directory.parent),
    }
    argv = [require(_TOOL), "-C", str(directory), *given, *words]
    return proc.run(argv, check=check, timeout_s=60, env={**_others(), **own})


def _others() -> dict[str, str]:
    """Return the environment without git's variables, which could make git use another repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
