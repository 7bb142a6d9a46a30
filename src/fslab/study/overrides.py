"""Applies ``--set KEY=VALUE`` to the tree of a study before it is read.

A mistake in an override is shown with the override as its place, after those of the file.
"""

from collections.abc import Sequence

from fslab.study.mistakes import Mistakes, Path, SourcePosition, dotted, suggestion
from fslab.study.source import Node, parse_value

# Their entries are named by the study, so a name that is not there is a misspelling, not a new entry.
NAMED = ("media", "stacks", "workloads")
# Its keys have dots of their own (vm.dirty_bytes).
DOTTED = "tuning"
MACHINE = ("on", "kernel", "modules", "guest_memory")


def apply(root: Node, overrides: Sequence[str], mistakes: Mistakes) -> None:
    """Change the tree in place: each override sets one key, the later one winning."""
    for rank, override in enumerate(overrides, start=1):
        place = SourcePosition(origin=f"--set {override}", rank=rank)
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            mistakes.add(place, (), "write KEY=VALUE, such as trials=3 or media.fast.size=2g")
            continue
        path = _split(key.strip())
        node = parse_value(value, place, path, mistakes)
        parent = _parent(root, path, place, mistakes) if node is not None else None
        if parent is not None and node is not None:
            parent[str(path[-1])] = node
            if key in MACHINE:
                _everywhere(key, root)


def _everywhere(key: str, root: Node) -> None:
    """Where trials run is set for all stacks, also those that the study puts somewhere else."""
    for stack in root.at(("stacks",)).fields.values():
        stack.fields.pop(key, None)


def _split(key: str) -> Path:
    parts = key.split(".")
    return (DOTTED, ".".join(parts[1:])) if parts[0] == DOTTED and len(parts) > 1 else tuple(parts)


def _parent(root: Node, path: Path, place: SourcePosition, mistakes: Mistakes) -> dict[str, Node] | None:
    """The mapping that the last key of ``path`` goes into, or None (noted) when there cannot be one."""
    node = root
    for depth, step in enumerate(path[:-1], start=1):
        if not isinstance(node.content, dict):
            break
        if step not in node.content:
            if depth == 2 and path[0] in NAMED:
                what = f"there is no '{step}' in {path[0]}{suggestion(str(step), node.content)}"
                mistakes.add(place, (), what)
                return None
            node.content[str(step)] = Node(content={}, place=place, path=path[:depth])
        node = node.content[str(step)]
    if isinstance(node.content, dict):
        return node.content
    mistakes.add(place, (), f"'{dotted(node.path)}' has no keys of its own that could be set")
    return None
