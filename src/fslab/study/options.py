"""Reads keys whose meaning a registered entry declares: those of a medium, a layout or a tool.

Every combination of their values is put to the entry's own model, so a study that loads has none that the
entry refuses. Expands only to check; nothing is run and no device is looked at.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fslab.cell import Scalar
from fslab.errors import FslabError
from fslab.registry import Registry
from fslab.storage.layouts import Layout
from fslab.storage.media import Medium
from fslab.study.fields import describe, has_value, keys_of, known_fields, note
from fslab.study.matrix import Point, count, points, values_at
from fslab.study.mistakes import Mistakes, brief, meant, suggestion
from fslab.study.source import Node
from fslab.units import parse_size
from fslab.workloads import Workload

MAX_COMBINATIONS = 10_000

E = TypeVar("E", Medium[Any], Layout[Any], Workload[Any])


def entry_of(registry: Registry[E], key: str, node: Node, mistakes: Mistakes) -> E | None:
    """The registered entry that ``node`` names under ``key`` (``type`` or ``tool``); None, noted, if none.

    A missing key is left to whoever reads the mapping's keys.
    """
    near = meant(key, [name for name in node.fields if name != "extends"])
    named = node.fields.get(key) or (node.fields[near] if near else None)
    if named is None or not isinstance(named.content, str):
        return None
    if named.content not in registry.names():
        what = f"no {registry.kind} '{named.content}'{suggestion(named.content, registry.names())}"
        note(mistakes, named, what, node)
        return None
    return registry.get(named.content)


def fields_for(
    node: Node, own: set[str], model: type[BaseModel] | None, mistakes: Mistakes
) -> dict[str, Node]:
    """The fields of ``node`` under known keys: ``own`` ones and those of the entry's model.

    Without a model (its name is wrong) and for a model that takes any key and judges it itself, other keys
    are passed on as they are.
    """
    if model is None or model.model_config.get("extra") == "allow":
        return dict(node.fields)
    reasons = getattr(model, "without", {})
    for key in reasons.keys() & node.fields.keys():
        note(mistakes, node.fields[key], reasons[key], node)
    kept = {key: child for key, child in node.fields.items() if key not in reasons}
    left = Node(content=kept, place=node.place, path=node.path)
    return known_fields(left, own | set(keys_of(model, described=True)), mistakes, node)


def read_axes(fields: Mapping[str, Node], own: set[str], mistakes: Mistakes, within: Node) -> dict[str, Node]:
    """The fields that belong to the entry and hold a value or a list of values; others are noted."""
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
        note(mistakes, item, "is not a single value", within)
    return not wrong


def scalars(axes: Mapping[str, Node]) -> dict[str, tuple[Scalar, ...]]:
    """The values of each axis."""
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
    """Whether the entry's model takes every combination; what it refuses or what comes out twice is noted."""
    values = scalars(axes)
    if count(values) > MAX_COMBINATIONS:
        what = f"the lists make {count(values)} combinations; at most {MAX_COMBINATIONS} are allowed: shorten them"
        note(mistakes, within, what, within)
        return False
    taken, seen = True, dict[object, Point]()
    for point in points(values):
        written = values_at(values, point)
        try:
            parsed = parse(written).model_dump_json()
        except ValidationError as error:
            taken = False
            for details in error.errors():
                _note_refusal(details, axes, point, mistakes, within)
        except FslabError as error:
            taken = False
            mistakes.add(within.place, within.path, brief(error.what))
        else:
            same = seen.get(parsed) or seen.get(_sizes(written))
            if same is not None:
                _note_twice(axes, same, point, mistakes, within)
            seen.update({parsed: point, _sizes(written): point} if same is None else {})
    return taken


def _sizes(values: Mapping[str, Scalar]) -> tuple[Scalar, ...]:
    """The values with 64k and 65536 made the same: models that keep sizes as written tell them apart."""
    return tuple(_size(value) for value in values.values())


def _size(value: Scalar) -> Scalar:
    try:
        return value if isinstance(value, bool) else parse_size(str(value))
    except ValueError:
        return value


def _note_refusal(
    details: ErrorDetails, axes: Mapping[str, Node], point: Point, mistakes: Mistakes, within: Node
) -> None:
    key = str(details["loc"][0]) if details["loc"] else None
    what = describe(details)
    if key is not None and key not in axes:
        missing = what == "is missing"
        note(mistakes, within, f"'{key}' is missing" if missing else f"{key}: {what}", within)
        return
    if key is None:  # about several keys: shown at the first one that the message names in quotes
        key = next((name for name in axes if f"'{name}'" in what), None)
    node = axes[key].items[point[key]] if key is not None else within
    note(mistakes, node, what, within)


def _note_twice(
    axes: Mapping[str, Node], first: Point, second: Point, mistakes: Mistakes, within: Node
) -> None:
    key = next(key for key in axes if first[key] != second[key])
    one, other = (axes[key].items[point[key]] for point in (first, second))
    note(mistakes, other, f"'{other.plain()}' means the same as '{one.plain()}'", within)
