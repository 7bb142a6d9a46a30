"""Facts of this machine that figures depend on, as a set that is stored with the figures. Only reads.

The facts are declared in ``_kernel_facts.py`` and ``_host_facts.py``, each with the meaning of a difference.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fslab.errors import UsageError, nearest
from fslab.machine import _host_facts, _kernel_facts, differences
from fslab.machine.differences import Circumstances, Difference
from fslab.machine.fact import Fact, Weight, alike

DIGEST = "digest"
# Prefixes of names that are not in the catalogue: facts of devices, parameters of a study's cells.
PARTS = ("device.", "tuning.", "parameters.", "medium.", "layout.")
IDENTITY = (
    "hostname", "kernel", "kernel_build", "architecture", "cpu", "cpus", "kernel_command_line", "memory_bytes",
)  # fmt: skip
CATALOGUE: dict[str, Fact] = {
    fact.name: fact for module in (_host_facts, _kernel_facts) for fact in module.FACTS
}


def gather(root: Path = Path("/")) -> dict[str, Any]:
    """Return all facts as plain values by name, None for an unknown one. Sizes are in bytes.

    The names are the same on a host and inside a guest, where many are None. ``digest`` covers the decisive facts.
    """
    found: dict[str, Any] = {name: fact.read(root) for name, fact in CATALOGUE.items()}
    return {**found, DIGEST: digest(found)}


def digest(facts: Mapping[str, Any]) -> str:
    """Return a hash of all decisive facts, 12 hex digits: equal if no decisive fact differs."""
    decisive = {
        name: canonical(fact, facts) for name, fact in CATALOGUE.items() if fact.weight is Weight.DECISIVE
    }
    return hashlib.blake2b(json.dumps(decisive, sort_keys=True).encode(), digest_size=6).hexdigest()


def canonical(fact: Fact, facts: Mapping[str, Any]) -> Any:
    """Return the part of a fact's value that is compared, or None if the fact is unknown."""
    value = facts.get(fact.name)
    return None if value is None else fact.canonical(value)


def identity_changes(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """Return the facts that differ but must be equal in all trials of a campaign, each as ``name: then → now``."""
    found = []
    for name in IDENTITY:
        fact, values = CATALOGUE[name], (then.get(name), now.get(name))
        if (None in values and values != (None, None)) or not alike(fact, values):
            told = (canonical(fact, then), canonical(fact, now))
            found.append(f"{name}: {told[0]} → {told[1]}")
    return found


def differing(a: Circumstances, b: Circumstances) -> list[Difference]:
    """Return what differs between two sets of results, decisive facts first; see ``differences``."""
    return differences.differences(list(CATALOGUE.values()), a, b)


def tuned_by() -> set[str]:
    """Return the settings of a study that replace a fact. A difference in them is reported as one of the fact."""
    return {fact.tuned_by for fact in CATALOGUE.values() if fact.tuned_by}


def check_names(names: Collection[str]) -> None:
    """Raise UsageError for a name that is neither a fact nor a group of facts."""
    known = differences.names(CATALOGUE.values())
    for name in names:
        if name not in known and not name.startswith(PARTS):
            raise UsageError(
                f"'{name}' is neither a fact nor a group of facts",
                where="--differing",
                hint=nearest(name, known),
            )
