"""A virtual disk (docs/disk.md): every request takes the time that a model of a hard disk or SSD computes."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from fslab import scaling
from fslab.storage import Drive, StackDevice, Stripe, Workspace, images, media
from fslab.storage.media import Copies, MediumPlan, _disk, _image, _loop, _profiles
from fslab.storage.media._disk_options import VirtualOptions
from fslab.system import disk_server, loop_devices
from fslab.units import parse_size


class Virtual(media.Medium[VirtualOptions]):
    """Disks with one server process each during the campaign. mkfs starts on an empty disk."""

    summary = "virtual disk: models of hard disks and SSDs, with write caches and faults"
    image = True
    tools = (disk_server.TOOL,)
    profiles = _profiles.PROFILES
    Options = VirtualOptions

    def plan(self, options: VirtualOptions, site_images: Path) -> MediumPlan:  # noqa: ARG002
        """Return the plan: a server and a loop device, and memory for written data and an SSD's map."""
        return MediumPlan(
            device="/dev/loopN",
            size_bytes=options.size_bytes,
            holds_bytes=parse_size(options.memory),
            holds_key="memory",
            commands=tuple(("attach", argv) for argv in _disk.planned(options)),
            space={images.MEMORY: _disk.memory_bytes(options)},
        )

    def seek_s(self, options: VirtualOptions) -> float:
        return _disk.seek_s(options)

    def check(self, options: VirtualOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        _loop.check_root(self.name)
        loop_devices.check_supported()
        _disk.check(options, disks)

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
        undo.callback(_disk.check_room, server, options)
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
        _disk.halt(_disk.running(workspace, slot), halted=halted)

    def host_only(self, options: VirtualOptions) -> str | None:
        return _image.sectors_need_host(options.sector_size)

    def check_image(self, options: VirtualOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        _disk.check(options, disks, mounted=os.geteuid() == 0)

    def drive(self, options: VirtualOptions, workspace: Workspace, slot: str) -> Drive:
        """Return the slot's disk. Until the run, it does not work in real time. It is mounted on the host for root."""
        server = _disk.served(options, workspace, slot, mounted=os.geteuid() == 0)
        return _disk.drive(server, options)

    def discards(self, options: VirtualOptions) -> bool:
        return options.kind != "hdd"  # hard disks do not support it

    def request_log(self, options: VirtualOptions, workspace: Workspace, slot: str) -> Path | None:
        return _disk.request_log(_disk.running(workspace, slot), options)

    def profile(self, options: VirtualOptions) -> str | None:
        return options.profile if options.profile in self.profiles else None

    def scaled(self, options: VirtualOptions, factor: float, *, least_bytes: int) -> scaling.Changes:
        return _disk.scaled(options, factor, least_bytes=least_bytes)

    def speed(self, options: VirtualOptions) -> float:
        return options.speed

    def about(self, options: VirtualOptions, workspace: Workspace, slot: str) -> dict[str, Any]:
        server = _disk.running(workspace, slot)
        return _disk.facts(server, options) if server is not None else {}
