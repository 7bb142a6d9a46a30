"""The servers of virtual disks: their command line, start and stop within a campaign, and facts for the record."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fslab.errors import NoSpaceError, ToolFailedError
from fslab.storage import Drive, StackDevice, Workspace, undone_later
from fslab.storage.media import _disk_options, _image, _loop
from fslab.storage.media._disk_options import Logged, VirtualOptions
from fslab.system import block_queue, disk_server, loop_devices, sysfs
from fslab.units import format_size, parse_size

MAP_BYTES_PER_PAGE = 8
PAGE_BYTES = 4096
AHEAD = "answers ahead"  # the key in Workspace.media
REQUEST_LOG_BYTES = 256 << 20  # 4 million requests


def argv(options: VirtualOptions, directory: Path) -> tuple[str, ...]:
    """Return the options of ``fslab-disk serve`` for this directory."""
    words = ["--size", str(options.size_bytes), "--memory", str(parse_size(options.memory))]
    words += ["--seed", str(options.seed), "--speed", f"{options.speed:g}"]
    if options.profile != _disk_options.NONE:
        words += ["--profile", options.profile]
    words += ["--cache", options.write_cache]
    if options.array_disks > 1:
        words += ["--drives", str(options.array_disks), "--chunk", str(parse_size(options.array_chunk))]
    if options.cache_size is not None:
        words += ["--cache-bytes", str(parse_size(options.cache_size))]
    if options.steady:
        words.append("--steady")
    if options.log is not Logged.NO:
        words += ["--log", f"{directory.name}.log", "--log-limit", str(log_bytes(options))]
    if options.log is Logged.DATA:
        words.append("--log-data")
    if options.faults or options.slow != 1:
        words.append("--timed")
    return tuple(words)


def memory_bytes(options: VirtualOptions) -> int:
    """Return the most memory that a disk can use.

    This is the written data, its log (in the runtime directory, which is in memory on most machines), and an SSD's map
    of the written pages; in steady state that of all pages, and the same again for the state to which it is reset.
    """
    written = parse_size(options.memory)
    taken = written + log_bytes(options)
    if options.kind != "ssd":
        return taken
    mapped = 2 * options.size_bytes if options.steady else written
    return taken + mapped // PAGE_BYTES * MAP_BYTES_PER_PAGE


def log_bytes(options: VirtualOptions) -> int:
    """Return the largest size of its log: as much as the disk holds if it contains data."""
    sizes = {Logged.NO: 0, Logged.REQUESTS: REQUEST_LOG_BYTES, Logged.DATA: parse_size(options.memory)}
    return sizes[options.log]


def key(slot: str) -> str:
    """Return the key of a slot's server in ``Workspace.media``."""
    return f"disk {slot}"


def running(workspace: Workspace, slot: str) -> disk_server.Server | None:
    """Return the running server of this slot, or None. In a guest it is always None."""
    known: disk_server.Server | None = workspace.media.get(key(slot))
    return known if known is not None and known.runs else None


def served(
    options: VirtualOptions, workspace: Workspace, slot: str, *, mounted: bool = True
) -> disk_server.Server:
    """Return the running server of this slot. Start a new one if there is none, or if it has ended.

    A server with other options ends first. Without ``mounted``, only guests can use the disk, and no root is needed.
    """
    known: disk_server.Server | None = workspace.media.get(key(slot))
    number = 1 + sum(name.startswith(key("")) for name in workspace.media)
    directory = known.directory if known else workspace.runtime / f"disk-{number}"
    words = argv(options, directory) if mounted else (*argv(options, directory), disk_server.UNMOUNTED)
    if known is None:
        end = partial(_end, workspace, slot, directory)
        undone_later(workspace.journal, "disk", directory, workspace.exit, end)
    elif known.runs and known.options == words:
        return known
    else:
        known.end()
    server = disk_server.start(directory, words, mark=workspace.mark)
    workspace.media[key(slot)] = server
    if options.slow != 1:
        server.ask("slow", factor=options.slow)
    return server


