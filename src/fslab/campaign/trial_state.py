"""The results of a running trial so far, and the facts by which it is judged."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fslab.campaign import disks
from fslab.campaign.watch import Findings
from fslab.cell import Cache, Cell
from fslab.errors import FslabError
from fslab.record import RunPart, ValidityWarning, Value
from fslab.storage import Workspace, in_effect
from fslab.storage.parsed_stack import parsed_stack
from fslab.storage.stack import Stack
from fslab.system.kernel_log import KernelMessages, about
from fslab.validity.facts import TrialFacts
from fslab.workloads import Reading

KEPT_LINES = 100


@dataclass(kw_only=True, slots=True)
class TrialState:
    """The results of a trial so far. They are stored even if the trial fails."""

    metrics: dict[str, Value] = field(default_factory=dict)
    probes: dict[str, Value] = field(default_factory=dict)
    warnings: list[ValidityWarning] = field(default_factory=list)
    remade: bool = False
    caches_dropped: bool = True
    traced: bool = False
    observed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parts: dict[str, RunPart] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    device: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def kernel_log_kept(self, workspace: Workspace) -> Iterator[None]:
        """If the trial fails, keep what the kernel logged meanwhile about the devices that its commands name."""
        log = KernelMessages()
        try:
            yield
        except (FslabError, OSError):
            words = {word for command in workspace.commands for word in command.argv}
            texts = [message.text for message in about(log.messages(), words)]
            self.observed.setdefault("kernel_log", tuple(texts[-KEPT_LINES:]))
            raise

    def _note_options(self, cell: Cell, up: Stack, findings: Findings) -> dict[str, str | None]:
        """Return the mount options that are not in effect, and keep what stacks with the same effect have in common."""
        listed = findings.texts.get("mount_options", ())
        if up.driver is None or not listed:
            return {}
        asked = cell.stack.mount_options
        effect = in_effect.signature(up.driver, asked, listed)
        if effect is not None:
            self.observed |= {"options_in_effect": effect}
        features = in_effect.changed_features(
            up.driver, cell.stack.mkfs_options, up.facts.get("features") or ()
        )
        return {**in_effect.changed(up.driver, asked, listed), **features}

    def facts(
        self, cell: Cell, machine: Mapping[str, Any], up: Stack, reading: Reading, findings: Findings
    ) -> TrialFacts:
        """Return the facts for the rules of validity. ``machine``: the facts that are stored with the trial."""
        parsed = parsed_stack(cell.stack)
        return TrialFacts(
            work=reading,
            cold=cell.cache is Cache.COLD,
            figures=findings.values,
            texts=findings.texts,
            devices=up.devices,
            cpus=machine.get("cpus"),
            memory_bytes=machine.get("memory_bytes"),
            caches_dropped=self.caches_dropped,
            remade=self.remade,
            changed_options=self._note_options(cell, up, findings),
            filesystem=up.filesystem,
            medium_buffered=up.buffered,
            volume_bytes=up.device.size_bytes if up.device else None,
            fair_volume_bytes=up.driver.fair_size_bytes if up.driver else None,
            probe_failures=findings.failures,
            machine=machine.get("machine", "host"),
            accelerator=machine.get("accelerator"),
            disk_profile=parsed.medium.profile(parsed.medium_options),
            disk_speed=parsed.medium.speed(parsed.medium_options),
            disk_fidelities=disks.fidelities(self.device),
            disk_limits={name: value for name, value in self.device.get("limits", {}).items() if value},
        )
