"""The options of commands: their parameters, described in their docstrings.

Positional parameters are arguments, the others options. A docstring lists them below ``Parameters:``, an entry each:
``name --flag METAVAR: help``, the flag only if it is not that of the name. What follows from a paragraph that begins
with ``Example`` on is shown below the options.

A parameter whose type is a group is one option for each of the group's fields. A group is a dataclass, described alike,
or a model, whose descriptions are the help texts, and whose fields without a default are arguments.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

from fslab.cli import completion
from fslab.errors import UsageError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

Command = Callable[..., None]
_HEADING = "\n\nParameters:\n"
_BELOW = re.compile(r"\n\n(?=Example)")
ENTRY = re.compile(r"(?P<name>\w+)(?P<flags>(?: --?[a-z][a-z-]*)*)(?: (?P<metavar>\S+?))?: (?P<help>.+)")
_VALUES = {"int": "N", "float": "NUMBER", "path": "PATH", "str": "TEXT", "list[str]": "TEXT"}
_Entries = Mapping[str, re.Match[str]]


class _Argument(TyperArgument):
    """An argument that help shows as man pages do: ``STUDY``, ``[CAMPAIGN]...``, and not ``{study} <str>``."""

    @property
    def display_name_raw(self) -> str:
        return self.metavar or self.name.upper()

    def display_type_rich(self, ctx: Any) -> None:  # noqa: ARG002
        return None

    def get_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        name = self.display_name_raw
        return [(name if self.required else f"[{name}]") + "..." * (self.nargs != 1)]


class _Option(TyperOption):
    """An option whose value help shows as man pages do: ``N``, and not ``<int range>``."""

    def display_type(self, ctx: Any) -> str:
        kind = super().display_type(ctx).strip("<>")
        return _VALUES.get(kind.removesuffix(" range"), kind)


class _Command(TyperCommand):
    def __init__(self, name: str | None, *, params: list[Any] | None = None, **more: Any) -> None:
        for each in params or ():  # typer makes them itself
            if isinstance(each, TyperArgument):
                each.__class__ = _Argument
            elif isinstance(each, TyperOption):
                each.__class__ = _Option
        super().__init__(name, params=params, **more)


class App(typer.Typer):
    """A Typer whose commands are described in their docstrings."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Return what registers a function as a command."""
        register = super().command
        return lambda command: register(name, cls=_Command, epilog=_epilog(command), **options)(
            described(command)
        )

    def add(self, *commands: tuple[str, str, Command]) -> None:
        """Register commands: the name of each, what it does in a few words, and the function."""
        for name, about, command in commands:
            self.command(name, short_help=about)(command)


def described(command: Command) -> Command:
    """Return the command as typer sees it, with the fields of its groups as parameters."""
    hints = get_type_hints(command, include_extras=True)
    text, entries = _read(command)
    shown, groups = list[inspect.Parameter](), dict[str, list[str]]()
    for name, parameter in inspect.signature(command).parameters.items():
        fields = list(_parameters(hints[name]))
        if fields:
            groups[name] = [field.name for field in fields]
        is_option = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        kind = _typed(name, hints[name], entries, is_option=is_option)
        shown += fields or [_parameter(name, kind, parameter.default)]

    def called(**given: Any) -> None:
        for name, fields in groups.items():
            given[name] = _made(hints[name], {field: given.pop(field) for field in fields})
        command(**given)

    called.__name__, called.__doc__ = command.__name__, text
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    vars(called)["__signature__"] = inspect.Signature(shown)
    return called


def listed(about: Any) -> tuple[str, list[str]]:
    """Return a docstring without its list of parameters, and the entries of this list, each on one line."""
    text, _, entries = _BELOW.split(inspect.cleandoc(about.__doc__ or ""))[0].partition(_HEADING)
    found = re.split(r"\n(?=    \S)", entries) if entries else []
    return text, [" ".join(entry.split()) for entry in found]


def _epilog(about: Any) -> str | None:
    """Return the examples and exit codes of a docstring; what is indented keeps its lines."""
    _, *below = _BELOW.split(inspect.cleandoc(about.__doc__ or ""), maxsplit=1)
    paragraphs = (each.replace("\n    ", "\n  ") for text in below for each in text.split("\n\n"))
    return "\n\n".join("\b\n" * ("\n  " in each) + each for each in paragraphs) or None


def _read(about: Any) -> tuple[str, _Entries]:
    """Return a docstring without its list, and the list's entries by name. What is no entry has no effect: a test finds
    it, and the program runs."""
    text, found = listed(about)
    return text, {match["name"]: match for entry in found if (match := ENTRY.fullmatch(entry))}


def _typed(name: str, kind: Any, entries: _Entries, *, is_option: bool) -> Any:
    """Return the annotation of a parameter, with what its entry says."""
    limits = [each for each in get_args(kind) if isinstance(each, typer.models.ParameterInfo)]
    if name not in entries and not limits:
        return kind
    info = copy.copy(limits[0]) if limits else typer.Option() if is_option else typer.Argument()
    if name in entries:
        entry = entries[name]
        if is_option:
            info.param_decls = entry["flags"].split() or [f"--{name.replace('_', '-')}"]
        info.help, info.metavar = entry["help"], entry["metavar"]
    info.autocompletion = completion.of(info.metavar or name.upper())
    return Annotated[get_args(kind)[0] if limits else kind, info]


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _parameters(group: Any) -> Iterator[inspect.Parameter]:
    if dataclasses.is_dataclass(group):
        hints, (_, entries) = get_type_hints(group, include_extras=True), _read(group)
        for each in dataclasses.fields(group):
            kind = _typed(each.name, hints[each.name], entries, is_option=True)
            yield _parameter(each.name, kind, each.default)
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

    from fslab.study.fields import describe

    try:
        return group.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        found = error.errors()[0]
        where = "".join(f"--{found['loc'][0]}" for _ in found["loc"][:1])
        raise UsageError(describe(found), where=where or None) from error
