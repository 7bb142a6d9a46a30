"""Expands lists to combinations: pure functions on names and values, without registry, file or device.

The first key written varies slowest (in a stack: machine, file system, mkfs, mount, geometry, layout, medium,
attributes, filling, command after mount, tuning). The names of the results contain only what varies.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from fslab.cell import MachineSpec, MediumSpec, Scalar, StackSpec, WorkloadSpec, as_written
from fslab.names import short_word
from fslab.study.model import StudyLayout, StudyMedium, StudyStack, StudyWorkload
from fslab.workloads import text_key

Axes = Mapping[str, Sequence[Scalar]]
Point = dict[str, int]
SETTINGS = ("attributes", "fill", "after_mount")  # keys of a stack, beside its tuning
UNSAFE = re.compile(r"[^A-Za-z0-9_+-]")


def count(axes: Mapping[str, Sequence[object]]) -> int:
    return prod(len(values) for values in axes.values())


def points(axes: Mapping[str, Sequence[object]]) -> Iterator[Point]:
    """Yield every combination, as the index of each axis's value."""
    for indices in product(*(range(len(values)) for values in axes.values())):
        yield dict(zip(axes, indices, strict=True))


def values_at(axes: Axes, point: Point) -> dict[str, Scalar]:
    return {key: axes[key][index] for key, index in point.items()}


def varying(axes: Axes, point: Point) -> str:
    """Return the axes with more than one value, as ``bs=4k,iodepth=1``; empty if there is none."""
    values = values_at(axes, point)
    return ",".join(f"{key}={as_written(values[key])}" for key in axes if len(axes[key]) > 1)


def workload_specs(name: str, workload: StudyWorkload) -> list[WorkloadSpec]:
    """Return a workload's combinations, with names such as ``randwrite[bs=4k]`` and ``randwrite[bs=64k]``."""
    axes = workload.parameters
    return [
        WorkloadSpec(
            name=_bracketed(name, varying(axes, point)),
            tool=workload.tool,
            parameters=with_texts(values_at(axes, point), workload.files),
        )
        for point in points(axes)
    ]


def with_texts(values: Mapping[str, Scalar], files: Mapping[str, Mapping[str, str]]) -> dict[str, Scalar]:
    """Return the values with the texts of the files that they name.

    Only the file name of a path is kept, so that the same text in another directory is the same workload.
    """
    found = dict(values)
    for key, texts in files.items():
        path = str(values.get(key))
        if path in texts:
            found |= {key: path.rpartition("/")[2], text_key(key): texts[path]}
    return found


def medium_specs(name: str, medium: StudyMedium) -> list[MediumSpec]:
    """Return a medium's combinations, with names such as ``fast.1g`` and ``fast.2g``.

    Image files have these names, so they contain no slash.
    """
    found = []
    for point in points(medium.options):
        values = values_at(medium.options, point)
        varied = [as_written(value) for key, value in values.items() if len(medium.options[key]) > 1]
        label = ".".join([name, *(UNSAFE.sub("_", value) for value in varied)])
        found.append(MediumSpec(name=short_word(label), type=medium.type, options=values))
    return found


_CALLED = {"none": "raw"}  # "none is faster" means that no stack is


def stack_specs(
    stacks: Mapping[str, StudyStack], media: Mapping[str, StudyMedium]
) -> list[tuple[str, StackSpec]]:
    """Return every expanded stack with the name of its entry.

    A stack is named after what varies: ``ext4 noatime``. The name of the entry is put in front if the file system does
    not vary, or if the entry differs from another with the same file system in what does not vary in it, and for all
    stacks if two would otherwise have the same name.
    """
    found = [
        (name, spec, words) for name, stack in stacks.items() for spec, words in _combinations(stack, media)
    ]
    specs = [(name, spec) for name, spec, _ in found]
    several = {name for name, stack in stacks.items() if len(stack.filesystem) > 1}
    told = {name: name not in several or _hides_a_difference(name, specs, several) for name in stacks}
    short = [_stack_name(name, words, entry=told[name]) for name, _, words in found]
    unique = max(Counter(short).values(), default=1) == 1
    names = short if unique else [_stack_name(name, words, entry=True) for name, _, words in found]
    return [
        (entry, spec.model_copy(update={"name": name}))
        for (entry, spec, _), name in zip(found, names, strict=True)
    ]


