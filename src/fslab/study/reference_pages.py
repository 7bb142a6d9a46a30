"""Generates the reference pages in ``docs`` from the models and the registries.

These are the study file, a page for each tool, the warnings, and the published bugs that crash tests reach.

Run as ``python -m fslab.study.reference_pages docs``; a test checks that the pages are current.
"""

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from textwrap import fill
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fslab.claims.schema import Claim, Published
from fslab.crash.published_bugs import SCENARIOS
from fslab.storage.filesystem_options import VFS_OPTIONS
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.study.fields import adapter_of, keys_of
from fslab.study.model import StudyFile, StudyLayout, StudyMedium, StudyStack, StudyWorkload
from fslab.validity import Rule
from fslab.validity.campaign_warnings import REGISTRY as CAMPAIGN_RULES
from fslab.validity.trial_warnings import REGISTRY as TRIAL_RULES
from fslab.workloads import REGISTRY as WORKLOADS

WIDTH = 120
MADE = "<!-- Made by fslab.study.reference_pages -->"
SHARED = 3  # tools that have a key, and alike, from which on it is described in the study file only
SYNTAX = f"""\
# Study file

{MADE}

Every key of a study file. The [tutorial](tutorial.md) shows how to write one.

## Syntax

- A study file is YAML. **A list is a matrix axis**: `filesystem: [ext4, xfs]` with `bs: [4k, 64k]` makes four
  cells. Results are named after what varies: `ext4`, `random-write[bs=4k]`.
- **`extends`** copies another workload's keys; keys written in the workload itself replace them. YAML anchors and `<<`
  work everywhere.
- **Names** are of `A-Z`, `a-z`, `0-9`, `_`, `+` and `-`, first a letter or digit.
- **Sizes** are a number of bytes, with `k`, `m`, `g` or `t` in powers of 1024 (`4096`, `4k`, `1.5g`; `4K`, `4kb`,
  `4KB` and `4KiB` are `4k`). **Durations** are `700ms`, `30s`, `10m`, `1h30m`.
- **`--set KEY=VALUE`** changes a key for one run: `--set trials=10`, `--set media.memory.size=2g`,
  `--set workloads.random-write.bs=[4k,64k]`. The value is YAML; the name of an entry must exist.
- **Files** that a study names (job files, scripts, published figures) are text files of at most 1 MiB in the study's
  own directory or below; `--allow-path DIRECTORY` allows others. Their text is stored with the results; a resumed
  campaign uses it, even if the file has changed.
- `fslab schema` prints a JSON Schema for completion in an editor.

Numbers are whole unless a table says *number*.
"""
WARNINGS = f"""\
# Warnings

{MADE}

What can spoil a trial, and when fslab says so. Every trial is stored, with its warnings; `fslab results --notes` says
what to do. A trial that is **invalid** is not compared; one with a **warning** is compared, with a mark; a **note** is
information. "when" says where the severity differs. A rule (`src/fslab/validity`) gives no warning if a fact that it
needs is unknown. Kinds inherent in what a study measures (`known_limits`) become notes. Not detectable: I/O of
other programs on the disk below an image.
"""
PUBLISHED = f"""\
# Published bugs

{MADE}

Which tests of fstests (NUMBER: generic/NUMBER) that cut power, or shut the file system down, and then look at files
the sequences of `operations: published` in [crash tests](crash.md) repeat. Tests that only recover the log after a
random load, such as 388, 475 and 482, are not listed. What must not happen in each, and its steps:
[`published_bugs.py`](../src/fslab/crash/published_bugs.py).
"""


def pages() -> dict[str, str]:
    """Return the text of each page that is made as a whole, by its path in ``docs``."""
    shared = _shared()
    tools = {f"tools/{name}.md": _tool(name, entry, shared) for name, entry in WORKLOADS}
    whole = {"study-file.md": study_file(), "warnings.md": warnings(), "published-bugs.md": published()}
    return whole | tools


def markdown() -> str:
    """Return all keys of a study as one text: the study file, the tools, and the options of the file systems."""
    shared = _shared()
    tools = (_tool(name, entry, shared) for name, entry in WORKLOADS)
    return "\n".join([study_file(), *tools, "# File systems\n", filesystem_options()])


