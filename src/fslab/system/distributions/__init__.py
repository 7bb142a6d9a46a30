"""How Linux distributions name and install packages. One file per family; reads os-release, installs nothing.

``tools.Tool.package`` is the name in Debian; the file of a family contains only the names that differ.
"""

import platform
from abc import ABC
from collections.abc import Iterable, Mapping
from functools import cache
from typing import ClassVar

from fslab.registry import Registry

# Names that Fedora and Arch share, and Debian does not.
ELSEWHERE: Mapping[str, str | None] = {
    "busybox-static": "busybox",
    "cryptsetup-bin": "cryptsetup",
    "dash": "bash",
    "iozone3": None,
    "nilfs-tools": "nilfs-utils",
    "python3-venv": None,  # the package of Python contains it
    "qemu-utils": "qemu-img",
    "redis-server": None,  # Valkey replaced it
    "redis-tools": None,
    "reiser4progs": None,
    "reiserfsprogs": None,
    "user-mode-linux": None,
    "zfs-dkms": None,
    "zfsutils-linux": None,
}


class Distribution(ABC):
    """A family of distributions.

    ``ids`` are its members' ID or ID_LIKE in os-release(5). ``install`` is the command before the package names.
    ``names`` maps Debian's name of a package to the family's name, or to None if the family has no such package.
    A package that is not in ``names`` has Debian's name.
    """

    name: str
    ids: ClassVar[frozenset[str]]
    install: ClassVar[str]
    names: ClassVar[Mapping[str, str | None]] = {}

    def package(self, debian: str) -> str | None:
        """Return the family's name of a package; None if the family does not have it."""
        return self.names.get(debian, debian)

    def packages(self, debian: Iterable[str]) -> list[str]:
        """Return the family's names, sorted and without duplicates. Packages that it does not have are left out."""
        return sorted({own for each in debian if (own := self.package(each)) is not None})

    def command(self, debian: Iterable[str]) -> str | None:
        """Return the command that installs these packages; None if the family has none of them."""
        own = self.packages(debian)
        return f"{self.install} {' '.join(own)}" if own else None


REGISTRY: Registry[Distribution] = Registry("distribution", __name__, Distribution)


@cache
def here() -> Distribution | None:
    """Return the family of this machine's distribution; None if unknown."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    return of(release.get("ID", ""), *release.get("ID_LIKE", "").split())


def of(*ids: str) -> Distribution | None:
    """Return the family of the first of these os-release identifiers that belongs to one."""
    for wanted in ids:
        for _, family in REGISTRY:
            if wanted in family.ids:
                return family
    return None
