"""Converts the tree of a study to its model: names, references, ``extends``, and the keys of each entry.

Reading continues after a mistake. ``check.py`` checks what depends on several entries.
"""

import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import BaseModel

from fslab.cell import Scalar, as_written
from fslab.errors import similar
from fslab.machine import tunables
from fslab.registry import Registry
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.study import claims, matrix, options
from fslab.study.fields import has_value, is_mapping, keys_of, known_fields, note, note_values, read_keys
from fslab.study.inputs import Inputs
from fslab.study.mistakes import Mistakes, brief, suggestion
from fslab.study.model import NAME, NAME_RULE, StudyFile, StudyLayout, StudyMedium, StudyStack, StudyWorkload
from fslab.study.options import E
from fslab.study.overrides import MACHINE
from fslab.study.source import Node
from fslab.workloads import REGISTRY as WORKLOADS
from fslab.workloads import Parameters, Workload

MOST_EXTENDED = 50


@dataclass(kw_only=True, slots=True)
class Draft:
    """The readable part of a study: the valid values by key, and the entries that are complete enough to check.

    ``stack_nodes`` are the stacks with misspelt keys corrected. ``medium_nodes``: also those written in a stack, and
    those with mistakes. ``workload_nodes`` are the workloads, merged with those that they extend.
    """

    values: dict[str, Any] = field(default_factory=dict)
    media: dict[str, StudyMedium] = field(default_factory=dict)
    stacks: dict[str, StudyStack] = field(default_factory=dict)
    workloads: dict[str, StudyWorkload] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=lambda: Inputs(place=None))
    stack_nodes: dict[str, Node] = field(default_factory=dict)
    medium_nodes: dict[str, Node] = field(default_factory=dict)
    workload_nodes: dict[str, Node] = field(default_factory=dict)


def read_study(root: Node, mistakes: Mistakes, inputs: Inputs) -> Draft:
    """Return everything that is valid in the tree; note every mistake."""
    draft = Draft(inputs=inputs)
    if not is_mapping(root, "a study", mistakes):
        return draft
    readers: dict[str, Callable[[Node], Any]] = {
        "media": lambda node: _entries(node, "a medium", partial(_medium, draft, mistakes), mistakes),
        "stacks": lambda node: _entries(node, "a stack", partial(_stack, draft, mistakes), mistakes),
        "workloads": lambda node: _workloads(node, draft, mistakes),
        "claims": lambda node: claims.read_claims(node, mistakes),
        "published": lambda node: claims.read_published(node, mistakes),
    }
    fields = known_fields(root, keys_of(StudyFile, described=True), mistakes, root)
    draft.values = read_keys(StudyFile, root, fields, mistakes, readers)
    for name, stack in draft.stacks.items():  # get the study's machine keys that they do not set
        own = {key: draft.values[key] for key in MACHINE if key in draft.values and not getattr(stack, key)}
        draft.stacks[name] = stack.model_copy(update=own)
    _check_tuning(fields, mistakes, lists=False)
    return draft


def _entries(node: Node, what: str, read: Callable[[Node, str], None], mistakes: Mistakes) -> None:
    """Read each entry of a mapping of names."""
    if not is_mapping(node, f"a mapping of names, each with {what}", mistakes):
        return
    if not node.fields and node.path != ("media",):
        mistakes.at(node, f"is empty: at least one is needed, each with {what}")
    for name, child in node.fields.items():
        if not NAME.fullmatch(name):
            mistakes.at(child, f"'{name}' is not a name: use {NAME_RULE}")
        if has_value(child, mistakes, child) and is_mapping(child, what, mistakes):
            read(child, name)


def _entry(
    node: Node, registry: Registry[E], key: str, model: type[BaseModel], mistakes: Mistakes
) -> tuple[E | None, dict[str, Any], dict[str, Node]]:
    """Return the registered entry that ``node`` names under ``key``, None without a valid name; the values of the keys
    of ``model``; and the lists of the entry's own keys."""
    own, entry = set(keys_of(model, described=True)), options.entry_of(registry, key, node, mistakes)
    keys: type[BaseModel] | None = None
    if isinstance(entry, Workload):
        keys = entry.Parameters
        node = flattened(node, entry.Parameters, mistakes)
    elif entry is not None:
        keys = entry.Options
    fields = options.fields_for(node, own, keys, mistakes)
    values = read_keys(model, node, fields, mistakes)
    axes = options.read_axes(fields, own, mistakes, node)
    return (entry if key in values else None), values, axes


