"""Pressure stall information: the share of time in which tasks waited for CPU, memory or I/O.

Reads ``/proc/pressure`` (Documentation/accounting/psi.rst), in microseconds since the machine started.
"""

import time
from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work, figures
from fslab.units import Unit

_RESOURCES = ("cpu", "io", "memory")
_KINDS = ("some", "full")


class Pressure(Probe):
    """Pressure on the whole machine, including the tool, which is expected to wait for I/O.
    "some": at least one task waited; "full": all non-idle tasks waited (not meaningful for ``cpu``)."""

    of_machine = True
    summary = "share of the time in which tasks waited for CPU, I/O or memory (PSI)"

    def snapshot(self, target: Target) -> Snapshot:
        """Return the totals by resource and kind; none if the files are missing or cannot be read. With
        CONFIG_PSI_DEFAULT_DISABLED, they can be opened but not read (EOPNOTSUPP)."""
        totals: dict[str, int] = {"now_us": time.monotonic_ns() // 1000}
        for resource in _RESOURCES:
            try:
                lines = (target.proc / "pressure" / resource).read_text().splitlines()
            except OSError:
                continue
            for kind, _, rest in (line.partition(" ") for line in lines):
                totals[f"{resource}_{kind}"] = int(rest.rpartition("total=")[2])
        return totals

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Compute percentages of the time between the snapshots."""
        before, end = (taken[moment] for moment in self.moments)
        window_us = end["now_us"] - before["now_us"]
        found: dict[str, float] = {}
        for name in (f"{resource}_{kind}" for resource in _RESOURCES for kind in _KINDS):
            if name != "cpu_full" and name in before and name in end and window_us > 0:
                waited = min(100.0, 100 * (end[name] - before[name]) / window_us)
                found[f"pressure_{name}"] = waited
        return ProbeFinding(values=figures(Unit.PERCENT, **found))
