"""Fedora, and Red Hat's distributions with EPEL."""

from fslab.system.distributions import ELSEWHERE, Distribution


class Fedora(Distribution):
    """Names as of Fedora 42. User-Mode Linux is not packaged; the tools of reiserfs and reiser4 were removed."""

    ids = frozenset({"fedora", "rhel", "centos"})
    install = "dnf install --setopt=install_weak_deps=False"
    names = {
        **ELSEWHERE,
        "mariadb-client-core": "mariadb",
        "mariadb-server-core": "mariadb-server",
        "mount": "util-linux-core",
        "ntfs-3g": "ntfsprogs",
        "postgresql": "postgresql-server",
        "qemu-system-x86": "qemu-system-x86-core",
        "smbclient": "samba-client",
    }
