"""Tests the features of one file system on scratch volumes of a workspace, in this process: on the host or in a guest.

Creates, mounts and removes the volumes. Each feature's own file defines the feature and its test.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fslab import feasibility
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import Frozen, MachineSpec, MediumSpec, StackSpec
from fslab.errors import (
    FslabError,
    MkfsError,
    MountError,
    UnsupportedError,
)
from fslab.features import (
    Examination,
    Feature,
    FeatureFinding,
    Support,
    TestPlace,
    Volume,
    in_order,
    refused,
    unknown,
)
from fslab.storage import Workspace, stack
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.mounted_stack import Stack
from fslab.system import kernel, mounts, proc, sysfs
from fslab.system.signals import Teardown

SLOT = "features"
SMALL_SLOT = "features-small"
SMALLEST_BYTES = 32 << 20
GAIN_BYTES = 64 << 20
GUEST_LIMIT_S = 900.0
COMMAND_LIMIT_S = 120.0


class Request(Frozen):
    """What to test: a file system on media of this type and size. ``only``: these features; empty: all."""

    filesystem: str
    medium: str
    size_bytes: int
    only: tuple[str, ...] = ()


def serve_guest(request: dict[str, Any], workspace: Workspace) -> dict[str, Any]:
    """Run the tests inside a guest, on media of its own. Takes and returns JSON values."""
    proc.run(["modprobe", "--quiet", "loop"], check=False)
    asked, own = Request.model_validate(request), replace(workspace, attached=None)
    with own.exit:
        return run_tests(asked, own).model_dump(mode="json")


def in_guest(request: Request, machine: MachineSpec, guests: TrialMachines) -> Examination:
    """Run the tests in a guest; called on the host. GuestError or a subclass if the guest does not reply."""
    medium = MediumSpec(name=SLOT, type="ram")
    spec = StackSpec(name=request.filesystem, medium=medium, filesystem=request.filesystem, machine=machine)
    asked = {
        "do": "call",
        "function": "fslab.campaign.feature_tests:serve_guest",
        "arguments": {"request": request.model_dump(mode="json")},
        "workspace": True,
    }
    answer = guests.ask(spec, SLOT, asked, timeout_s=GUEST_LIMIT_S, disks=0)
    return Examination.model_validate(answer).model_copy(update={"machine": machine.type})


def run_tests(request: Request, workspace: Workspace) -> Examination:
    """Run the requested tests. Raises the error that prevents making any volume (no room, no root)."""
    driver = FILESYSTEMS.get(request.filesystem)
    found = Examination(filesystem=request.filesystem, kernel=kernel.release(), size_bytes=request.size_bytes)
    try:
        stack.check_supported(driver, where=request.filesystem)
    except UnsupportedError as error:
        return found.model_copy(update={"not_possible": error.what})
    trial = _Volumes(request=request, workspace=workspace)
    wanted = [feature for feature in in_order() if not request.only or feature.name in request.only]
    try:
        findings = _all(trial, wanted)
    except (MkfsError, MountError) as error:
        return found.model_copy(update={"not_possible": str(error)})
    return found.model_copy(update={"findings": findings})


def _all(volumes: _Volumes, wanted: Collection[Feature]) -> dict[str, FeatureFinding]:
    shared = [feature for feature in wanted if feature.volume is Volume.SHARED]
    findings = {}
    if shared:
        with volumes.up(SLOT, volumes.spec()) as made:
            findings = {feature.name: _tried(feature, made) for feature in shared}
    for feature in wanted:
        if feature.volume is not Volume.SHARED:
            findings[feature.name] = _alone(volumes, feature)
    switches = FILESYSTEMS.get(volumes.request.filesystem).switches
    for feature in wanted:
        if feature.name in switches and findings[feature.name].answer is Support.NO:
            findings[feature.name] = _switched(volumes, feature, findings[feature.name])
    return {feature.name: findings[feature.name] for feature in wanted}


def _alone(volumes: _Volumes, feature: Feature) -> FeatureFinding:
    small = feature.volume is Volume.SMALL
    with volumes.up(SMALL_SLOT if small else SLOT, volumes.spec(small=small)) as made:
        return _tried(feature, made)


def _switched(volumes: _Volumes, feature: Feature, before: FeatureFinding) -> FeatureFinding:
    """Return the finding with the options that should enable the feature; if they do not, ``before`` and the reason."""
    switch = FILESYSTEMS.get(volumes.request.filesystem).switches[feature.name]
    spec = volumes.spec(mkfs_options=switch.mkfs, mount_options=switch.mount or "defaults")
    try:
        with volumes.up(SLOT, spec) as made:
            finding = _tried(feature, made)
    except (MkfsError, MountError) as error:
        return refused(before, str(switch), _reason(error))
    if finding.answer is Support.NO:
        return refused(before, str(switch), finding.detail)
    return finding.model_copy(update={"switch": str(switch)})


def _tried(feature: Feature, volume: _Made) -> FeatureFinding:
    directory = volume.up.work / feature.name
    try:
        directory.mkdir()
        return feature.probe(volume.place(directory))
    except OSError as error:
        return unknown(f"the test failed: {error.strerror or error}")
    except FslabError as error:
        return unknown(f"the test failed: {_reason(error)}")


def _reason(error: FslabError) -> str:
    """Return the most informative line of a tool's message: the last one, without mount(8)'s hint at the kernel log."""
    lines = [line for line in error.what.split(" | ") if not line.startswith("dmesg(1)")]
    return lines[-1].rpartition(": ")[2] if lines else error.what


@dataclass(frozen=True, kw_only=True, slots=True)
class _Volumes:
    """Makes the volumes that features are tested on. All volumes of a slot use the same image."""

    request: Request
    workspace: Workspace
    slots: set[str] = field(default_factory=set)

    def spec(
        self, *, small: bool = False, mkfs_options: str = "", mount_options: str = "defaults"
    ) -> StackSpec:
        """Return a stack with the file system on one scratch disk."""
        smallest = max(FILESYSTEMS.get(self.request.filesystem).min_size_bytes, SMALLEST_BYTES)
        size = smallest if small else self.request.size_bytes
        medium = MediumSpec(name=SLOT, type=self.request.medium, options={"size": str(size)})
        return StackSpec(
            name=f"features of {self.request.filesystem}", medium=medium, filesystem=self.request.filesystem,
            mkfs_options=mkfs_options, mount_options=mount_options,
        )  # fmt: skip

    @contextmanager
    def up(self, slot: str, spec: StackSpec) -> Iterator[_Made]:
        """Make and mount a new file system; remove it afterwards."""
        if slot not in self.slots:  # later volumes use the existing image
            feasibility.check_stack(spec, self.workspace)
            self.slots.add(slot)
        with Teardown() as undo:
            own = undo.enter_context(
                ExitStack()
            )  # undone last, because the volume must no longer use the image
            up = stack.build(spec, self.workspace, undo, slot=slot, make=True)
            image = self._image(up)
            if image is not None:
                own.callback(os.truncate, image, image.stat().st_size)
            yield _Made(up=up, workspace=self.workspace, image=image)

    def _image(self, up: Stack) -> Path | None:
        """Return the volume's image if it is one of this workspace; its file was verified when it was attached."""
        if up.device is None:
            return None
        name = sysfs.text(sysfs.block_directory(up.device.path) / "loop/backing_file")
        ours = name is not None and Path(name).name.startswith(f"fslab-{self.workspace.campaign}-")
        return Path(name) if name is not None and ours else None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Made:
    """A mounted volume, and what a feature may do with it."""

    up: Stack
    workspace: Workspace
    image: Path | None

    def place(self, directory: Path) -> TestPlace:
        """Return the view of the volume that a feature gets."""
        device, driver, target = self.up.device, self.up.driver, self.up.target
        if device is None or driver is None or target is None:
            raise TypeError("features are tested only on file systems made for the test")
        path = self.up.source
        return TestPlace(
            directory=directory,
            device=device.path,
            size_bytes=device.size_bytes,
            unmount=self.up.unmount,
            mount=self.up.mount,
            run=lambda argv: self.workspace.run(
                "feature", argv, check=False, timeout_s=COMMAND_LIMIT_S, within=mounts.without_dead()
            ),
            also_mounted=lambda options: self._second(driver.mount_argv(options, path, str(self._twin))),
            grow_argv=driver.grow_argv(path, str(target)),
            shrink_argv=lambda size_bytes: driver.shrink_argv(path, str(target), size_bytes),
            enlarge=self._enlarge,
        )

    @property
    def _twin(self) -> Path:
        return self.workspace.runtime / "second"

    @contextmanager
    def _second(self, argv: list[str]) -> Iterator[Path]:
        with Teardown() as undo:
            self.workspace.will_mount(self._twin, undo, self.up.nodes)
            self._twin.mkdir(mode=0o700)
            self.workspace.run("feature", argv, failure=MountError)
            yield self._twin

    def _enlarge(self) -> int | None:
        device = self.up.device
        if self.image is None or device is None:
            return None
        os.truncate(self.image, self.image.stat().st_size + GAIN_BYTES)
        done = proc.run(["losetup", "--set-capacity", str(device.path)], check=False)
        return GAIN_BYTES if done.returncode == 0 else None
