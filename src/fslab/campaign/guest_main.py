"""The first process inside a guest: mounts what a system needs, makes kernel modules loadable, attaches the disks, and
serves requests from the host until the guest is ended.

The guest's kernel starts ``python -m fslab.campaign.guest_main``, with the host's root read-only. The guest is
discarded afterwards, so nothing here is journalled. Must not run on the host.
"""

import ctypes
import json
import os
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from fslab.campaign import guest_recordings
from fslab.campaign.prepared_states import KEEP, Prepared
from fslab.campaign.trial import run_trial
from fslab.cell import Cell, TrialKey
from fslab.errors import FslabError, GuestError
from fslab.machine import facts
from fslab.machine.guest import ALIVE, ALIVE_EVERY_S, GO_ON, TOLD
from fslab.storage import StackDevice, Workspace
from fslab.system import block_queue, kernel, paths, proc, signals, sysfs, waiting

GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RUN = Path("/run")
PORTS = Path("/sys/class/virtio-ports")
_libc = ctypes.CDLL(None, use_errno=True)
NODE_LIMIT_S = 20.0
DRIVER = sysfs.SYS / "bus/platform/drivers/virtio-uml"


class GuestJournal:
    """A journal that stores nothing: a guest is discarded, so nothing needs to be undone after a crash."""

    def will_create(self, kind: str, target: str, devices: Sequence[str] = ()) -> str:  # noqa: ARG002
        return ""

    def undone(self, entry: str) -> None:
        """Do nothing."""


class RequestLine:
    """The line to the host: one short text line per message. Bulk data goes through files."""

    def __init__(self, path: str) -> None:
        self._rest = b""
        self._lock = threading.Lock()
        self._descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        if os.isatty(self._descriptor):
            mode = termios.tcgetattr(self._descriptor)
            mode[0] = mode[1] = mode[3] = 0  # raw: no echo, no translation, no lines
            termios.tcsetattr(self._descriptor, termios.TCSANOW, mode)

    def say(self, text: str) -> None:
        """Send one line to the host. Any thread may call this."""
        with self._lock:
            os.write(self._descriptor, f"{text}\n".encode())

    def tell(self, what: str) -> None:
        """Report to the host what begins or ends, and wait for its confirmation."""
        self.say(f"{TOLD}{what}")
        while (line := self.read()) is not None and line != GO_ON:
            pass

    def read(self) -> str | None:
        """Return the next line; None at the end."""
        while b"\n" not in self._rest:
            data = os.read(self._descriptor, 4096)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("ascii", "replace").strip()

    def __iter__(self) -> Iterator[str]:
        while (line := self.read()) is not None:
            yield line


def main() -> None:
    """Mount what a system needs, report "ready", and serve requests."""
    directory = Path(os.environ["fslab_run"])  # noqa: SIM112 - the kernel's command line makes it, in lower case
    prepare(directory, Path(os.environ["fslab_modules"]))  # noqa: SIM112
    signals.install()
    line = RequestLine(line_node(os.environ["fslab_link"]))  # noqa: SIM112
    line.say("ready")
    threading.Thread(target=_report_alive, args=(line,), daemon=True).start()
    for order in line:
        word, _, number = order.partition(" ")
        if word == "run" and number.isdigit():
            request = json.loads((directory / f"request-{number}.json").read_text("utf-8"))
            _write(directory / f"reply-{number}.json", answer(request, line))
            line.say(f"done {number}")


def _report_alive(line: RequestLine) -> None:
    """Show the host every five seconds that programs run here: that costs some 100 µs of CPU time."""
    while True:
        time.sleep(ALIVE_EVERY_S)
        line.say(ALIVE)


def answer(request: Mapping[str, Any], line: RequestLine) -> dict[str, Any]:
    """Return the reply: ``value``, ``error`` for an expected error, or ``bug`` with a traceback."""
    try:
        return {"value": DO[request["do"]](request, line)}
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


