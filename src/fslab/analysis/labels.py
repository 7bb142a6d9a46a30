"""Short names for stacks and workloads, just long enough to distinguish them. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from fslab.cell import Cell, MediumSpec, StackSpec, grouped, shown


def stack_lines(stacks: Sequence[StackSpec]) -> list[tuple[str, ...]]:
    """Return a label for each stack, in lines: the words of its name in the study.

    Stacks of several studies can have the same name: these get what differs among them.
    """
    return [(*stack.name.split(), *_told_apart(stack, stacks)) for stack in stacks]


def stack_names(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the label of each stack of these cells, by its id, in their order."""
    specs = {cell.stack_id: cell.stack for cell in cells}
    return dict(zip(specs, map(" ".join, stack_lines([*specs.values()])), strict=True))


def _told_apart(stack: StackSpec, stacks: Sequence[StackSpec]) -> list[str]:
    alike = [other for other in stacks if other.name == stack.name]
    traits: list[Callable[[StackSpec], str]] = [
        lambda one: one.filesystem or "no file system",
        lambda one: one.mounted_with,
        lambda one: f"mkfs {one.mkfs_options or 'defaults'}",
        lambda one: f"geometry {one.geometry}",
        lambda one: settings_of(one) or "plain",
        _layout,
        lambda one: f"on {medium_label(one.medium)}",
    ]
    return [trait(stack) for trait in traits if len({trait(other) for other in alike}) > 1]


def settings_of(stack: StackSpec) -> str:
    """Return what a stack sets beside its options, as ``fill=80% io_scheduler=none``."""
    return " ".join(_settings(stack.settings))


def medium_label(medium: MediumSpec) -> str:
    """Return a medium's type and what the study sets, such as ``ram (size=1g)``."""
    options = _settings(medium.options)
    return f"{medium.type} ({', '.join(options)})" if options else medium.type


def _layout(stack: StackSpec) -> str:
    return " ".join((stack.striped_by, *_settings(stack.layout_options)))


def workload_labels(cells: Sequence[Cell]) -> list[str]:
    """Return a label for each cell's workload: its name, and what distinguishes it from others with the same name."""
    by_name = grouped(cells, lambda cell: cell.workload.name)
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
