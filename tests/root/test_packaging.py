"""Tests of what installs packages, in a mount namespace of its own: nothing on this machine changes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.limits import LIMIT_S

PACKAGING = Path(__file__).parents[2] / "packaging"
CONF = Path("/etc/postgresql-common")
SERVER = Path("/usr/lib/postgresql")
# As on a machine without PostgreSQL; then the script, and what it has left.
ALONE = f"""
for place in {CONF} {SERVER}; do mount -t tmpfs fslab-test $place; done
echo before >{CONF}/createcluster.conf
"$1"; echo $?; cat {CONF}/*
"""


@pytest.mark.skipif(
    not (CONF.is_dir() and SERVER.is_dir() and shutil.which("apt-get")),
    reason="PostgreSQL is not from Debian",
)
def test_a_setting_for_an_installation_is_put_back_after_ctrl_c(tmp_path: Path) -> None:
    shutil.copy(PACKAGING / "postgresql.sh", tmp_path)
    installs = tmp_path / "system-packages.sh"
    installs.write_text('#!/bin/sh\n[ "$1" = postgresql ] || exit 0\nkill -INT $PPID\n')
    installs.chmod(0o755)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", ALONE, "sh", tmp_path / "postgresql.sh"],
        capture_output=True, text=True, timeout=LIMIT_S, check=False, env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("1\nbefore\n", "")
