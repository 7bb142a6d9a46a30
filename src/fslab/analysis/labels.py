"""Short names for stacks and workloads, just long enough to distinguish them. Pure."""

from collections.abc import Callable, Mapping, Sequence

from fslab.cell import Cell, StackSpec, shown


def stack_lines(stacks: Sequence[StackSpec]) -> list[tuple[str, ...]]:
    """Return a label for each stack, in lines: the file system, then options, layout and medium where these differ.

    Options are compared among stacks with the same file system, layout and medium among all stacks. If two labels are
    still equal, the names of the stacks are added.
    """
    labels = [_stack_label(stack, stacks) for stack in stacks]
    return [
        (*label, stack.name) if labels.count(label) > 1 else label
        for stack, label in zip(stacks, labels, strict=True)
    ]


def _stack_label(stack: StackSpec, stacks: Sequence[StackSpec]) -> tuple[str, ...]:
    alike = [other for other in stacks if other.filesystem == stack.filesystem]
    traits: list[tuple[Callable[[StackSpec], str], Sequence[StackSpec]]] = [
        (lambda one: one.mounted_with, alike),
        (lambda one: f"mkfs {one.mkfs_options or 'defaults'}", alike),
        (lambda one: f"geometry {one.geometry}", alike),
        (lambda one: settings_of(one) or "plain", alike),
        (_layout, stacks),
        (lambda one: f"on {one.medium.name}", stacks),
    ]
    differing = (trait(stack) for trait, among in traits if len({trait(other) for other in among}) > 1)
    return (stack.filesystem or stack.name, *differing)


def settings_of(stack: StackSpec) -> str:
    """Return what a stack sets beside its options, as ``fill=80% io_scheduler=none``."""
    return " ".join(_settings(stack.settings))


def _layout(stack: StackSpec) -> str:
    return " ".join((stack.layout, *_settings(stack.layout_options)))


def workload_labels(cells: Sequence[Cell]) -> list[str]:
    """Return a label for each cell's workload: its name, and what distinguishes it from others with the same name."""
    by_name: dict[str, list[Cell]] = {}
    for cell in cells:
        by_name.setdefault(cell.workload.name, []).append(cell)
    return [_workload_label(cell, by_name[cell.workload.name]) for cell in cells]


def _workload_label(cell: Cell, alike: Sequence[Cell]) -> str:
    told_apart = [
        *_differing(cell.workload.parameters, [other.workload.parameters for other in alike]),
        *_differing(cell.tuning, [other.tuning for other in alike]),
    ]
    if len({other.workload.tool for other in alike}) > 1:
        told_apart.append(cell.workload.tool)
    if len({other.cache for other in alike}) > 1:
        told_apart.append(cell.cache.value)
    if len({other.fresh for other in alike}) > 1:
        told_apart.append(f"fresh per {cell.fresh.value}")
    return f"{cell.workload.name} ({', '.join(told_apart)})" if told_apart else cell.workload.name


def _differing(options: Mapping[str, object], others: Sequence[Mapping[str, object]]) -> list[str]:
    differing = {
        name: options[name] for name in options if len({repr(other.get(name)) for other in others}) > 1
    }
    return _settings(differing)


def _settings(options: Mapping[str, object]) -> list[str]:
    return [f"{name}={shown(value)}" for name, value in options.items()]
