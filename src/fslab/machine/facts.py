"""Facts of this machine that a figure depends on, as a set that is stored with it. Reads only.

What there is to know stands in ``facts_*.py``, each fact with what its difference means.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fslab.machine import facts_cpu, facts_host, facts_kernel, facts_memory
from fslab.machine.fact import Fact, Weight

DIGEST = "digest"
CATALOGUE: dict[str, Fact] = {
    fact.name: fact for module in (facts_host, facts_kernel, facts_cpu, facts_memory) for fact in module.FACTS
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


def identity(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that must not differ between trials of one campaign.

    Memory in whole GiB: what the firmware takes may change a little from boot to boot.
    """
    names = ("hostname", "kernel", "kernel_build", "architecture", "cpu", "cpus", "kernel_command_line")
    memory = facts.get("memory_bytes")
    return {
        **{name: facts.get(name) for name in names},
        "memory_gib": round(memory / (1 << 30)) if memory is not None else None,
    }
