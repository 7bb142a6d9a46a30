"""Lets what fslab has to do at a certain time run before other programs: sched(7), sched_setscheduler(2).

Must not give this priority to what is measured, nor to anything that computes for long.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def timely() -> Iterator[None]:
    """In this block, let this thread run as soon as it wakes up, although other programs want the CPU. It must sleep
    nearly all of the time. Processes that it starts have the usual priority. Without CAP_SYS_NICE, or where the control
    group has no time for it, this has no effect."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.sched_setscheduler(0, policy, parameters)
