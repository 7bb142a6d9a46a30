"""Find the facts that differ between two sets of results, and what this means for comparing them. Pure.

A set of results may have been measured under several values of a fact (resumed after a change, two kernels). All
values are then reported. A fact that only one side has is reported as unknown on the other side: it is not a proven
difference, and not proven equal either.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fslab.cell import Frozen
from fslab.machine import tunables
from fslab.machine.fact import Fact, FactGroup, Value, Weight, alike

MEASURED_ON_DEVICES = frozenset({"statistics", "fidelity"})  # by each trial: not conditions
# Not compared: these identify a device in one boot, its image in one campaign, or a file system on it, or are texts
# about a disk model.
UNCOMPARED_OF_DEVICES = MEASURED_ON_DEVICES | {
    *(
        "device",
        "devices",
        "path",
        "name",
        "number",
        "diskseq",
        "image",
        "filesystem_uuid",
        "about",
        "sources",
    ),
}
# Words for several groups: "machine" covers everything that differs on another machine.
ALIASES = {
    "machine": frozenset(
        {FactGroup.HOST, FactGroup.CPU, FactGroup.MEMORY, FactGroup.IMAGES, FactGroup.DEVICE}
    )
}
ALL = "all"  # as an allowed name: every difference is allowed
DEVICE = "device."  # begins the name of a fact of a device
Known = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Circumstances:
    """The conditions under which one set of results was measured.

    ``machine``: the facts of each trial, or of the campaign. ``tuning``: settings of the study, which replace the
    facts. ``tools``: for each trial, versions by program. ``devices``: by the storage on a device, the geometry in each
    trial. ``media``: the types of media that were used. ``sliced``: by what was measured, whether the trials were
    measured in slices.
    """

    machine: Sequence[Mapping[str, Any]]
    tuning: Mapping[str, str] = field(default_factory=dict)
    tools: Sequence[Mapping[str, str | None]] = ()
    devices: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    media: frozenset[str] = frozenset()
    sliced: Mapping[str, Collection[bool]] = field(default_factory=dict)


LONG_LIST = 8  # words


class Difference(Frozen):
    """A fact with its values on both sides. A side where the fact is unknown is empty.

    ``decisive``: it can change the figures. ``allowed``: the user expects it to differ.
    """

    fact: str
    group: FactGroup
    decisive: bool = True
    allowed: bool = False
    a: Known
    b: Known

    @property
    def known(self) -> bool:
        return bool(self.a and self.b)

    def allowed_by(self, names: Collection[str]) -> "Difference":
        """Return the difference, allowed if ``names`` has the fact, its group, a word for several groups or ``all``."""
        groups = {group for name in names for group in ALIASES.get(name, ())}
        words = {ALL, self.fact, self.fact.split(".")[0], self.group.value}
        return self.model_copy(update={"allowed": self.group in groups or bool(words & set(names))})

    def __str__(self) -> str:
        return f"{self.fact}: {' → '.join(_shortened(words(self.a), words(self.b)))}"


def _shortened(a: str, b: str) -> tuple[str, str]:
    """Return both texts; of two long lists, such as features, only the words that the other one lacks."""
    left, right = (text.replace(",", " ").split() for text in (a, b))
    gone, new = ([each for each in own if each not in other] for own, other in ((left, right), (right, left)))
    if min(len(left), len(right)) < LONG_LIST or not gone + new:
        return a, b
    also_a, also_b = (f"also {' '.join(each)}" if each else "nothing more" for each in (gone, new))
    return also_a, f"{also_b} (the rest is equal)"


def words(values: Known) -> str:
    """Return the values as text: ``6.1.0-26``, ``performance or powersave``, ``unknown``."""
    return " or ".join(values) if values else "unknown"


def of_devices(devices: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what describes a device in the same way in all these geometries, as texts by name, such as
    ``device.model``."""
    found = _conditions(devices)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def without(facts: Any, omitted: Collection[str]) -> Any:
    """Return the facts of a device without those of these names, also those of its parts."""
    if isinstance(facts, list):
        return [without(each, omitted) for each in facts]
    if not isinstance(facts, Mapping):
        return facts
    return {name: without(value, omitted) for name, value in facts.items() if name not in omitted}


def names(catalogue: Iterable[Fact]) -> set[str]:
    """Return all names by which a difference can be allowed."""
    return {*(fact.name for fact in catalogue), *(group.value for group in FactGroup), *ALIASES}


def differences(catalogue: Sequence[Fact], a: Circumstances, b: Circumstances) -> list[Difference]:
    """Return the facts that differ or that only one side has, decisive facts first."""
    found = [
        *_of_machine(catalogue, a, b),
        *_between(FactGroup.TOOLS, _flat(a.tools), _flat(b.tools)),
        *_of_devices(a, b),
        *_of_slices(a, b),
    ]
    return sorted(found, key=lambda each: (not each.decisive, not each.known))