def _medium(draft: Draft, mistakes: Mistakes, node: Node, name: str) -> None:
    draft.medium_nodes[name] = node
    entry, values, axes = _entry(node, MEDIA, "type", StudyMedium, mistakes)
    if entry is not None and options.check_points(entry.parse_options, axes, mistakes, node):
        draft.media[name] = StudyMedium(**values, options=options.scalars(axes))


def _layout(node: Node, mistakes: Mistakes) -> StudyLayout | None:
    if not isinstance(node.content, dict):  # a bare name
        node = Node(content={"type": node}, place=node.place, path=node.path)
    entry, _, axes = _entry(node, LAYOUTS, "type", StudyLayout, mistakes)
    if entry is None or not options.check_points(entry.parse_options, axes, mistakes, node):
        return None
    return StudyLayout(type=entry.name, options=options.scalars(axes))


def _stack(draft: Draft, mistakes: Mistakes, node: Node, name: str) -> None:
    readers: Mapping[str, Callable[[Node], Any]] = {
        "medium": lambda child: _media_of(child, name, draft, mistakes),
        "layout": lambda child: tuple(
            filter(None, (_layout(item, mistakes) for item in _items(child, mistakes)))
        ),
    }
    fields = known_fields(node, keys_of(StudyStack), mistakes, node)
    values = read_keys(StudyStack, node, fields, mistakes, readers)
    _check_tuning(fields, mistakes, lists=True)
    values.setdefault("medium", ())
    draft.stacks[name] = StudyStack(**values)
    draft.stack_nodes[name] = Node(content=fields, place=node.place, path=node.path)


def _media_of(node: Node, stack: str, draft: Draft, mistakes: Mistakes) -> tuple[str, ...]:
    """Return the names of the media; add a medium that is written in place to the draft, named after the stack."""
    names = []
    for number, item in enumerate(_items(node, mistakes)):
        if isinstance(item.content, dict):
            name = f"{stack}.medium" if number == 0 else f"{stack}.medium.{number}"
            _medium(draft, mistakes, item, name)
            names.append(name)
        elif isinstance(item.content, str):
            names.append(item.content)
        else:
            mistakes.at(item, "is neither the name of a medium nor a mapping")
    return tuple(names)


def _items(node: Node, mistakes: Mistakes) -> list[Node]:
    if not node.items:
        mistakes.at(node, "the list is empty")
    return [item for item in node.items if has_value(item, mistakes, item)]


def _workloads(node: Node, draft: Draft, mistakes: Mistakes) -> None:
    def read(child: Node, name: str) -> None:
        draft.workload_nodes[name] = _merged(child, node, mistakes)

    _entries(node, "a workload", read, mistakes)
    # Read a base before the workloads that extend it: then its mistake is known and not repeated.
    merged = draft.workload_nodes
    for name in sorted(merged, key=lambda name: len(_ancestors(merged[name], node))):
        _workload(merged[name], name, draft, mistakes)
    draft.workloads = {name: draft.workloads[name] for name in merged if name in draft.workloads}


def _extends(node: Node) -> Node | None:
    near = None if "extends" in node.fields else similar("extends", node.fields)
    return node.fields.get(near or "extends")


def _ancestors(node: Node, all_workloads: Node) -> list[str]:
    """Return the names that a workload extends, nearest first; stop before an unknown or repeated name, and after
    more than MOST_EXTENDED."""
    names: dict[str, None] = {}
    while (extends := _extends(node)) is not None and len(names) <= MOST_EXTENDED:
        name = extends.content
        if not isinstance(name, str) or name not in all_workloads.fields or name in names:
            break
        names[name] = None
        node = all_workloads.fields[name]
    return list(names)


