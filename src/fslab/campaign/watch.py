"""All probes around one run: snapshots at each moment, findings at the end.

A probe that fails costs its own figures and leaves a note; it never costs the trial.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from fslab.probes import REGISTRY as PROBES
from fslab.probes import Moment, Snapshot, Target, Work
from fslab.record import Severity, ValidityWarning, Value, WarningKind
from fslab.storage.stack import Stack


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What all probes found: values by name, and reasons for doubt."""

    values: dict[str, Value]
    warnings: list[ValidityWarning]


@dataclass(slots=True)
class Watch:
    """The probes that watch one stack."""

    stack: Stack
    taken: dict[str, dict[Moment, Snapshot]] = field(default_factory=lambda: defaultdict(dict))
    warnings: list[ValidityWarning] = field(default_factory=list)

    def snapshot(self, moment: Moment) -> None:
        """Read every source that is read at this moment."""
        target = Target(
            devices=self.stack.watched, filesystem=self.stack.filesystem, directory=self.stack.work
        )
        for name, probe in PROBES:
            if moment in probe.moments:
                try:
                    self.taken[name][moment] = probe.snapshot(target)
                except (OSError, ValueError) as error:
                    self.warnings.append(_failed(name, moment.value, error))

    def derive(self, work: Work) -> Findings:
        """What the differences mean, given what the workload did."""
        values: dict[str, Value] = {}
        for name, probe in PROBES:
            if set(probe.moments) <= set(self.taken[name]):
                finding = probe.derive(self.taken[name], work)
                values.update(finding.values)
                self.warnings.extend(finding.warnings)
        return Findings(values=values, warnings=self.warnings)


def _failed(probe: str, moment: str, error: Exception) -> ValidityWarning:
    return ValidityWarning(
        kind=WarningKind.PROBE_FAILED,
        severity=Severity.NOTE,
        message=f"the probe '{probe}' could not read its source: {error}",
        data={"probe": probe, "moment": moment},
    )
