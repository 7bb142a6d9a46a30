"""Which machine can build a stack, and why others cannot. Changes nothing: boots no guest, loads no module.

Reads the lists beside a kernel's modules, so it is fast enough for every file system on every machine.
"""

from collections.abc import Collection, Iterator, Sequence

from fslab.cell import MachineSpec, MediumSpec, StackSpec
from fslab.errors import FslabError, UnsupportedError, UsageError
from fslab.feasibility._programs import remedies_for
from fslab.machine.kinds import AUTO, BEST, GUEST, REGISTRY, Machine, Need
from fslab.machine.planned_machine import here
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.parsed_stack import parsed_stack, served
from fslab.system import rights
from fslab.units import parse_size

# The machine closest to the hardware first. QEMU is preferred to User-Mode Linux only with KVM, by ``best``: then its
# CPUs are the hardware's.
PREFERRED = ("host", "uml", "qemu")


def missing_filesystem(name: str, spec: MachineSpec) -> tuple[Need, ...]:
    """Return what a machine lacks to mount a file system; empty if it can mount it."""
    return _missing_in_kernel(spec, filesystem=FILESYSTEMS.get(name))


def missing_layout(name: str, spec: MachineSpec) -> tuple[Need, ...]:
    """Return what a machine lacks to build a layout; empty if it can build it."""
    return _missing_in_kernel(spec, modules=LAYOUTS.get(name).modules)


def lacking(stack: StackSpec, spec: MachineSpec) -> tuple[Need, ...]:
    """Return what a machine lacks to build this stack, as far as it is known without trying; empty if it can."""
    return (*_unusable(stack, spec), *_unmade(stack, spec))


def _unmade(stack: StackSpec, spec: MachineSpec) -> tuple[Need, ...]:
    """Return what a machine lacks for the file system and for the layout, which the stack's medium may make itself."""
    if stack.filesystem is None:
        return ()
    return (
        *missing_filesystem(stack.filesystem, spec),
        *_missing_in_kernel(spec, modules=parsed_stack(stack).layout.modules),
    )


def _unusable(stack: StackSpec, spec: MachineSpec) -> tuple[Need, ...]:
    """Return why the machine cannot be used with this medium, for any file system."""
    machine, medium = REGISTRY.get(spec.type), MEDIA.get(stack.medium.type)
    if machine.guest and (why := _host_only(stack)):
        return (Need(what=why),)
    if not machine.guest and medium.needs_root and (missing := here().missing_for_mounts()):
        what = f"a '{stack.medium.type}' medium needs {missing} on the host"
        return (Need(what=what, remedy=rights.remedy(missing)),)
    return here().missing(spec)


def _host_only(stack: StackSpec) -> str | None:
    parsed = parsed_stack(stack)
    return parsed.medium.host_only(parsed.medium_options)


def _elsewhere(stack: StackSpec) -> str:
    """Return a hint on how to measure a stack that its machine cannot build. Its machine's other options stay."""
    for name in PREFERRED:
        there = stack.model_copy(update={"machine": stack.machine.model_copy(update={"type": name})})
        if name != stack.machine.type and _builds(there):
            return f"possible with: --on {name}"
    if _host_only(stack):
        return "boot the host with a kernel that has it, or use a medium that a guest can have"
    return "use a kernel that has it: --on uml (or qemu) --kernel FILE --modules DIRECTORY"


def _builds(stack: StackSpec) -> bool:
    if lacking(stack, stack.machine):
        return False
    try:
        check_machine(stack)
    except FslabError:
        return False
    return True


def resolved(stack: StackSpec) -> StackSpec:
    """Return the stack with ``auto`` replaced by the first machine that can build it.

    If no machine can, it becomes the first usable one: the trials of this stack are then stored as not possible, with
    the reason, and other stacks are measured. UnsupportedError, with what each lacks, if no machine is usable.
    """
    if stack.machine.type != AUTO:
        return stack
    specs = [_spec(stack.machine, REGISTRY.get(name)) for name in PREFERRED]
    able = [spec for spec in specs if not lacking(stack, spec)]
    usable = able or [spec for spec in specs if not _unusable(stack, spec)]
    if usable:
        return stack.model_copy(update={"machine": usable[0]})
    reasons = "; ".join(f"{spec.type}: {lacking(stack, spec)[0].what}" for spec in specs)
    raise UnsupportedError(f"no machine can build it ({reasons})", where=stack.name, hint="see: fslab doctor")


def all_resolved(stacks: Sequence[StackSpec]) -> list[StackSpec]:
    """Return the stacks with ``auto``, ``best`` and ``guest`` replaced by machines, and media as they are there.

    All stacks with ``best`` get one machine, so that they can be compared: the one that can build most of them, and of
    these the one closest to the hardware. Those that it cannot build are stored as not possible, with the reason. The
    same with ``guest``, but never the host. On a host that lacks a layout, media may make all stripes themselves: then
    none is the kernel's.
    """
    guests = tuple(name for name in PREFERRED if REGISTRY.get(name).guest)
    placed = dict(enumerate(stacks))
    for kind, names in ((BEST, PREFERRED), (GUEST, guests)):
        if together := {number: stack for number, stack in placed.items() if stack.machine.type == kind}:
            placed |= zip(together, _best([*together.values()], names), strict=True)
    found = map(resolved, placed.values())
    return [stack.model_copy(update={"medium": _medium_there(stack)}) for stack in found]