def attach(
    server: disk_server.Server,
    options: VirtualOptions,
    workspace: Workspace,
    undo: ExitStack,
    *,
    discard: bool,
) -> StackDevice:
    """Attach a loop device to the disk, with direct I/O. It is rotational, or accepts discards, if the disk does.

    All disks of a campaign send their answers earlier by the same time: otherwise each trial would have another disk.
    """
    workspace.media[str(server.file)] = _loop.identity(server.file)
    # Discards are not forbidden on the loop device: that would also remove its command to write zeros.
    device = _loop.attach(
        server.file, workspace, undo, expect_direct=True, sector_bytes=options.sector_size, discard=True
    )
    block_queue.set_rotational(device.path, rotational=options.kind == "hdd")
    if options.array_disks > 1:
        queue = sysfs.block_directory(device.path) / "queue"
        (queue / "read_ahead_kb").write_text(str(_read_ahead_kib(options)))
    if options.profile != _disk_options.NONE:
        known: int | None = workspace.media.get(AHEAD)
        fidelity = server.ask("calibrate", path=str(device.path), ahead_ns=known)
        workspace.media[AHEAD] = fidelity["ahead_ns"]
        server.ready["fidelity"] = fidelity
    return replace(device, discard=discard, facts={**device.facts, **sysfs.geometry(device.path)})


def _read_ahead_kib(options: VirtualOptions) -> int:
    """Return two stripes, and at least the default: what md and LVM read ahead (``blk_apply_bdi_limits``,
    block/blk-settings.c)."""
    return max(2 * options.array_disks * parse_size(options.array_chunk) >> 10, loop_devices.READ_AHEAD_KIB)


def drive(server: disk_server.Server, options: VirtualOptions) -> Drive:
    """Return the disk for a guest: a virtio disk of the server, or its file.

    Until the run, the disk does not work in real time (``pace`` in PROTOCOL.md).
    """
    server.ask("pace", real=False)
    if not server.timed:
        return Drive(image=server.file)
    socket, serial = server.offered()
    rotational = options.kind == "hdd"
    return Drive(
        image=server.file, socket=socket, serial=serial, rotational=rotational, discard=not rotational
    )


@contextmanager
def in_real_time(server: disk_server.Server | None, options: VirtualOptions) -> Iterator[None]:
    """Make the disk work in real time, with the faults of the study. Without a server, do nothing."""
    if server is None:
        yield
        return
    # What needs the data clears the log when it begins to record. Until then, logging would only take time.
    server.ask("clear", unlogged=options.log is Logged.DATA)
    server.ask("pace", real=True)
    for fault in _disk_options.parse_faults(options.faults):
        server.ask("arm", **fault)
    try:
        yield
    finally:
        with suppress(ToolFailedError):  # the server has ended: the trial fails for that reason anyway
            server.ask("disarm")
            server.ask("pace", real=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """Copies of the contents of a disk, in the memory of its server. See ``media.Copies``."""

    server: disk_server.Server

    def save(self, name: str) -> None:
        statistics = self.server.ask("statistics")
        _image.check_memory_for_copy(statistics["stored_bytes"], statistics["kept_bytes"])
        self.server.ask("keep", name=name)

    def load(self, name: str) -> tuple[str, ...]:
        self.server.ask("restore", name=name)
        return (
            disk_server.TOOL.program,
            "restore",
            name,
        )  # a request to the server, in the form of a command

    def forget(self, name: str) -> None:
        self.server.ask("forget", name=name)


def check_room(server: disk_server.Server, options: VirtualOptions) -> None:
    """Raise NoSpaceError if the memory for the disk's contents was full. File systems report this as I/O errors."""
    if server.runs and server.ask("statistics")["no_space"]:
        raise NoSpaceError(
            f"the virtual disk's memory is full ({format_size(parse_size(options.memory))}): it holds every block that "
            "is not all zeros: files, what mkfs and the layout write, and the file system's journal",
            where="medium",
            hint="give the medium more 'memory', the workload smaller files, or mkfs a smaller journal",
        )


def _end(workspace: Workspace, slot: str, directory: Path) -> None:
    server = workspace.media.pop(key(slot), None)
    if server is not None:
        server.end()
    disk_server.clean(directory)
