"""Tests of the life cycle of fslab-disk: ended, killed and cleaned, with and without a disk model."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.disk_server import BINARY, SIZE, Server
from tests.limits import LIMIT_S, ran

from fslab.system import loop_devices, mountinfo, mounts, proc


@pytest.mark.parametrize("options", [[], ["--timed"]])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
@pytest.mark.alone
def test_a_dead_server_does_not_hang_the_machine(
    serve: Any, tmp_path: Path, how: signal.Signals | None, options: list[str]
) -> None:
    """``clean`` removes a disk with a mounted file system under load, and no writer hangs.

    ``how``: the signal that ends the server before; None: the server still runs.
    """
    server = serve(*options)
    loop = server.attach()
    proc.run(["mkfs.ext4", "-q", "-F", str(loop)])
    target = tmp_path / "fslab-mounted"
    target.mkdir()
    proc.run(["mount", str(loop), str(target)])
    writer = subprocess.Popen(
        ["dd", "if=/dev/zero", f"of={target}/x", "bs=1M", "count=100", "oflag=direct"],
        stderr=subprocess.PIPE,
    )
    try:
        assert writer.stderr is not None
        select.select([], [], [], 0.05)  # requests are in flight or not: both cases must work
        if how is not None:
            server.process.send_signal(how)
            assert server.process.wait(60) in (0, -signal.SIGKILL)
            assert target in mounts.dead()
        server.clean()
        assert writer.wait(60) is not None
    finally:
        writer.kill()
        writer.communicate()
    server.process.wait(60)
    assert target not in [*mounts.dead(), *(mount.target for mount in mountinfo.mounted())]
    assert not loop_devices.attached_to(server.disk)


def test_cleaning_ignores_foreign_mounts_whose_path_is_not_text(serve: Any, tmp_path: Path) -> None:
    server = serve()
    other = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    other.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "other", other], check=True)
    try:
        server.clean()
    finally:
        subprocess.run(["umount", other], check=True)
    assert not server.directory.exists()


def test_what_is_mounted_over_it_is_not_unmounted(serve: Any, tmp_path: Path) -> None:
    """Over a mount of the disk, and over the disk's directory: by ``clean``, and at the end of the server."""
    server = serve()
    loop = server.attach()
    (mounted := tmp_path / "mounted").mkdir()
    proc.run(["mkfs.ext4", "-q", "-F", str(loop)])
    proc.run(["mount", str(loop), str(mounted)])
    for place in (mounted, server.directory):
        proc.run(["mount", "-t", "tmpfs", "-o", "size=64k", "theirs", str(place)])
        (place / "file").write_text("kept")
        done = ran([BINARY, "clean", server.directory])
        if place == server.directory:
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(LIMIT_S)
        assert (place / "file").read_text() == "kept"
        proc.run(["umount", str(place)])
        assert done.returncode != 0
        assert f"something else is mounted over it: umount {place}" in done.stderr
    server.clean()
    assert mounts.at(mounted) is None


def test_it_is_cleaned_by_a_name_with_a_link(serve: Any, tmp_path: Path) -> None:
    server = serve()
    server.attach()
    (tmp_path / "link").symlink_to(tmp_path)
    subprocess.run([BINARY, "clean", tmp_path / "link" / server.directory.name], check=True, timeout=LIMIT_S)
    assert not loop_devices.attached_to(server.disk)
    assert not server.directory.exists()


@pytest.mark.parametrize("profile", ["hdd-7200", "ssd-sata", "ssd-nvme-dc", "sd-a1"])
def test_every_model_serves_what_was_written(serve: Any, profile: str) -> None:
    server = serve("--profile", profile, "--speed", "100")
    chosen = random.Random(1)
    with server.disk.open("r+b", buffering=0) as disk:
        pages = {chosen.randrange(SIZE // 4096): chosen.randbytes(4096) for _ in range(200)}
        for page, data in pages.items():
            os.pwrite(disk.fileno(), data, page * 4096)
        os.fsync(disk.fileno())
        for page, data in pages.items():
            assert os.pread(disk.fileno(), 4096, page * 4096) == data
    statistics = server.ask("statistics")
    assert statistics["model"]["profile"] == profile
    assert statistics["operations"]["write"]["requests"] == 200
    assert statistics["unflushed_bytes"] == 0
    assert statistics["operations"]["read"]["service_ns"]["max"] > 0


def test_a_model_that_is_too_fast_is_refused(tmp_path: Path) -> None:
    argv = [str(BINARY), "serve", str(tmp_path / "fslab-disk"), "--control", str(tmp_path / "control")]
    argv += ["--size", str(SIZE), "--profile", "ssd-nvme", "--speed", "1000000", "--strict"]
    refused = ran(argv)
    assert refused.returncode == 1
    assert "too-fast" in refused.stderr
    assert not (tmp_path / "fslab-disk").exists()


@pytest.mark.parametrize("options", [[], ["--profile", "hdd-7200"]])
def test_a_server_that_measures_itself_can_be_killed(options: list[str], tmp_path: Path) -> None:
    """The server ends at once, before ``clean``: it never waits for an answer of its own."""
    for number in range(5):
        directory = tmp_path / f"fslab-disk-{number}"
        argv = [str(BINARY), "serve", str(directory), "--control", f"{directory}.control"]
        server = subprocess.Popen([*argv, "--size", str(SIZE), *options], stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
            measures = False
            while not (measures or select.select([server.stdout], [], [], 0)[0]):
                measures = bool(children.read_text().split())
            server.kill()
            assert server.wait(LIMIT_S) == -signal.SIGKILL
        finally:
            subprocess.run([BINARY, "clean", directory], check=True, timeout=LIMIT_S)
            server.kill()
            server.communicate()


@pytest.mark.slow
@pytest.mark.alone
def test_fifty_kills_leave_nothing(tmp_path: Path) -> None:
    """The server is killed under load, at random moments. Each time ``clean`` leaves nothing, and no writer hangs."""
    chosen = random.Random(1)
    for number in range(50):
        home = tmp_path / str(number)
        home.mkdir()
        options = ["--profile", "hdd-7200"] if number % 2 else []
        server = Server(home, *options)
        writers = []
        try:
            loop = server.attach()
            argv = ["dd", "if=/dev/zero", f"of={loop}", "bs=64k", "count=2000", "oflag=direct"]
            writers = [subprocess.Popen(argv, stderr=subprocess.DEVNULL) for _ in range(2)]
            select.select([], [], [], chosen.random() / 10)
            server.process.kill()
            server.clean()
            assert all(writer.wait(60) is not None for writer in writers)
        finally:
            for writer in writers:
                writer.kill()
                writer.wait(60)
            server.end()
        assert not [mount for mount in mountinfo.mounted() if mount.target == server.directory]
