"""The types of values of a study file: how each is read, and its JSON Schema. Pure."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from fslab.cell import Geometry, Scalar, as_written
from fslab.claims.schema import several
from fslab.machine import tunables
from fslab.units import DURATION_SCHEMA, parse_duration, some_time

SHORTEST_SLICE_S, LONGEST_SLICE_S = 0.01, 60.0


def _slices(value: object) -> str:
    text = as_written(value)
    if text in ("auto", "off", "False"):  # YAML reads off as false
        return "off" if text == "False" else text
    if not SHORTEST_SLICE_S <= parse_duration(some_time(text)) <= LONGEST_SLICE_S:
        raise ValueError(f"'{text}' must be from {SHORTEST_SLICE_S * 1000:g}ms to {LONGEST_SLICE_S:g}s")
    return text


def _tuning(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("is not a mapping such as {vm.dirty_bytes: 67108864}")  # noqa: TRY004 - for pydantic
    return {key: as_written(item) for key, item in value.items()}


def _tunings(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("is not a mapping such as {io_scheduler: [none, bfq]}")  # noqa: TRY004 - for pydantic
    listed = {key: item if isinstance(item, list | tuple) else [item] for key, item in value.items()}
    if empty := [key for key, items in listed.items() if not items]:
        raise ValueError(f"'{empty[0]}' has no value")
    return {key: tuple(map(as_written, items)) for key, items in listed.items()}


_SETTING = {"type": ["string", "number", "boolean"]}
_SETTINGS = {"anyOf": [_SETTING, {"type": "array", "items": _SETTING, "minItems": 1}]}

Duration = Annotated[float, BeforeValidator(lambda value: parse_duration(some_time(value))), DURATION_SCHEMA]
Slices = Annotated[
    str,
    BeforeValidator(_slices),
    WithJsonSchema({"title": "`off`, `auto` or duration", "type": ["string", "number", "boolean"]}),
]
OwnScale = Annotated[
    float | None,
    Field(gt=0, le=1000, allow_inf_nan=False),
    WithJsonSchema({"title": "number", "type": "number"}),
]
Values = Annotated[tuple[Scalar, ...], BeforeValidator(several)]
_GEOMETRY = {"enum": [geometry.value for geometry in Geometry]}
Geometries = Annotated[
    tuple[Geometry, ...],
    BeforeValidator(several),
    WithJsonSchema({"anyOf": [_GEOMETRY, {"type": "array", "items": _GEOMETRY, "minItems": 1}]}),
]


def _tunables(setting: dict[str, Any]) -> WithJsonSchema:
    properties = dict.fromkeys(tunables.NAMES, setting)
    return WithJsonSchema(
        {"title": "mapping", "type": "object", "properties": properties, "additionalProperties": False}
    )


Tuning = Annotated[dict[str, str], BeforeValidator(_tuning), _tunables(_SETTING)]
StackTuning = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_tunings), _tunables(_SETTINGS)]
