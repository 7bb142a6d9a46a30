"""The file systems and modules that a kernel has, from the lists in its modules directory.

Reads kmod's files modules.alias, modules.builtin, modules.dep and modules.builtin.modinfo. Boots and loads nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fslab.system import untrusted_files

ROOT = Path("/lib/modules")
_MOST_BYTES = 64 << 20  # the lists of a distribution's kernel have about 2 MB
SUFFIXES = (".ko", ".ko.xz", ".ko.gz", ".ko.zst")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """A kernel's release, and its file systems and modules, both built in and loadable."""

    release: str
    filesystems: frozenset[str]
    modules: frozenset[str]

    def has_filesystem(self, name: str) -> bool:
        """Return whether the kernel has a file system: a module that says so, or one of its name (OpenZFS)."""
        return name in self.filesystems or self.has_module(name)

    def has_module(self, name: str) -> bool:
        """Return whether the kernel has a module of this name, loadable or built in; ``-`` and ``_`` are the same."""
        return name.replace("-", "_") in self.modules


@cache
def read(directory: Path) -> Kernel:
    """Return the kernel of a modules directory. The directory's name is the release."""
    builtin = _text(directory / "modules.builtin.modinfo").split("\0")
    aliases = [line.partition(".alias=")[2] for line in builtin]
    for line in _text(directory / "modules.alias").splitlines():
        word, _, rest = line.partition(" ")
        if word == "alias":
            aliases.append(rest.split(" ")[0])
    listed = _text(directory / "modules.builtin").splitlines()
    listed += [line.partition(":")[0] for line in _text(directory / "modules.dep").splitlines()]
    return Kernel(
        release=directory.name,
        filesystems=frozenset(alias.removeprefix("fs-") for alias in aliases if alias.startswith("fs-")),
        modules=frozenset(name_of(path) for path in listed if path),
    )


def _text(path: Path) -> str:
    """Return the text of a list; empty without one, and for what is not a list: a study can name the directory."""
    try:
        return untrusted_files.read(path, limit_bytes=_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def files(directory: Path) -> Iterator[Path]:
    """Yield the lists in a modules directory, and then the modules that modules.dep lists."""
    yield from directory.glob("modules.*")
    for line in _text(directory / "modules.dep").splitlines():
        yield directory / line.partition(":")[0]


def newest(root: Path) -> Path | None:
    """Return the modules directory of the newest kernel below ``root``, or None if there is none."""
    found = [path for path in root.glob("*") if (path / "modules.dep").is_file()]
    return max(found, key=lambda path: version(path.name), default=None)


def version(release: str) -> list[tuple[int, str]]:
    """Return a sort key for kernel releases that compares numbers as numbers."""
    words = release.replace("-", ".").replace("+", ".").split(".")
    return [(int(word), "") if word.isdigit() else (-1, word) for word in words]


def name_of(path: str) -> str:
    """Return the name of a module, given its file."""
    name = path.rsplit("/", 1)[-1]
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name.replace("-", "_")
