#!/bin/sh
# Makes sure that the programs fslab measures with are installed, with 'tests' also those that only its tests need:
# by apt as root, else it says which line to paste. Changes nothing when all are there.
# IOzone is left to the user: its package iozone3 is in Debian's non-free.
set -eu
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

missing=""
need() { # command package
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

need fio fio
need sysbench sysbench
need bonnie++ bonnie++
need mkfs.ext4 e2fsprogs
need mkfs.xfs xfsprogs
need mkfs.btrfs btrfs-progs
need mkfs.f2fs f2fs-tools
need mkfs.jfs jfsutils
need mkfs.nilfs2 nilfs-tools
need mkreiserfs reiserfsprogs
need mkfs.reiser4 reiser4progs
need mkfs.exfat exfatprogs
need mkfs.vfat dosfstools
need mkfs.ntfs ntfs-3g
need mkudffs udftools
need lvm lvm2
need mdadm mdadm
need losetup mount
need wipefs util-linux
need modprobe kmod
if [ "$(uname -m)" = x86_64 ]; then
    need linux.uml user-mode-linux
    need qemu-system-x86_64 qemu-system-x86
    need busybox busybox-static
fi
if [ "${1:-}" = tests ]; then
    need strace strace
    need chromium chromium # pages are looked at in it
fi
need cc gcc
python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"

if ! command -v cargo >/dev/null 2>&1; then
    echo "fslab's load engine is written in Rust and cargo is not installed: see https://rustup.rs, or apt-get install cargo (Debian 13, Ubuntu 24.04 or newer)" >&2
    exit 1
fi

rust=$(cargo --version | cut -d' ' -f2)
oldest=1.85
if [ "$(printf '%s\n%s\n' "$oldest" "$rust" | sort -V | head -n 1)" != "$oldest" ]; then
    echo "cargo $rust is too old: the load engine needs Rust $oldest or newer, see https://rustup.rs" >&2
    exit 1
fi

[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 - a list of package names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 || {
        apt-get update -qq
        # shellcheck disable=SC2086
        apt-get install -y -qq --no-install-recommends $missing >/dev/null
    }
else
    echo "some tools are missing; what needs them is left out. To install them, paste:" >&2
    echo "    sudo apt-get install --no-install-recommends$missing" >&2
    case " $missing " in *" gcc "* | *" python3-venv "*) exit 1 ;; esac
fi
