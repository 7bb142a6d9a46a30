"""Unpack, replace and remove packages with dpkg(1), in a root directory and with a database of their own."""

from __future__ import annotations

import os
import shutil
from typing import Literal, Self

from pydantic import Field, model_validator

from fslab import scaling
from fslab.applications import Amount, DriveRequest, StepLoad, SteppedApplication, run_program
from fslab.applications import _source_tree as trees
from fslab.filesystem_abilities import Ability
from fslab.system.tools import Tool

_DPKG = Tool(program="dpkg", package="dpkg")
_DPKG_DEB = Tool(program="dpkg-deb", package="dpkg")
_ROOT, _DATABASE, _PLACE = "root", "var/lib/dpkg", "srv/fslab"
_FILES_PER_S = 1000.0
_LEAST_FILES = 100
# The machine's dpkg.cfg may leave out paths, or give up syncs, as images of containers do.
_OWN = ("--log=/dev/null", "--path-include=/*", "--force-not-root", "--force-bad-path")
_CONTROL = """\
Package: {name}
Version: {version}
Architecture: all
Maintainer: fslab <fslab@localhost>
Description: files of a test
"""


class PackagesLoad(StepLoad):
    """unpack: `dpkg --unpack` of all packages; upgrade: the same with other contents in every file; remove: `dpkg
    --purge`. dpkg syncs each file before it renames it, and its database for each package; with `unsafe_io: yes` only
    the database (`--force-unsafe-io`). Packages are uncompressed, without scripts, on the same file system. Afterwards
    each file is compared with its source."""

    known = ("unpack", "upgrade", "remove")
    writing = frozenset(known)
    reading = frozenset({"unpack", "upgrade"})
    laid_out = frozenset({"files", "packages", "steps"})

    files: int = Field(4000, ge=10, le=1_000_000, description="files in all packages, 15 kB on average")
    packages: int = Field(40, ge=1, le=1000, description="packages")
    unsafe_io: Literal["no", "yes"] = Field("no", description="dpkg does not sync the files that it unpacks")

    @property
    def prepare_s(self) -> float:
        return 1 + self.packages / 10 + self.files / _FILES_PER_S * (1 + len(self.done_before))

    @property
    def work_s(self) -> float:
        return len(self.chosen) * self.files / _FILES_PER_S

    @property
    def space_bytes(self) -> int:
        """Both versions of the packages, the files, and those of a package that replace them."""
        return 4 * trees.space_bytes(self.files) + (16 << 20)

    def scaled(self, factor: float) -> scaling.Changes:
        files = scaling.count(self.files, factor, least=_LEAST_FILES)
        return {"files": files, "packages": scaling.count(self.packages, files.share)}

    @model_validator(mode="after")
    def _some_files_each(self) -> Self:
        if self.packages > self.files:
            raise ValueError("'packages' must not be more than 'files'")
        return self


class Packages(SteppedApplication):
    summary = "dpkg: unpack packages, replace them by newer ones, remove them"
    tools = (_DPKG, _DPKG_DEB)
    abilities = frozenset({Ability.HARD_LINKS})  # dpkg keeps the previous status database as a link
    Load = PackagesLoad
    removes = frozenset({"remove"})

    def lay_out(self, drive: DriveRequest) -> None:
        """Make two versions of all packages, and an empty database."""
        for name in ("info", "updates", "triggers"):
            (drive.directory / _ROOT / _DATABASE / name).mkdir(parents=True, exist_ok=True)
        for name in ("status", "available"):
            (drive.directory / _ROOT / _DATABASE / name).touch()
        for version in (0, 1):
            (drive.directory / str(version)).mkdir()
            for number in range(drive.load.packages):
                _pack(drive, number, version)

    def perform(self, drive: DriveRequest, step: str) -> None:
        if step == "remove":
            what = ["--purge", *(_name(number) for number in range(drive.load.packages))]
        else:
            what = [
                "--unpack",
                *(_file(number, int(step == "upgrade")) for number in range(drive.load.packages)),
            ]
        unsafe = "--force-unsafe-io" if drive.load.unsafe_io == "yes" else "--no-force-unsafe-io"
        run_program(_DPKG, f"--root={drive.directory / _ROOT}", *_OWN, unsafe, *what, cwd=drive.directory)

    def amount(self, drive: DriveRequest, step: str) -> Amount:
        size = 0 if step == "remove" else sum(trees.tree_of(drive, _ROOT).sizes)
        return Amount(files=drive.load.files, read_bytes=size, written_bytes=size)

    def problem(self, drive: DriveRequest, step: str) -> str | None:
        tree = trees.tree_of(drive, f"{_ROOT}/{_PLACE}")
        if step == "remove":
            return f"{_PLACE} is still there" if tree.root.exists() else None
        return tree.problem(range(tree.files) if step == "upgrade" else range(0))


def _pack(drive: DriveRequest, number: int, version: int) -> None:
    """Make a package of its share of the files."""
    staging, load = drive.directory / "staging", drive.load
    tree = trees.tree_of(drive, staging / _PLACE)
    first, last = (load.files * each // load.packages for each in (number, number + 1))
    tree.write(dict.fromkeys(range(first, last), version))
    (staging / "DEBIAN").mkdir(mode=0o755)
    (staging / "DEBIAN/control").write_text(_CONTROL.format(name=_name(number), version=1 + version))
    owner = ("--root-owner-group",) if os.geteuid() == 0 else ()
    words = ("-Znone", *owner, "--build", staging.name, _file(number, version))
    run_program(_DPKG_DEB, *words, cwd=drive.directory)
    shutil.rmtree(staging)


def _name(number: int) -> str:
    return f"fslab-{number:04d}"


def _file(number: int, version: int) -> str:
    return f"{version}/{_name(number)}.deb"
