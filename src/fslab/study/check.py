"""Checks that involve several parts of a study: options of a file system, references, space, shared devices.

Pure: the registered entries only compute what they would do. No device is opened.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fslab.cell import Fresh, Geometry, StackSpec, WorkloadSpec
from fslab.machine import tunables
from fslab.storage import initial_content
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.media import MediumPlan
from fslab.storage.parsed_stack import parsed_stack
from fslab.study import claims, machines, matrix, time_limits
from fslab.study.fields import note_values
from fslab.study.mistakes import Mistakes, brief, suggestion
from fslab.study.model import StudyLayout, StudyMedium, StudyStack, StudyWorkload
from fslab.study.options import MAX_COMBINATIONS
from fslab.study.read import Draft
from fslab.study.source import Node
from fslab.units import format_size
from fslab.validity.trial_warnings import kinds
from fslab.workloads import parsed

# Of the cells in JSON: a store reads 64 Mi of a campaign (``store.read_limits``), with the study and its files.
MOST_CHARACTERS = 32 << 20
Parts = tuple[Mapping[str, StudyStack], Mapping[str, StudyMedium], Mapping[str, StudyWorkload]]


def check(draft: Draft, written: Parts | None, root: Node, mistakes: Mistakes) -> None:
    """Note every mistake that involves several parts of the study.

    Claims are checked against the study as ``written``, because scaling may change the values that they name.
    With ``written`` None, claims are not checked: the command line changed what is measured.
    """
    for name, stack in draft.stacks.items():
        node = draft.stack_nodes[name]
        _StackCheck(stack=stack, node=node, root=root, draft=draft, mistakes=mistakes).run()
    _check_expanded(draft, root, mistakes)
    if not mistakes.found and written is not None:
        found, published = draft.values.get("claims", ()), draft.values.get("published")
        claims.check(root, found, published, written, mistakes)
    _check_known_limits(root, mistakes)


@dataclass(frozen=True, kw_only=True, slots=True)
class _StackCheck:
    """The checks of one entry under ``stacks``."""

    stack: StudyStack
    node: Node
    root: Node
    draft: Draft
    mistakes: Mistakes

    def run(self) -> None:
        self._references("medium", self.stack.medium, "media")
        self._references("workloads", self.stack.workloads or (), "workloads")
        for key in (
            "filesystem",
            "mkfs_options",
            "mount_options",
            "geometry",
            "workloads",
            *matrix.SETTINGS,
        ):
            self._twice(key, [[value] for value in getattr(self.stack, key) or ()])
        self._twice("medium", [self._medium(name) for name in self.stack.medium])
        self._twice("layout", [_combinations(layout) for layout in self.stack.layout])
        for number, name in enumerate(self.stack.filesystem):
            if name not in FILESYSTEMS.names():
                self._add(
                    "filesystem", number, f"no file system '{name}'{suggestion(name, FILESYSTEMS.names())}"
                )
            else:
                driver = FILESYSTEMS.get(name)
                if len(self.stack.geometry) > 1 and not driver.stripe_options:
                    self._add(
                        "geometry",
                        None,
                        f"mkfs of {name} has no stripe options: these stacks would be identical",
                    )
                self._options("mkfs_options", driver.mkfs_mistakes)
                self._options("mount_options", driver.mount_mistakes)
        self._options("attributes", initial_content.attribute_mistakes)
        self._options("fill", initial_content.fill_mistakes)
        self._options("after_mount", initial_content.command_mistakes)
        machines.check(self.stack, self.node, self.root, self.mistakes)
        kinds = {self.draft.media[name].type for name in self.stack.medium if name in self.draft.media}
        for kind in sorted(kinds):
            if MEDIA.get(kind).formatted:
                self._formatted(kind)
            else:
                self._as_it_is(kind)

    def _add(self, key: str, number: int | None, what: str) -> None:
        node = self.node.at((key,) if number is None else (key, number))
        self.mistakes.add(node.place, node.path, what)

    def _references(self, key: str, names: Sequence[str], kind: str) -> None:
        # The name of an entry that could not be read is known too: the mistake in that entry is already noted.
        known = {*self.root.at((kind,)).fields, *(self.draft.medium_nodes if kind == "media" else ())}
        for number, name in enumerate(names):
            if name not in known:
                what = {"media": "medium", "workloads": "workload"}[kind]
                self._add(key, number, f"no {what} '{name}'{suggestion(name, known)}")

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
                self._add(key, number, f"{shown} listed twice")
            before.update(combinations)

    def _formatted(self, kind: str) -> None:
        if not self.stack.filesystem and not self.mistakes.any_at((*self.node.path, "filesystem")):
            known = ", ".join(FILESYSTEMS.names())
            what = f"'filesystem' is missing: a '{kind}' medium is formatted — known: {known}"
            self.mistakes.add(self.node.place, self.node.path, what)

    def _options(self, key: str, mistakes: Callable[[str], Iterable[str]]) -> None:
        found: dict[str, list[int]] = defaultdict(list)
        for number, variant in enumerate(getattr(self.stack, key)):
            for mistake in mistakes(variant):
                found[brief(mistake)].append(number)
        note_values(self.mistakes, self.node.at((key,)), found, self.node)

    def _as_it_is(self, kind: str) -> None:
        for key in ("filesystem", "mkfs_options", "mount_options", "geometry", *matrix.SETTINGS):
            if key in self.node.fields:
                self._add(
                    key, None, f"has no effect: a '{kind}' medium is never formatted or mounted; leave it out"
                )
        if any(layout.type != "single" for layout in self.stack.layout):
            self._add(
                "layout", None, f"has no effect: a '{kind}' medium is a directory, not devices; leave it out"
            )


def _check_expanded(draft: Draft, root: Node, mistakes: Mistakes) -> None:
    """Check the combinations of all entries that have no mistake of their own."""

    def without_mistakes(kind: str, names: Iterable[str]) -> bool:
        return not any(mistakes.any_at((kind, name)) for name in names)

    stacks = {
        name: stack
        for name, stack in draft.stacks.items()
        if without_mistakes("stacks", [name])
        and without_mistakes("media", stack.medium)
        and set(stack.medium) <= set(draft.media)
    }
    workloads = {
        name: workload for name, workload in draft.workloads.items() if without_mistakes("workloads", [name])
    }
    total = sum(matrix.stack_count(stack, draft.media) for stack in stacks.values()) * sum(
        matrix.count(workload.parameters) for workload in workloads.values()
    )
    if total > MAX_COMBINATIONS:
        what = f"the lists make up to {total} cells; at most {MAX_COMBINATIONS} are allowed: shorten them"
        mistakes.add(root.place, (), what)
        return
    if (characters := matrix.characters(stacks, draft.media, workloads)) > MOST_CHARACTERS:
        what = f"the cells together have up to {characters >> 20} Mi characters of text; at most "
        mistakes.add(
            root.place, (), f"{what}{MOST_CHARACTERS >> 20} Mi are allowed: use shorter files, or fewer cells"
        )
        return
    time_limits.check(draft, workloads, root, mistakes)
    expanded = matrix.stack_specs(stacks, draft.media)
    used = [
        _Use(entry=entry, stack=stack, draft=draft, root=root, mistakes=mistakes) for entry, stack in expanded
    ]
    for use in used:
        applied = stacks[use.entry].workloads
        use.check({name: each for name, each in workloads.items() if applied is None or name in applied})
    _check_sharing(used, workloads, stacks)


def _check_known_limits(root: Node, mistakes: Mistakes) -> None:
    """Note each key of ``known_limits`` that is not a kind of warning: it would have no effect."""
    known = kinds()
    for kind, node in root.fields["known_limits"].fields.items() if "known_limits" in root.fields else ():
        if kind not in known:
            mistakes.add(node.place, node.path, f"no kind of warning '{kind}'{suggestion(kind, known)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Use:
    """One expanded stack, with the checks of its disks and of the space for its workloads."""

    entry: str
    stack: StackSpec
    draft: Draft
    root: Node
    mistakes: Mistakes

    @property
    def planned(self) -> MediumPlan:
        return parsed_stack(self.stack).medium_plan(Path())

    @property
    def disks(self) -> int:
        """Number of devices that the layout uses."""
        return parsed_stack(self.stack).disks

    def check(self, workloads: dict[str, StudyWorkload]) -> None:
        """Check that layout, file system, geometry and settings are compatible, and that everything fits on the
        medium."""
        self._check_together()
        self._check_tuning()
        layout, planned = LAYOUTS.get(self.stack.layout), self.planned
        if planned.wipes and self.disks > len(planned.wipes):
            what = (
                f"needs {self.disks} disks, and medium '{self.stack.medium.name}' names {len(planned.wipes)}"
            )
            self._add("layout", f"{what}: name more in its 'path', separated by spaces")
        if planned.size_bytes is None:
            return
        if planned.size_bytes < layout.least_disk_bytes:
            medium, least = self.stack.medium.name, format_size(layout.least_disk_bytes)
            room = format_size(planned.size_bytes)
            self._add(
                "layout", f"needs disks of at least {least}, and those of medium '{medium}' have {room}"
            )
            return
        parsed = parsed_stack(self.stack)
        size_bytes = parsed.usable_bytes(planned.size_bytes)
        if self.stack.filesystem is not None:
            self._check_smallest(FILESYSTEMS.get(self.stack.filesystem), size_bytes)
            self._check_fill(FILESYSTEMS.get(self.stack.filesystem), size_bytes)
        size_bytes = int(size_bytes * (1 - self.stack.filled))
        held_bytes = size_bytes
        if planned.holds_bytes is not None and planned.holds_bytes < planned.size_bytes:
            held_bytes = min(size_bytes, parsed.usable_bytes(planned.holds_bytes))
        for name, workload in workloads.items():
            for spec in matrix.workload_specs(name, workload):
                self._check_space(name, spec, size_bytes, held_bytes)

    def _check_together(self) -> None:
        try:
            parsed_stack(self.stack).check_together()
        except ValueError as error:
            geometry = str(error).startswith("geometry")
            self._add("geometry" if geometry else "layout", brief(str(error)))

    def _check_tuning(self) -> None:
        if self.mistakes.any_at(("tuning",)):
            return
        try:
            tunables.check_together({**self.draft.values.get("tuning", {}), **self.stack.tuning})
        except ValueError as error:
            place = self.root if not self.stack.tuning else self.root.at(("stacks", self.entry))
            node = place.at(("tuning",))
            self.mistakes.add(node.place, node.path, str(error))

    def _add(self, key: str, what: str) -> None:
        node = self.root.at(("stacks", self.entry, key))
        self.mistakes.add(node.place, node.path, what)

    def _check_smallest(self, driver: FileSystem, size_bytes: int) -> None:
        aligned = self.stack.geometry is Geometry.ALIGNED
        least_bytes = max(driver.min_size_bytes, driver.aligned_min_size_bytes if aligned else 0)
        if size_bytes < least_bytes:
            told = " with geometry 'aligned'" if least_bytes > driver.min_size_bytes else ""
            needed = f"{driver.name} needs at least {format_size(least_bytes)}{told}"
            self._add("filesystem", f"{needed}, {self._room(size_bytes)}")

    def _check_fill(self, driver: FileSystem, size_bytes: int) -> None:
        """Check that the file system, as mkfs makes it without options, can be filled to the share."""
        share = self.stack.filled
        if not share or self.stack.mkfs_options or LAYOUTS.get(self.stack.layout).filesystems is not None:
            return
        least, most = driver.used_bytes / size_bytes, 1 - driver.unfilled_bytes / size_bytes
        room = self._room(size_bytes)
        if share > most + initial_content.PRECISION:
            self._add(
                "fill", f"{driver.name} cannot be filled to {share:.0%}, only to about {most:.0%}, {room}"
            )
        if share < least - initial_content.PRECISION:
            self._add("fill", f"an empty {driver.name} is filled to {least:.0%}, not to {share:.0%}, {room}")

    def _check_space(self, name: str, spec: WorkloadSpec, size_bytes: int, held_bytes: int) -> None:
        """Check the space for files: on the file system, and in the less that its medium holds, beside what mkfs
        writes."""
        needed_bytes = parsed(spec).space_bytes()
        what = f"'{spec.name}' needs {format_size(needed_bytes)}, {self._room(size_bytes)}"
        if needed_bytes <= size_bytes:
            made_bytes, zeros = self._made_bytes(size_bytes)
            if held_bytes == size_bytes or needed_bytes + made_bytes <= held_bytes:
                return
            made = f"mkfs of {self.stack.filesystem} writes {format_size(made_bytes)}{zeros}"
            files = f"'{spec.name}' needs {format_size(needed_bytes)}, {made}"
            what = f"{files}, {self._room(held_bytes)}: give it more '{self.planned.holds_key}'"
        node = self.root.at(("workloads", name))
        self.mistakes.add(node.place, node.path, what)

    def _made_bytes(self, size_bytes: int) -> tuple[int, str]:
        """Return what mkfs writes that takes room on the medium, and why zeros are part of it: blocks of an image are
        allocated for them, and a virtual disk keeps only what is not all zeros."""
        if self.stack.filesystem is None:
            return 0, ""
        made = FILESYSTEMS.get(self.stack.filesystem).made_with(self.stack.mkfs_options)
        image = self.stack.medium.type != "virtual"
        encrypted = (
            " (zeros take room when they are encrypted)" if LAYOUTS.get(self.stack.layout).encrypts else ""
        )
        zeros = " with zeros" if image else encrypted
        return made.data(size_bytes) + (made.zeros(size_bytes) if zeros else 0), zeros

    def _room(self, size_bytes: int) -> str:
        layout = "" if self.stack.layout == "single" else f" with layout '{self.stack.layout}'"
        medium = f"medium '{self.stack.medium.name}' of stack '{self.entry}'"
        return f"and {medium} has {format_size(size_bytes)}{layout}"


def _check_sharing(
    used: list[_Use], workloads: dict[str, StudyWorkload], stacks: dict[str, StudyStack]
) -> None:
    """Note each device that other cells would format although one cell keeps its file system there.

    A device holds one file system at a time, so a file system that outlives a trial needs the device for itself.
    """
    tenants: dict[str, dict[str, tuple[_Use, Fresh]]] = defaultdict(dict)
    for use in used:
        applied = stacks[use.entry].workloads
        for name, workload in workloads.items():
            if applied is not None and name not in applied:
                continue
            fresh = workload.fresh or use.draft.values.get("fresh", Fresh.TRIAL)
            for device in use.planned.wipes[: use.disks]:
                for spec in matrix.workload_specs(name, workload):
                    lives = {
                        Fresh.TRIAL: "trial",
                        Fresh.BLOCK: "trial",
                        Fresh.CELL: f"{use.stack.name}/{spec.name}",
                    }
                    tenants[device][lives.get(fresh, use.stack.name)] = (use, fresh)
    for device, held in tenants.items():
        lasting = [(use, fresh) for use, fresh in held.values() if fresh.lasts]
        if not lasting or len(held) == 1:
            continue
        use, fresh = lasting[0]
        node = use.root.at(("stacks", use.entry, "medium"))
        what = (
            f"'{device}' would be formatted by other cells although 'fresh: {fresh}' keeps its file system: "
            "use 'fresh: trial', or a device for each"
        )
        use.mistakes.add(node.place, node.path, what)


def _combinations(entry: StudyMedium | StudyLayout) -> list[str]:
    """Return the combinations of a medium or layout as JSON, type and options; of too many, the first ones."""
    points = islice(matrix.points(entry.options), MAX_COMBINATIONS)
    values = (matrix.values_at(entry.options, point) for point in points)
    return [json.dumps([entry.type, options], sort_keys=True) for options in values]
