"""Groups of options: a parameter whose type is a group is one option for each of the group's fields.

A group is a dataclass whose fields are annotated as the parameters of a command are, or a model, whose descriptions are
the help texts, and whose fields without a default are arguments.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

import typer

from fslab.errors import UsageError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command as typer sees it, with the fields of its groups as parameters."""
    hints = get_type_hints(command, include_extras=True)
    shown, groups = list[inspect.Parameter](), dict[str, list[str]]()
    for name, parameter in inspect.signature(command).parameters.items():
        fields = list(_parameters(hints[name]))
        if fields:
            groups[name] = [field.name for field in fields]
        shown += fields or [_parameter(name, hints[name], parameter.default)]

    def called(**given: Any) -> None:
        for name, fields in groups.items():
            given[name] = _made(hints[name], {field: given.pop(field) for field in fields})
        command(**given)

    called.__doc__ = command.__doc__
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    vars(called)["__signature__"] = inspect.Signature(shown)
    return called


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _parameters(group: Any) -> Iterator[inspect.Parameter]:
    if dataclasses.is_dataclass(group):
        hints = get_type_hints(group, include_extras=True)
        for each in dataclasses.fields(group):
            yield _parameter(each.name, hints[each.name], each.default)
        return
    for name, field in getattr(group, "model_fields", {}).items():
        if get_origin(field.annotation) is not Literal:  # says which model it is
            yield _of_model(name, field)


def _of_model(name: str, field: FieldInfo) -> inspect.Parameter:
    description = str(field.description)
    text = f"{description[0].upper()}{description[1:]}."
    if field.is_required():
        return _parameter(
            name, Annotated[field.annotation, typer.Argument(help=text)], inspect.Parameter.empty
        )
    limits = {
        key: getattr(each, key) for each in field.metadata for key in ("ge", "le") if hasattr(each, key)
    }
    option = typer.Option(help=text, min=limits.get("ge"), max=limits.get("le"))
    several = get_origin(field.annotation) is tuple
    kind, default = (list[str] | None, None) if several else (field.annotation, field.default)
    return _parameter(name, Annotated[kind, option], default)


def _made(group: Any, values: dict[str, Any]) -> Any:
    """Return the group. UsageError for values that its model refuses, with the option."""
    if dataclasses.is_dataclass(group):
        return group(**values)  # type: ignore[operator]
    from pydantic import ValidationError

    try:
        return group.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        found = error.errors()[0]
        where = "".join(f"--{found['loc'][0]}" for _ in found["loc"][:1])
        raise UsageError(found["msg"].removeprefix("Value error, "), where=where or None) from error
