"""Arch Linux and its derivatives."""

from fslab.system.distributions import ELSEWHERE, Distribution


class Arch(Distribution):
    """Names as of 2025. Packages that are only in the Arch User Repository count as missing."""

    ids = frozenset({"arch", "archarm", "manjaro"})
    install = "pacman -S --needed"
    names = {
        **ELSEWHERE,
        "mariadb-client-core": "mariadb-clients",
        "mariadb-server-core": "mariadb",
        "mount": "util-linux",
        "rocksdb-tools": None,
    }
