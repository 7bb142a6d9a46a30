"""Split a device's I/O with histogram triggers of the kernel, for kernels that do not allow the eBPF program.

Documentation/trace/histogram.rst; kernels with CONFIG_HIST_TRIGGERS, such as those of Debian. Root only.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from fslab.tracing import Split, Traffic, kind_of

_EVENT = "events/block/block_rq_complete"
_ENTRY = re.compile(r"^\{ rwbs:\s*(\w+)\s*\}\s*hitcount:\s*(\d+)\s+nr_sector:\s*(\d+)", re.MULTILINE)


class Histogram:
    """Counts from construction to :meth:`close`. OSError if the kernel has no histogram triggers."""

    def __init__(self, tracefs: Path, devices: Sequence[int]) -> None:
        """``devices`` are numbered as in tracepoints: major << 20 | minor."""
        self._instance = tracefs / "instances" / f"fslab-hist-{os.getpid()}"
        self._instance.mkdir()
        only = " || ".join(f"dev == {device}" for device in devices)
        self._trigger = f"hist:keys=rwbs:vals=nr_sector if {only}"
        try:
            (self._instance / _EVENT / "trigger").write_text(self._trigger)
        except OSError:
            self._instance.rmdir()
            raise

    def read(self) -> Split:
        return parse((self._instance / _EVENT / "hist").read_text())

    def close(self) -> None:
        """Remove the trigger and its instance. Can be called twice."""
        if self._instance.exists():
            (self._instance / _EVENT / "trigger").write_text(f"!{self._trigger}")
            self._instance.rmdir()


def parse(text: str) -> Split:
    """Parse the content of a ``hist`` file. Pure."""
    found: dict[str, Traffic] = {}
    for rwbs, hits, sectors in _ENTRY.findall(text):
        kind = kind_of(rwbs)
        found[kind] = found.get(kind, Traffic()) + Traffic(bytes=int(sectors) * 512, requests=int(hits))
    return found
