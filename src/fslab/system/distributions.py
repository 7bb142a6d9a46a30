"""How families of Linux distributions name and install packages. Reads os-release, installs nothing."""

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

# Names that Fedora and Arch share, and Debian does not.
_ELSEWHERE: Mapping[str, str | None] = {
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """A family of distributions.

    ``ids`` are its members' ID or ID_LIKE in os-release(5). ``install`` is the command before the package names.
    ``names`` maps the name of a package in Debian, as in ``tools.Tool.package``, to the family's name if it differs, or
    to None if the family has no such package.
    """

    name: str
    ids: frozenset[str]
    install: str
    names: Mapping[str, str | None] = field(default_factory=dict)

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


FAMILIES = (
    Distribution(
        name="debian",
        ids=frozenset({"debian", "ubuntu"}),
        install="apt-get install --no-install-recommends",
    ),
    Distribution(  # with Red Hat's and EPEL. Names as of Fedora 42
        name="fedora",
        ids=frozenset({"fedora", "rhel", "centos"}),
        install="dnf install --setopt=install_weak_deps=False",
        names={
            **_ELSEWHERE,
            "mariadb-client-core": "mariadb",
            "mariadb-server-core": "mariadb-server",
            "mount": "util-linux-core",
            "ntfs-3g": "ntfsprogs",
            "postgresql": "postgresql-server",
            "qemu-system-x86": "qemu-system-x86-core",
            "smbclient": "samba-client",
        },
    ),
    Distribution(  # names as of 2025. Packages that are only in the Arch User Repository count as missing
        name="arch",
        ids=frozenset({"arch", "archarm", "manjaro"}),
        install="pacman -S --needed",
        names={
            **_ELSEWHERE,
            "mariadb-client-core": "mariadb-clients",
            "mariadb-server-core": "mariadb",
            "mount": "util-linux",
            "rocksdb-tools": None,
        },
    ),
)


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
    return next((family for wanted in ids for family in FAMILIES if wanted in family.ids), None)
