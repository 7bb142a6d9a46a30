"""``fslab features``: test what file systems support, on scratch volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from fslab.cli.common import (
    JsonOption,
    KernelOption,
    ModulesOption,
    console,
    option_value,
    print_json,
)
from fslab.errors import UnsupportedError, UsageError
from fslab.units import format_size, guest_size, parse_size

if TYPE_CHECKING:
    from fslab.campaign.feature_tests import Request

DEFAULT_SIZE = "384m"


def features(
    filesystems: list[str],
    *,
    on: str = "auto",
    kernel: KernelOption = None,
    modules: ModulesOption = None,
    guest_memory: str | None = None,
    medium: str = "ram",
    size: str = DEFAULT_SIZE,
    only: str | None = None,
    details: bool = False,
    as_json: JsonOption = False,
) -> None:
    """Test what file systems support, and print a table with the documented features beside it.

    Each feature is tested on a scratch file system, which is removed afterwards. A question mark means that the test
    was inconclusive; the reason is shown. Without root, the tests run in a guest with its own kernel.

    Exit status 4 if none of the file systems can be made on any machine.

    Parameters:
        filesystems FILESYSTEM: Names as in: fslab list filesystems.
        on MACHINE: Where to test: host, uml, qemu, or auto: for each file system the first of these that has it.
        guest_memory SIZE: Memory of a guest; default: 1g.
        medium loop|ram: On the host: image files on a disk (loop), or in memory (ram).
        size SIZE: Size of each scratch volume.
        only NAME,…: Test only these features (fslab list features).
        details: Show what was observed, feature by feature.
    """
    from fslab.api import feature_tests
    from fslab.cell import MachineSpec
    from fslab.machine.facts import gather
    from fslab.report.features_terminal import documented

    if guest_memory is not None:
        option_value(guest_size, guest_memory, "--guest-memory")
    requests = [_request(name, medium, size, only) for name in filesystems]
    screen = console(stderr=True)
    with feature_tests.Machines(
        MachineSpec(type=on, kernel=kernel, modules=modules, memory=guest_memory)
    ) as machines:
        found = []
        for request in requests:
            if not as_json:
                screen.print(f"testing {request.filesystem} …", style="dim")
            found.append(machines.examine(request))
    if as_json:
        print_json({"machine": gather(), "examinations": found, "documented": documented()})
    else:
        from fslab.report import features_terminal

        features_terminal.show(found, console(), details=details)
    if not any(each.findings for each in found):
        raise typer.Exit(UnsupportedError.exit_code)


def _request(filesystem: str, medium: str, size: str, only: str | None) -> Request:
    from fslab.api import feature_tests
    from fslab.campaign.feature_tests import Request

    if medium not in {"loop", "ram"}:
        raise UsageError(f"invalid medium '{medium}'", where="--medium", hint="use loop or ram")
    size_bytes = option_value(parse_size, size, "--size")
    wanted = tuple(name for name in (only or "").split(",") if name)
    request = Request(filesystem=filesystem, medium=medium, size_bytes=size_bytes, only=wanted)
    smallest = feature_tests.smallest_bytes(request)
    if size_bytes < smallest:
        hint = f"give a larger size, or omit --size: the default is {DEFAULT_SIZE}"
        raise UsageError(f"{filesystem} needs {format_size(smallest)} or more", where="--size", hint=hint)
    return request