def stack_count(stack: StudyStack, media: Mapping[str, StudyMedium]) -> int:
    """Return how many stacks an entry describes."""
    further = prod(len(getattr(stack, key)) for key in SETTINGS) * count(stack.tuning)
    mediums = sum(count(media[name].options) for name in stack.medium)
    layouts = sum(count(layout.options) for layout in stack.layout)
    variants = len(stack.filesystem or (None,)) * len(stack.mkfs_options) * len(stack.mount_options)
    return mediums * layouts * variants * len(stack.geometry) * len(machines(stack)) * further


def characters(
    stacks: Mapping[str, StudyStack], media: Mapping[str, StudyMedium], workloads: Mapping[str, StudyWorkload]
) -> int:
    """Return how many characters the cells have in JSON: each is stored with the texts of its files."""
    sizes = {name: stack_count(stack, media) for name, stack in stacks.items()}
    of_stacks = sum(len(stack.model_dump_json()) * sizes[name] for name, stack in stacks.items())
    of_workloads, works = 0, 0
    for each in workloads.values():
        number = count(each.parameters)
        works += number
        for key, values in each.parameters.items():
            texts = each.files.get(key, {})
            told = sum(len(json.dumps([value, texts.get(str(value))])) for value in values)
            of_workloads += told * number // len(values)
    return of_stacks * works + of_workloads * sum(sizes.values())


def _hides_a_difference(entry: str, found: Sequence[tuple[str, StackSpec]], several: Collection[str]) -> bool:
    """Return whether all stacks of an entry share a setting other than the default, which a stack of another entry with
    the same file system does not have. It does not vary in the entry, so that it is in no stack's name.

    No medium is the default: it counts if the other entry has ``several`` file systems too, so that neither is told.
    """
    own = [spec for name, spec in found if name == entry]
    filesystems = {spec.filesystem for spec in own}
    others = [(name, spec) for name, spec in found if name != entry and spec.filesystem in filesystems]
    for key, field in StackSpec.model_fields.items():
        value = _told(own[0], key)
        if key in {"name", "filesystem"} or value == field.get_default(call_default_factory=True):
            continue
        differ = (name for name, spec in others if _told(spec, key) != value)
        if all(_told(spec, key) == value for spec in own) and any(
            key != "medium" or name in several for name in differ
        ):
            return True
    return False


def _told(spec: StackSpec, key: str) -> object:
    """Return a setting of a stack; of its medium what it is, since two entries may describe the same one."""
    return (spec.medium.type, spec.medium.options) if key == "medium" else getattr(spec, key)


def _combinations(
    stack: StudyStack, media: Mapping[str, StudyMedium]
) -> Iterator[tuple[StackSpec, tuple[str, ...]]]:
    """Yield a stack's combinations, each with the words for what varies."""
    filesystems: tuple[str | None, ...] = stack.filesystem or (None,)
    mediums = _media({name: media[name] for name in stack.medium})
    layouts = _layouts(stack.layout)
    combinations = product(
        machines(stack),
        filesystems,
        stack.mkfs_options,
        stack.mount_options,
        stack.geometry,
        layouts,
        mediums,
        _settings(stack),
    )
    for place, filesystem, mkfs_options, mount_options, geometry, joined, disk, further in combinations:
        (machine, machine_words), (layout, options, layout_word) = place, joined
        (medium, medium_word), (settings, word) = disk, further
        words = (
            _CALLED.get(filesystem or "", filesystem) if len(filesystems) > 1 else None,
            (mkfs_options or "mkfs-defaults") if len(stack.mkfs_options) > 1 else None,
            mount_options if len(stack.mount_options) > 1 else None,
            f"geometry={geometry}" if len(stack.geometry) > 1 else None,
            layout_word,
            medium_word,
            word,
            *machine_words,
        )
        spec = StackSpec(
            name="", medium=medium, layout=layout, layout_options=options, filesystem=filesystem,
            mkfs_options=mkfs_options, mount_options=mount_options, geometry=geometry, machine=machine,
            **settings,
        )  # fmt: skip
        yield spec, tuple(word for word in words if word)


