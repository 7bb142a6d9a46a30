"""Where a campaign measured, or would measure, beside the conditions of its study's publication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fslab.analysis.usable_trials import is_usable
from fslab.cell import Cell
from fslab.claims.publication_likeness import Condition, Situation, conditions_of
from fslab.machine.planned_machine import here
from fslab.storage.parsed_stack import parsed_stack
from fslab.store.campaign import Campaign
from fslab.study import shipped
from fslab.study.model import Study
from fslab.trial_record import TrialRecord
from fslab.units import format_size


def conditions(campaign: Campaign, records: Sequence[TrialRecord], study: Study) -> tuple[Condition, ...]:
    """Return the conditions of the publication beside those of the machine and the stacks of the trials.

    The machine is that of a usable trial: one that cannot run here has the host's facts, even if it is for a guest.
    """
    ran = next(filter(is_usable, records), None) or next(iter(records), None)
    facts = {**campaign.machine, **(ran.provenance.machine if ran else {})}
    return _conditions(study, campaign.cells, facts, _amounts(campaign.settings.scale, study))


def planned(study: Study, cells: Sequence[Cell]) -> tuple[Condition, ...]:
    """Return the conditions of the publication beside those in which these cells would be measured."""
    if study.published is None or not study.published.conditions or not cells:
        return ()
    facts = here().facts(cells[0].stack.machine)
    return _conditions(study, cells, facts, "scaled" if study.scaled else None)


def near_words(conditions: Sequence[Condition]) -> str | None:
    """Return the conditions in one sentence: ``beside the publication: processors 1 (4, not near), …``."""
    words = {True: "near", False: "not near", None: "unknown"}
    told = [f"{one.name} {one.here} (there {one.theirs}: {words[one.near]})" for one in conditions]
    return f"beside the publication: {'; '.join(told)}" if told else None


def _conditions(
    study: Study, cells: Sequence[Cell], facts: Mapping[str, Any], amounts: str | None
) -> tuple[Condition, ...]:
    media = list(dict.fromkeys(map(_medium, cells)))
    cpus, memory_bytes, kernel = (facts.get(name) for name in ("cpus", "memory_bytes", "kernel"))
    texts = {
        "kernel": kernel,
        "distribution": facts.get("distribution"),
        "processors": None if cpus is None else str(cpus),
        "memory": None if memory_bytes is None else format_size(memory_bytes),
        "medium": ", ".join(sorted(media)),
        "machine": ", ".join(sorted({cell.stack.machine.type for cell in cells})),
        "amounts": amounts or "all",
    }
    here = Situation(
        texts={name: text for name, text in texts.items() if text}, cpus=cpus, memory_bytes=memory_bytes, kernel=kernel,
        media=media, slowed=any(_speed(cell) != 1 for cell in cells), scaled=amounts is not None,
    )  # fmt: skip
    return conditions_of(study.published.conditions if study.published else {}, here)


def _medium(cell: Cell) -> str:
    """Return a medium in words: its type, what it models, its size, and its speed if that is not the model's."""
    parsed = parsed_stack(cell.stack)
    profile, size = parsed.medium.profile(parsed.medium_options), cell.stack.medium.options.get("size")
    speed = _speed(cell)
    server = "striped by its server (md and LVM themselves are not tested)" if cell.stack.served else None
    words = (
        cell.stack.medium.type,
        profile,
        size,
        None if speed == 1 else f"at {speed:g} of its speed",
        server,
    )
    return " ".join(str(word) for word in words if word)


def _speed(cell: Cell) -> float:
    parsed = parsed_stack(cell.stack)
    return parsed.medium.speed(parsed.medium_options)


def _amounts(scale: float, study: Study) -> str | None:
    """Return how to list the amounts; None if they are the publication's. One factor would not describe them all."""
    given = scale != study.scale
    scaled = scale != 1 if given else bool(study.scaled)
    if not scaled:
        return None
    return f"scaled; fslab plan {shipped.word(study.id)}{f' --scale {scale:g}' if given else ''} lists each amount"
