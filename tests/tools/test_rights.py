"""Tests of what root may do: root of a user namespace and root in a container are no root that can mount devices."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.limits import LIMIT_S

from fslab.system import rights

CODE = (
    "from fslab.errors import NeedsRootError; from fslab.storage.media import REGISTRY, _loop\n"
    "try: print(_loop.check_root('ram'))\n"
    "except NeedsRootError as error: print(error.what, error.hint, sep='; ')"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize(
    ("within", "said"),
    [
        (
            ("unshare", "--user", "--map-root-user"),
            "needs root outside of user namespaces; run it as root of the host",
        ),
        (
            ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"),
            "needs root with CAP_SYS_ADMIN; in a container, start it with",
        ),
        (
            ("setpriv", "--reuid=65534", "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
            "needs root; run it with sudo;",
        ),
        (
            ("unshare", "--mount", "sh", "-c", 'umount --lazy /sys; exec "$@"', "-"),
            "needs root with a writable /sys/block; in a container",
        ),
        (
            ("unshare", "--mount", "sh", "-c", 'mount --bind -o ro /proc/sys /proc/sys; exec "$@"', "-"),
            "needs root with a writable /proc/sys/vm/drop_caches; in a container",
        ),
        ((), None),
    ],
)
def test_a_medium_says_what_is_missing_before_anything_is_made(
    within: tuple[str, ...], said: str | None
) -> None:
    if said is None and (lacks := rights.missing_for_mounts()):
        pytest.skip(f"the tests lack it: {lacks}")
    done = subprocess.run(
        [*within, sys.executable, "-c", CODE], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if within and done.returncode:
        pytest.skip(f"not possible here: {done.stderr}")
    assert done.stdout.startswith(f"a 'ram' medium {said}" if said else "None\n")
