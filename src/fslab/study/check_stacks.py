"""Checks of the entries under ``stacks``: names, options of file systems, and where the stacks run.

Pure: the registered entries only compute what they would do. No device and no kernel is opened.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from fslab.machine.kinds import AUTO, BEST, GUEST, REGISTRY
from fslab.storage import initial_content
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.study import matrix
from fslab.study.fields import note_values
from fslab.study.mistakes import Mistakes, brief, suggestion
from fslab.study.model import StudyLayout, StudyMedium, StudyStack
from fslab.study.options import MAX_COMBINATIONS
from fslab.study.read import Draft
from fslab.study.source import Node

# What is made and mounted.
_MADE = ("filesystem", "mkfs_options", "mount_options", "geometry", *matrix.SETTINGS)


@dataclass(frozen=True, kw_only=True, slots=True)
class StackCheck:
    """The checks of one entry under ``stacks``."""

    stack: StudyStack
    node: Node
    root: Node
    draft: Draft
    mistakes: Mistakes

    def run(self) -> None:
        self._references("medium", self.stack.medium, "media")
        self._references("workloads", self.stack.workloads or (), "workloads")
        for key in (*_MADE, "workloads"):
            self._twice(key, [[value] for value in getattr(self.stack, key) or ()])
        self._twice("medium", [self._medium(name) for name in self.stack.medium])
        self._twice("layout", [_combinations(layout) for layout in self.stack.layout])
        for number, name in enumerate(self.stack.filesystem):
            if name not in FILESYSTEMS.names():
                known = FILESYSTEMS.names()
                self._add("filesystem", f"no file system '{name}'{suggestion(name, known)}", number)
            else:
                driver = FILESYSTEMS.get(name)
                if len(self.stack.geometry) > 1 and not driver.stripe_options:
                    what = f"mkfs of {name} has no stripe options: these stacks would be identical"
                    self._add("geometry", what)
                self._options("mkfs_options", driver.mkfs_mistakes)
                self._options("mount_options", driver.mount_mistakes)
        self._options("attributes", initial_content.attribute_mistakes)
        self._options("fill", initial_content.fill_mistakes)
        self._options("after_mount", initial_content.command_mistakes)
        check_machine(self.stack, self.node, self.root, self.mistakes)
        kinds = {self.draft.media[name].type for name in self.stack.medium if name in self.draft.media}
        for kind in sorted(kinds):
            if MEDIA.get(kind).formatted:
                self._formatted(kind)
            else:
                self._as_it_is(kind)

    def _add(self, key: str, what: str, number: int | None = None) -> None:
        self.mistakes.at(self.node.at((key,) if number is None else (key, number)), what)

    def _references(self, key: str, names: Sequence[str], kind: str) -> None:
        # The name of an entry that could not be read is known too: the mistake in that entry is already noted.
        known = {*self.root.entries(kind), *(self.draft.medium_nodes if kind == "media" else ())}
        for number, name in enumerate(names):
            if name not in known:
                what = {"media": "medium", "workloads": "workload"}[kind]
                remedy = suggestion(name, known)
                if kind == "media" and name in MEDIA.names():
                    remedy = f": write {{type: {name}}}, or a name under 'media'"
                self._add(key, f"no {what} '{name}'{remedy}", number)

    def _medium(self, name: str) -> list[str]:
        """Return the name of a medium, or the combinations of one that is written in the stack: its name has a dot."""
        medium = self.draft.media.get(name) if "." in name else None
        return _combinations(medium) if medium else [name]

    def _twice(self, key: str, values: Sequence[Sequence[str]]) -> None:
        """Report entries of which one or more combinations are in an earlier entry."""
        before: set[str] = set()
        for number, combinations in enumerate(values):
            if again := [value for value in combinations if value in before]:
                shown = f"the same {key} is" if again[0].startswith("[") else f"'{again[0]}' is"
                self._add(key, f"{shown} listed twice", number)
            before.update(combinations)

    def _formatted(self, kind: str) -> None:
        if not self.stack.filesystem and not self.mistakes.any_at((*self.node.path, "filesystem")):
            known = ", ".join(FILESYSTEMS.names())
            what = f"'filesystem' is missing: a '{kind}' medium is formatted — known: {known}"
            self.mistakes.at(self.node, what)

    def _options(self, key: str, mistakes: Callable[[str], Iterable[str]]) -> None:
        found: dict[str, list[int]] = defaultdict(list)
        for number, variant in enumerate(getattr(self.stack, key)):
            for mistake in mistakes(variant):
                found[brief(mistake)].append(number)
        note_values(self.mistakes, self.node.at((key,)), found, self.node)

    def _as_it_is(self, kind: str) -> None:
        for key in filter(self.node.fields.__contains__, _MADE):
            what = f"has no effect: a '{kind}' medium is never formatted or mounted; leave it out"
            self._add(key, what)
        if any(layout.type != "single" for layout in self.stack.layout):
            what = f"has no effect: a '{kind}' medium is a directory, not devices; leave it out"
            self._add("layout", what)


def _combinations(entry: StudyMedium | StudyLayout) -> list[str]:
    """Return the combinations of a medium or layout as JSON, type and options; of too many, the first ones."""
    points = islice(matrix.points(entry.options), MAX_COMBINATIONS)
    values = (matrix.values_at(entry.options, point) for point in points)
    return [json.dumps([entry.type, options], sort_keys=True) for options in values]


def check_machine(stack: StudyStack, node: Node, root: Node, mistakes: Mistakes) -> None:
    """Note the mistakes in a stack's ``on``, ``kernel`` and ``modules``.

    A mistake is shown where the key is written: in the stack, or once at the top level for all stacks.
    """

    def add(key: str, what: str, number: int | None = None) -> None:
        within = node if key in node.fields else root
        place = within.at((key,) if number is None else (key, number))
        if not mistakes.any_at(place.path):
            mistakes.at(place, what)

    known = (*REGISTRY.names(), AUTO, BEST, GUEST)
    strange = [(number, name) for number, name in enumerate(stack.on) if name not in known]
    for number, name in strange:
        add("on", f"no machine '{name}'{suggestion(name, known)}", number)
    if not strange:
        _check_guest(stack, add)
    for key in ("on", "kernel"):
        values = getattr(stack, key)
        for number, value in enumerate(values):
            if value in values[:number]:
                add(key, f"'{value}' is listed twice", number)


def _check_guest(stack: StudyStack, add: Callable[[str, str], None]) -> None:
    for key in ("kernel", "modules"):
        if getattr(stack, key) and set(stack.on) <= {"host"}:
            add(key, "has no effect: only a guest has it (on: uml, qemu)")
    if len(stack.modules) > 1 and len(stack.modules) != len(stack.kernel):
        add("modules", f"names {len(stack.modules)} directories for {len(stack.kernel)} kernels")
