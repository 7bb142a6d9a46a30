"""Checks where a stack runs: names of machines, and keys that only a guest has. Pure: opens no kernel."""

from collections.abc import Callable

from fslab.machine.kinds import AUTO, BEST, GUEST, REGISTRY
from fslab.study.mistakes import Mistakes, suggestion
from fslab.study.model import StudyStack
from fslab.study.source import Node


def check(stack: StudyStack, node: Node, root: Node, mistakes: Mistakes) -> None:
    """Note the mistakes in a stack's ``on``, ``kernel`` and ``modules``.

    A mistake is shown where the key is written: in the stack, or once at the top level for all stacks.
    """

    def add(key: str, what: str, number: int | None = None) -> None:
        within = node if key in node.fields else root
        place = within.at((key,) if number is None else (key, number))
        if not mistakes.any_at(place.path):
            mistakes.add(place.place, place.path, what)

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