def _trial(request: Mapping[str, Any], line: RequestLine) -> dict[str, Any]:
    """Run one trial. Returns its record and the slots that contain a file system now."""
    cell, key = Cell.model_validate(request["cell"]), TrialKey.model_validate(request["key"])
    asked = request.get("prepared")
    prepared = Prepared(**asked, keep=lambda: line.tell(KEEP)) if asked else None
    with _workspace(request, line) as plugged, _media(plugged, own=request["own_media"]) as workspace:
        record = run_trial(
            cell, key, workspace, machine={**facts.gather(), **request["facts"]}, prepared=prepared
        )
    guest_recordings.hand_over(Path(os.environ["fslab_run"]))  # noqa: SIM112
    return {"record": record.model_dump(mode="json"), "made": sorted(workspace.made)}


def _call(request: Mapping[str, Any], line: RequestLine) -> Any:
    """Call a function of fslab (``module:name``) that takes and returns plain values.

    If the request sets ``workspace``, the function also gets a workspace of this guest, with the plugged-in disks in
    ``workspace.attached``.
    """
    module, _, name = request["function"].partition(":")
    if module.partition(".")[0] not in {"fslab", "tests"}:
        raise GuestError("is not a function of fslab", where=request["function"])
    function = getattr(import_module(module), name)
    if not request.get("workspace"):
        return function(**request["arguments"])
    with _workspace(request, line) as workspace:
        return function(**request["arguments"], workspace=workspace)


def _command(request: Mapping[str, Any], line: RequestLine) -> dict[str, Any]:  # noqa: ARG001
    """Run a command as root of the guest, and wait for its end."""
    done = proc.run(request["argv"], timeout_s=request["timeout_s"], check=False)
    return {"returncode": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


Order = Callable[[Mapping[str, Any], RequestLine], Any]
DO: Mapping[str, Order] = {"trial": _trial, "call": _call, "command": _command}


@contextmanager
def _workspace(request: Mapping[str, Any], line: RequestLine) -> Iterator[Workspace]:
    runtime = paths.runtime() / request["campaign"]
    (runtime / "scratch").mkdir(parents=True, exist_ok=True)
    with attached_disks(request["disks"]) as attached:
        yield Workspace(
            campaign=request["campaign"],
            runtime=runtime,
            images=runtime / "images",
            journal=GuestJournal(),
            mark=request["campaign"],
            attached=attached,
            tell_host=line.tell,
            made=set(request.get("made", ())),
            lost=set(request.get("lost", ())),
        )


@contextmanager
def _media(workspace: Workspace, *, own: bool) -> Iterator[Workspace]:
    """Yield the workspace; with ``own``, one that makes its media in this guest and ends them with the trial."""
    if not own:
        yield workspace
        return
    for name in ("fuse", "loop"):
        proc.run(["modprobe", "--quiet", name], check=False)  # some kernels have them built in
    made = replace(workspace, attached=None, made=set(), lost=set(), exit=ExitStack())
    with made.exit:
        yield made
        made.made.clear()


def _write(path: Path, value: Mapping[str, Any]) -> None:
    """Write the file completely or not at all: first under another name."""
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(value), "utf-8")
    unfinished.rename(path)


def prepare(directory: Path, modules: Path) -> None:
    """Mount the usual kernel file systems and the directory shared with the host; make modules loadable."""
    os.environ.update(
        {"PATH": GUEST_PATH, "HOME": "/run/home", "TMPDIR": "/run/tmp", "LC_ALL": "C", "TZ": "UTC"}
    )
    for kind, target in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/dev/shm")):  # noqa: S108
        Path(target).mkdir(exist_ok=True)
        if not Path(target).is_mount():
            mount_kernel(kind, Path(target))
    for name in ("home", "tmp", "lock", "mnt"):
        (RUN / name).mkdir(exist_ok=True)
    Path("/dev/pts").mkdir(exist_ok=True)
    mount_kernel("devpts", Path("/dev/pts"))
    directory.mkdir(parents=True, exist_ok=True)
    if "hostfs" in kernel.known_filesystems():
        mount_kernel("hostfs", directory, options=str(directory))
    else:
        mount_kernel(
            "9p", directory, source="run", options="trans=virtio,version=9p2000.L,cache=none,msize=262144"
        )
    if modules.is_dir():
        _find_modules(modules)


