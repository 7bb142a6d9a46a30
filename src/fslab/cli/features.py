"""``fslab features``: test what file systems support, on scratch volumes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli.common import (
    JsonOption,
    KernelOption,
    MemoryOption,
    ModulesOption,
    console,
    print_json,
)
from fslab.errors import FslabError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from fslab.campaign.feature_tests import Request
    from fslab.campaign.guests import Guests
    from fslab.cell import MachineSpec
    from fslab.features import Examination

DEFAULT_SIZE = "384m"


def features(
    filesystems: Annotated[
        list[str], typer.Argument(metavar="FILESYSTEM…", help="Names as in: fslab list filesystems.")
    ],
    on: Annotated[
        str,
        typer.Option(
            metavar="MACHINE",
            help="Where to test: host, uml, qemu, or auto: for each file system the first of these that has it.",
        ),
    ] = "auto",
    kernel: KernelOption = None,
    modules: ModulesOption = None,
    guest_memory: MemoryOption = None,
    medium: Annotated[
        str,
        typer.Option(
            metavar="loop|ram", help="On the host: image files on a disk (loop), or in memory (ram)."
        ),
    ] = "ram",
    size: Annotated[str, typer.Option(metavar="SIZE", help="Size of each scratch volume.")] = DEFAULT_SIZE,
    only: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Test only these features (fslab list features).")
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Show what was observed, feature by feature.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Test what file systems support, and print a table with the documented features beside it.

    Each feature is tested on a scratch file system, which is removed afterwards. A question mark means that the test
    was inconclusive; the reason is shown. Without root, the tests run in a guest with its own kernel.

    Exit status 4 if none of the file systems can be made on any machine.
    """
    from fslab.cell import MachineSpec
    from fslab.machine import facts
    from fslab.machine.kinds import AUTO
    from fslab.machine.kinds import REGISTRY as MACHINES

    if on != AUTO:
        MACHINES.get(on)
    requests = [_request(name, medium, size, only) for name in filesystems]
    _machines = _Machines(MachineSpec(type=on, kernel=kernel, modules=modules, memory=guest_memory))
    screen = console(stderr=True)
    with _machines:
        found = []
        for request in requests:
            if not as_json:
                screen.print(f"testing {request.filesystem} …", style="dim")
            found.append(_examined(_machines, request))
    if as_json:
        _print_json(found, facts.gather())
    else:
        from fslab.report import features as report

        report.show(found, console(), details=details)
    if not any(each.findings for each in found):
        raise typer.Exit(UnsupportedError.exit_code)


def _examined(machines: _Machines, request: Request) -> Examination:
    """Test one file system. An error becomes its result, so that the other file systems are still tested."""
    from fslab.features import Examination

    try:
        return machines.examine(request)
    except UsageError:
        raise
    except FslabError as error:
        return Examination(
            filesystem=request.filesystem, kernel=None, size_bytes=request.size_bytes,
            not_possible=f"{error.what}{f' ({error.hint})' if error.hint else ''}",
        )  # fmt: skip


def _request(filesystem: str, medium: str, size: str, only: str | None) -> Request:
    from fslab.campaign.feature_tests import Request
    from fslab.features import REGISTRY as FEATURES
    from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
    from fslab.units import format_size, parse_size

    FILESYSTEMS.get(filesystem)
    wanted = tuple(FEATURES.get(name).name for name in (only or "").split(",") if name)
    if medium not in {"loop", "ram"}:
        raise UsageError(f"invalid medium '{medium}'", where="--medium", hint="use loop or ram")
    try:
        size_bytes = parse_size(size)
    except ValueError as error:
        raise UsageError(str(error), where="--size") from error
    smallest = FILESYSTEMS.get(filesystem).min_size_bytes
    if size_bytes < smallest:
        hint = f"give a larger size, or omit --size: the default is {DEFAULT_SIZE}"
        raise UsageError(f"{filesystem} needs {format_size(smallest)} or more", where="--size", hint=hint)
    return Request(filesystem=filesystem, medium=medium, size_bytes=size_bytes, only=wanted)


def _print_json(found: list[Examination], machine: dict[str, object]) -> None:
    from fslab.report.features import documented

    examined = [each.model_dump(mode="json") for each in found]
    print_json({"machine": machine, "examinations": examined, "documented": documented()})


class _Machines(ExitStack):
    """The host, and a guest, which is booted when the first file system needs it."""

    def __init__(self, wish: MachineSpec) -> None:
        super().__init__()
        self._wish = wish
        self._guests: Guests | None = None

    def examine(self, request: Request) -> Examination:
        """Run the tests on the requested machine; with ``auto``, on the first one that can build the file system."""
        from fslab import feasibility
        from fslab.campaign import feature_tests, workspace
        from fslab.campaign.campaign import new_id
        from fslab.cell import MediumSpec, StackSpec

        medium = MediumSpec(name=feature_tests.SLOT, type=request.medium)
        stack = StackSpec(
            name=request.filesystem, medium=medium, filesystem=request.filesystem, machine=self._wish
        )
        machine = feasibility.resolved(stack).machine
        if machine.type == "host":
            with workspace.opened(new_id(), frozenset()) as opened:
                return feature_tests.run_tests(request, opened)
        return feature_tests.in_guest(request, machine, self._booted())

    def _booted(self) -> Guests:
        from fslab.campaign import workspace
        from fslab.campaign.campaign import new_id
        from fslab.campaign.guests import Guests
        from fslab.machine import facts

        if self._guests is None:
            opened = self.enter_context(workspace.opened(new_id(), frozenset()))
            self._guests = Guests(workspace=opened, machine=facts.gather())
        return self._guests
