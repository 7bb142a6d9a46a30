"""Arch Linux and its derivatives."""

from fslab.system.distributions import Distribution


class Arch(Distribution):
    """Names as of 2025. Packages that are only in the Arch User Repository count as missing."""

    ids = frozenset({"arch", "archarm", "manjaro"})
    install = "pacman -S --needed"
    names = {
        "busybox-static": "busybox",
        "cryptsetup-bin": "cryptsetup",
        "dash": "bash",
        "iozone3": None,
        "mariadb-client-core": "mariadb-clients",
        "mariadb-server-core": "mariadb",
        "mount": "util-linux",
        "nilfs-tools": "nilfs-utils",
        "python3-venv": None,  # python contains it
        "qemu-utils": "qemu-img",
        "redis-server": None,  # Valkey replaced it
        "redis-tools": None,
        "reiser4progs": None,
        "reiserfsprogs": None,
        "rocksdb-tools": None,
        "user-mode-linux": None,
        "zfs-dkms": None,
        "zfsutils-linux": None,
    }
