"""Finds stacks of a campaign that are the same: their options differ, but not what the kernel made of them. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fslab.analysis.workload_groups import Sample
from fslab.cell import Geometry, StackSpec
from fslab.trial_record import TrialRecord

EFFECT = "options_in_effect"  # observed lines of a trial: equal exactly if mount options have the same effect
CHANGED = (
    "options_not_in_effect"  # kind of the warning that names options which the kernel dropped or changed
)
_STRIPES = ("mkfs_told_of_stripes", "stripes_in_use")


@dataclass(frozen=True, kw_only=True, slots=True)
class SameStack:
    """``of``: the first stack (id) that has the same effect. ``changed``: options of both that are not in effect."""

    of: str
    changed: tuple[str, ...]


def same_stacks(stacks: Mapping[str, StackSpec], trials: Sequence[TrialRecord]) -> dict[str, SameStack]:
    """Return each stack (id) that is the same as an earlier one.

    A stack is known by what all of its trials found; without a trial that knows the options in effect, it is not.
    """
    effects: dict[str, set[str]] = {}
    changed: dict[str, dict[str, None]] = {}
    for trial in trials:
        options = trial.provenance.observed.get(EFFECT)
        if options is not None:
            stripes = [trial.provenance.device.get(name) for name in _STRIPES]
            effects.setdefault(trial.cell.stack_id, set()).add(json.dumps([options, stripes]))
        for warning in trial.validity:
            if warning.kind == CHANGED:
                changed.setdefault(trial.cell.stack_id, {}).update(
                    dict.fromkeys(warning.data.get("options", ()))
                )
    first: dict[tuple[str, str], str] = {}
    found = {}
    for key, spec in stacks.items():
        effect, *others = effects.get(key) or [""]
        of = first.setdefault((_made(spec), effect), key) if effect and not others else key
        if of != key:
            names = {**changed.get(of, {}), **changed.get(key, {})}
            found[key] = SameStack(of=of, changed=tuple(names))
    return found


def different(
    samples: Sequence[Sample], same: Mapping[str, SameStack]
) -> tuple[list[Sample], dict[str, str]]:
    """Return the samples to compare, and for each other one the stack (id) that it is the same as.

    Two samples of the same stack differ by noise only.
    """
    have = {sample.stack for sample in samples}
    others = {stack: each.of for stack, each in same.items() if {stack, each.of} <= have}
    return [sample for sample in samples if sample.stack not in others], others


def _made(spec: StackSpec) -> str:
    """Return all of a stack except what ``EFFECT`` and the stripes in use tell."""
    update = {"mount_options": "", "geometry": Geometry.DEFAULT}
    return spec.content.model_copy(update=update).model_dump_json()
