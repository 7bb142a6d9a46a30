"""A virtual disk (docs/disk.md): every request takes the time that a model of a hard disk or SSD computes."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fslab import scaling
from fslab.storage import Drive, StackDevice, Workspace, images, media
from fslab.storage.media import MediumPlan, _disk, _loop, _profiles
from fslab.storage.media._disk_options import VirtualOptions
from fslab.system import disk, loops
from fslab.units import parse_size

MIB = 1 << 20
CACHE_LEAST_BYTES = 2 * MIB  # the longest write-back


class Virtual(media.Medium[VirtualOptions]):
    """One server process for each disk during the campaign; mkfs starts with an empty disk."""

    summary = "virtual disk: models of hard disks and SSDs, with write caches and faults"
    image = True
    tools = (disk.TOOL,)
    profiles = _profiles.PROFILES
    Options = VirtualOptions

    def plan(self, options: VirtualOptions, site_images: Path) -> MediumPlan:  # noqa: ARG002
        """A server and a loop device; in memory what is written, and an SSD's map."""
        return MediumPlan(
            device="/dev/loopN",
            size_bytes=parse_size(options.size),
            holds_bytes=parse_size(options.memory),
            commands=tuple(("attach", argv) for argv in _disk.planned(options)),
            space={images.MEMORY: _disk.memory_bytes(options)},
        )

    def check(self, options: VirtualOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        """Root, loop devices, FUSE, and enough memory."""
        _loop.check_root(os.geteuid(), self.name)
        loops.check_supported()
        self._check(options, disks)

    def each(self, options: VirtualOptions, disks: int) -> Sequence[VirtualOptions]:
        """A seed for each, and one that is slow."""
        return [
            options.model_copy(
                update={"seed": options.seed + index, "slow": options.slow if index == 0 else 1.0}
            )
            for index in range(disks)
        ]

    def provide(
        self, options: VirtualOptions, workspace: Workspace, slot: str, undo: ExitStack
    ) -> StackDevice:
        """The slot's disk on a loop device. Until the run its time is not real: filling it would take minutes."""
        server = _disk.served(options, workspace, slot)
        undo.callback(_disk.check_room, server, options)
        device = _disk.attach(server, options, workspace, undo, discard=self.discards(options))
        server.ask("pace", real=False)
        return device

    def renew(self, options: VirtualOptions, workspace: Workspace, slot: str) -> None:  # noqa: ARG002
        """An empty disk, as it was at first."""
        if (server := _disk.running(workspace, slot)) is not None:
            server.ask("reset", data=True)

    @contextmanager
    def running(self, options: VirtualOptions, workspace: Workspace, slot: str) -> Iterator[None]:
        """Real time, and the faults of the study; not while the file system is made and filled."""
        with _disk.in_real_time(_disk.running(workspace, slot), options):
            yield

    def check_image(self, options: VirtualOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        """The server, and enough memory."""
        self._check(options, disks, mounted=os.geteuid() == 0)

    def drive(self, options: VirtualOptions, workspace: Workspace, slot: str) -> Drive:
        """The slot's disk itself. Until the run its time is not real. Only root has it on the host as well."""
        server = _disk.served(options, workspace, slot, mounted=os.geteuid() == 0)
        return _disk.drive(server, options)

    def discards(self, options: VirtualOptions) -> bool:
        """No hard disk has that command."""
        return options.kind != "hdd"

    def profile(self, options: VirtualOptions) -> str | None:
        """None without a model."""
        return options.profile if options.profile in self.profiles else None

    def scaled(self, options: VirtualOptions, factor: float, *, least_bytes: int) -> scaling.Changes:
        """Its memory, and its write cache, which must not hold a larger share of the files; its size costs nothing."""
        found: scaling.Changes = {
            "memory": scaling.size(options.memory, factor, least_bytes=least_bytes, unit_bytes=MIB)
        }
        if options.cache_size is None:
            return found
        cache = scaling.size(options.cache_size, factor, least_bytes=CACHE_LEAST_BYTES, unit_bytes=MIB)
        return {**found, "cache_size": cache}

    def speed(self, options: VirtualOptions) -> float:
        """The study's."""
        return options.speed

    def about(self, options: VirtualOptions, workspace: Workspace, slot: str) -> dict[str, Any]:
        """All that makes its times, and its own counters."""
        server = _disk.running(workspace, slot)
        return _disk.facts(server, options) if server is not None else {}

    @staticmethod
    def _check(options: VirtualOptions, disks: int, *, mounted: bool = True) -> None:
        disk.check_supported(mounted=mounted)
        images.check_memory(disks * _disk.memory_bytes(options))
