"""Flattens the nested mappings and command lists of a workload, so that each key is a value or a matrix axis.

``metrics: {rate: {unit: ops/s}}`` becomes ``metrics.rate.unit``. The words of a command become one line, quoted for a
shell.
"""

import shlex

from fslab.cell import Scalar
from fslab.study.fields import note
from fslab.study.mistakes import Mistakes
from fslab.study.source import Node
from fslab.workloads import Parameters


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
            note(
                mistakes,
                item,
                "is not a word of a command: write [cp, a, b], or [[cp, a, b], [sync]]",
                within,
            )
    if words and " " in words[0].strip():
        what = f"'{words[0]}' is not a program: a list holds the words of one command, a list of lists several commands"
        note(mistakes, node, what, within)
    return shlex.join(words)
