"""Compares the log of a virtual disk with the kernel's dm-log-writes above it, in a guest: both record the same writes.

The kernel's format is that of drivers/md/dm-log-writes.c and Documentation/admin-guide/device-mapper/log-writes.rst.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from tests.disk_server import BINARY, Server
from tests.limits import RUN_LIMIT_S

from fslab.crash import states
from fslab.crash.states import State
from fslab.machine.kinds import uml
from fslab.system import disk_server, kernel, syscalls
from fslab.system.syscalls import Fallocate

pytestmark = pytest.mark.slow

MIB, SECTOR = 1 << 20, 512
SIZE, LOG_SIZE = 384 * MIB, 1 << 30
MARKED_AT = SIZE - MIB  # the file system ends before; each mark is a write to this place, and a flush
MARKS = 200
MKFS = {"ext4": "mkfs.ext4 -q -b 4096", "xfs": "mkfs.xfs -q", "btrfs": "mkfs.btrfs -q"}
FLUSH, DISCARD, MARK = 1, 4, 8

# Ten files are written, synced, renamed, truncated and deleted in turn: each mark has other operations before it.
INIT = """#!/bin/sh
set -e
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec </dev/null >/dev/tty0 2>&1  # the kernel has mounted /dev
mount -t proc none /proc; mount -t sysfs none /sys; mount -t tmpfs none /tmp
trap 'echo "ended: $?"; echo o >/proc/sysrq-trigger; sleep 60' EXIT
mkdir -p /tmp/m/lib/modules /tmp/at; ln -s {modules} /tmp/m/lib/modules/
for each in virtio_blk dm-log-writes {filesystem} crc32c_generic; do modprobe -d /tmp/m $each; done
for each in 1 2 3 4 5; do test -b /dev/vda && break; sleep 1; done
dmsetup create noted --noudevsync --noudevrules --table "0 {sectors} log-writes /dev/vda /dev/ubdb"
dmsetup mknodes noted
dmsetup create room --noudevsync --noudevrules --table "0 {fs_sectors} linear /dev/mapper/noted 0"
dmsetup mknodes room
{mkfs} /dev/mapper/room
mount -t {filesystem} /dev/mapper/room /tmp/at
cd /tmp/at
n=0
while [ $n -lt {marks} ]; do
    file=file$((n % 10))
    case $((n % 7)) in
    0) head -c $((n * 300 + 5000)) /dev/urandom >$file; sync $file ;;
    1) head -c 20000 /dev/urandom >>$file ;;
    2) mv $file moved 2>/dev/null || : >$file; sync . ;;
    3) mkdir -p dir$n; : >dir$n/inner; sync dir$n ;;
    4) truncate -s 3000 $file; sync $file ;;
    5) rm -f moved $file; sync ;;
    6) head -c 200000 /dev/urandom >new; mv new $file ;;
    esac
    n=$((n + 1))
    printf '%-511s\\n' "mark $n" >/tmp/mark
    dd if=/tmp/mark of=/dev/mapper/noted bs=512 seek={marked_at} oflag=direct conv=fdatasync,notrunc status=none
done
cd /; umount /tmp/at
dmsetup remove room; dmsetup remove noted
echo all done
"""


@contextmanager
def booted(init: str, home: Path, server: Server, log: Path) -> Iterator[Path]:
    """Boot a guest with the virtual disk as /dev/vda and ``log`` as /dev/ubdb, run ``init``, and yield its console."""
    (home / "init").write_text(init)
    (home / "init").chmod(0o755)
    socket, console = home / "disk.sock", home / "console"
    assert server.ask("offer", socket=str(socket), serial="noted")["ok"]
    argv = [
        "taskset", "--cpu-list", str(max(os.sched_getaffinity(0))), "linux.uml", "mem=256M", "umid=uml",
        f"uml_dir={home}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "con=null", "con0=null,fd:1",
        "panic=-1", "noreboot",
        f"init={home / 'init'}", f"ubdb={log}", f"virtio_uml.device={socket}:2",
    ]  # fmt: skip
    with console.open("wb") as output:
        environment = {**os.environ, **uml.variables(home, 256 * MIB)}
        guest = subprocess.Popen(
            argv, stdout=output, stdin=subprocess.DEVNULL, env=environment, cwd=home, start_new_session=True
        )
        try:
            guest.wait(RUN_LIMIT_S)
            yield console
        finally:
            if guest.poll() is None:
                os.killpg(guest.pid, 9)
                guest.wait()


def entries(log: Path) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield sector, number of sectors, flags and data of each entry of the log of dm-log-writes."""
    with log.open("rb") as file:
        magic, version, count, sector_bytes = struct.unpack("<QQQI", file.read(28))
        assert (magic, version) == (0x6A736677736872, 1)
        file.seek(sector_bytes)
        for _ in range(count):
            sector, sectors, flags, length = struct.unpack("<4Q", file.read(sector_bytes)[:32])
            # The text of a mark is beside its entry, not after it.
            yield (
                sector,
                sectors,
                flags,
                b"" if flags & (DISCARD | MARK) else file.read(sectors * SECTOR or length),
            )


