"""Applies a study's ``scale``: multiplies sizes, counts and run times before the study is checked.

Each tool and medium defines which values are scaled and their lower limits. This module only iterates over the lists
and computes the space that is needed. Pure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import ValidationError

from fslab import scaling
from fslab.cell import EntryOptions, Scalar, as_written
from fslab.errors import FslabError
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.scaling import Changes, Scaled, ScaledAmount
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.media import Medium
from fslab.study import matrix
from fslab.study.inputs import Files
from fslab.study.mistakes import Mistakes, brief
from fslab.study.model import StudyLayout, StudyStack
from fslab.study.read import Draft
from fslab.study.source import Node
from fslab.units import parse_size
from fslab.workloads import REGISTRY as WORKLOADS
from fslab.workloads import Workload, parsed

# Below this size, logs, allocation groups and reservations have their minimum sizes: a different experiment.
LEAST_VOLUME_BYTES = 1 << 30
# Space that a file system needs besides the files: a log, two copies of metadata, a reserve.
_OWN_BYTES = 96 << 20
_OWN_SHARE = 1.5
# So large a disk that what its layout keeps for itself does not matter.
_PROBE_BYTES = 1 << 40
Axes = Mapping[str, tuple[Scalar, ...]]


def scale(draft: Draft, root: Node, mistakes: Mistakes) -> tuple[Scaled, ...]:
    """Replace the values in the draft by the scaled ones; return the changes.

    Values given with ``--set`` are not scaled.
    """
    factor = float(draft.values.get("scale", 1.0))
    own = not root.at(("scale",)).place.rank  # ``scaled_by`` overrides the file's scale, not --set
    scales = [entry.scaled_by for group in (draft.workloads, draft.media) for entry in group.values()]
    if factor == 1.0 and not (own and any(scales)):
        return ()
    scaler = _Scaler(draft=draft, root=root, mistakes=mistakes, factor=factor, own=own)
    scaler.workloads()
    scaler.media()
    scaler.guest_memory()
    return tuple(dict.fromkeys(scaler.found))


@dataclass(kw_only=True, slots=True)
class _Scaler:
    draft: Draft
    root: Node
    mistakes: Mistakes
    factor: float
    own: bool
    found: list[Scaled] = field(default_factory=list)

    def workloads(self) -> None:
        for name, workload in self.draft.workloads.items():
            entry, factor = WORKLOADS.get(workload.tool), self._factor(workload.scaled_by)
            if factor == 1.0:
                continue
            kept = _from_command_line(self.draft.workload_nodes[name])
            change = partial(self._workload_at, entry, workload.files, factor)
            axes = self._axes(f"workloads.{name}", workload.parameters, change, kept, factor)
            if self._sound(("workloads", name), axes, partial(_parsed, entry, workload.files)):
                self.draft.workloads[name] = workload.model_copy(update={"parameters": axes})

    def media(self) -> None:
        for name, medium in self.draft.media.items():
            entry, least_bytes = MEDIA.get(medium.type), self._least_bytes(name)
            factor = self._factor(medium.scaled_by)
            if factor == 1.0:
                continue
            kept = _from_command_line(self.draft.medium_nodes[name])
            change = partial(self._medium_at, entry, least_bytes, factor)
            axes = self._axes(f"media.{name}", medium.options, change, kept, factor)
            self.draft.media[name] = medium.model_copy(update={"options": axes})

    def _factor(self, own: float | None) -> float:
        return own if own is not None and self.own else self.factor

    def guest_memory(self) -> None:
        for name, stack in self.draft.stacks.items():
            node, written = self.draft.stack_nodes[name], stack.guest_memory
            own = "guest_memory" in node.fields
            if written is None or "guest_memory" in _from_command_line(node if own else self.root):
                continue
            least = max(map(_least_memory_bytes, stack.on), default=0)
            change = scaling.size(written, self.factor, least_bytes=least, unit_bytes=1 << 20)
            self._say(f"stacks.{name}" if own else "", "guest_memory", change, self.factor)
            self.draft.stacks[name] = stack.model_copy(update={"guest_memory": str(change.value)})

    def _workload_at(
        self, entry: Workload[Any], files: Files, factor: float, point: Mapping[str, Scalar]
    ) -> Changes:
        return entry.of(point).scaled(_parsed(entry, files, point), factor)

    def _medium_at(
        self, entry: Medium[Any], least_bytes: int, factor: float, point: Mapping[str, Scalar]
    ) -> Changes:
        options = entry.parse_options(point)
        written = parse_size(str(getattr(options, "size", "0")))
        least_bytes = max(least_bytes, min(written, LEAST_VOLUME_BYTES))
        return entry.scaled(options, factor, least_bytes=least_bytes)

    def _axes(
        self,
        entry: str,
        axes: Axes,
        change: Callable[[Mapping[str, Scalar]], Changes],
        kept: frozenset[str],
        factor: float,
    ) -> dict[str, tuple[Scalar, ...]]:
        """Return each list with scaled values. If combinations scale a value differently, the largest is used."""
        best: dict[tuple[str, int], ScaledAmount] = {}
        defaults: dict[str, Scalar] = {}
        for point in matrix.points(axes):
            changes = change(matrix.values_at(axes, point))
            for key, each in changes.items():
                if key in kept:
                    continue
                place = (key, point.get(key, 0))
                if place not in best or each.share > best[place].share:
                    best[place] = each
                if key not in axes:
                    defaults[key] = each.written
        found = {key: list(values) for key, values in axes.items()}
        found |= {key: [value] for key, value in defaults.items()}
        for (key, index), each in best.items():
            self._say(entry, key, each, factor)
            found[key][index] = each.value
        return {key: tuple(dict.fromkeys(values)) for key, values in found.items()}

    def _say(self, entry: str, key: str, change: ScaledAmount, factor: float) -> None:
        written, used = as_written(change.written), as_written(change.value)
        floor = scaling.on_floor(change, factor)
        self.found.append(Scaled(entry=entry, key=key, written=written, used=used, floor=floor))

    def _sound(
        self, path: tuple[str, str], axes: Axes, parse: Callable[[Mapping[str, Scalar]], object]
    ) -> bool:
        """Return whether the tool accepts all scaled combinations; note the first one that it rejects."""
        for point in matrix.points(axes):
            try:
                parse(matrix.values_at(axes, point))
            except (ValidationError, FslabError) as error:
                node = self.root.at(path)
                said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.what
                self.mistakes.at(node, f"at scale {self.factor:g}: {brief(said)}")
                return False
        return True

    def _least_bytes(self, medium: str) -> int:
        """Return the smallest disk size that holds the file systems and files of all stacks that use the medium."""
        least = 0
        for stack in self.draft.stacks.values():
            if medium not in stack.medium:
                continue
            wanted = max(self._filesystems_bytes(stack), self._files_bytes(stack))
            for layout in stack.layout:
                values = (matrix.values_at(layout.options, point) for point in matrix.points(layout.options))
                least = max(least, *(_disk_bytes(layout, each, wanted) for each in values))
        return least

    def _filesystems_bytes(self, stack: StudyStack) -> int:
        known = [FILESYSTEMS.get(name) for name in stack.filesystem if name in FILESYSTEMS.names()]
        sizes = [(each.min_size_bytes, each.aligned_min_size_bytes) for each in known]
        aligned = "aligned" in stack.geometry
        return max((max(least, told if aligned else 0) for least, told in sizes), default=0)

    def _files_bytes(self, stack: StudyStack) -> int:
        names = self.draft.workloads if stack.workloads is None else stack.workloads
        needed = 0
        for name in names:
            if (workload := self.draft.workloads.get(name)) is not None:
                for spec in matrix.workload_specs(name, workload):
                    needed = max(needed, parsed(spec).space_bytes())
        return int(_OWN_SHARE * needed) + _OWN_BYTES


def _parsed(entry: Workload[Any], files: Files, point: Mapping[str, Scalar]) -> EntryOptions:
    return entry.of(point).parse_parameters(matrix.with_texts(point, files))  # type: ignore[no-any-return]


def _disk_bytes(layout: StudyLayout, point: Mapping[str, Scalar], wanted_bytes: int) -> int:
    """Return the size that each disk needs so that the layout holds ``wanted_bytes``."""
    entry = LAYOUTS.get(layout.type)
    options = entry.parse_options(point)
    share = entry.usable_bytes(options, _PROBE_BYTES) / _PROBE_BYTES
    return max(entry.least_disk_bytes, int(wanted_bytes / share) + (8 << 20))


def _from_command_line(node: Node) -> frozenset[str]:
    return frozenset(key for key, child in node.fields.items() if child.place.rank)


def _least_memory_bytes(on: str) -> int:
    """Return the least memory of a kind of machine; of a choice of several, the smallest, which the choice raises."""
    if on in MACHINES.names():
        return MACHINES.get(on).least_memory_bytes
    return min(machine.least_memory_bytes for _, machine in MACHINES)
