"""Programs that fslab needs: where they are, which version, and which package brings them."""

import re
import shutil
from dataclasses import dataclass
from functools import cache

from fslab.errors import FslabError, ToolMissingError
from fslab.system import distributions, proc, search_path


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A program: its name, the Debian package that brings it, and how to ask for its version.

    ``package`` None: it comes with fslab. ``component`` is the part of the Debian archive that has the package;
    components other than main are for the user to enable, and None is for packages that Debian 12 does not have.
    """

    program: str
    package: str | None
    version_argv: tuple[str, ...] = ("--version",)
    version_pattern: str = r"(\d+\.\d+(?:\.\d+)*)"
    component: str | None = "main"

    @property
    def remedy(self) -> str:
        """The command that installs it here, with what has to be enabled first."""
        if self.package is None:
            return "reinstall fslab"
        family = distributions.here()
        if family is None:
            return f"install the package that contains {self.program} (in Debian: {self.package})"
        command = family.command([self.package])
        if command is None or (self.component is None and family.name == "debian"):
            return f"{family.name} has no package that contains {self.program}: build it from source"
        if self.component not in {"main", None} and family.name == "debian":
            return f"{command} (from the component '{self.component}', which must be enabled first)"
        return command

    @property
    def installable(self) -> bool:
        """Whether the distribution's package manager has it without further preparation."""
        family = distributions.here()
        if self.package is None or family is None or family.package(self.package) is None:
            return False
        return self.component == "main" or family.name != "debian"


def find(program: str) -> str | None:
    """Absolute path of a program, where every command of ours is looked for too."""
    return shutil.which(program, path=":".join(search_path.directories()))


def require(tool: Tool) -> str:
    """Absolute path of a tool, or ToolMissingError with the command that installs it."""
    path = find(tool.program)
    if path is None:
        raise ToolMissingError(
            f"'{tool.program}' is not installed{_passed_over(tool.program)}", hint=tool.remedy
        )
    return path


def _passed_over(program: str) -> str:
    """What is said of a program in an entry of PATH that is not trusted."""
    found = shutil.which(program, path=":".join(search_path.refused()) or "/nowhere")
    return f" ({found} is not used: other users can write to that directory)" if found else ""


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
