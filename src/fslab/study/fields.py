"""Reads the keys of one mapping against a pydantic model, key by key, and words what is wrong.

Key by key, so that a mistake in one key hides no mistake in another; a misspelt key is noted and then read
as the one that was meant. Knows the models' fields, not what the keys mean to a study.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from fslab.study.mistakes import Mistakes, brief, dotted, meant, suggestion
from fslab.study.source import Node

Reader = Callable[[Node], Any]

_LIMITS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_KINDS = {"int_": "a whole number", "float_": "a number", "bool_": "true or false", "string_type": "text"}


def keys_of(model: type[BaseModel], *, described: bool = False) -> dict[str, FieldInfo]:
    """The keys that a mapping of this model may have, as written in the file, with their fields.

    ``described`` leaves out fields without a description (see ``model.py``).
    """
    return {
        field.alias or name: field
        for name, field in model.model_fields.items()
        if field.description is not None or not described
    }


def note(mistakes: Mistakes, node: Node, what: str, within: Node) -> None:
    """Note a mistake at ``node``; one that came in by ``extends`` is shown where that is written.

    ``within`` is the entry being read. What is wrong in the extended entry already is not said again.
    """
    if node.path[: len(within.path)] == within.path:
        mistakes.add(node.place, node.path, what)
    elif not any(known.path == node.path and known.what == what for known in mistakes.found):
        extends = within.at(("extends",))
        mistakes.add(extends.place, extends.path, f"with {dotted(node.path)}: {what}")


def known_fields(node: Node, known: Iterable[str], mistakes: Mistakes, within: Node) -> dict[str, Node]:
    """The entries of a mapping under known keys; a misspelt key is noted and stands for the nearest one."""
    names = set(known)
    fields = {key: child for key, child in node.fields.items() if key in names}
    for key, child in node.fields.items():
        if key in names or mistakes.many:
            continue
        note(mistakes, child, f"unknown key{suggestion(key, names)}", within)
        near = meant(key, names)
        if near is not None:
            fields.setdefault(near, child)
    return fields


def is_mapping(node: Node, what: str, mistakes: Mistakes) -> bool:
    """Whether ``node`` is a mapping; noted if it is not."""
    if isinstance(node.content, dict):
        return True
    if not mistakes.any_at(node.path):
        mistakes.add(node.place, node.path, f"is not {what} (a mapping of keys to values)")
    return False


def has_value(node: Node, mistakes: Mistakes, within: Node) -> bool:
    """Whether something was written after the key; noted if not."""
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
    """The right values among ``fields`` by key; wrong and missing ones are noted.

    ``readers`` read the keys that are more than a value of the model's type.
    """
    values: dict[str, Any] = {}
    for key, info in keys_of(model, described=True).items():
        if key not in fields:
            if info.is_required():
                _note_missing(key, info, node, mistakes)
            continue
        child = fields[key]
        if not has_value(child, mistakes, node):
            continue
        if readers and key in readers:
            values[key] = readers[key](child)
            continue
        try:
            values[key] = adapter_of(info).validate_python(child.plain())
        except ValidationError as error:
            for details in error.errors():
                note(mistakes, child.at(details["loc"]), describe(details), node)
        except UnicodeEncodeError:  # pydantic hands texts to Rust
            note(mistakes, child, "is not UTF-8 text", node)
    return values


def _note_missing(key: str, info: FieldInfo, node: Node, mistakes: Mistakes) -> None:
    # A wrong ``extends`` is why the rest is not there.
    if not mistakes.any_at((*node.path, "extends")):
        mistakes.add(node.place, node.path, f"'{key}' is missing ({info.description})")


def adapter_of(info: FieldInfo) -> TypeAdapter[Any]:
    """The validator of one field alone: its type and constraints, not its default or alias."""
    annotation: Any = info.annotation
    return TypeAdapter(Annotated[(annotation, *info.metadata)] if info.metadata else annotation)


def describe(error: ErrorDetails) -> str:
    """One of pydantic's errors as a person would say it."""
    kind, context = error["type"], error.get("ctx", {})
    shown = _shown(error["input"])
    key, words = _LIMITS.get(kind, ("", ""))
    wanted = next((name for prefix, name in _KINDS.items() if kind.startswith(prefix)), None)
    if kind == "missing":
        return "is missing"
    if key in context:
        return f"must be {words} {context[key]}, not {shown}"
    if wanted:
        return f"{shown} is not {wanted}"
    if kind in {"enum", "literal_error"}:
        known = re.findall(r"'([^']*)'", str(context["expected"]))
        return f"{shown} is not one of {', '.join(known)}{_near(error['input'], known)}"
    # A message made by a validator of ours says what it got; pydantic's own do not.
    ours = kind in {"value_error", "assertion_error"}
    return _plainly(str(context.get("error", error["msg"]))) + ("" if ours else f", got {shown}")


def _plainly(message: str) -> str:
    return brief(message).replace("Input should be", "should be")


def _near(value: object, known: list[str]) -> str:
    near = meant(str(value), known)
    return f" — did you mean '{near}'?" if near else ""


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
