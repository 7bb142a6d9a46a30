"""Facts of this machine that a figure depends on, as a set that is stored with it. Reads only.

What there is to know stands in ``_facts_*.py``, each fact with what its difference means.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fslab.errors import UsageError, nearest
from fslab.machine import _facts_cpu, _facts_host, _facts_kernel, _facts_memory, differences
from fslab.machine.differences import Circumstances, Difference
from fslab.machine.fact import Fact, Weight, alike

DIGEST = "digest"
# Beginnings of the names of facts that no catalogue lists: of devices, of the cells of a study.
PARTS = ("device.", "tuning.", "parameters.", "medium.", "layout.")
IDENTITY = (
    "hostname", "kernel", "kernel_build", "architecture", "cpu", "cpus", "kernel_command_line", "memory_bytes",
)  # fmt: skip
CATALOGUE: dict[str, Fact] = {
    fact.name: fact
    for module in (_facts_host, _facts_kernel, _facts_cpu, _facts_memory)
    for fact in module.FACTS
}


def gather(root: Path = Path("/")) -> dict[str, Any]:
    """Facts as plain values by name, None where the machine does not say. Sizes in bytes.

    The same on a host and inside a guest, where much of it is None. ``digest`` stands for the whole set.
    """
    found: dict[str, Any] = {name: fact.read(root) for name, fact in CATALOGUE.items()}
    return {**found, DIGEST: digest(found)}


def digest(facts: Mapping[str, Any]) -> str:
    """Twelve hex digits of all decisive facts: equal where no such fact differs."""
    decisive = {
        name: canonical(fact, facts) for name, fact in CATALOGUE.items() if fact.weight is Weight.DECISIVE
    }
    return hashlib.blake2b(json.dumps(decisive, sort_keys=True).encode(), digest_size=6).hexdigest()


def canonical(fact: Fact, facts: Mapping[str, Any]) -> Any:
    """What is compared of a fact; None if it is unknown."""
    value = facts.get(fact.name)
    return None if value is None else fact.canonical(value)


def identity_changes(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """The facts that must not differ between trials of one campaign and do, each as ``name: then → now``."""
    found = []
    for name in IDENTITY:
        fact, values = CATALOGUE[name], (then.get(name), now.get(name))
        if (None in values and values != (None, None)) or not alike(fact, values):
            told = (canonical(fact, then), canonical(fact, now))
            found.append(f"{name}: {told[0]} → {told[1]}")
    return found


def differing(a: Circumstances, b: Circumstances) -> list[Difference]:
    """What differs between two sets of results, decisive facts first; see ``_differences``."""
    return differences.differences(list(CATALOGUE.values()), a, b)


def tuned_by() -> set[str]:
    """Settings of a study whose effect is a fact: a difference in them is told as the fact's."""
    return {fact.tuned_by for fact in CATALOGUE.values() if fact.tuned_by}


def check_names(names: Collection[str]) -> None:
    """UsageError for a name that is neither a fact nor a group of facts."""
    known = differences.names(CATALOGUE.values())
    for name in names:
        if name not in known and not name.startswith(PARTS):
            raise UsageError(
                f"'{name}' is neither a fact nor a group of facts",
                where="--differing",
                hint=nearest(name, known),
            )