def study_file() -> str:
    parts = [
        SYNTAX,
        "## Top level\n",
        _table(keys_of(StudyFile, described=True)),
        "## `media`: what the data lies on\n",
        _table(keys_of(StudyMedium, described=True)),
        *_entries("type", MEDIA),
        "\n## `stacks`: what is compared\n",
        "The options of each file system: `fslab list filesystems`.\n",
        _table(keys_of(StudyStack, described=True)),
        "## `layout` of a stack: how devices become one\n",
        *_entries("layout", LAYOUTS),
        "\n## `workloads`: what is run\n",
        _table(keys_of(StudyWorkload, described=True)),
        "Each tool has keys and a page of its own, such as [`fio`](tools/fio.md); `fslab list workloads` lists them.",
        "\n### Shared keys\n",
        _lines(_shared().values()),
        "\n## `claims`: statements about the figures\n",
        "A list; the language of `that` is in [claims.md](claims.md).\n",
        _table(keys_of(Claim)),
        "## `published`: the figures of a publication\n",
        _table(keys_of(Published)),
    ]
    return "\n".join(parts).rstrip() + "\n"


def warnings() -> str:
    """Return the page of all built-in rules, with the condition of each (``Rule.when``)."""
    head = "| warning | severity | when |\n|---|---|---|"
    campaign = "Found in all trials together when a report is made, and not stored:\n"
    parts = [
        WARNINGS,
        "## Of a trial\n", head, *(_rule(rule) for _, rule in TRIAL_RULES),
        "\n## Of a campaign\n", campaign, head, *(_rule(rule) for _, rule in CAMPAIGN_RULES),
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def published() -> str:
    """Return the page of the published bugs: which are reached, and what the others need."""
    reached = [each.test for each in SCENARIOS if each.sequences]
    rows = (f"| {each.test} | {each.about} | {each.lacks} |" for each in SCENARIOS if each.lacks)
    head = "| not repeated | what must not happen | what is missing |\n|---|---|---|"
    share = f"{len(reached)} of {len(SCENARIOS)} are repeated"
    told = fill(f"{share}; each fault is found where it is imitated: {', '.join(reached)}.", WIDTH)
    return "\n".join([PUBLISHED, told, "", head, *rows]) + "\n"


def filesystem_options() -> str:
    """Return the options that studies may use with each file system."""
    parts = [f"Mount options that every file system has: {_codes(_options(VFS_OPTIONS))}.\n"]
    for name, driver in FILESYSTEMS:
        lines = (f"- `{key}`: {_codes(options)}" for key, options in options_of(driver).items())
        parts += [f"### `filesystem: {name}`\n", f"{driver.summary}.\n", *lines, ""]
    return "\n".join(parts)


def options_of(driver: FileSystem) -> dict[str, list[str]]:
    """Return what a study may write in ``mkfs_options`` and ``mount_options``, without what all file systems have."""
    mkfs = [flag if form == "" else f"{flag} VALUE" for flag, form in sorted(driver.mkfs_flags.items())]
    own = {option: form for option, form in driver.mount_options.items() if option not in VFS_OPTIONS}
    return {"mkfs_options": mkfs, "mount_options": [*_options(own)]}


def write(docs: Path) -> None:
    """Write all pages."""
    for path, text in pages().items():
        (docs / path).parent.mkdir(exist_ok=True)
        (docs / path).write_text(text, "utf-8")


def _rule(rule: Rule) -> str:
    when = re.sub(r"(?<=\d)%", " %", rule.when)
    return f"| `{rule.kind}` | {rule.severity.value} | {_cell(when)} |"


def _tool(name: str, entry: Any, shared: Mapping[str, str]) -> str:
    about = f"{entry.summary}. {_about(entry.Parameters)}".rstrip()
    return f"# `tool: {name}`\n\n{about}\n\n{_keys(entry.Parameters, shared)}"


def _shared() -> dict[str, str]:
    """Return the rows that many tools have alike, by their keys."""
    tables = (_rows(keys_of(entry.Parameters, described=True)) for _, entry in WORKLOADS)
    rows = Counter(row for table in tables for row in table.items())
    return {key: row for (key, row), number in rows.items() if number >= SHARED}


def _entries(heading: str, entries: Iterable[tuple[str, Any]]) -> list[str]:
    """Return one table of all entries of a registry. Keys that another entry has too, and alike, are named only."""
    found = [f"| {heading}, key | value | default | meaning |", "|---|---|---|---|"]
    known: dict[str, str] = {}
    for name, entry in entries:
        rows = _rows(keys_of(entry.Options, described=True))
        alike: dict[str, list[str]] = {}
        for key, row in rows.items():
            if row in known:
                alike.setdefault(known[row], []).append(f"`{key}`")
        # The first sentence of the options' description says what the keys say.
        further = " ".join(_about(entry.Options).split()).partition(". ")[2]
        others = ", ".join(f"{', '.join(keys)} as `{first}`" for first, keys in alike.items())
        about = " ".join(filter(None, (f"{entry.summary}.", further, f"{others}." if others else "")))
        found.append(f"| **`{name}`** | | | {_cell(about)} |")
        found += [row for row in rows.values() if row not in known]
        known = {**dict.fromkeys(rows.values(), name), **known}
    return found


def _about(model: type[BaseModel]) -> str:
    return inspect.cleandoc(model.__doc__ or "").replace("``", "`")


def _keys(model: type[BaseModel], shared: Mapping[str, str]) -> str:
    if not model.model_fields:
        return "No keys of its own.\n"
    rows = _rows(keys_of(model, described=True))
    own = [row for key, row in rows.items() if shared.get(key) != row]
    if others := ", ".join(f"`{key}`" for key, row in rows.items() if shared.get(key) == row):
        own.append(f"| {others} | | | [shared keys](../study-file.md#shared-keys) |")
    return _lines(own)


def _table(keys: Mapping[str, FieldInfo]) -> str:
    """Return a table of keys. Those that override a key of the study share a row."""
    overriding = [key for key, info in keys.items() if info.description == f"overrides the study's `{key}`"]
    rows = list(_rows({key: info for key, info in keys.items() if key not in overriding}).values())
    if overriding:
        rows.append(f"| {', '.join(f'`{key}`' for key in overriding)} | | | override those of the study |")
    return _lines(rows)


def _lines(rows: Iterable[str]) -> str:
    return "\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def _rows(keys: Mapping[str, FieldInfo]) -> dict[str, str]:
    """Return the row of a table for each key."""
    rows = {key: (_kind(info), _default(info), _cell(info.description or "")) for key, info in keys.items()}
    return {key: f"| `{key}` | {' | '.join(row)} |".replace("|  |", "| |") for key, row in rows.items()}


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
    words = {"string": "text", "integer": "integer", "boolean": "true, false", "array": "list"}
    kind, limits = str(value.get("type", "any value")), _limits(value)
    return limits if kind == "integer" and limits else f"{words.get(kind, kind)} {limits}".rstrip()


def _limits(value: Mapping[str, Any]) -> str:
    """Return the limits of a number, such as ``1 to 4096``, ``≥ 1``, ``> 0 and ≤ 1``."""
    if {"minimum", "maximum"} <= set(value):
        return f"{value['minimum']} to {value['maximum']}"
    signs = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"))
    return " and ".join(f"{sign} {value[key]}" for key, sign in signs if key in value)


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    default = info.get_default(call_default_factory=True)
    while isinstance(default, tuple) and len(default) == 1:
        default = default[0]
    if isinstance(default, StudyLayout):
        default = default.type
    if isinstance(default, Enum):
        default = default.value
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, float):
        forms = {"duration": f"{default:g}s", "share": f"{default * 100:g}%"}
        default = forms.get(str(adapter_of(info).json_schema().get("title")), f"{default:g}")
    return "" if default in (None, "", (), {}) else f"`{default}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _options(options: Mapping[str, str]) -> Iterator[str]:
    """Yield options with the form of their value: ``commit=int``, ``barrier[=0|1]``, ``[no]acl`` for acl and noacl."""
    for name, form in sorted(options.items()):
        if name.startswith("no") and form == "" == options.get(name[2:]):
            continue
        opposite = form == "" == options.get(f"no{name}")
        value = f"[={form[:-1]}]" if form.endswith("?") else f"={form}" if form else ""
        yield f"[no]{name}" if opposite else f"{name}{value}"


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or "none"


if __name__ == "__main__":
    write(Path(sys.argv[1]))
