"""Generates the JSON Schema of study files from models and registries, for completion and checks in editors.

The schema checks less than loading does: it does not contain references, combinations and mount options.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fslab.claims.schema import Claim, Published
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.study.fields import adapter_of, keys_of
from fslab.study.model import NAME, StudyFile, StudyLayout, StudyMedium, StudyStack, StudyWorkload
from fslab.workloads import REGISTRY as WORKLOADS
from fslab.workloads import Parameters

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
NOT_WANTED = {"$defs", "default", "description", "title"}
ANY_VALUE: Schema = {"type": ["string", "number", "boolean"]}
_WORDS: Schema = {"type": "array", "items": ANY_VALUE, "minItems": 1}
COMMAND: Schema = {"anyOf": [{"type": "string"}, _WORDS, {"type": "array", "items": _WORDS, "minItems": 1}]}
# YAML reads 4096 and 1 as integers: they are accepted where a text or a boolean is expected.
LENIENT = {
    "string": ["string", "number"],
    "boolean": ["boolean", "integer"],
    "integer": ["integer", "string"],
}


def schema() -> Schema:
    """Return the whole schema; its ``$defs`` are ``media``, ``layouts``, ``stacks`` and ``workloads``."""
    return {
        "$schema": DIALECT,
        "title": "fslab study",
        "type": "object",
        "properties": own_keys(StudyFile, _nested()),
        "required": [key for key, info in keys_of(StudyFile, described=True).items() if info.is_required()],
        "additionalProperties": False,
        "$defs": {
            "media": _by_type("type", StudyMedium, {name: entry.Options for name, entry in MEDIA}),
            "layouts": _by_type("type", StudyLayout, {name: entry.Options for name, entry in LAYOUTS}),
            "stacks": _stack(),
            "workloads": _by_type("tool", StudyWorkload, {name: each.Parameters for name, each in WORKLOADS}),
        },
    }


def own_keys(model: type[BaseModel], nested: Mapping[str, Schema] | None = None) -> dict[str, Schema]:
    """Return the schema of each described key of a model; ``nested`` gives the schemas of keys that hold entries."""
    return {
        key: {**((nested or {}).get(key) or _field(info, {})), "description": info.description}
        for key, info in keys_of(model, described=True).items()
    }


def option_keys(model: type[BaseModel]) -> dict[str, Schema]:
    """Return the schema of a single value for each key of an entry's model (a list of values is a matrix axis)."""
    found = {
        key: {**_field(info, LENIENT), "description": info.description or ""}
        for key, info in keys_of(model, described=True).items()
    }
    if issubclass(model, Parameters):
        found |= dict.fromkeys(model.command_keys & found.keys(), COMMAND)
        found |= {key: {"type": "object"} for key in model.nested_keys}
    return found


def needed(model: type[BaseModel]) -> list[str]:
    """Return the keys without a default."""
    return [key for key, info in keys_of(model).items() if info.is_required()]


def axis(value: Schema) -> Schema:
    """Return the schema of a value or a list of such values."""
    several = {"type": "array", "items": value, "minItems": 1, "uniqueItems": True}
    described = {"description": value["description"]} if "description" in value else {}
    return {**described, "anyOf": [value, several]}


def _field(info: FieldInfo, lenient: Mapping[str, list[str]]) -> Schema:
    whole = adapter_of(info).json_schema()
    value = _simple(whole, whole.get("$defs", {}), lenient)
    default = info.get_default()
    if not info.is_required() and isinstance(default, str | int | float):
        value["default"] = default
    return value


def _simple(value: Schema, definitions: Mapping[str, Schema], lenient: Mapping[str, list[str]]) -> Schema:
    """Return a schema without references, titles and null (a study omits a key instead of setting it to null)."""
    if "$ref" in value:
        value = definitions[value["$ref"].rpartition("/")[2]]
    choices = [choice for choice in value.get("anyOf", []) if choice.get("type") != "null"]
    if len(choices) == 1:
        return _simple(choices[0], definitions, lenient)
    kept = {key: item for key, item in value.items() if key not in NOT_WANTED}
    if choices:
        kept["anyOf"] = [_simple(choice, definitions, lenient) for choice in choices]
    if "enum" not in kept and isinstance(kept.get("type"), str):
        kept["type"] = lenient.get(kept["type"], kept["type"])
    return kept


def _named(kind: str) -> Schema:
    return {
        "type": "object",
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "additionalProperties": {"$ref": f"#/$defs/{kind}"},
    }


def _nested() -> dict[str, Schema]:
    """Return the schemas of the study's keys that hold entries."""
    claim = {
        "type": "object",
        "properties": own_keys(Claim),
        "required": needed(Claim),
        "additionalProperties": False,
    }
    published = {"type": "object", "properties": own_keys(Published), "additionalProperties": False}
    return {
        **{kind: _named(kind) for kind in ("media", "stacks", "workloads")},
        "claims": {"type": "array", "items": claim},
        "published": published,
    }


def _by_type(key: str, model: type[BaseModel], types: Mapping[str, type[BaseModel]]) -> Schema:
    """Return the schema of a mapping whose other keys depend on the value of ``key``."""
    own = own_keys(model)
    own[key] = {"enum": sorted(types), "description": own[key]["description"]}
    return {
        "type": "object",
        "properties": own,
        "anyOf": [{"required": [key]}, {"required": ["extends"]}]
        if "extends" in own
        else [{"required": [key]}],
        "allOf": [
            {
                "if": {"properties": {key: {"const": name}}, "required": [key]},
                "then": {
                    "properties": own | {option: axis(value) for option, value in option_keys(each).items()},
                    # The model may accept keys that it does not list.
                    "additionalProperties": axis(ANY_VALUE)
                    if each.model_config.get("extra") == "allow"
                    else False,
                    "anyOf": [{"required": keys} for keys in (needed(each), ["extends"], ["file"])],
                },
            }
            for name, each in types.items()
        ],
    }


def _stack() -> Schema:
    one_of_media = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/media"}]}
    one_of_layouts = {"anyOf": [{"enum": list(LAYOUTS.names())}, {"$ref": "#/$defs/layouts"}]}
    nested = {
        "medium": axis(one_of_media),
        "layout": axis(one_of_layouts),
        "filesystem": axis({"enum": list(FILESYSTEMS.names())}),
    }
    return {
        "type": "object",
        "properties": own_keys(StudyStack, nested),
        "required": needed(StudyStack),
        "additionalProperties": False,
    }
