"""Reads a mapping with a pydantic model, key by key, and describes each mistake.

Each key is validated alone, so that a mistake in one key does not hide a mistake in another. A misspelt key is noted
and then read as the most similar known key. The meaning of a key for the study is not part of this module.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from fslab.errors import similar
from fslab.study.mistakes import Mistakes, brief, dotted, suggestion
from fslab.study.source import Node

Reader = Callable[[Node], Any]

NO_VALUE = " without a value: ',' begins a new key; write 1.5, or a list as [a, b]"
_LIMITS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_KINDS = {
    "int_": "a whole number",
    "float_": "a number",
    "bool_": "true or false",
    "string_type": "text",
    "dict_type": "a mapping",
    "tuple_type": "a list",
}


def keys_of(model: type[BaseModel], *, described: bool = False) -> dict[str, FieldInfo]:
    """Return the fields of a model by their key in the study file.

    ``described`` leaves out fields without a description (see ``model.py``).
    """
    return {
        field.alias or name: field
        for name, field in model.model_fields.items()
        if field.description is not None or not described
    }


def note(mistakes: Mistakes, node: Node, what: str, within: Node) -> None:
    """Note a mistake at ``node``, or at the ``extends`` key if ``node`` comes from an extended entry.

    ``within`` is the entry being read. A mistake already noted in the extended entry is not repeated.
    """
    if node.path[: len(within.path)] == within.path:
        mistakes.at(node, what)
    elif not any(known.path == node.path and known.what == what for known in mistakes.found):
        extends = within.at(("extends",))
        mistakes.at(extends, f"with {dotted(node.path)}: {what}")


def note_values(mistakes: Mistakes, axis: Node, found: Mapping[str, Collection[int]], within: Node) -> None:
    """Note mistakes in the values of a list: what is wrong → the indices of the values.

    What is wrong with all of several values is one mistake, which is noted at the list.
    """
    for what, indices in found.items():
        shared = 1 < len(axis.items) == len(set(indices))
        for node in [axis] if shared else [axis.items[index] for index in indices]:
            note(mistakes, node, what, within)


def known_fields(node: Node, known: Iterable[str], mistakes: Mistakes, within: Node) -> dict[str, Node]:
    """Return the entries of a mapping that have known keys; note a misspelt key and read it as the nearest one."""
    names = set(known)
    fields = {key: child for key, child in node.fields.items() if key in names}
    for key, child in node.fields.items():
        if key in names or mistakes.many:
            continue
        near = similar(key, names)
        # As in {size: 1,5g} and {filesystem: ext4, xfs}.
        comma = "" if near or child.content is not None else NO_VALUE
        note(mistakes, child, f"unknown key{comma or suggestion(key, names)}", within)
        if near is not None:
            fields.setdefault(near, child)
    return fields


def is_mapping(node: Node, what: str, mistakes: Mistakes) -> bool:
    """Return whether ``node`` is a mapping; note a mistake if it is not."""
    if isinstance(node.content, dict):
        return True
    if not mistakes.any_at(node.path):
        mistakes.at(node, f"is not {what} (a mapping of keys to values)")
    return False


def has_value(node: Node, mistakes: Mistakes, within: Node) -> bool:
    """Return whether the key has a value; note a mistake if it has none."""
    if node.content is not None:
        return True
    if not mistakes.any_at(node.path):
        note(mistakes, node, "has no value", within)
    return False


def read_keys(
    model: type[BaseModel],
    node: Node,
    fields: Mapping[str, Node],
    mistakes: Mistakes,
    readers: Mapping[str, Reader] | None = None,
) -> dict[str, Any]:
    """Return the valid values among ``fields`` by key; note invalid and missing ones.

    ``readers`` are the functions for keys that hold nested entries, not just a value of the field's type.
    """
    values: dict[str, Any] = {}
    for key, info in keys_of(model, described=True).items():
        if key not in fields:
            # If ``extends`` is wrong, that is why keys are missing.
            if info.is_required() and not mistakes.any_at((*node.path, "extends")):
                mistakes.at(node, f"'{key}' is missing ({info.description})")
            continue
        child = fields[key]
        if not has_value(child, mistakes, node):
            continue
        if readers and key in readers:
            values[key] = readers[key](child)
            continue
        values.update((key, value) for value in _valid(info, child, mistakes, node))
    return values


def _valid(info: FieldInfo, node: Node, mistakes: Mistakes, within: Node) -> Iterator[Any]:
    """Yield the value of a key; yield nothing, and note why, if it is invalid."""
    written = node.plain()
    try:
        value = adapter_of(info).validate_python(written)
    except ValidationError as error:
        for details in error.errors():
            note(mistakes, node.at(details["loc"]), describe(details), within)
    except UnicodeEncodeError:  # pydantic's Rust core takes only UTF-8
        note(mistakes, node, "is not UTF-8 text", within)
    else:
        if isinstance(written, bool) and type(value) in {int, float}:  # pydantic reads true as 1
            note(mistakes, node, f"{_shown(written)} is not a number", within)
        else:
            yield value


def adapter_of(info: FieldInfo) -> TypeAdapter[Any]:
    """Return the validator of one field: its type and constraints, without its default and alias."""
    annotation: Any = info.annotation
    return TypeAdapter(Annotated[(annotation, *info.metadata)] if info.metadata else annotation)


def describe(error: ErrorDetails) -> str:
    """Return an error of pydantic in plain words."""
    kind, context = error["type"], error.get("ctx", {})
    shown = _shown(error["input"])
    key, words = _LIMITS.get(kind, ("", ""))
    wanted = next((name for prefix, name in _KINDS.items() if kind.startswith(prefix)), None)
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "unknown key"
    if key in context:
        return f"must be {words} {context[key]}, not {shown}"
    if wanted:
        return f"{shown} is not {wanted}"
    if kind in {"enum", "literal_error"}:
        known = [word.strip("'") for word in re.split(r", | or ", str(context["expected"]))]
        near = similar(str(error["input"]), known)
        meant = "write it without quotes" if near == error["input"] else f"did you mean '{near}'?"
        return f"{shown} is not one of {', '.join(known)}" + (f" — {meant}" if near else "")
    # Messages of fslab's validators contain the invalid value; those of pydantic do not.
    ours = kind in {"value_error", "assertion_error"}
    said = brief(str(context.get("error", error["msg"]))).replace("Input should be", "should be")
    return said if ours else f"{said}, got {shown}"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
