"""How distributions of Linux name and install packages. One file per family; reads os-release, installs nothing.

Tools name Debian's packages (``tools.Tool.package``); a family's file holds only the names that differ.
"""

import platform
from abc import ABC
from collections.abc import Iterable, Mapping
from functools import cache
from typing import ClassVar

from fslab.registry import Registry


class Distribution(ABC):
    """A family of distributions.

    ``ids`` are its members' ID or ID_LIKE in os-release(5). ``install`` is the command that package names follow.
    ``names`` maps Debian's name of a package to the family's own, None where the family has no such package;
    a package that it does not list has Debian's name.
    """

    name: str
    ids: ClassVar[frozenset[str]]
    install: ClassVar[str]
    names: ClassVar[Mapping[str, str | None]] = {}

    def package(self, debian: str) -> str | None:
        """The family's name of a package, None if it has none."""
        return self.names.get(debian, debian)

    def packages(self, debian: Iterable[str]) -> list[str]:
        """The family's names, sorted, each once, without those that it does not have."""
        return sorted({own for each in debian if (own := self.package(each)) is not None})

    def command(self, debian: Iterable[str]) -> str | None:
        """The command that installs them; None if the family has none of them."""
        own = self.packages(debian)
        return f"{self.install} {' '.join(own)}" if own else None


REGISTRY: Registry[Distribution] = Registry("distribution", __name__, Distribution)


@cache
def here() -> Distribution | None:
    """The family that this machine's distribution belongs to, None if it is an unknown one."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    return of(release.get("ID", ""), *release.get("ID_LIKE", "").split())


def of(*ids: str) -> Distribution | None:
    """The family of the first of these os-release identifiers that any family has."""
    for wanted in ids:
        for _, family in REGISTRY:
            if wanted in family.ids:
                return family
    return None
