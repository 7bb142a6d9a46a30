"""The host's programs that every guest runs. Whatever its kernel, its root file system is the host's, read-only."""

import os
import sys

from fslab.machine.kinds import Need
from fslab.system import tools
from fslab.system.tools import Tool

# Loads kernel modules in the guest (guest_mounts). Containers and small virtual machines often lack it.
MODPROBE = Tool(program="modprobe", package="kmod")
TOOLS = (MODPROBE,)


def missing() -> tuple[Need, ...]:
    """Return which of these programs this user cannot run, tested with access(2) as in hostfs."""
    needs = []
    if not os.access(sys.executable, os.X_OK):
        needs.append(Need(what=f"this user may not execute {sys.executable}, which the guest runs"))
    if tools.find(MODPROBE.program) is None:
        needs.append(
            Need(
                what="modprobe is not installed, which the guest loads its modules with",
                remedy=MODPROBE.remedy,
            )
        )
    return tuple(needs)
