"""What the kernel logs about a file system while it is mounted and read."""

import re

from fslab.probes.kernel_log import KernelLog
from fslab.validity.trial.kernel_error import SERIOUS


class Complaints:
    """Returns each line once: earlier lines may be about another file system on the same loop device."""

    def __init__(self) -> None:
        self._log = KernelLog()

    def lines(self) -> list[str]:
        """What was logged since the last time; nothing where that may not be read."""
        text = (self._log.snapshot(None).get("log") or b"").decode("utf-8", "replace")  # type: ignore[arg-type]
        return [line.partition(";")[2] for line in text.splitlines()]

    def serious(self, device: str) -> list[str]:
        """Those that name this device (``loop0``) and tell of an error."""
        return [line for line in self.lines() if re.search(rf"\b{device}\b", line) and SERIOUS.search(line)]
