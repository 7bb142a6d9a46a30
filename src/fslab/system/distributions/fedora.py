"""Fedora, and Red Hat's distributions with EPEL."""

from fslab.system.distributions import Distribution


class Fedora(Distribution):
    """Names as of Fedora 42. User-Mode Linux is not packaged; the tools of reiserfs and reiser4 were removed."""

    ids = frozenset({"fedora", "rhel", "centos"})
    install = "dnf install --setopt=install_weak_deps=False"
    names = {
        "busybox-static": "busybox",
        "cryptsetup-bin": "cryptsetup",
        "dash": "bash",
        "iozone3": None,
        "mariadb-client-core": "mariadb",
        "mariadb-server-core": "mariadb-server",
        "mount": "util-linux-core",
        "nilfs-tools": "nilfs-utils",
        "ntfs-3g": "ntfsprogs",
        "postgresql": "postgresql-server",
        "python3-venv": None,  # python3 contains it
        "qemu-system-x86": "qemu-system-x86-core",
        "qemu-utils": "qemu-img",
        "redis-server": None,  # Valkey replaced it
        "redis-tools": None,
        "reiser4progs": None,
        "reiserfsprogs": None,
        "smbclient": "samba-client",
        "user-mode-linux": None,
        "zfs-dkms": None,
        "zfsutils-linux": None,
    }
