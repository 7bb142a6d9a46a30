"""Checks that involve several parts of a study: options of a file system, references, space, shared devices.

Pure: the registered entries only compute what they would do. No device is opened.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fslab.cell import Fresh, Geometry, StackSpec, WorkloadSpec
from fslab.machine import tunables
from fslab.storage import initial_content
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import MediumPlan
from fslab.storage.parsed_stack import parsed_stack
from fslab.study import claims, matrix
from fslab.study.check_stacks import StackCheck
from fslab.study.mistakes import Mistakes, brief, suggestion
from fslab.study.model import StudyMedium, StudyStack, StudyWorkload
from fslab.study.options import MAX_COMBINATIONS
from fslab.study.read import Draft
from fslab.study.source import Node
from fslab.units import format_duration, format_size
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
        StackCheck(stack=stack, node=node, root=root, draft=draft, mistakes=mistakes).run()
    _check_expanded(draft, root, mistakes)
    if not mistakes.found and written is not None:
        found, published = draft.values.get("claims", ()), draft.values.get("published")
        claims.check(root, found, published, written, mistakes)
    _check_known_limits(root, mistakes)


def _check_expanded(draft: Draft, root: Node, mistakes: Mistakes) -> None:
    """Check the combinations of all entries that have no mistake of their own."""
    stacks = {
        name: stack
        for name, stack in draft.stacks.items()
        if not mistakes.any_at(("stacks", name))
        and not any(mistakes.any_at(("media", medium)) for medium in stack.medium)
        and set(stack.medium) <= set(draft.media)
    }
    workloads = {
        name: each for name, each in draft.workloads.items() if not mistakes.any_at(("workloads", name))
    }
    total = sum(matrix.stack_count(stack, draft.media) for stack in stacks.values()) * sum(
        matrix.count(workload.parameters) for workload in workloads.values()
    )
    if total > MAX_COMBINATIONS:
        what = f"the lists make up to {total} cells; at most {MAX_COMBINATIONS} are allowed: shorten them"
        mistakes.at(root, what)
        return
    if (characters := matrix.characters(stacks, draft.media, workloads)) > MOST_CHARACTERS:
        what = f"the cells together have up to {characters >> 20} Mi characters of text; at most "
        what += f"{MOST_CHARACTERS >> 20} Mi are allowed: use shorter files, or fewer cells"
        mistakes.at(root, what)
        return
    _check_time_limits(draft, workloads, root, mistakes)
    used = [
        _Use(
            entry=entry, stack=stack, draft=draft, root=root, mistakes=mistakes,
            workloads={name: each for name, each in workloads.items() if stacks[entry].runs(name)},
        )
        for entry, stack in matrix.stack_specs(stacks, draft.media)
    ]  # fmt: skip
    for use in used:
        use.check()
    _check_sharing(used)


def _check_known_limits(root: Node, mistakes: Mistakes) -> None:
    """Note each key of ``known_limits`` that is not a kind of warning: it would have no effect."""
    known = kinds()
    for kind, node in root.fields["known_limits"].fields.items() if "known_limits" in root.fields else ():
        if kind not in known:
            mistakes.at(node, f"no kind of warning '{kind}'{suggestion(kind, known)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Use:
    """One expanded stack, with the checks of its disks and of the space for its workloads."""

    entry: str
    stack: StackSpec
    workloads: Mapping[str, StudyWorkload]
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

    def check(self) -> None:
        """Check that layout, file system, geometry and settings are compatible, and that everything fits on the
        medium."""
        self._check_together()
        self._check_tuning()
        layout, planned = LAYOUTS.get(self.stack.layout), self.planned
        medium = f"medium '{self.stack.medium.name}'"
        if planned.wipes and self.disks > len(planned.wipes):
            what = f"needs {self.disks} disks, and {medium} names {len(planned.wipes)}"
            self._add("layout", f"{what}: name more in its 'path', separated by spaces")
        if planned.size_bytes is None:
            return
        if planned.size_bytes < layout.least_disk_bytes:
            least, room = format_size(layout.least_disk_bytes), format_size(planned.size_bytes)
            self._add("layout", f"needs disks of at least {least}, and those of {medium} have {room}")
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
        for name, workload in self.workloads.items():
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
            place = ("stacks", self.entry, "tuning") if self.stack.tuning else ("tuning",)
            self.mistakes.at(self.root.at(place), str(error))

    def _add(self, key: str, what: str) -> None:
        self.mistakes.at(self.root.at(("stacks", self.entry, key)), what)

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
            what = f"{driver.name} cannot be filled to {share:.0%}, only to about {most:.0%}"
            self._add("fill", f"{what}, {room}")
        if share < least - initial_content.PRECISION:
            self._add("fill", f"an empty {driver.name} is filled to {least:.0%}, not to {share:.0%}, {room}")

    def _check_space(self, name: str, spec: WorkloadSpec, size_bytes: int, held_bytes: int) -> None:
        """Check the space for files: on the file system, and in the less that its medium holds, beside what mkfs
        writes."""
        needed_bytes = parsed(spec).space_bytes()
        room = f"{self._room(size_bytes)}: use a larger one, or less data"
        what = f"'{spec.name}' needs {format_size(needed_bytes)}, {room}"
        own_bytes = 0 if parsed(spec).guesses_space() else self._own_bytes()
        if needed_bytes <= size_bytes < needed_bytes + own_bytes:
            own = f"{self.stack.filesystem} takes at least {format_size(own_bytes)} itself"
            what = f"'{spec.name}' needs {format_size(needed_bytes)}, {own}, {room}"
        elif needed_bytes <= size_bytes:
            made_bytes, zeros = self._made_bytes(size_bytes)
            if held_bytes == size_bytes or needed_bytes + made_bytes <= held_bytes:
                return
            made = f"mkfs of {self.stack.filesystem} writes {format_size(made_bytes)}{zeros}"
            files = f"'{spec.name}' needs {format_size(needed_bytes)}, {made}"
            what = f"{files}, {self._room(held_bytes)}: give it more '{self.planned.holds_key}'"
        self.mistakes.at(self.root.at(("workloads", name)), what)

    def _own_bytes(self) -> int:
        """Return what files cannot take of the file system's devices, at least; 0 if options or a layout decide it, and
        if it is part of what the file system is filled to."""
        stack = self.stack
        decided = stack.mkfs_options or stack.filled or LAYOUTS.get(stack.layout).filesystems is not None
        if stack.filesystem is None or decided:
            return 0
        return FILESYSTEMS.get(stack.filesystem).own_bytes

    def _made_bytes(self, size_bytes: int) -> tuple[int, str]:
        """Return what mkfs writes that takes room on the medium, and why zeros are part of it: blocks of an image are
        allocated for them, and a virtual disk keeps only what is not all zeros."""
        if self.stack.filesystem is None:
            return 0, ""
        made = FILESYSTEMS.get(self.stack.filesystem).made_with(self.stack.mkfs_options)
        encrypts = LAYOUTS.get(self.stack.layout).encrypts
        zeros = " (zeros take room when they are encrypted)" if encrypts else ""
        if self.stack.medium.type != "virtual":
            zeros = " with zeros"
        return made.data(size_bytes) + (made.zeros(size_bytes) if zeros else 0), zeros

    def _room(self, size_bytes: int) -> str:
        layout = "" if self.stack.layout == "single" else f" with layout '{self.stack.layout}'"
        medium = f"medium '{self.stack.medium.name}' of stack '{self.entry}'"
        return f"and {medium} has {format_size(size_bytes)}{layout}"


def _check_sharing(used: list[_Use]) -> None:
    """Note each device that other cells would format although one cell keeps its file system there.

    A device holds one file system at a time, so a file system that outlives a trial needs the device for itself.
    """
    tenants: dict[str, dict[str, tuple[_Use, Fresh]]] = defaultdict(dict)
    for use in used:
        for name, workload in use.workloads.items():
            fresh = workload.fresh or use.draft.values.get("fresh", Fresh.TRIAL)
            for device in use.planned.wipes[: use.disks]:
                for spec in matrix.workload_specs(name, workload):
                    tenant = f"{use.stack.name}/{spec.name}" if fresh is Fresh.CELL else use.stack.name
                    tenants[device][tenant if fresh.lasts else "trial"] = (use, fresh)
    for device, held in tenants.items():
        lasting = [(use, fresh) for use, fresh in held.values() if fresh.lasts]
        if not lasting or len(held) == 1:
            continue
        use, fresh = lasting[0]
        what = f"'{device}' would be formatted by other cells although 'fresh: {fresh}' keeps its file system"
        use._add("medium", f"{what}: use 'fresh: trial', or a device for each")


LONGEST_UNASKED_S = 2 * 86400.0  # longest expected time of one trial if no 'time_limit' is set


def _check_time_limits(
    draft: Draft, workloads: Mapping[str, StudyWorkload], root: Node, mistakes: Mistakes
) -> None:
    """Note each workload that is expected to exceed its ``time_limit``: every trial of it would be ended.

    If no limit is set, an expected time above ``LONGEST_UNASKED_S`` is noted as a probable mistake. The default limit
    follows the expected time, so it would not end such a trial.
    """
    for name, workload in workloads.items():
        limit_s = workload.time_limit_s or draft.values.get("time_limit")
        for spec in matrix.workload_specs(name, workload):
            expected_s = parsed(spec).expected_s()
            if expected_s <= (limit_s or LONGEST_UNASKED_S):
                continue
            remedy = "; if it may, set 'time_limit'"
            if limit_s is not None:
                remedy = f" and would be ended after {format_duration(limit_s)}: raise 'time_limit'"
            what = f"'{spec.name}' takes about {format_duration(expected_s)}{remedy}"
            mistakes.at(root.at(("workloads", name)), what)
