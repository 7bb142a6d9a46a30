"""Programs that fslab needs: where they are, which version, and which package brings them."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fslab.errors import FslabError, ToolMissingError
from fslab.system import proc

SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A program: its name, the Debian package that brings it, and how to ask for its version.

    ``package`` None: it comes with fslab. ``component`` is the part of the Debian archive that has the package;
    others than main are for the user to switch on, and None is for packages that Debian 12 does not have.
    """

    program: str
    package: str | None
    version_argv: tuple[str, ...] = ("--version",)
    version_pattern: str = r"(\d+\.\d+(?:\.\d+)*)"
    component: str | None = "main"

    @property
    def remedy(self) -> str:
        """The command that installs it, with what has to be switched on first."""
        if self.package is None:
            return "reinstall fslab"
        if self.component is None:
            return f"{self.package} is not in Debian 12: build {self.program} from its sources"
        command = f"apt-get install {self.package}"
        if self.component == "main":
            return command
        return f"{command} (of Debian's {self.component}: switch that on first)"


def find(program: str) -> str | None:
    """Absolute path of a program: beside our own interpreter, on PATH, or in a sbin directory."""
    beside = Path(sys.executable).parent / program
    if program.startswith("fslab") and beside.exists():
        return str(beside)
    return shutil.which(program) or shutil.which(program, path=":".join(SBIN))


def require(tool: Tool) -> str:
    """Absolute path of a tool, or ToolMissingError with the command that installs it."""
    path = find(tool.program)
    if path is None:
        raise ToolMissingError(f"'{tool.program}' is not installed", hint=tool.remedy)
    return path


def page_in(tool: Tool) -> None:
    """Run the tool for nothing, so that the measured run does not begin with reading it from the disk."""
    if path := find(tool.program):
        proc.run([path, *tool.version_argv], timeout_s=20, check=False)


@cache
def version(tool: Tool) -> str | None:
    """Version that the tool reports, None if it is missing or does not say."""
    path = find(tool.program)
    if path is None:
        return None
    try:
        done = proc.run([path, *tool.version_argv], timeout_s=20, check=False)
    except (FslabError, OSError):
        return None
    match = re.search(tool.version_pattern, done.stdout + done.stderr)
    return match[1] if match else None
