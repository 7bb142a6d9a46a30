"""Limits the patterns of a study: regular expressions and names with ``*``. They take long to compile."""

from collections.abc import Iterator

from fslab.study.mistakes import Mistakes
from fslab.study.source import Node

MOST_CHARACTERS = 20_000  # of all different patterns of a study: they are compiled in a quarter of a second
_KEY = "pattern"


def is_pattern(key: str) -> bool:
    """Return whether a key of a workload, such as ``metrics.rate.pattern``, holds a pattern."""
    return key.rpartition(".")[2] == _KEY


def check(root: Node, mistakes: Mistakes) -> bool:
    """Return whether the patterns of a study are few enough to be compiled; note it if not."""
    found = {"workloads": _of_workloads, "claims": _of_claims}
    characters = sum(
        map(len, {text for key in found if key in root.fields for text in found[key](root.fields[key])})
    )
    if characters <= MOST_CHARACTERS:
        return True
    what = f"the patterns (metrics, claims) have {characters:,} characters; at most {MOST_CHARACTERS:,} are allowed"
    mistakes.add(root.place, (), f"{what}: shorten them, or make several studies")
    return False


def _of_workloads(node: Node) -> Iterator[str]:
    for key, child in node.fields.items():
        if is_pattern(key):
            yield from (str(item.content) for item in child.items if not isinstance(item.content, dict))
        yield from _of_workloads(child)


def _of_claims(claims: Node) -> Iterator[str]:
    for claim in claims.items:
        said = [claim.fields[key] for key in ("on", "that") if key in claim.fields]
        texts = [str(item.content) for node in said for item in node.items]
        yield from (text for text in texts if "*" in text or "?" in text)
