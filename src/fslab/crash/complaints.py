"""Kernel messages about a file system while it is mounted and read."""

import re

from fslab.probes.kernel_log import KernelLog
from fslab.validity.trial.kernel_error import SERIOUS


class Complaints:
    """Reads each line once, because earlier lines may be about another file system on the same loop device."""

    def __init__(self) -> None:
        self._log = KernelLog()

    def lines(self) -> list[str]:
        """Return the lines logged since the previous call; none if the kernel log may not be read."""
        text = (self._log.snapshot(None).get("log") or b"").decode("utf-8", "replace")  # type: ignore[arg-type]
        return [line.partition(";")[2] for line in text.splitlines()]

    def serious(self, device: str) -> list[str]:
        """Return the new lines that name ``device`` (such as ``loop0``) and report an error."""
        return [line for line in self.lines() if re.search(rf"\b{device}\b", line) and SERIOUS.search(line)]