def _settings(stack: StudyStack) -> list[tuple[dict[str, Any], str]]:
    """Return the combinations of attributes, filling, command after mount and tuning, each with the word for what
    varies."""
    own: dict[str, Sequence[Scalar]] = {key: getattr(stack, key) for key in SETTINGS}
    axes = {**own, **stack.tuning}
    found = []
    for point in points(axes):
        values = {key: str(value) for key, value in values_at(axes, point).items()}
        tuning = {key: values[key] for key in stack.tuning}
        word = ",".join(f"{key}={values[key] or 'none'}" for key in axes if len(axes[key]) > 1)
        found.append(({**{key: values[key] for key in SETTINGS}, "tuning": tuning}, word))
    return found


def machines(stack: StudyStack) -> list[tuple[MachineSpec, tuple[str, ...]]]:
    """Return where a stack runs: every machine with every kernel, and the words for what varies.

    Kernels are named after their files, or by full path if two files have the same name.
    """
    types, kernels = stack.on or ("host",), stack.kernel or (None,)
    modules = stack.modules * len(kernels) if len(stack.modules) == 1 else stack.modules
    names = [kernel.rsplit("/", 1)[-1] for kernel in kernels if kernel is not None]
    found = []
    for (number, kernel), type_ in product(enumerate(kernels), types):
        label = kernel if len(set(names)) < len(names) or kernel is None else names[number]
        of_guest = {
            "kernel": kernel,
            "modules": modules[number] if number < len(modules) else None,
            "memory": stack.guest_memory,
        }
        guest = type_ != "host"
        spec = MachineSpec(type=type_, **(of_guest if guest else {"memory": stack.guest_memory}))
        words = (label if guest and len(kernels) > 1 else None, type_ if len(types) > 1 else None)
        found.append((spec, tuple(f"@{word}" for word in words if word)))
    return list({spec: (spec, words) for spec, words in found}.values())


def _media(media: Mapping[str, StudyMedium]) -> list[tuple[MediumSpec, str]]:
    """Return the combinations of media, each with the word for what varies. One written in a stack, whose name has a
    dot, is called by its type."""
    called = [(medium.type if "." in name else name, medium.options) for name, medium in media.items()]
    specs = (spec for name, medium in media.items() for spec in medium_specs(name, medium))
    return [(spec, word) for spec, (word, _) in zip(specs, _words(called), strict=True)]


def _layouts(layouts: Sequence[StudyLayout]) -> list[tuple[str, dict[str, Scalar], str]]:
    """Return the combinations of layouts: type, options, and the word for what varies."""
    types = [layout.type for layout in layouts for _ in points(layout.options)]
    words = _words([(layout.type, layout.options) for layout in layouts])
    return [(type_, values, word) for type_, (word, values) in zip(types, words, strict=True)]


def _words(entries: Sequence[tuple[str, Axes]]) -> Iterator[tuple[str, dict[str, Scalar]]]:
    """Yield the word and the values of every combination of called entries, such as ``md-raid0[chunk=64k]``.

    The word contains what varies. It is empty if nothing does.
    """
    called = Counter(name for name, _ in entries)
    for name, axes in entries:
        for point in points(axes):
            values = values_at(axes, point)
            # Two entries that are called the same may differ in a key that has one value in each.
            told = axes if called[name] > 1 else {key: axes[key] for key in axes if len(axes[key]) > 1}
            varied = ",".join(f"{key}={as_written(values[key])}" for key in told)
            yield _bracketed(name, varied) if len(entries) > 1 else varied, values


def _stack_name(entry_name: str, words: tuple[str, ...], *, entry: bool) -> str:
    return " ".join((entry_name, *words) if entry or not words else words)


def _bracketed(name: str, varied: str) -> str:
    return f"{name}[{varied}]" if varied else name