def _merged(node: Node, all_workloads: Node, mistakes: Mistakes) -> Node:
    """Return the workload, with the fields that it does not set copied from the workloads that it extends."""
    extends, ancestors = _extends(node), _ancestors(node, all_workloads)
    if extends is not None and isinstance(extends.content, str):
        if extends.content not in all_workloads.fields:
            known = [name for name in all_workloads.fields if name != node.path[-1]]
            mistakes.at(extends, f"no workload '{extends.content}'{suggestion(extends.content, known)}")
        elif node.path[-1] in ancestors:
            chain = " → ".join([str(node.path[-1]), *ancestors])
            mistakes.at(extends, f"extends itself: {chain}")
        elif len(ancestors) > MOST_EXTENDED:
            base = all_workloads.fields[ancestors[0]]
            if len(_ancestors(base, all_workloads)) <= MOST_EXTENDED:  # else that one says it
                mistakes.at(extends, f"extends more than {MOST_EXTENDED} workloads in a chain")
    fields: dict[str, Node] = {}
    for name in reversed(ancestors):
        fields.update(all_workloads.fields[name].fields)
    fields.pop("extends", None)
    return Node(content={**fields, **node.fields}, place=node.place, path=node.path)


def _workload(node: Node, name: str, draft: Draft, mistakes: Mistakes) -> None:
    entry, values, axes = _entry(node, WORKLOADS, "tool", StudyWorkload, mistakes)
    if entry is None:
        return
    files = draft.inputs.of(axes, entry, mistakes, node)

    def parse(raw: Mapping[str, Scalar]) -> BaseModel:
        parsed: BaseModel = entry.of(raw).parse_parameters(matrix.with_texts(raw, files))
        return parsed

    if not mistakes.any_at(node.path) and options.check_points(parse, axes, mistakes, node):
        draft.workloads[name] = StudyWorkload(**values, parameters=options.scalars(axes), files=files)


def _check_tuning(fields: Mapping[str, Node], mistakes: Mistakes, *, lists: bool) -> None:
    """Note the mistakes in the settings of the machine. ``lists``: a list is a matrix axis."""
    for key, node in fields["tuning"].fields.items() if "tuning" in fields else ():
        if isinstance(node.content, list) and not lists:
            what = "is not a single value: to compare values, write the list in the 'tuning' of a stack"
            note(mistakes, node, what, node)
            continue
        found: dict[str, list[int]] = defaultdict(list)
        for index, item in enumerate(node.items):
            if (wrong := _tunable_mistake(key, item)) is not None:
                found[wrong].append(index)
        note_values(mistakes, node, found, node)


def _tunable_mistake(key: str, node: Node) -> str | None:
    if isinstance(node.content, list | dict | None):
        return "is not a single value"
    try:
        tunables.check(key, as_written(node.content))
    except ValueError as error:
        return brief(str(error))
    return None


def flattened(node: Node, model: type[Parameters], mistakes: Mistakes) -> Node:
    """Return the mapping with nested keys and commands flattened; note and leave out what cannot be flattened."""
    fields: dict[str, Node] = {}
    for key, child in node.fields.items():
        if key in model.nested_keys and isinstance(child.content, dict):
            fields |= _leaves(key, child)
        else:
            fields[key] = child
    for key, child in fields.items():
        if key.rpartition(".")[2] in model.command_keys and isinstance(child.content, list):
            fields[key] = Node(content=_line(child, node, mistakes), place=child.place, path=child.path)
    return Node(content=fields, place=node.place, path=node.path)


def _leaves(key: str, node: Node) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for name, child in node.fields.items():
        inner = f"{key}.{name}"
        found |= _leaves(inner, child) if isinstance(child.content, dict) else {inner: child}
    return found


def _line(node: Node, within: Node, mistakes: Mistakes) -> str:
    """Return commands as text: ``[cp, a, b]`` is one command, ``[[cp, a, b], [sync]]`` are two, one per line."""
    if node.items and all(isinstance(item.content, list) for item in node.items):
        return "\n".join(_line(item, within, mistakes) for item in node.items)
    words = []
    for item in node.items:
        if isinstance(item.content, Scalar):
            words.append(str(item.content))
        else:
            what = "is not a word of a command: write [cp, a, b], or [[cp, a, b], [sync]]"
            note(mistakes, item, what, within)
    if words and " " in words[0].strip():
        what = f"'{words[0]}' is not a program: a list holds the words of one command, a list of lists several commands"
        note(mistakes, node, what, within)
    return shlex.join(words)