def between(group: FactGroup, a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    """Return the decisive differences of two plain mappings, such as the same cell in two studies.

    A value that one side lacks is ``–`` and not unknown.
    """
    found = []
    for name in {**a, **b}:
        if a.get(name) != b.get(name):
            told = [(str(side[name]),) if side.get(name) not in (None, "") else ("–",) for side in (a, b)]
            found.append(Difference(fact=name, group=group, a=told[0], b=told[1]))
    return found


def _of_machine(catalogue: Sequence[Fact], a: Circumstances, b: Circumstances) -> list[Difference]:
    found: list[Difference] = []
    for fact in catalogue:
        if fact.weight is Weight.PASSING or (fact.medium and fact.medium not in a.media | b.media):
            continue
        if fact.tolerance and _untouched(fact, a, b) and alike(fact, _raw(fact, a) + _raw(fact, b)):
            continue
        sides = [_values(fact, side) for side in (a, b)]
        found += _between(fact.group, *sides, decisive=fact.weight is Weight.DECISIVE)
    return found


def _of_devices(a: Circumstances, b: Circumstances) -> list[Difference]:
    """Return each difference once, although many stacks may share a device."""
    found: set[Difference] = set()
    for name in a.devices.keys() & b.devices.keys():
        sides = [_conditions(side.devices[name]) for side in (a, b)]
        found.update(_between(FactGroup.DEVICE, *sides))
    return _in_order(found)


def _of_slices(a: Circumstances, b: Circumstances) -> list[Difference]:
    """Return each difference once: what slices measure is not what whole trials do."""
    told = {True: "yes", False: "no"}
    found: set[Difference] = set()
    for name in a.sliced.keys() & b.sliced.keys():
        sides = [{"slices": tuple(sorted(told[each] for each in side.sliced[name]))} for side in (a, b)]
        found.update(_between(FactGroup.STUDY, *sides))
    return _in_order(found)


def _in_order(found: Iterable[Difference]) -> list[Difference]:
    return sorted(found, key=lambda each: (each.fact, each.a, each.b))


def _conditions(devices: Sequence[Mapping[str, Any]]) -> dict[str, Known]:
    return _flat((without(each, UNCOMPARED_OF_DEVICES) for each in devices), DEVICE)


def _between(
    group: FactGroup, a: Mapping[str, Known], b: Mapping[str, Known], *, decisive: bool = True
) -> list[Difference]:
    return [
        Difference(fact=name, group=group, decisive=decisive, a=a.get(name, ()), b=b.get(name, ()))
        for name in {**a, **b}
        if a.get(name, ()) != b.get(name, ())
    ]


def _values(fact: Fact, side: Circumstances) -> dict[str, Known]:
    """Return the compared values of a fact over all trials of a side. Each part of a mapping has its own name."""
    tuned = _tuned(fact, side.tuning)
    raw: Iterable[Any] = [tuned] if tuned is not None else [facts.get(fact.name) for facts in side.machine]
    values = [None if value is None else fact.canonical(value) for value in raw]
    return _flat([{fact.name: value} for value in values])


def _raw(fact: Fact, side: Circumstances) -> list[Any]:
    return [facts.get(fact.name) for facts in side.machine]


def _untouched(fact: Fact, *sides: Circumstances) -> bool:
    """Return whether both sides have the fact and neither study sets it."""
    return all(
        _tuned(fact, side.tuning) is None and any(v is not None for v in _raw(fact, side)) for side in sides
    )


def _tuned(fact: Fact, tuning: Mapping[str, str]) -> Value:
    """Return the value to which the study sets a fact, or None if it does not set it."""
    if fact.tuned_by is None:
        return None
    if fact.tuned_by in tuning:
        return tunables.normal(fact.tuned_by, tuning[fact.tuned_by])
    other = tunables.PAIRS.get(fact.name)
    return "0" if other is not None and f"vm.{other}" in tuning else None


def _flat(sets: Iterable[Mapping[str, Any]], prefix: str = "") -> dict[str, Known]:
    """Return the distinct known values by name, as text. Parts of a mapping are named ``mapping.part``.

    Mappings in a list, such as the disks of a stripe, are taken as one with several values.
    """
    found: dict[str, set[str]] = {}
    for each in sets:
        for name, value in each.items():
            parts = [
                part for part in (value if isinstance(value, list) else [value]) if isinstance(part, Mapping)
            ]
            if parts:
                for part, known in _flat(parts, f"{prefix}{name}.").items():
                    found.setdefault(part, set()).update(known)
            elif value is not None:
                found.setdefault(f"{prefix}{name}", set()).add(_text(value))
    return {name: tuple(sorted(values)) for name, values in found.items()}


def _text(value: object) -> str:
    """Return a value as text. True and False are ``on`` and ``off``, as for settings in a study file."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
