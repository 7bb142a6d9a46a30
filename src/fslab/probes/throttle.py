"""Thermal throttling: how often the CPU reduced its speed.

Reads ``/sys/devices/system/cpu/cpu*/thermal_throttle`` (arch/x86/kernel/cpu/mce, since Linux 2.6.30), which only Intel
processors on bare metal have; elsewhere the figure is unknown.
"""

from collections.abc import Mapping
from pathlib import Path

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.trial_record import Value
from fslab.units import Unit

_COUNTERS = ("core_throttle_count", "package_throttle_count")


class Throttle(Probe):
    """Adds the events of all cores, and those of the package with the most events: all CPUs of a package count the same
    package events."""

    summary = "thermal throttling of the CPU"

    def snapshot(self, target: Target) -> Snapshot:
        """Return the events by CPU since the machine started; nothing if the processor does not count them."""
        machine = target.sys / "devices/system/cpu"
        if not (machine / "cpu0/thermal_throttle").is_dir():
            return {}
        return {
            f"{cpu.name} {counter}": int(file.read_text())
            for cpu in machine.glob("cpu[0-9]*")
            for counter in _COUNTERS
            if (file := Path(cpu, "thermal_throttle", counter)).is_file()
        }

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        before, end = (taken[moment] for moment in self.moments)
        new = {name: end[name] - count for name, count in before.items() if name in end}
        if not new:
            return ProbeFinding(values={})
        core, package = (
            [count for name, count in new.items() if name.endswith(counter)] for counter in _COUNTERS
        )
        events = sum(core) + max(package, default=0)
        return ProbeFinding(values={"cpu_throttle_events": Value(value=events, unit=Unit.COUNT)})
