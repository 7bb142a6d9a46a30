"""Try one fault on one file system: strike, end the fault, mount again, and judge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fslab.crash.sources import check_no_shortage
from fslab.errors import MountError
from fslab.faults import FILES, Attempt, Fault
from fslab.faults.struck_files import LIMIT_S, Ground, error_of
from fslab.system import disk_server, mounts, proc
from fslab.system.mounts import sync
from fslab.system.signals import Teardown

FORMAT = 1
IN_USE_S = 2.0
_EXAMPLES = 5


@dataclass(kw_only=True, slots=True)
class Result:
    """Counts of files. ``hit``: operations that met the fault. Of these, ``reported`` returned an error, ``silent``
    returned success with wrong or missing contents, ``unharmed`` returned success with correct contents.
    ``reported_once``: operations with an error after which a second sync returned success, although the contents are
    missing. ``lost``: files that were durable before and, after the fault, are missing or wrong: files that no
    operation touched, and files of a failed operation that have neither old nor new contents.
    ``writes_stopped``: no write succeeds until the file system is mounted again. ``needs_repair``: it cannot be
    mounted, or its checker finds damage. ``not_mounted``: why it cannot be mounted, even after repair; no file is there
    then."""

    hit: int = 0
    reported: int = 0
    silent: int = 0
    unharmed: int = 0
    reported_once: int = 0
    lost: int = 0
    writes_stopped: bool = False
    needs_repair: bool = False
    not_mounted: str | None = None
    examples: list[str] = field(default_factory=list)


def measure(ground: Ground, fault: Fault) -> dict[str, Any]:
    """Try one fault and return the document. MountError if others use the file system, or if the machine is to blame
    that it cannot be mounted again."""
    os.chdir("/")  # a campaign starts its tools in the directory under test
    result = Result()
    try:
        _measure(ground, fault, result)
    except MountError:
        if result.not_mounted is None:
            raise
    driver = ground.tested.driver.name
    return {"version": FORMAT, "filesystem": driver, "fault": fault.name, **asdict(result)}


def _measure(ground: Ground, fault: Fault, result: Result) -> None:
    with Teardown() as mounted:
        mounted.callback(ground.tested.mount_again, ground.device, ground.target)
        ground.unmount(deadline_s=IN_USE_S)  # fails if another process uses the file system
        ground.mount()
        ground.lay_out()
        fault.prepare(ground)
        mounts.flush(ground.directory)
        with Teardown() as undo:
            undo.callback(fault.end, ground)
            undo.callback(disk_server.ask, ground.server, "pace", real=True)
            undo.callback(ground.disarm)
            disk_server.ask(ground.server, "pace", real=False)  # the duration is not measured
            ground.remount()
            attempts = fault.strike(ground)
        result.writes_stopped = error_of(lambda: _write_something(ground)) is not None
        _come_back(ground, result)
        _judge(ground, attempts, result)
        _check(ground, result)


def _write_something(ground: Ground) -> None:
    path = ground.directory / "afterwards"
    path.unlink(missing_ok=True)
    path.write_bytes(b"x")
    sync(path)


def _come_back(ground: Ground, result: Result) -> None:
    """Unmount and mount; repair in between if the mount fails."""
    ground.unmount()
    refused = _mount(ground)
    if refused is not None:
        result.needs_repair = True
        result.examples.append(str(refused))
        argv = ground.tested.driver.repair_argv(ground.device)
        if argv is not None:
            proc.run(argv, check=False, timeout_s=LIMIT_S)
            refused = _mount(ground)
    if refused is not None:
        if not ground.tested.refuses(refused, ground.device, ground.target):
            raise refused
        result.not_mounted = str(refused)


def _mount(ground: Ground) -> MountError | None:
    try:
        ground.mount()
    except MountError as error:
        return error
    return None


def _judge(ground: Ground, attempts: Sequence[Attempt], result: Result) -> None:
    for attempt in attempts:
        there = attempt.right if attempt.undone else attempt.right and _has(ground, attempt.path, attempt.now)
        result.hit += 1
        if attempt.error is not None:
            result.reported += 1
            result.reported_once += attempt.later and not there
            before = attempt.before is None or attempt.undone or _has(ground, attempt.path, attempt.before)
            result.lost += not (there or before)
            _example(result, f"{attempt.path}: {attempt.error}")
        elif there:
            result.unharmed += 1
        else:
            result.silent += 1
            _example(result, f"{attempt.path}: returned success, but the contents are wrong")
    touched = {attempt.path for attempt in attempts}
    others = (ground.relative(ground.path(number)) for number in range(FILES))
    result.lost += sum(not _has(ground, path, 1) for path in others if path not in touched)
    if result.not_mounted is not None:
        result.lost = FILES


def _has(ground: Ground, path: str, generation: int) -> bool:
    try:
        return ground.has(ground.directory / path, generation)
    except OSError as error:
        check_no_shortage(error)
        return False


def _example(result: Result, text: str) -> None:
    if len(result.examples) < _EXAMPLES:
        result.examples.append(text)


def _check(ground: Ground, result: Result) -> None:
    ground.unmount()
    argv = ground.tested.driver.check_argv(ground.device) or []
    done = proc.answer(argv, timeout_s=LIMIT_S)
    if done.returncode != 0:
        result.needs_repair = True
        result.examples.append(f"{argv[0]} exits {done.returncode}")