def states_of_the_kernel(log: Path, image: Path) -> Iterator[int]:
    """Replay the log of dm-log-writes in ``image``; yield the number of each mark when a flush has made it durable."""
    last = 0
    with image.open("wb", buffering=0) as file:
        file.truncate(SIZE)
        for sector, sectors, flags, data in entries(log):
            if flags & FLUSH and last:
                yield last
                last = 0
            if flags & MARK:
                continue
            if flags & DISCARD:
                mode = Fallocate.PUNCH_HOLE | Fallocate.KEEP_SIZE
                syscalls.fallocate(file.fileno(), mode, sector * SECTOR, sectors * SECTOR)
            elif data:
                os.pwrite(file.fileno(), data, sector * SECTOR)
            if sector * SECTOR == MARKED_AT:
                last = int(data.split()[1])


def contents(image: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the MiB of a sparse image that are not zeros, with their places."""
    at = 0
    with image.open("rb") as file:
        while at < SIZE:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // MIB * MIB
            except OSError:  # only a hole follows
                return
            part = os.pread(file.fileno(), MIB, at)
            if any(part):
                yield at, part
            at += MIB


@pytest.mark.parametrize("filesystem", MKFS)
def test_both_logs_make_the_same_states(filesystem: str, tmp_path: Path) -> None:
    release = kernel.newest_modules(Path("/usr/lib/uml/modules"))
    if not BINARY.exists() or release is None:
        pytest.skip("needs fslab-disk and user-mode-linux")
    ours, theirs, base = tmp_path / "ours", tmp_path / "theirs", tmp_path / "base"
    for image, size in ((theirs, LOG_SIZE), (base, SIZE)):
        with image.open("wb") as file:
            file.truncate(size)
    init = INIT.format(
        modules=release, filesystem=filesystem, mkfs=MKFS[filesystem], marks=MARKS, sectors=SIZE // SECTOR,
        fs_sectors=MARKED_AT // SECTOR, marked_at=MARKED_AT // SECTOR,
    )  # fmt: skip
    server = Server(
        tmp_path, "--unmounted", "--log", str(ours), "--log-data", "--cache", "volatile", size=SIZE
    )
    try:
        with booted(init, tmp_path, server, theirs) as console:
            assert "all done" in console.read_text(errors="replace"), console.read_text(errors="replace")[
                -6000:
            ]
        server.ask("sync")
        compare(ours, theirs, base, tmp_path)
    finally:
        server.end()


def compare(ours: Path, theirs: Path, base: Path, home: Path) -> None:
    table = disk_server.read_log(ours)
    assert not table["failed"].any()
    marked = table.filter((table["op"] == "write") & (table["offset"] == MARKED_AT))["row"].to_list()
    flushes = table.filter(table["op"] == "flush")["row"].to_list()
    durable = [next(row for row in flushes if row > mark) for mark in marked]
    assert len(durable) == MARKS
    different, known = dict[int, list[int]](), set[bytes]()
    with states.builder(ours, base) as builder:
        for number in states_of_the_kernel(theirs, home / "replayed"):
            made = home / "made"
            builder.make(State(cut=durable[number - 1] + 1, fate="lost"), made)
            mine, kernels = dict(contents(made)), dict(contents(home / "replayed"))
            if differing := mine.items() ^ kernels.items():
                different[number] = sorted({at for at, _ in differing})
            known.add(sha256(b"".join(kernels.values())).digest())
            made.unlink()
    writes = table.filter(table["op"] == "write").height
    print(json.dumps({"states": len(known), "writes": writes, "different": different}))
    assert len(known) >= MARKS - 1, "each state has another mark"
    assert not different
