"""Applies ``--set KEY=VALUE`` to the tree of a study before it is read.

The place of a mistake in an override is the override itself. These mistakes follow those of the file.
"""

from collections.abc import Sequence
from dataclasses import replace

from fslab.storage.media import REGISTRY as MEDIA
from fslab.study.mistakes import Mistakes, Path, SourcePosition, dotted, suggestion
from fslab.study.source import Node, parse_value
from fslab.units import parse_size
from fslab.workloads import REGISTRY as WORKLOADS

# The study names the entries of these keys, so an unknown name is a misspelling, not a new entry.
NAMED = ("media", "stacks", "workloads")
# The keys of this mapping contain dots (vm.dirty_bytes).
DOTTED = "tuning"
MACHINE = ("on", "kernel", "modules", "guest_memory")
HOST = "host"  # without the other keys, unless they are given as well
# Not a key of studies: puts an image in this directory in place of every medium of these types.
ON_PATH = "on_path"
MADE = ("ram", "virtual", "loop")
ZEROS_SHARE = 32  # of a volume, at most, is what mkfs writes of zeros: ext4 1/64 for inodes, and a journal


def apply(root: Node, overrides: Sequence[str], mistakes: Mistakes) -> None:
    """Change the tree in place: each override sets one key; the last override of a key wins."""
    directory: Node | None = None
    for rank, override in enumerate(overrides, start=1):
        place = SourcePosition(origin=f"--set {override}", rank=rank)
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            mistakes.add(place, (), "write KEY=VALUE, such as trials=3 or media.fast.size=2g")
            continue
        path = _split(key.strip())
        node = parse_value(value, place, path, mistakes)
        if node is not None and path == (ON_PATH,):
            directory = node
            continue
        parent = _parent(root, path, place, mistakes) if node is not None else None
        if parent is not None and node is not None:
            parent[str(path[-1])] = node
            if key.strip() in MACHINE:
                _everywhere(key.strip(), root)
    given = {override.partition("=")[0].strip() for override in overrides}
    if directory is not None:
        _put_on(directory, root, mistakes)
        _leave_out(directory, root, mistakes)
        if not given & set(MACHINE):  # a guest's figures say little about a disk
            _forget(MACHINE, root)
    if "on" in given and "on" in root.fields and root.fields["on"].content == HOST:
        _forget([key for key in MACHINE if key not in given], root)


def _put_on(directory: Node, root: Node, mistakes: Mistakes) -> None:
    """Make media images in the directory, of the same size. What a virtual disk may hold in memory is the room for it,
    and what mkfs may write of zeros, which take room of an image. Existing directories and devices stay."""
    stacks = root.entries("stacks").values()
    written = [stack.fields["medium"] for stack in stacks if "medium" in stack.fields]
    media = [*root.entries("media").values(), *(medium for node in written for medium in node.items)]
    made = [each.fields for each in media if "type" in each.fields and each.fields["type"].content in MADE]
    if not made:
        mistakes.add(directory.place, (), f"the study has no medium that it would replace: {', '.join(MADE)}")
    for medium in made:
        told = {**_defaults(medium["type"]), **medium}
        kept = {str(key): told[key] for key in ("size", "room", "scaled_by") if key in told}
        if "memory" in told and "room" not in medium:
            kept["room"] = _room(told["memory"], told["size"])
        kept |= {"type": replace(medium["type"], content="loop"), "path": directory}
        medium.clear()
        medium.update(kept)


def _defaults(kind: Node) -> dict[str, Node]:
    """Return the sizes that a medium of this kind has if the study does not set them: those of an image are others."""
    fields = MEDIA.get(str(kind.content)).Options.model_fields
    return {
        key: replace(kind, content=fields[key].default, path=(*kind.path[:-1], key))
        for key in ("size", "memory")
        if key in fields
    }


def _room(memory: Node, size: Node) -> Node:
    try:
        size_bytes, room_bytes = parse_size(str(size.content)), parse_size(str(memory.content))
    except ValueError:  # a list, or a mistake
        return memory
    return replace(memory, content=str(min(size_bytes, room_bytes + size_bytes // ZEROS_SHARE)))


def _leave_out(directory: Node, root: Node, mistakes: Mistakes) -> None:
    """Remove the workloads that cut the power of a virtual disk or make it fail, and stacks that have no other, and say
    so in the description."""
    workloads = root.entries("workloads")
    out = [name for name, node in workloads.items() if _drives_disk(node, workloads)]
    if workloads and len(out) == len(workloads):
        mistakes.add(directory.place, (), "every workload of the study needs a virtual disk")
    elif out:
        for name in out:
            _bequeath(name, workloads.pop(name), workloads)
        stacks = root.entries("stacks")
        for stack in [*stacks]:
            named = stacks[stack].fields.get("workloads")
            if named is None:
                continue
            kept = [item for item in named.items if item.content not in out]
            stacks[stack].fields["workloads"] = replace(named, content=kept)
            if named.items and not kept:
                del stacks[stack]
                out.append(f"the stack {stack}")
        description = root.fields.get("description", replace(directory, content="", path=("description",)))
        told = f"{description.content or ''} Left out, because they need a virtual disk: {', '.join(out)}."
        root.fields["description"] = replace(description, content=told.strip())


def _bequeath(name: str, base: Node, workloads: dict[str, Node]) -> None:
    """Give the workloads that extend this one what they have from it."""
    for node in workloads.values():
        if "extends" in node.fields and node.fields["extends"].content == name:
            own = node.fields.copy()
            del own["extends"]
            node.fields.update({**base.fields, **own})
            if "extends" not in base.fields:
                del node.fields["extends"]


def _drives_disk(node: Node, workloads: dict[str, Node]) -> bool:
    """Return whether its tool, or that of what it extends, drives a virtual disk."""
    for _ in workloads:
        base = node.fields.get("extends")
        if "tool" in node.fields or base is None or base.content not in workloads:
            break
        node = workloads[str(base.content)]
    tool = node.fields["tool"].content if "tool" in node.fields else None
    return isinstance(tool, str) and tool in WORKLOADS.names() and WORKLOADS.get(tool).drives_disk


def _forget(keys: Sequence[str], root: Node) -> None:
    for key in keys:
        root.fields.pop(key, None)
        _everywhere(key, root)


def _everywhere(key: str, root: Node) -> None:
    """Remove the key from all stacks, so that the override at the top level applies to each of them."""
    for stack in root.entries("stacks").values():
        stack.fields.pop(key, None)


def _split(key: str) -> Path:
    first, dot, rest = key.partition(".")
    return (DOTTED, rest) if first == DOTTED and dot else tuple(key.split("."))


def _parent(root: Node, path: Path, place: SourcePosition, mistakes: Mistakes) -> dict[str, Node] | None:
    """Return the mapping that holds the last key of ``path``; note a mistake and return None if there is none."""
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
