"""A virtual disk (docs/disk.md): every request takes the time that a model of a hard disk or SSD computes."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from fslab import scaling
from fslab.errors import NoSpaceError
from fslab.storage import Drive, StackDevice, Stripe, Workspace, images, media
from fslab.storage.media import Copies, MediumPlan, _disk, _disk_options, _image, _loop
from fslab.storage.media._disk_options import Logged, VirtualOptions, parse_faults
from fslab.system import disk_server, loop_devices
from fslab.units import format_size, parse_size

STATISTICS = ("operations", "late_ns", "model", "stored_bytes", "no_space", "realtime", "time_ns", "rate")
CACHE_LEAST_BYTES = 2 << 20  # the longest write-back


class Virtual(media.Medium[VirtualOptions]):
    """Disks with one server process each during the campaign. mkfs starts on an empty disk."""

    summary = "virtual disk: models of hard disks and SSDs, with write caches and faults"
    image = True
    tools = (disk_server.TOOL,)
    profiles = _disk_options.PROFILES
    Options = VirtualOptions

    def plan(self, options: VirtualOptions, site_images: Path) -> MediumPlan:  # noqa: ARG002
        """Return the plan: a server and a loop device, and memory for written data and an SSD's map."""
        directory = Path("/run/fslab/CAMPAIGN/disk-N")
        file, device, sector = directory / disk_server.FILE, Path("/dev/loopN"), options.sector_size
        attach = tuple(loop_devices.attach_argv(file, direct=True, device=device, sector_bytes=sector))
        served = _disk.argv(options, directory)
        return MediumPlan(
            device="/dev/loopN",
            size_bytes=options.size_bytes,
            holds_bytes=parse_size(options.memory),
            holds_key="memory",
            commands=(
                ("attach", (disk_server.TOOL.program, "serve", str(directory), *served)),
                ("attach", attach),
            ),
            space={images.MEMORY: _disk.memory_bytes(options)},
        )

    def seek_s(self, options: VirtualOptions) -> float:
        """Return half a rotation and a short seek of a hard disk, at the study's speed. Files lie close together."""
        if options.kind != "hdd":
            return 0.0
        rpm, average_ms = float(options.figures["rpm"]), float(options.figures["average_ms"])
        return (30 / rpm + average_ms / 3000) / options.speed

    def check(self, options: VirtualOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        _loop.check_root(self.name)
        loop_devices.check_supported()
        self._check_served(options, disks, mounted=True)

    def each(self, options: VirtualOptions, disks: int) -> Sequence[VirtualOptions]:
        """Return the options of each disk: each has its own seed, and ``slow`` applies only to the first."""
        seeds = [options.seed + number * options.array_disks for number in range(disks)]
        first, *others = [options.model_copy(update={"seed": seed}) for seed in seeds]
        return [first, *(each.model_copy(update={"slow": 1.0}) for each in others)]

    def striped(self, options: VirtualOptions, stripe: Stripe) -> VirtualOptions | None:
        return options.striped(stripe)

    def provide(
        self, options: VirtualOptions, workspace: Workspace, slot: str, undo: ExitStack
    ) -> StackDevice:
        """Return a loop device on the slot's disk. Until the run, it has no real time: filling would take minutes."""
        server = _disk.served(options, workspace, slot)
        images.tell_when_full(undo, partial(_disk.check_room, server, options))
        device = _disk.attach(server, options, workspace, undo, discard=self.discards(options))
        server.ask("pace", real=False)
        return device

    def renew(self, options: VirtualOptions, workspace: Workspace, slot: str, *, in_guest: bool) -> None:  # noqa: ARG002
        """Empty the disk and reset the model to its initial state."""
        if (server := _disk.running(workspace, slot)) is not None:
            server.ask("reset", data=True)

    def lasts(self, options: VirtualOptions, workspace: Workspace, slot: str) -> bool:  # noqa: ARG002
        """Return whether the server still runs: what was written to the disk is in its memory."""
        return _disk.running(workspace, slot) is not None

    def copyable(self, options: VirtualOptions) -> bool:
        """Return whether its contents are its state. The speed of an SSD depends on what was written before."""
        return options.kind != "ssd"

    def copies(self, options: VirtualOptions, workspace: Workspace, slot: str, *, in_guest: bool) -> Copies | None:  # noqa: ARG002  # fmt: skip
        """Return the copies that the slot's server keeps in its memory. The model begins in its initial state."""
        server = _disk.running(workspace, slot) if self.copyable(options) else None
        return None if server is None else _disk.Kept(server=server)

    def running(
        self, options: VirtualOptions, workspace: Workspace, slot: str
    ) -> AbstractContextManager[None]:
        """Enable real time and the faults of the study. They are off while the file system is made and filled."""
        return _disk.in_real_time(_disk.running(workspace, slot), options)

    def halt(self, options: VirtualOptions, workspace: Workspace, slot: str, *, halted: bool) -> None:  # noqa: ARG002
        """Stop the model's time, or let it go on. Without a model, requests are answered at once."""
        if (server := _disk.running(workspace, slot)) is not None and server.timed:
            server.ask("halt", halted=halted)

    def host_only(self, options: VirtualOptions) -> str | None:
        return _image.sectors_need_host(options.sector_size)

    def check_image(self, options: VirtualOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        self._check_served(options, disks, mounted=os.geteuid() == 0)

    @staticmethod
    def _check_served(options: VirtualOptions, disks: int, *, mounted: bool) -> None:
        """Raise an error unless so many of these disks can be served: the server, FUSE if they are mounted, and
        memory."""
        disk_server.check_supported(mounted=mounted)
        images.check_memory(disks * _disk.memory_bytes(options))

    def drive(self, options: VirtualOptions, workspace: Workspace, slot: str) -> Drive:
        """Return the slot's disk. Until the run, it does not work in real time. It is mounted on the host for root."""
        server = _disk.served(options, workspace, slot, mounted=os.geteuid() == 0)
        return _disk.drive(server, options)

    def discards(self, options: VirtualOptions) -> bool:
        return options.kind != "hdd"  # hard disks do not support it

    def is_used(self, options: VirtualOptions) -> bool:
        return options.steady

    def request_log(self, options: VirtualOptions, workspace: Workspace, slot: str) -> Path | None:
        """Return the log, complete, if the study asks for one of the requests. That with the data belongs to ``crash``.

        NoSpaceError if it is incomplete.
        """
        server = _disk.running(workspace, slot)
        if server is None or options.log is not Logged.REQUESTS:
            return None
        if not server.ask("statistics")["logging"]:
            raise NoSpaceError(
                f"no room for the log of requests: it has at most {format_size(_disk.REQUEST_LOG_BYTES)}, and leaves "
                "some of its file system free",
                where=str(server.directory.parent),
                hint="shorten the run, or leave out 'log' of the medium",
            )
        server.ask("sync")
        return disk_server.log_of(server.directory)

    def profile(self, options: VirtualOptions) -> str | None:
        return options.profile if options.profile in self.profiles else None

    def scaled(self, options: VirtualOptions, factor: float, *, least_bytes: int) -> scaling.Changes:
        """Return its memory, and its cache if the study gives a size, ``factor`` times as large."""
        sizes = {
            "memory": (options.memory, least_bytes),
            "cache_size": (options.cache_size, CACHE_LEAST_BYTES),
        }
        return {
            key: scaling.size(text, factor, least_bytes=least, unit_bytes=1 << 20)
            for key, (text, least) in sizes.items()
            if text is not None
        }

    def speed(self, options: VirtualOptions) -> float:
        return options.speed

    def about(self, options: VirtualOptions, workspace: Workspace, slot: str) -> dict[str, Any]:
        """Return what determines its times, and how accurately it can serve. NoSpaceError if its memory was full."""
        if (server := _disk.running(workspace, slot)) is None:
            return {}
        _disk.check_room(server, options)
        statistics = server.ask("statistics")
        return {
            "profile": options.profile,
            "figures": dict(options.figures),
            "cache": options.write_cache,
            "seed": options.seed,
            "speed": options.speed,
            "steady": options.steady,
            "array_disks": options.array_disks,
            "array_chunk": options.array_chunk,
            "slow": options.slow,
            "faults": list(parse_faults(options.faults)),
            "memory_limit_bytes": parse_size(options.memory),
            "fidelity": server.ready.get("fidelity"),
            "io_flusher": disk_server.may_flush(server.child.pid),
            "statistics": {name: statistics[name] for name in STATISTICS},
        }
