"""Tests that the process which speaks Dask's protocol runs without privileges."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest
from tests.directories import SESSION
from tests.limits import ran

# Alone: a new mount namespace keeps copies of the mounts of all tests that run at that time.
pytestmark = [pytest.mark.root, pytest.mark.alone]

PROGRAM = """
import json, os, time
from pathlib import Path
from fslab.fleet import confined, link
user = confined.ids_of("nobody")
confined.check(user)
made = []
program = confined.start(
    "link", "fslab.fleet.link", link.LinkSettings(scheduler="127.0.0.1:9", machine="lab", agent=os.getpid()), user,
    {"fleet.key": b"secret"}, made.append,
)
try:
    process = Path(f"/proc/{program.child.pid}")
    while b"fslab.fleet.link" not in (process / "cmdline").read_bytes():
        time.sleep(0.01)
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    files = {each.name: [each.stat().st_uid, oct(each.stat().st_mode & 0o777)] for each in made[0].iterdir()}
    print(json.dumps({"status": status, "files": files, "environ": (process / "environ").read_text("utf-8"),
                      "directory": [made[0].stat().st_uid, oct(made[0].stat().st_mode & 0o777)]}))
finally:
    program.end()
assert not made[0].exists()
"""


def closed() -> list[Path]:
    """Return the directories above fslab and its interpreter that other users cannot enter."""
    homes = [Path(sys.executable), Path(sys.executable).resolve(), Path(__file__)]
    around = {parent for home in homes for parent in home.parents}
    return sorted(each for each in around if not each.stat().st_mode & 0o001)


def test_a_link_can_do_nothing() -> None:
    """A link runs as ``nobody``, without groups, capabilities and its parent's environment.

    For this, all users must be able to read fslab. Therefore it runs in a mount namespace, with an overlay on each
    directory that is closed to them.
    """
    with tempfile.TemporaryDirectory(prefix=f"{SESSION}{os.getpid()}-", dir="/dev/shm") as name:
        Path(name).chmod(0o711)
        steps = []
        for number, directory in enumerate(closed()):
            upper, work = (Path(name) / f"{part}{number}" for part in ("upper", "work"))
            upper.mkdir()
            work.mkdir()
            options = f"lowerdir={directory},upperdir={upper},workdir={work}"
            steps += [f"mount -t overlay overlay -o '{options}' '{directory}'", f"chmod o+rx '{directory}'"]
        steps.append(f"exec '{sys.executable}' -c \"$1\"")
        done = ran(
            ["unshare", "--mount", "sh", "-euc", "\n".join(steps), "sh", PROGRAM],
            env={**os.environ, "FSLAB_RUNTIME_DIR": name, "SECRET": "x"},
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"]["Uid"].split() == ["65534"] * 4
    assert found["status"]["Gid"].split() == ["65534"] * 4
    assert found["status"]["Groups"].split() == []
    assert int(found["status"]["CapEff"], 16) == int(found["status"]["CapPrm"], 16) == 0
    assert found["directory"] == [65534, "0o700"]
    assert found["files"]["fleet.key"] == [65534, "0o600"]
    assert "SECRET" not in found["environ"]
