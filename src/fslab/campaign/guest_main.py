"""Inside a guest: its first process. Serves requests from the host until the guest is ended.

``python -m fslab.campaign.guest_main`` is started by the guest's kernel, with the host's root read-only. The guest is
thrown away, so nothing here is journalled. Runs nowhere else.
"""

import json
import os
import sys
import termios
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fslab.campaign import guest_mounts
from fslab.campaign.trial import run_trial
from fslab.cell import Cell, TrialKey
from fslab.errors import FslabError, GuestError
from fslab.machine import facts
from fslab.storage import StackDevice, Workspace
from fslab.system import paths, proc, signals, sysfs

NODE_LIMIT_S = 20.0


class GuestJournal:
    """The guest is thrown away: nothing needs to be undone after a crash."""

    def will_create(self, kind: str, target: str) -> str:  # noqa: ARG002
        return ""

    def undone(self, entry: str) -> None:
        """Nothing to note."""


class RequestLine:
    """The line to the host: one short line per message, bulk goes by files."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        if os.isatty(self._descriptor):
            mode = termios.tcgetattr(self._descriptor)
            mode[0] = mode[1] = mode[3] = 0  # raw: no echo, no translation, no lines
            termios.tcsetattr(self._descriptor, termios.TCSANOW, mode)

    def say(self, text: str) -> None:
        """Tell the host."""
        os.write(self._descriptor, f"{text}\n".encode())

    def __iter__(self) -> Iterator[str]:
        rest = b""
        while data := os.read(self._descriptor, 4096):
            *lines, rest = (rest + data).split(b"\n")
            yield from (line.decode("ascii", "replace").strip() for line in lines)


def main() -> None:
    """Mount what a system needs, say "ready", and serve."""
    directory = Path(os.environ["fslab_run"])  # noqa: SIM112 - the kernel's command line makes it, in lower case
    guest_mounts.prepare(directory, Path(os.environ["fslab_modules"]))  # noqa: SIM112
    signals.install()
    line = RequestLine(guest_mounts.line(os.environ["fslab_link"]))  # noqa: SIM112
    line.say("ready")
    for order in line:
        word, _, number = order.partition(" ")
        if word == "run" and number.isdigit():
            request = json.loads((directory / f"request-{number}.json").read_text("utf-8"))
            _write(directory / f"reply-{number}.json", answer(request))
            line.say(f"done {number}")


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The reply: ``value``, or ``error`` for what a user can meet, or ``bug`` with its traceback."""
    try:
        return {"value": DO[request["do"]](request)}
    except FslabError as error:
        return {
            "error": {
                "what": error.what,
                "where": error.where,
                "hint": error.hint,
                "failure": error.failure.value,
            }
        }
    except Exception:
        return {"bug": traceback.format_exc()}


def _trial(request: Mapping[str, Any]) -> dict[str, Any]:
    """One trial: its record and the slots that carry a file system now."""
    workspace = _workspace(request)
    record = run_trial(
        Cell.model_validate(request["cell"]),
        TrialKey.model_validate(request["key"]),
        workspace,
        machine={**facts.gather(), **request["facts"]},
    )
    return {"record": record.model_dump(mode="json"), "made": sorted(workspace.made)}


def _call(request: Mapping[str, Any]) -> Any:
    """Call a function of ours (``module:name``) that takes and returns plain values.

    One with an argument ``workspace`` gets a workspace of this guest, with the plugged disks in ``workspace.attached``.
    """
    module, _, name = request["function"].partition(":")
    if module.partition(".")[0] not in {"fslab", "tests"}:
        raise GuestError("is not a function of fslab", where=request["function"])
    function = getattr(import_module(module), name)
    workspace = {"workspace": _workspace(request)} if request.get("workspace") else {}
    return function(**request["arguments"], **workspace)


def _command(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run a command to its end, as root of the guest."""
    done = proc.run(request["argv"], timeout_s=request["timeout_s"], check=False)
    return {"returncode": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


DO: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {"trial": _trial, "call": _call, "command": _command}


def _workspace(request: Mapping[str, Any]) -> Workspace:
    runtime = paths.runtime() / request["campaign"]
    (runtime / "scratch").mkdir(parents=True, exist_ok=True)
    return Workspace(
        campaign=request["campaign"],
        runtime=runtime,
        images=runtime / "images",
        journal=GuestJournal(),
        attached={slot: _disk(disk) for slot, disk in request["disks"].items()},
        made=set(request.get("made", ())),
    )


def _disk(disk: Mapping[str, Any]) -> StackDevice:
    path = _node(disk)
    queue = sysfs.block_directory(path) / "queue"
    # virtio says that every disk turns; file systems and schedulers would treat it so.
    (queue / "rotational").write_text("0")
    # A discard would punch the image full of holes.
    (queue / "discard_max_bytes").write_text("0")
    geometry = sysfs.geometry(path)
    size = geometry["size_bytes"]
    if not size:
        raise GuestError("the disk has no size", where=str(path))
    # Never discarded: what backs it is an image that was written once, fully.
    return StackDevice(path=path, size_bytes=size, discard=False, facts={**geometry, **disk["facts"]})


def _node(disk: Mapping[str, Any]) -> Path:
    """The disk's node, when the kernel has made it."""
    deadline = time.monotonic() + NODE_LIMIT_S
    while time.monotonic() < deadline:
        if disk["device"] is not None and Path(disk["device"]).is_block_device():
            return Path(disk["device"])
        for entry in sysfs.SYS.glob("block/*/serial") if disk["serial"] else ():
            if sysfs.text(entry) == disk["serial"]:
                return Path("/dev") / entry.parent.name
        time.sleep(0.01)
    raise GuestError("the disk did not appear", where=str(disk["device"] or disk["serial"]))


def _write(path: Path, value: Mapping[str, Any]) -> None:
    """Whole or not at all: by another name first."""
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(value), "utf-8")
    unfinished.rename(path)


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # the kernel panics when its first process ends: let the reason stand before that
        traceback.print_exc()
        sys.stderr.flush()
        raise
