"""Programs that fslab needs: their paths, their versions, and the packages that contain them."""

import re
from dataclasses import dataclass
from functools import cache

from fslab.errors import FslabError, ToolMissingError
from fslab.system import distributions, proc, search_path


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A program: its name, the Debian package that contains it, and how to ask for its version.

    ``package`` None: fslab contains it. ``component`` is the part of the Debian archive that has the package. The user
    must enable components other than main. None: Debian 12 does not have the package. ``own_temporary``: it obeys files
    of known names in TMPDIR, which anybody can make in /tmp, so it gets a directory of its own.
    """

    program: str
    package: str | None
    version_argv: tuple[str, ...] = ("--version",)
    version_pattern: str = r"(?<!\d)(\d+\.\d+(?:\.\d+)*)"
    component: str | None = "main"
    own_temporary: bool = False

    @property
    def remedy(self) -> str:
        """The command that installs the program here, with the component that must be enabled first."""
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
        """Whether the distribution's package manager can install the program without preparation."""
        family = distributions.here()
        if self.package is None or family is None or family.package(self.package) is None:
            return False
        return self.component == "main" or family.name != "debian"


def find(program: str) -> str | None:
    """Return the absolute path of a program; None if it is not in the directories that fslab runs programs from, or if
    another user can change it."""
    return search_path.safe(program)


def require(tool: Tool) -> str:
    """Return the absolute path of a tool. ToolMissingError, with the command that installs it, if it is missing."""
    path = find(tool.program)
    if path is None:
        raise _missing(tool)
    return path


def _missing(tool: Tool) -> ToolMissingError:
    if (found := search_path.passed_over(tool.program)) is None:
        return ToolMissingError(f"'{tool.program}' is not installed", hint=tool.remedy)
    path, why = found
    return ToolMissingError(
        f"'{tool.program}' is not installed safely ({path} is not used: {why})",
        hint=f"let no other user change it (chown, chmod go-w, setfacl -b, gpasswd -d USER GROUP); or: {tool.remedy}",
    )


def page_in(tool: Tool) -> None:
    """Run the tool once without effect, so that the measured run does not start with reading it from the disk."""
    if path := find(tool.program):
        proc.run([path, *tool.version_argv], timeout_s=20, check=False)


@cache
def version(tool: Tool) -> str | None:
    """Return the version that the tool reports; None if the tool is missing or reports none."""
    path = find(tool.program)
    if path is None:
        return None
    try:
        done = proc.run([path, *tool.version_argv], timeout_s=20, check=False)
    except (FslabError, OSError):
        return None
    match = re.search(tool.version_pattern, done.stdout + done.stderr)
    return match[1] if match else None
