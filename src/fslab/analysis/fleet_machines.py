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
    """Those with trials; of several machines with one name the second is called ``name (2)``."""
    found: dict[tuple[str, ...], Machine] = {}
    seen: Counter[str] = Counter()
    for campaign, trials in campaigns:
        if not trials:
            continue
        facts = campaign.machine
        name = str(facts.get("hostname") or "unknown")
        hardware = (name, *(str(facts.get(each)) for each in _HARDWARE))
        if hardware not in found:
            seen[name] += 1
            found[hardware] = Machine(name=name if seen[name] == 1 else f"{name} ({seen[name]})")
        by_cell: dict[str, list[TrialRecord]] = {}
        for trial in trials:
            by_cell.setdefault(trial.cell.id, []).append(trial)
        found[hardware].campaigns.append(campaign)
        found[hardware].trials.append({identity(cell): by_cell.get(cell.id, []) for cell in campaign.cells})
    return list(found.values())


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
