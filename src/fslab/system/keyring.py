"""Root's session keyring (session-keyring(7)), which no process that fslab starts gets.

Whoever has it possesses its keys, such as passphrases of disks and Kerberos tickets, also as another user.
"""

import errno
import os
import threading

from fslab.system import syscalls

_thread = threading.local()
_NO_KEYS = {errno.ENOSYS, errno.EPERM, errno.EACCES}  # in the kernel, or for this container


def leave() -> None:
    """Have an empty session keyring in this thread, if it is root's. Whoever is not root starts commands only as the
    same user."""
    if os.geteuid() != 0 or getattr(_thread, "left", False):
        return
    try:
        syscalls.join_new_session_keyring()
    except OSError as error:
        if error.errno not in _NO_KEYS:
            raise
    _thread.left = True