def _best(together: Sequence[StackSpec], names: Sequence[str]) -> list[StackSpec]:
    """Return the stacks on the machine that can build most of them; of several, on the one closest to the hardware."""
    specs = {name: [_spec(stack.machine, REGISTRY.get(name)) for stack in together] for name in names}
    native = [name for name in names if here().emulated(specs[name][0]) is False]
    order = sorted(names, key=lambda name: _distance(name, native))
    usable = [name for name in order if not _unusable(together[0], specs[name][0])] or order[:1]
    ways = [way for name in usable for way in _ways(together, specs[name], REGISTRY.get(name))]
    return max(ways, key=lambda way: sum(not lacking(stack, stack.machine) for stack in way))


def _ways(
    together: Sequence[StackSpec], specs: Sequence[MachineSpec], machine: Machine
) -> Iterator[list[StackSpec]]:
    """Yield the stacks on a machine: with the layouts of its kernel, and on the host with stripes of media."""
    there = [stack.model_copy(update={"machine": spec}) for stack, spec in zip(together, specs, strict=True)]
    yield there
    if not machine.guest and here().serves_disks():
        yield [served(stack) for stack in there]


def _medium_there(stack: StackSpec) -> MediumSpec:
    """Return the medium with the options that it has on the stack's machine: ``uml_speed`` is the ``speed`` in
    User-Mode Linux."""
    options = dict(stack.medium.options)
    speed = options.pop("uml_speed", None)
    if stack.machine.type == "uml" and speed is not None:
        options["speed"] = speed
    return stack.medium.model_copy(update={"options": options})


def _distance(name: str, native: Collection[str]) -> tuple[int, int]:
    """Return how far a machine is from the hardware: the host, a guest on the CPUs themselves, others."""
    guest_on_cpus = name == "qemu" and name in native
    return (0 if name == "host" else 1 if guest_on_cpus else 2), PREFERRED.index(name)


def check_machine(stack: StackSpec) -> None:
    """Raise what prevents the stack's machine from building it, before anything is created."""
    if stack.machine.type in {AUTO, BEST, GUEST}:
        raise UsageError(f"'{stack.machine.type}' must be resolved first", where=stack.name)
    guest = REGISTRY.get(stack.machine.type).guest
    for need in lacking(stack, stack.machine) if guest else _unmade(stack, stack.machine):
        raise UnsupportedError(
            need.what,
            where=f"{stack.name} on {stack.machine.type}",
            hint=need.remedy or _elsewhere(stack),
        )
    if guest:
        here().check_guest(stack.machine)
    elif stack.machine.memory is not None and not here().limits_memory():
        raise UnsupportedError(
            "the memory of a tool cannot be limited here: no control group with a memory limit may be made",
            where=f"{stack.name}: guest_memory: {stack.machine.memory}",
            hint="leave out guest_memory"
            + ("" if _host_only(stack) else ", or measure in a guest: --on guest"),
        )


def _spec(asked: MachineSpec, machine: Machine) -> MachineSpec:
    """Return the spec of ``machine``: with the memory of ``asked``, at least what it needs; a guest with its other
    options, too. A host that cannot limit a tool's memory gives it all."""
    small = asked.memory is not None and parse_size(asked.memory) < machine.least_memory_bytes
    memory = f"{machine.least_memory_bytes >> 20}m" if small else asked.memory
    if not machine.guest:
        return MachineSpec(memory=memory if here().limits_memory() else None)
    return asked.model_copy(update={"type": machine.name, "memory": memory})


def _missing_in_kernel(
    spec: MachineSpec, *, filesystem: FileSystem | None = None, modules: tuple[str, ...] = ()
) -> tuple[Need, ...]:
    needs = here().missing(spec)
    kernel = None if needs else here().kernel(spec)
    if kernel is None:
        return needs
    absent = [name for name in modules if not kernel.has_module(name)]
    lacking = [Need(what=f"Linux {kernel.release} has no {name}") for name in absent]
    if filesystem is not None and filesystem.mounted and not kernel.has_filesystem(filesystem.mount_type):
        why = filesystem.kernels.why_missing(kernel.release)
        what = f"Linux {kernel.release} has no {filesystem.mount_type}{f' ({why})' if why else ''}"
        needed = (filesystem.module, *filesystem.tools) if filesystem.module else ()
        remedies = () if REGISTRY.get(spec.type).guest else remedies_for(needed)
        lacking.append(Need(what=what, remedy="; ".join(remedies) or None))
    return tuple(lacking)
