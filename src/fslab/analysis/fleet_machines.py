"""The machines on which campaigns of one study ran, and their trials, independent of the path of a disk. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fslab.analysis.campaign_comparison import MeasuredCampaign
from fslab.analysis.matching_cells import PLACES
from fslab.analysis.usable_trials import usable_values
from fslab.analysis.workload_groups import by_cell
from fslab.cell import Cell
from fslab.machine import differences
from fslab.machine.fact import FactGroup
from fslab.machine.facts import CATALOGUE
from fslab.trial_record import TrialRecord

Measured = Sequence[tuple[MeasuredCampaign, Sequence[TrialRecord]]]
# Machines with the same host name are distinguished by facts that no reboot, update or memory module changes.
_HARDWARE = ("product", "cpu")
_OF_GUEST = frozenset({FactGroup.KERNEL, FactGroup.MEMORY, FactGroup.SETTINGS})
_STEP = 1_000_000  # offset of the block numbers from one campaign of a machine to the next


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A machine with its campaigns, oldest first. ``trials``: of each campaign, by :func:`identity` of the cell."""

    name: str
    campaigns: list[MeasuredCampaign] = field(default_factory=list)
    trials: list[dict[str, list[TrialRecord]]] = field(default_factory=list)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels of the newest campaign's trials, which may have run in guests."""
        ran = (trial.provenance.machine for trials in self.trials[-1].values() for trial in trials)
        return tuple(sorted({str(facts["kernel"]) for facts in ran if facts.get("kernel") is not None}))

    def facts_with(self, wanted: Sequence[str]) -> dict[str, Any]:
        """Return the facts of the trials of the cells with these identities, and what describes their devices
        (``device.model``). What is not the same in all of them is left out."""
        found = [
            (_facts(campaign.machine, trial.provenance.machine), trial.provenance.device)
            for campaign, trials in zip(self.campaigns, self.trials, strict=True)
            for name in wanted
            for trial in trials.get(name, ())
            if trial.metrics
        ]
        first, *others = (facts for facts, _ in found) if found else ({},)
        same = {
            name: value for name, value in first.items() if all(other.get(name) == value for other in others)
        }
        return {**same, **differences.of_devices([device for _, device in found if device])}

    @property
    def measured(self) -> set[str]:
        """The identities of all cells of the machine's campaigns."""
        return {name for trials in self.trials for name in trials}

    def values(self, wanted: str, metric: str) -> dict[int, float]:
        """Return the values of a metric of the cell with identity ``wanted``, by block, over all campaigns."""
        return {
            number * _STEP + block: value
            for number, trials in enumerate(self.trials)
            for block, value in usable_values(trials.get(wanted, ()), metric).items()
        }


def _facts(host: Mapping[str, Any], ran: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a trial. In a guest, kernel, memory and settings are its own, and the hardware is the host's,
    which the guest does not see."""
    return {name: (ran if fact.group in _OF_GUEST else host).get(name) for name, fact in CATALOGUE.items()}


def by_machine(campaigns: Measured) -> list[Machine]:
    """Return the machines that have trials. The second machine with the same name is called ``name (2)``.

    Machines with the same name and hardware are distinguished by their machine ids. A campaign without a machine id
    (from an earlier version of fslab, or from a system without one) belongs to the first machine with its name and
    hardware.
    """
    found: list[Machine] = []
    alike: dict[tuple[str, ...], dict[str | None, Machine]] = {}
    seen: Counter[str] = Counter()
    for campaign, trials in campaigns:
        if not trials:
            continue
        facts = campaign.machine
        name = str(facts.get("hostname") or "unknown")
        known = alike.setdefault((name, *(str(facts.get(each)) for each in _HARDWARE)), {})
        identifier = None if facts.get("machine_id") is None else str(facts["machine_id"])
        machine = _known(known, identifier)
        if machine is None:
            seen[name] += 1
            machine = Machine(name=name if seen[name] == 1 else f"{name} ({seen[name]})")
            known[identifier] = machine
            found.append(machine)
        own = by_cell(trials)
        machine.campaigns.append(campaign)
        machine.trials.append({identity(cell): own.get(cell.id, []) for cell in campaign.cells})
    return found


def _known(alike: dict[str | None, Machine], identifier: str | None) -> Machine | None:
    """Return the machine with this id among those of one name and hardware; a machine without an id gets this one."""
    if identifier is None:
        return next(iter(alike.values()), None)
    if identifier not in alike and None in alike:
        alike[identifier] = alike.pop(None)
    return alike.get(identifier)


def identity(cell: Cell) -> str:
    """Return a text that identifies a measurement on all machines, independent of the path of its disk.

    It contains the stack's name, to distinguish stacks that are otherwise the same.
    """
    stack = cell.stack
    options = {name: value for name, value in stack.medium.options.items() if name not in PLACES}
    medium = stack.medium.model_copy(update={"options": options})
    return f"{stack.name} {cell.model_copy(update={'stack': stack.model_copy(update={'medium': medium})}).content_id}"


def distinct_cells(campaigns: Measured) -> list[Cell]:
    """Return each distinct cell once, named as in the newest campaign that has it.

    The cells of the newest campaign come first, in the order of its plan.
    """
    found: dict[str, Cell] = {}
    for campaign, trials in reversed(campaigns):
        for cell in campaign.cells if trials else ():
            found.setdefault(identity(cell), cell)
    return list(found.values())
