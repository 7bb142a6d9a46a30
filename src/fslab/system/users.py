"""Commands that run as another user than root, because some servers refuse to run as root.

Builds command lines; starts nothing.
"""

import os
import pwd
from collections.abc import Sequence

from fslab.errors import UnsupportedError
from fslab.system.tools import Tool, require

NOBODY = 65534
SETPRIV = Tool(program="setpriv", package="util-linux")
PRLIMIT = Tool(program="prlimit", package="util-linux")


def account(name: str) -> pwd.struct_passwd:
    """Return what the machine knows of a user. UnsupportedError if there is none of that name."""
    try:
        return pwd.getpwnam(name)
    except (KeyError, ValueError):
        raise UnsupportedError(
            f"this machine has no user '{name}'",
            hint=f"install the package that creates it, or run: useradd --system {name}",
        ) from None


def as_account(user: pwd.struct_passwd, argv: Sequence[str]) -> list[str]:
    """Return a command that runs as a user of this machine, with all groups of the user and the variables that login(1)
    sets. TMPDIR is removed: it can be a directory of root's.

    It keeps one right (CAP_DAC_READ_SEARCH): to pass through root's directories to the file system under test.
    """
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    variables = (f"HOME={user.pw_dir}", f"USER={user.pw_name}", f"LOGNAME={user.pw_name}")
    command = ("env", "-u", "TMPDIR", *variables, *argv)
    kept = "-all,+dac_read_search"
    rights = (f"--bounding-set={kept}", f"--inh-caps={kept}", f"--ambient-caps={kept}")
    supplementary = f"--groups={','.join(map(str, groups))}"
    return _setpriv(command, user.pw_uid, user.pw_gid, supplementary, *rights)


def unprivileged(argv: Sequence[str]) -> list[str]:
    """Return a command that runs as the user nobody, without any right of root's."""
    return _setpriv(
        argv,
        NOBODY,
        NOBODY,
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--ambient-caps=-all",
    )


def _setpriv(argv: Sequence[str], uid: int, gid: int, *options: str) -> list[str]:
    return [require(SETPRIV), f"--reuid={uid}", f"--regid={gid}", *options, "--no-new-privs", "--", *argv]
