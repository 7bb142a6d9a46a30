"""What a claim requires of the cells that decide it, as the study writes it: ``wait >= 0.5``. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fslab.claims.requirements import REGISTRY
from fslab.errors import UsageError

NONE = "none"
_WRITTEN = re.compile(
    r"(?P<name>[a-z][a-z-]*)(?:\s*(?P<op>>=|<=)\s*(?P<number>\d+(?:\.\d+)?)(?P<percent>\s*%)?)?"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """A requirement as a claim writes it. ``limit``, ``at_least``: None for those of the rule."""

    name: str
    limit: float | None = None
    at_least: bool | None = None


def demand(text: str) -> Demand:
    """Read one requirement. Raises ValueError with what is wrong: its form, its name or its sense."""
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a requirement: write a name, or a name and a limit: wait >= 0.5")
    try:
        rule = REGISTRY.get(match["name"])
    except UsageError as error:
        raise ValueError(f"{error.what} — {error.hint}") from error
    if match["op"] is None:
        return Demand(name=rule.name)
    at_least = match["op"] == ">="
    if at_least is not rule.at_least and not rule.either:
        raise ValueError(f"'{rule.name}' takes '{'>=' if rule.at_least else '<='}', not '{match['op']}'")
    limit = float(match["number"]) / (100 if match["percent"] else 1)
    return Demand(name=rule.name, limit=limit, at_least=at_least)


def demands(requires: Sequence[str]) -> tuple[Demand, ...]:
    """Return the requirements that a claim states, without the word ``none``."""
    return tuple(demand(text) for text in requires if text != NONE)