def mount_kernel(kind: str, target: Path, *, source: str = "none", options: str = "") -> None:
    """Call mount(2) directly: mount(8) cannot mount hostfs with the new system calls before Linux 6.12."""
    failed = _libc.mount(source.encode(), os.fsencode(target), kind.encode(), 0, os.fsencode(options))
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind}: {os.strerror(code)}", str(target))


def line_node(link: str) -> str:
    """Return the node of the line to the host: ``link`` if it is a path, else the virtio port with this name."""
    if link.startswith("/"):
        return link
    for port in PORTS.glob("*"):
        if sysfs.text(port / "name") == link:
            return f"/dev/{port.name}"
    raise FileNotFoundError(f"no virtio port '{link}'")


def _find_modules(modules: Path) -> None:
    """Set the program by which the kernel loads modules: a modprobe that finds them below ``/run/modules``."""
    root = RUN / "modules"
    (root / "lib/modules").mkdir(parents=True)
    (root / "lib/modules" / os.uname().release).symlink_to(modules)
    script = RUN / "modprobe"
    script.write_text(f'#!/bin/sh\nexec /sbin/modprobe -d {root} "$@"\n')
    script.chmod(0o755)
    Path("/proc/sys/kernel/modprobe").write_text(str(script))
    os.environ["PATH"] = f"{RUN}/bin:{GUEST_PATH}"
    (RUN / "bin").mkdir()
    (RUN / "bin/modprobe").symlink_to(script)


@contextmanager
def attached_disks(plugged: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, StackDevice]]:
    """Yield the plugged-in disks as devices, by slot. They are released when the block ends."""
    with signals.Teardown() as undo:
        yield {slot: _attached(disk, undo) for slot, disk in plugged.items()}


def _attached(disk: Mapping[str, Any], undo: ExitStack) -> StackDevice:
    if disk["bind"] is not None:
        _bind(disk["bind"], undo)
    path = _node(disk)
    block_queue.set_rotational(path, rotational=disk["rotational"])  # virtio reports every disk as rotational
    if not disk["discard"]:  # discards would punch holes into the image
        (sysfs.block_directory(path) / "queue/discard_max_bytes").write_text("0")
    geometry = sysfs.geometry(path)
    size = geometry["size_bytes"]
    if not size:
        raise GuestError("the disk has no size", where=str(path))
    return StackDevice(
        path=path, size_bytes=size, discard=disk["discard"], facts={**geometry, **disk["facts"]}
    )


def _bind(name: str, undo: ExitStack) -> None:
    """Bind the driver, so that it connects to the disk's server. The kernel found no server at boot."""
    if not DRIVER.is_dir():
        raise GuestError(
            "this kernel has no virtio disks",
            where=name,
            hint="use a kernel with CONFIG_VIRTIO_UML and CONFIG_VIRTIO_BLK",
        )
    proc.run(["modprobe", "virtio_blk"], check=False)  # some kernels have it built in
    try:
        (DRIVER / "bind").write_text(name)
    except OSError as error:
        raise GuestError(f"cannot connect to the disk's server: {error.strerror}", where=name) from error
    undo.callback((DRIVER / "unbind").write_text, name)


def _node(disk: Mapping[str, Any]) -> Path:
    """Wait until the kernel has created the disk's node, and return its path."""

    def found() -> Path | None:
        if disk["device"] is not None and Path(disk["device"]).is_block_device():
            return Path(disk["device"])
        serials = sysfs.SYS.glob("block/*/serial") if disk["serial"] else ()
        own = (entry.parent.name for entry in serials if sysfs.text(entry) == disk["serial"])
        return next((Path("/dev") / name for name in own), None)

    if (node := waiting.until(found, NODE_LIMIT_S, 0.01)) is not None:
        return node
    raise GuestError("the disk did not appear", where=str(disk["device"] or disk["serial"]))


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # the kernel panics when its first process ends: print the reason before that
        traceback.print_exc()
        sys.stderr.flush()
        raise
