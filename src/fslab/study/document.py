"""Generates ``docs/study-file.md``, the reference of all keys of a study file, from the models and the registries.

Run as ``python -m fslab.study.document > docs/study-file.md``; a test checks that the file is current.
"""

import inspect
import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fslab.claims.schema import Claim, Published
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import VFS_OPTIONS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.study.fields import adapter_of, keys_of
from fslab.study.model import StudyFile, StudyLayout, StudyMedium, StudyStack, StudyWorkload
from fslab.workloads import REGISTRY as WORKLOADS

HEAD = """\
# Study file

<!-- Made by: python -m fslab.study.document > docs/study-file.md — do not edit. -->

Every key of a study file, with its type, unit, default and meaning. To learn how to write one, see the
[tutorial](tutorial.md).

## Syntax

- A study file is YAML. **A list is a matrix axis**: `filesystem: [ext4, xfs]` with `bs: [4k, 64k]` makes four
  cells. Results are named after what varies: `ext4`, `random-write[bs=4k]`.
- **`extends`** copies another workload's keys; keys written in the workload itself replace them. YAML anchors and `<<`
  work everywhere.
- **Names** of media, stacks and workloads are letters, digits, `_`, `+` and `-`.
- **Sizes** are a number of bytes, with `k`, `m`, `g` or `t` in powers of 1024 (`4096`, `4k`, `1.5g`); `4K`, `4kb`,
  `4KB` and `4KiB` mean the same as `4k`. mkfs and mount options are passed on as they are written. **Durations**
  are `700ms`, `30s`, `10m`, `1h30m`.
- **`--set KEY=VALUE`** changes a key for one run: `--set trials=10`, `--set media.memory.size=2g`,
  `--set workloads.random-write.bs=[4k,64k]`. The value is read as YAML; the name of an entry must exist.
- **Files** that a study names (job files, scripts, published figures) are text files of at most 1 MiB in the study's
  own directory or below; `--allow-path DIRECTORY` allows others. Their text is stored with the results.
- All mistakes are reported at once, each with its line. `fslab plan FILE` shows what a study means and changes
  nothing.
- `fslab schema` prints a JSON Schema for completion in an editor.
"""

FRESH = """\
`fresh` says how long a file system is used. `trial`: each trial makes a new one. `block`: each trial has a new one, but
trials of a block that begin with the same files, or the same empty file system, get copies of one. `cell`: all trials
of a cell use it. `campaign`: all cells of a stack use it. With `cell` and `campaign` it ages, which can be what you
measure.

`cache: cold` flushes, unmounts, drops what is cached of the file system's devices, and mounts again before the measured
run; `warm` reads every file once into the page cache.
"""


def markdown() -> str:
    parts = [
        HEAD,
        "## Top level\n",
        _table(keys_of(StudyFile, described=True)),
        FRESH,
        "## `media`: what the data lies on\n",
        _table(keys_of(StudyMedium, described=True)),
        *(_entry(f"type: {name}", entry.summary, entry.Options) for name, entry in MEDIA),
        "## `stacks`: what is compared\n",
        _table(keys_of(StudyStack, described=True)),
        "## `layout` of a stack: how devices become one\n",
        _table(keys_of(StudyLayout, described=True)),
        *(_entry(f"type: {name}", entry.summary, entry.Options) for name, entry in LAYOUTS),
        "## `workloads`: what is run\n",
        _table(keys_of(StudyWorkload, described=True)),
        *(_entry(f"tool: {name}", entry.summary, entry.Parameters) for name, entry in WORKLOADS),
        "## `claims`: statements about the figures\n",
        "A list; the language of `that` is in [claims.md](claims.md).\n",
        _table(keys_of(Claim)),
        "## `published`: the figures of a publication\n",
        _table(keys_of(Published)),
        "## File systems\n",
        f"Mount options that every file system has: {_codes(VFS_OPTIONS)}.\n",
        *(_filesystem(name) for name in FILESYSTEMS.names()),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _entry(heading: str, summary: str, model: type[BaseModel]) -> str:
    about = inspect.cleandoc(model.__doc__ or "").replace("``", "`")
    table = _table(keys_of(model, described=True)) if model.model_fields else "No keys of its own.\n"
    return f"### `{heading}`\n\n{summary}. {about}\n\n{table}"


def _table(keys: Mapping[str, FieldInfo]) -> str:
    rows = [
        f"| `{key}` | {_kind(info)} | {_default(info)} | {_cell(info.description or '')} |"
        for key, info in keys.items()
    ]
    return "\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def _kind(info: FieldInfo) -> str:
    """Return the allowed values of a key, in words."""
    if info.title:
        return info.title
    whole = adapter_of(info).json_schema()
    return _words(whole, whole.get("$defs", {}))


def _words(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "$ref" in value:
        return _words(definitions[value["$ref"].rpartition("/")[2]], definitions)
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"])
    if value.get("title") == "share":
        return "percentage"
    if value.get("title") in {"duration", "size", "text or list", "mapping"}:
        return str(value["title"])
    if "anyOf" in value:
        choices = [_words(choice, definitions) for choice in value["anyOf"] if choice.get("type") != "null"]
        return " or ".join(dict.fromkeys(choices))
    if "const" in value:
        return f"`{value['const']}`"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false", "array": "list"}
    limits = [_limits(value)] if {"minimum", "exclusiveMinimum", "maximum"} & set(value) else []
    return " ".join([words.get(str(value.get("type")), str(value.get("type", "any value"))), *limits])


def _limits(value: Mapping[str, Any]) -> str:
    """Return the limits of a number, such as ``1 to 4096``, ``≥ 1``, ``> 0 and ≤ 1``."""
    if {"minimum", "maximum"} <= set(value):
        return f"{value['minimum']} to {value['maximum']}"
    signs = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"))
    return " and ".join(f"{sign} {value[key]}" for key, sign in signs if key in value)


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "**required**"
    default = info.get_default(call_default_factory=True)
    while isinstance(default, tuple) and len(default) == 1:
        default = default[0]
    if isinstance(default, StudyLayout):
        default = default.type
    if isinstance(default, Enum):
        default = default.value
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    title = adapter_of(info).json_schema().get("title") if isinstance(default, float) else None
    if isinstance(default, float):
        default = {"duration": f"{default:g}s", "share": f"{default * 100:g}%"}.get(
            str(title), f"{default:g}"
        )
    return "" if default in (None, "", (), {}) else f"`{default}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _filesystem(name: str) -> str:
    driver = FILESYSTEMS.get(name)
    flags = (flag if form == "" else f"{flag} VALUE" for flag, form in sorted(driver.mkfs_flags.items()))
    own = {option: form for option, form in sorted(driver.mount_options.items()) if option not in VFS_OPTIONS}
    return (
        f"### `filesystem: {name}`\n\n{driver.summary}.\n\n"
        f"- `mkfs_options`: {_codes(flags)}\n"
        f"- `mount_options`: {_codes(_option(option, form) for option, form in own.items())}\n"
    )


def _option(name: str, form: str) -> str:
    """Return an option with the form of its value: ``commit=int``, ``data=journal|ordered``, ``barrier[=0|1]``."""
    if not form:
        return name
    return f"{name}[={form[:-1]}]" if form.endswith("?") else f"{name}={form}"


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or "none"


if __name__ == "__main__":
    sys.stdout.write(markdown())
