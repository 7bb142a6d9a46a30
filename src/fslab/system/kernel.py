"""The running kernel: its version, its file systems and its other modules, built in or loadable.

And those of any kernel, by kmod's lists in its modules directory: modules.alias, modules.builtin, modules.dep and
modules.builtin.modinfo.
"""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fslab.system import proc, search_path, sysfs, untrusted_files

FILESYSTEMS = Path("/proc/filesystems")
MODULES = Path("/lib/modules")
_MOST_BYTES = 64 << 20  # the lists of a distribution's kernel have about 2 MB


def known_filesystems() -> frozenset[str]:
    """Return the file systems that are built into the kernel or loaded now (proc(5))."""
    lines = (line.split() for line in (sysfs.text(FILESYSTEMS) or "").splitlines())
    return frozenset(words[-1] for words in lines if words)


def has_filesystem(mount_type: str, *, load: bool = True) -> bool:
    """Return whether the kernel has a file system or a module for it. ``load``: load that module (needs root).

    The module has the alias ``fs-NAME``, or only the file system's name (OpenZFS).
    """
    if mount_type in known_filesystems():
        return True
    found = has_module(f"fs-{mount_type}", load=load) or has_module(mount_type, load=load)
    return found and (not load or mount_type in known_filesystems())


def release() -> str:
    """Return the running kernel's version, such as ``6.12.41-amd64``."""
    return platform.uname().release


def has_module(module: str, *, load: bool) -> bool:
    """Return whether the kernel has ``module``. ``load``: load it if needed (needs root)."""
    if _is_present(module):
        return True
    if search_path.safe("modprobe") is None:
        return False
    argv = ["modprobe", *([] if load else ["--dry-run"]), "--quiet", module]
    return proc.run(argv, check=False).returncode == 0


def _is_present(module: str) -> bool:
    """Return whether the module is loaded or built in. A built-in one without parameters has no directory in sysfs."""
    name = module.replace("-", "_")
    if (sysfs.SYS / "module" / name).is_dir():
        return True
    return name in map(module_name, _list_text(MODULES / release() / "modules.builtin").splitlines())


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
def read_modules(directory: Path) -> Kernel:
    """Return the kernel of a modules directory. The directory's name is the release."""
    builtin = _list_text(directory / "modules.builtin.modinfo").split("\0")
    aliases = [line.partition(".alias=")[2] for line in builtin]
    for line in _list_text(directory / "modules.alias").splitlines():
        word, _, rest = line.partition(" ")
        if word == "alias":
            aliases.append(rest.split(" ")[0])
    listed = _list_text(directory / "modules.builtin").splitlines()
    listed += [line.partition(":")[0] for line in _list_text(directory / "modules.dep").splitlines()]
    return Kernel(
        release=directory.name,
        filesystems=frozenset(alias.removeprefix("fs-") for alias in aliases if alias.startswith("fs-")),
        modules=frozenset(module_name(path) for path in listed if path),
    )


def _list_text(path: Path) -> str:
    """Return the text of a list; empty without one, and for what is not a list: a study can name the directory."""
    try:
        return untrusted_files.read(path, limit_bytes=_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def module_files(directory: Path) -> Iterator[Path]:
    """Yield the lists in a modules directory, and then the modules that modules.dep lists."""
    yield from directory.glob("modules.*")
    for line in _list_text(directory / "modules.dep").splitlines():
        yield directory / line.partition(":")[0]


def newest_modules(root: Path) -> Path | None:
    """Return the modules directory of the newest kernel below ``root``, or None if there is none."""
    found = [path for path in root.glob("*") if (path / "modules.dep").is_file()]
    return max(found, key=lambda path: release_key(path.name), default=None)


def release_key(release: str) -> list[tuple[int, str]]:
    """Return a sort key for kernel releases that compares numbers as numbers."""
    words = release.replace("-", ".").replace("+", ".").split(".")
    return [(int(word), "") if word.isdigit() else (-1, word) for word in words]


def module_name(path: str) -> str:
    """Return the name of a module, given its file."""
    return path.rpartition("/")[2].partition(".ko")[0].replace("-", "_")
