"""Reads the keys that a registered entry declares: those of a medium, a layout or a tool.

The entry's model validates every combination of their values, so a loaded study contains no combination that the entry
rejects. Combinations are expanded only for this check. Runs nothing and opens no device.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fslab.cell import Scalar
from fslab.errors import FslabError, similar
from fslab.registry import Registry
from fslab.storage.layouts import Layout
from fslab.storage.media import Medium
from fslab.study.fields import describe, has_value, keys_of, known_fields, note, note_values
from fslab.study.matrix import Point, count, points, values_at
from fslab.study.mistakes import Mistakes, brief, suggestion
from fslab.study.source import Node
from fslab.units import parse_size
from fslab.workloads import Workload

MAX_COMBINATIONS = 10_000
E = TypeVar("E", Medium[Any], Layout[Any], Workload[Any])


def entry_of(registry: Registry[E], key: str, node: Node, mistakes: Mistakes) -> E | None:
    """Return the registered entry that ``node`` names under ``key`` (``type`` or ``tool``), or None.

    An unknown name is noted. A missing key is not: ``read_keys`` notes it.
    """
    near = similar(key, [name for name in node.fields if name != "extends"])
    named = node.fields.get(key) or (node.fields[near] if near else None)
    if named is None or not isinstance(named.content, str):
        return None
    if named.content not in registry.names():
        known = registry.names()
        what = f"no {registry.kind} '{named.content}'{suggestion(named.content, known)}"
        if registry.otherwise and not similar(named.content, known):
            what += f"; {registry.otherwise}"
        note(mistakes, named, what, node)
        return None
    return registry.get(named.content)


def fields_for(
    node: Node, own: set[str], model: type[BaseModel] | None, mistakes: Mistakes
) -> dict[str, Node]:
    """Return the fields of ``node`` that have known keys: the ``own`` keys and those of the entry's model.

    All fields are returned if there is no model (its name is wrong), or if the model accepts any key and checks it
    itself.
    """
    if model is None or model.model_config.get("extra") == "allow":
        return dict(node.fields)
    reasons = getattr(model, "without", {})
    for key in reasons.keys() & node.fields.keys():
        note(mistakes, node.fields[key], f"{reasons[key]}: remove '{key}'", node)
    kept = {key: child for key, child in node.fields.items() if key not in reasons}
    left = Node(content=kept, place=node.place, path=node.path)
    return known_fields(left, own | set(keys_of(model, described=True)), mistakes, node)


def read_axes(fields: Mapping[str, Node], own: set[str], mistakes: Mistakes, within: Node) -> dict[str, Node]:
    """Return the fields of the entry that hold a value or a list of values; note the others."""
    return {
        key: child
        for key, child in fields.items()
        if key not in own and has_value(child, mistakes, within) and _is_axis(child, mistakes, within)
    }


def _is_axis(node: Node, mistakes: Mistakes, within: Node) -> bool:
    if isinstance(node.content, dict):
        note(mistakes, node, "is a mapping, but takes a value or a list of values", within)
        return False
    if not node.items:
        note(mistakes, node, "the list is empty", within)
        return False
    wrong = [item for item in node.items if item is not node and isinstance(item.content, dict | list | None)]
    for item in wrong:
        if not mistakes.any_at(item.path):
            note(mistakes, item, "is not a single value", within)
    return not wrong


def scalars(axes: Mapping[str, Node]) -> dict[str, tuple[Scalar, ...]]:
    """Return the values of each axis."""
    return {
        key: tuple(item.content for item in node.items if isinstance(item.content, Scalar))
        for key, node in axes.items()
    }


def check_points(
    parse: Callable[[Mapping[str, Scalar]], BaseModel],
    axes: Mapping[str, Node],
    mistakes: Mistakes,
    within: Node,
) -> bool:
    """Return whether the entry's model accepts every combination; note rejected and duplicate combinations."""
    values = scalars(axes)
    if count(values) > MAX_COMBINATIONS:
        what = f"the lists make {count(values)} combinations; at most {MAX_COMBINATIONS} are allowed: shorten them"
        note(mistakes, within, what, within)
        return False
    searches = sum(map(is_pattern, values))
    if count(values) * searches > MAX_COMBINATIONS:
        what = f"{count(values)} combinations with {searches} patterns are more than {MAX_COMBINATIONS}: "
        note(mistakes, within, f"{what}declare fewer metrics, or shorten the lists", within)
        return False
    taken, seen = True, dict[object, Point]()
    refused: dict[str | None, dict[str, dict[int, None]]] = defaultdict(lambda: defaultdict(dict))
    for point in points(values):
        written = values_at(values, point)
        try:
            parsed = parse(written).model_dump_json()
        except ValidationError as error:
            taken = False
            for details in error.errors():
                key, what = _refusal(details, axes)
                refused[key][what][0 if key is None else point[key]] = None
        except FslabError as error:
            taken = False
            mistakes.at(within, brief(error.what))
        else:
            same = seen.get(parsed) or seen.get(_sizes(written))
            if same is not None:
                _note_twice(axes, same, point, mistakes, within)
            seen.update({parsed: point, _sizes(written): point} if same is None else {})
    for key, found in refused.items():
        note_values(mistakes, within if key is None else axes[key], found, within)
    return taken


def _sizes(values: Mapping[str, Scalar]) -> tuple[Scalar, ...]:
    """Return the values with sizes in bytes: 64k and 65536 are equal, also if a model keeps sizes as written."""
    return tuple(_size(value) for value in values.values())


def _size(value: Scalar) -> Scalar:
    try:
        return value if isinstance(value, bool) else parse_size(str(value))
    except ValueError:
        return value


def _refusal(details: ErrorDetails, axes: Mapping[str, Node]) -> tuple[str | None, str]:
    """Return the axis that a mistake of a combination is shown at (None: the entry), and what is wrong."""
    key = str(details["loc"][0]) if details["loc"] else None
    what = describe(details)
    if key is not None and key not in axes:
        return None, f"'{key}' is missing" if what == "is missing" else f"{key}: {what}"
    # A mistake of several keys is shown at the first one that the message names in quotes.
    return key or next((name for name in axes if f"'{name}'" in what), None), what


def _note_twice(
    axes: Mapping[str, Node], first: Point, second: Point, mistakes: Mistakes, within: Node
) -> None:
    key = next(key for key in axes if first[key] != second[key])
    one, other = (axes[key].items[point[key]] for point in (first, second))
    note(mistakes, other, f"'{other.plain()}' means the same as '{one.plain()}'", within)


MOST_CHARACTERS = 20_000  # of all different patterns of a study: they are compiled in a quarter of a second
_KEY = "pattern"


def is_pattern(key: str) -> bool:
    """Return whether a key of a workload, such as ``metrics.rate.pattern``, holds a pattern."""
    return key.rpartition(".")[2] == _KEY


def check_patterns(root: Node, mistakes: Mistakes) -> bool:
    """Return whether the patterns of a study are few enough to be compiled; note it if not."""
    found = {"workloads": _of_workloads, "claims": _of_claims}
    characters = sum(
        map(len, {text for key in found if key in root.fields for text in found[key](root.fields[key])})
    )
    if characters <= MOST_CHARACTERS:
        return True
    what = f"the patterns (metrics, claims) have {characters:,} characters; at most {MOST_CHARACTERS:,} are allowed"
    mistakes.at(root, f"{what}: shorten them, or make several studies")
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
