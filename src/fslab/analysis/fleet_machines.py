"""The machines that campaigns of one study come from, and what they measured, wherever its disk is there. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fslab.analysis.campaign_comparison_lines import values_by_block
from fslab.analysis.matching import PLACES
from fslab.analysis.measured import MeasuredCampaign
from fslab.cell import Cell
from fslab.record import TrialRecord

Measured = Sequence[tuple[MeasuredCampaign, Sequence[TrialRecord]]]
# Machines with the same host name are distinguished by facts that no reboot, update or memory module changes.
_HARDWARE = ("product", "cpu")
_STEP = 1_000_000  # apart from each other: the blocks of two campaigns of one machine


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """``trials``: of each campaign, oldest first, by what was measured (:func:`identity`)."""

    name: str
    campaigns: list[MeasuredCampaign] = field(default_factory=list)
    trials: list[dict[str, list[TrialRecord]]] = field(default_factory=list)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Those that all of its campaigns have alike."""
        first, *others = (campaign.machine for campaign in self.campaigns)
        return {
            name: value for name, value in first.items() if all(other.get(name) == value for other in others)
        }

    @property
    def measured(self) -> set[str]:
        """What its campaigns have cells of."""
        return {name for trials in self.trials for name in trials}

    def values(self, wanted: str, metric: str) -> dict[int, float]:
        """By block, over all campaigns."""
        return {
            number * _STEP + block: value
            for number, trials in enumerate(self.trials)
            for block, value in values_by_block(trials.get(wanted, ()), metric).items()
        }


def by_machine(campaigns: Measured) -> list[Machine]:
    """Those with trials; of several machines with one name the second is called ``name (2)``.

    Machines of one kind and name are distinguished by their machine ids. A campaign without one, of an earlier version
    of fslab or of a system that has none, belongs to the first machine of its name and kind.
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
        by_cell: dict[str, list[TrialRecord]] = {}
        for trial in trials:
            by_cell.setdefault(trial.cell.id, []).append(trial)
        machine.campaigns.append(campaign)
        machine.trials.append({identity(cell): by_cell.get(cell.id, []) for cell in campaign.cells})
    return found


def _known(alike: dict[str | None, Machine], identifier: str | None) -> Machine | None:
    """The machine of this id among those of one name and kind; one that had none so far gets it."""
    if identifier is None:
        return next(iter(alike.values()), None)
    if identifier not in alike and None in alike:
        alike[identifier] = alike.pop(None)
    return alike.get(identifier)


def identity(cell: Cell) -> str:
    """The same on every machine: what is measured, wherever its disk is. Names tell apart what is otherwise alike."""
    stack = cell.stack
    options = {name: value for name, value in stack.medium.options.items() if name not in PLACES}
    medium = stack.medium.model_copy(update={"options": options})
    return f"{stack.name} {cell.model_copy(update={'stack': stack.model_copy(update={'medium': medium})}).content_id}"


def distinct_cells(campaigns: Measured) -> list[Cell]:
    """Each once, as the newest campaign calls it; those of the newest first, in the order of its plan."""
    found: dict[str, Cell] = {}
    for campaign, trials in reversed(campaigns):
        for cell in campaign.cells if trials else ():
            found.setdefault(identity(cell), cell)
    return list(found.values())
