"""Kernel messages about a file system while it is mounted and read."""

from collections.abc import Sequence

from fslab.storage.filesystems import others_in_log
from fslab.system.kernel_log import WARNING, KernelMessages, belongs
from fslab.validity.trial.machine import SERIOUS


class Complaints:
    """Reads each line once, because earlier lines may be about another file system on the same loop device."""

    def __init__(self, mount_type: str) -> None:
        self._log, self._others = KernelMessages(), others_in_log(mount_type)

    def reasons(self) -> list[str]:
        """Return the errors and warnings since the previous call, except those about other file systems."""
        new = self._log.messages()
        return [text for level, text in new if level <= WARNING and not text.startswith(self._others)]

    def serious(self, devices: Sequence[str]) -> list[str]:
        """Return the new lines about ``devices`` (such as ``loop0``) that report an error."""
        texts = [text for _, text in self._log.messages() if SERIOUS.search(text)]
        return [text for text in texts if belongs(text, devices, (), self._others)]
