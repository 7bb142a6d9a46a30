"""restic: back up a tree, again without a change and after one, restore it, and prune the repository."""

from pathlib import Path
from random import Random

from pydantic import Field

from fslab import scaling
from fslab.applications import Amount, DriveRequest, StepLoad, SteppedApplication, run_program
from fslab.system.files import make_newer
from fslab.system.tools import Tool
from fslab.units import SomeSize, parse_size

_RESTIC = Tool(program="restic", package="restic")
_ENV = Tool(program="env", package="coreutils")
_BACKUPS = ("backup", "unchanged", "changed")
_FILES_PER_DIRECTORY = 100


class ResticLoad(StepLoad):
    """backup: the first `restic backup`; unchanged: again; changed: again, after `share` of the files did. restore:
    `restic restore latest`; prune: `restic forget --keep-last 1 --prune`. The contents are random: nothing is
    compressed, or found twice. Each command derives a key in half a second: let steps take much longer. Afterwards
    `restic check --read-data` reads the repository, and restored files are compared with the tree."""

    known = (*_BACKUPS, "restore", "prune")
    reading = writing = frozenset(known)
    laid_out = frozenset({"files", "size", "share", "steps"})

    files: int = Field(5000, ge=1, description="number of files")
    size: SomeSize = Field("64k", description="size of each file")
    share: int = Field(10, ge=1, le=100, description="percentage of the files that change, at least one file")

    @property
    def bytes_of_tree(self) -> int:
        return self.files * max(parse_size(self.size), 4096)

    @property
    def work_s(self) -> float:
        return 5 + self.files * 5e-4 + 3 * self.bytes_of_tree / 80e6

    @property
    def space_bytes(self) -> int:
        return 5 * self.bytes_of_tree + (64 << 20)

    def scaled(self, factor: float) -> scaling.Changes:
        return {"files": scaling.count(self.files, factor, least=20)}


class Restic(SteppedApplication):
    summary = "restic: back up a tree, again, and after a change; restore it, and prune"
    tools = (_RESTIC,)
    Load = ResticLoad

    def lay_out(self, drive: DriveRequest) -> None:
        (drive.directory / "temporary").mkdir()
        (drive.directory / "password").write_text("fslab\n")
        for number in range(drive.load.files):
            path = drive.directory / "tree" / _name(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_contents(drive, number, changed=False))
        _restic(drive, "init")

    def before(self, drive: DriveRequest, step: str) -> None:
        if step == "changed":
            for number in range(drive.load.files):
                if _changes(drive, number):
                    path = drive.directory / "tree" / _name(number)
                    backed_up_ns = path.stat().st_mtime_ns
                    path.write_bytes(_contents(drive, number, changed=True))
                    make_newer(path, backed_up_ns)  # of the same size: else restic does not see it
            (drive.directory / "changed").touch()

    def perform(self, drive: DriveRequest, step: str) -> None:
        if step in _BACKUPS:
            _restic(drive, "backup", "--host", "fslab", "tree")
        elif step == "restore":
            _restic(drive, "restore", "latest", "--target", "restored")
        else:
            _restic(drive, "forget", "--group-by", "", "--keep-last", "1", "--prune")

    def amount(self, drive: DriveRequest, step: str) -> Amount:  # noqa: ARG002 - always the whole tree
        return Amount(files=drive.load.files)

    def problem(self, drive: DriveRequest, step: str) -> str | None:
        _restic(drive, "check", "--read-data")
        changed = (drive.directory / "changed").exists()  # `steps` may leave that step out
        if step != "restore":
            _restic(drive, "restore", "latest", "--target", "checked")
        for restored in ("restored", "checked"):
            if (drive.directory / restored).exists():
                problem = _difference(drive, drive.directory / restored / "tree", changed=changed)
                if problem:
                    return problem
        return None


def _restic(drive: DriveRequest, *words: str) -> None:
    """Run restic with all that it writes, temporary files too, in the directory of the trial."""
    temporary = f"TMPDIR={drive.directory / 'temporary'}"
    places = ("--repo", "repository", "--password-file", "password", "--cache-dir", "cache")
    run_program(_ENV, temporary, _RESTIC.program, *places, *words, cwd=drive.directory)


def _name(number: int) -> str:
    return f"{number // _FILES_PER_DIRECTORY}/{number}"


def _changes(drive: DriveRequest, number: int) -> bool:
    """Whether the file changes: `share` of each hundred, spread evenly, and always the first."""
    return number * 37 % 100 < int(drive.load.share)


def _contents(drive: DriveRequest, number: int, *, changed: bool) -> bytes:
    version = int(changed and _changes(drive, number))
    numbers = Random(f"{drive.seed}/{number}/{version}")  # noqa: S311 - contents, no secrets
    return numbers.randbytes(parse_size(drive.load.size))


def _difference(drive: DriveRequest, tree: Path, *, changed: bool) -> str | None:
    """What the restored files have other than those of the seed."""
    found = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    if found != {_name(number) for number in range(drive.load.files)}:
        return f"restic restored {len(found)} files, or others, and not the {drive.load.files} of the tree"
    for number in range(drive.load.files):
        if (tree / _name(number)).read_bytes() != _contents(drive, number, changed=changed):
            return f"the restored file {_name(number)} has other contents than the tree"
    return None
