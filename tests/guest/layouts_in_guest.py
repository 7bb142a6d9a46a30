"""The part of the layout tests that runs inside a guest, which has device-mapper and md and cannot harm the host.

Run as ``python -m tests.guest.layouts_in_guest FUNCTION CAMPAIGN CALLS``: the function is called with each of a list of
arguments, and the list of its results is printed. Arguments and results are plain values, in JSON. Disks are loop
devices on sparse files in the guest's memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from fslab.campaign import cleanup
from fslab.campaign.undo_journal import CampaignJournal
from fslab.cell import StackSpec
from fslab.errors import FslabError
from fslab.storage import StackDevice, Workspace, stack
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.layouts import volume_name
from fslab.storage.layouts._joined import holders
from fslab.storage.parsed_stack import disk_slots, parsed_stack
from fslab.system import kernel, loop_devices, mountinfo, mounts, paths, sysfs, waiting

PLACE = Path("/run/disks")
OF_LVM = ("/run/lock/lvm", "/run/lvm")
UDEV_LIMIT_S = 60.0
UDEV = "/lib/systemd/systemd-udevd"
BLOCK_BYTES = 4096


def shell(*argv: object) -> str:
    """Return the standard output of a command that must succeed."""
    return subprocess.run([str(word) for word in argv], check=True, capture_output=True, text=True).stdout


@contextmanager
def disks(count: int, size: str, prefix: str = "d") -> Iterator[list[StackDevice]]:
    """Yield new blank disks in the guest."""
    PLACE.mkdir(exist_ok=True)
    kernel.has_module("loop", load=True)
    images = [PLACE / f"{prefix}{index}.img" for index in range(count)]
    found = []
    try:
        for image in images:
            shell("truncate", "-s", size, image)
            path = Path(shell(*loop_devices.attach_argv(image, direct=False)).strip())
            facts = sysfs.geometry(path)
            found.append(StackDevice(path=path, size_bytes=facts["size_bytes"], discard=False, facts=facts))
        yield found
    finally:
        for image in images:
            loop_devices.detach(image)
            image.unlink(missing_ok=True)


@contextmanager
def site_with(workspace: Workspace, count: int, size: str) -> Iterator[Workspace]:
    """Yield a copy of the workspace with new blank disks attached."""
    with disks(count, size) as found:
        slots = disk_slots("m", count)
        yield replace(workspace, attached=dict(zip(slots, found, strict=True)), made=set(), media={})


def joined(found: list[StackDevice]) -> list[str]:
    """Return the signs that the disks are joined: holders, device nodes, active volumes."""
    seen = [f"{each.path} held" for each in found if holders(each.path)]
    seen += [str(path) for path in Path("/dev").glob("md*") if path.is_block_device()]
    seen += [str(path) for place in ("/dev/md", "/dev/mapper") for path in Path(place).glob("fslab*")]
    seen += [str(path) for path in Path("/dev").glob("fslab-*")]
    seen += [str(path) for path in map(Path, OF_LVM) if path.exists()]
    seen += [path.name for path in Path("/sys/block").glob("*") if path.name.startswith(("dm-", "md"))]
    return seen


def left(found: list[StackDevice]) -> list[str]:
    """Return the same, and the signatures on the disks, except those of btrfs, which stay as on a single disk."""
    return [*joined(found), *(line for line in signatures(found) if "btrfs" not in line)]


def signatures(found: list[StackDevice]) -> list[str]:
    """Return the signatures on the disks, one a line."""
    return [line for each in found for line in shell("wipefs", "--noheadings", each.path).splitlines()]


def build(
    specs: list[dict[str, Any]], sizes: list[str], workspace: Workspace, *, beside_udev: bool = False
) -> list[dict[str, Any]]:
    """Test each stack, one after the other, and return what was found."""
    with udev() if beside_udev else nullcontext():
        return [_build(spec, size, workspace) for spec, size in zip(specs, sizes, strict=True)]


@contextmanager
def udev() -> Iterator[None]:
    """Run udev's daemon, as most hosts do: it opens every disk that appears or was written to, and assembles arrays."""
    daemon = subprocess.Popen([UDEV])
    try:
        assert waiting.until(Path("/run/udev/control").exists, UDEV_LIMIT_S)
        for kind in ("subsystems", "devices"):
            shell("udevadm", "trigger", f"--type={kind}", "--action=add")
        shell("udevadm", "settle")
        yield
        shell("udevadm", "settle")
        assert any(Path("/run/udev/data").glob("b7:*")), "it has seen the loop devices"
    finally:
        daemon.kill()
        daemon.wait()


def _build(spec: dict[str, Any], size: str, workspace: Workspace) -> dict[str, Any]:
    """Build a stack, write and read a file, and take the stack down. Return its facts and what is left of it."""
    wanted = StackSpec.model_validate(spec)
    with site_with(workspace, parsed_stack(wanted).disks, size) as here:
        found = list((here.attached or {}).values())
        with ExitStack() as undo:
            up = stack.build(wanted, here, undo, slot="m", make=True)
            assert up.device is not None
            queue = sysfs.block_directory(up.device.path) / "queue"
            zeros = int((queue / "write_zeroes_max_bytes").read_text())  # a snapshot, taken later, changes it
            (up.work / "file").write_bytes(b"x" * 1_000_000)
            up.flush()
            up.before_run(undo)
            up.unmount()
            seen = _look(wanted.filesystem or "", up.device.path)
            up.mount()
            assert (up.work / "file").read_bytes() == b"x" * 1_000_000
            result = {"facts": up.facts, "watched": list(up.watched), "passes_zeros": zeros > 0, **seen}
        traces = left(found)
    return {**result, "disks": [each.kernel_name for each in found], "left": traces}


def _look(filesystem: str, device: Path) -> dict[str, Any]:
    """Return the stripe sizes in the file system's superblock."""
    if filesystem == "ext4":
        said = shell("dumpe2fs", "-h", device).splitlines()
        return {"stripes": [" ".join(line.split()) for line in said if line.startswith("RAID")]}
    if filesystem == "xfs":
        return {"stripes": shell("xfs_db", "-r", "-c", "sb 0", "-c", "p unit width", device).splitlines()}
    return {"stripes": []}


def places(spec: dict[str, Any], size: str, workspace: Workspace) -> list[list[int]]:
    """Return for each block of 4 KiB of a joined device its disk, and its number among the blocks of data there."""
    wanted = StackSpec.model_validate(spec)
    parsed = parsed_stack(wanted)
    with disks(parsed.disks, size) as found, ExitStack() as undo:
        here = replace(workspace, attached={}, made=set(), media={})
        device = parsed.layout.assemble(parsed.layout_options, found, here, undo, make=True, keep=False)
        blocks = device.size_bytes // BLOCK_BYTES
        with device.path.open("r+b", buffering=0) as node:
            for number in range(blocks):
                node.write(_block(number))
            os.fsync(node.fileno())
        return _found([each.path.read_bytes() for each in found], blocks)


def _block(number: int) -> bytes:
    return (b"block %010d." % number).ljust(32, b".") * (BLOCK_BYTES // 32)


def _found(contents: list[bytes], blocks: int) -> list[list[int]]:
    seen: dict[int, list[int]] = {}
    for disk, content in enumerate(contents):
        first = None
        for at in range(len(content) // BLOCK_BYTES):
            block = content[at * BLOCK_BYTES : (at + 1) * BLOCK_BYTES]
            if block.startswith(b"block ") and block == _block(number := int(block[6:16])):
                first = at if first is None else first
                seen[number] = [disk, at - first]
    return [seen[number] for number in range(blocks)]


def keep(spec: dict[str, Any], size: str, workspace: Workspace) -> dict[str, Any]:
    """Take a stack down, build it again with its file, and take it down for good. Return what is left each time."""
    wanted = StackSpec.model_validate(spec)
    with site_with(workspace, parsed_stack(wanted).disks, size) as here:
        found = list((here.attached or {}).values())
        with ExitStack() as undo:
            up = stack.build(wanted, here, undo, slot="m", make=True, keep=True)
            (up.work / "file").write_text("kept")
        between = joined(found)
        with ExitStack() as undo:
            up = stack.build(wanted, here, undo, slot="m", make=False, keep=False)
            text = (up.work / "file").read_text()
        return {
            "text": text,
            "between": between,
            "left": [line for line in left(found) if "btrfs" not in line],
        }


def between(spec: dict[str, Any], size: str, workspace: Workspace) -> dict[str, Any]:
    """Take two stacks down that later trials use again, as in a campaign that is killed between two trials. Clean.

    Return the kinds of what was removed, and what is left.
    """
    wanted = StackSpec.model_validate(spec)
    with site_with(workspace, parsed_stack(wanted).disks, size) as here:
        with CampaignJournal(workspace.campaign) as journal:
            for make in (True, False):
                with ExitStack() as undo:
                    stack.build(wanted, replace(here, journal=journal), undo, slot="m", make=make, keep=True)
        done = [entry.kind for entry in cleanup.clean(workspace.campaign)]
        return {"done": done, "left": left(list((here.attached or {}).values()))}


def crash(spec: dict[str, Any], size: str, workspace: Workspace) -> dict[str, Any]:
    """Leave a stack in place, as a killed campaign does, beside devices of others. Clean twice.

    Return what was removed, what is left, and whether the devices of others still work.
    """
    wanted = StackSpec.model_validate(spec)
    with site_with(workspace, parsed_stack(wanted).disks, size) as here, _others() as (names, alive):
        found = list((here.attached or {}).values())
        with CampaignJournal(workspace.campaign) as journal:
            journalled = replace(here, journal=journal)
            with ExitStack() as undo:
                stack.build(wanted, journalled, undo, slot="m", make=True)
                undo.pop_all()
        held = [line for line in joined(found) if line.endswith(" held")]
        done = [(entry.kind, entry.target) for entry in cleanup.clean(workspace.campaign)]
        again = [entry.kind for entry in cleanup.clean(workspace.campaign)]
        traces = [line for line in left(found) if not any(name in line for name in names)]
        return {"held": len(held), "done": done, "again": again, "left": traces, "others_alive": alive()}


@contextmanager
def _others() -> Iterator[tuple[list[str], Any]]:
    """Make an array and a mapped device that do not belong to fslab.

    Yield their names, and a function that returns whether both still exist with their data.
    """
    with disks(2, "64m", prefix="other") as (one, two):
        argv = [
            "--run",
            "--level=0",
            "--raid-devices=1",
            "--force",
            "--metadata=1.2",
            "--name=somebody",
            one.path,
        ]
        shell("mdadm", "--create", "/dev/md/somebody", *argv)
        array = Path("/dev/md/somebody").resolve()
        kernel.has_module("dm_mod", load=True)
        shell("dmsetup", "create", "--noudevsync", "--noudevrules", "somebody", "--table",
              f"0 {two.size_bytes // 512} linear {two.path} 0")  # fmt: skip
        shell("dmsetup", "mknodes", "somebody")
        mapped = sysfs.block_directory(Path("/dev/mapper/somebody")).name
        for path in (array, Path("/dev/mapper/somebody")):
            with path.open("r+b") as node:
                node.write(b"somebody's data")

        def alive() -> bool:
            nodes = (array, Path("/dev/mapper/somebody"))
            return all(path.is_block_device() and path.open("rb").read(8) == b"somebody" for path in nodes)

        try:
            yield [array.name, mapped, "somebody"], alive
        finally:
            shell("mdadm", "--stop", array)
            shell("dmsetup", "remove", "--noudevsync", "--noudevrules", "somebody")
            for path in (Path("/dev/md/somebody"), array, Path("/dev/mapper/somebody")):
                path.unlink(missing_ok=True)


def dead(spec: dict[str, Any], size: str, workspace: Workspace) -> dict[str, Any]:
    """Leave a stack in place and let its disks die, as when the server of virtual disks is killed. Clean twice.

    Return what was removed, and what is left.
    """
    wanted = StackSpec.model_validate(spec)
    count = parsed_stack(wanted).disks
    with disks(count, size) as found, _mortal(found) as mortal:
        attached = dict(zip(disk_slots("m", count), mortal, strict=True))
        with CampaignJournal(workspace.campaign) as journal, ExitStack() as undo:
            here = replace(workspace, attached=attached, journal=journal, made=set(), media={})
            stack.build(wanted, here, undo, slot="m", make=True)
            undo.pop_all()
        for disk in mortal:
            shell("dmsetup", "wipe_table", "--noudevsync", "--noudevrules", disk.facts["name"])
        done = [(entry.kind, entry.target) for entry in cleanup.clean(workspace.campaign)]
        again = [entry.kind for entry in cleanup.clean(workspace.campaign)]
        ours = {disk.path.name for disk in mortal}
        return {"done": done, "again": again, "left": [line for line in joined(mortal) if line not in ours]}


@contextmanager
def _mortal(found: list[StackDevice]) -> Iterator[list[StackDevice]]:
    """Yield mapped devices on the disks, whose table can be replaced by one with errors only."""
    kernel.has_module("dm_mod", load=True)
    names = [f"mortal{index}" for index in range(len(found))]
    try:
        for name, disk in zip(names, found, strict=True):
            shell("dmsetup", "create", "--noudevsync", "--noudevrules", name, "--table",
                  f"0 {disk.size_bytes // 512} linear {disk.path} 0")  # fmt: skip
            shell("dmsetup", "mknodes", name)
        nodes = [Path("/dev") / sysfs.block_directory(Path("/dev/mapper") / name).name for name in names]
        yield [
            replace(disk, path=node, facts={**disk.facts, "name": name})
            for name, node, disk in zip(names, nodes, found, strict=True)
        ]
    finally:
        for name in names:
            shell("dmsetup", "remove", "--noudevsync", "--noudevrules", name)


def halfway(spec: dict[str, Any], size: str, workspace: Workspace) -> dict[str, Any]:
    """Let only signatures of the layout be left on the disks, without a joined device, and one of somebody else's.

    Clean. Return what was on the disks before and is afterwards, and what is on somebody else's.
    """
    wanted = StackSpec.model_validate(spec)
    layout, options = LAYOUTS.get(wanted.layout), dict(wanted.layout_options)
    count = parsed_stack(wanted).disks
    with disks(count, size) as found, disks(count, size, prefix="other") as others:
        for devices, campaign in ((found, workspace.campaign), (others, "another")):
            paths = [str(disk.path) for disk in devices]
            plan = layout.plan(layout.parse_options(options), paths, campaign)
            with CampaignJournal(workspace.campaign) as journal:
                journal.will_create(layout.undo_kind or "", volume_name(workspace.campaign), paths)
            for argv in (*plan.create, *plan.deactivate):
                shell(*argv)
        layout.undo(volume_name("another"), [])
        before = signatures(found)
        done = [entry.kind for entry in cleanup.clean(workspace.campaign)]
        return {"before": before, "done": done, "left": left(found), "others": signatures(others)}


def refusals(spec: dict[str, Any], workspace: Workspace) -> dict[str, Any]:
    """Try to build a stack on two disks, one of them mounted. Return the error, and what is left."""
    wanted = StackSpec.model_validate(spec)
    with site_with(workspace, 2, "200m") as here:
        found = list((here.attached or {}).values())
        target = Path("/run/used")
        target.mkdir(exist_ok=True)
        shell("mkfs.ext4", "-q", found[1].path)
        shell("mount", found[1].path, target)
        said = ""
        try:
            with ExitStack() as undo:
                stack.build(wanted, here, undo, slot="m", make=True)
        except FslabError as error:
            said = str(error)
        finally:
            mounts.unmount(target, devices=None)
        shell("fsck.ext4", "-fn", found[1].path)
        shell("wipefs", "--all", found[1].path)
        return {"said": said, "left": left(found)}


def unjoined(spec: dict[str, Any], size: str, workspace: Workspace) -> dict[str, Any]:
    """Try to build a stack whose disks cannot be joined. Return the error with its class, and what is left."""
    wanted = StackSpec.model_validate(spec)
    with site_with(workspace, parsed_stack(wanted).disks, size) as here:
        found = list((here.attached or {}).values())
        failure, said = "", ""
        try:
            with ExitStack() as undo:
                stack.build(wanted, here, undo, slot="m", make=True)
        except FslabError as error:
            failure, said = error.failure.value, error.what
        return {"failure": failure, "said": said, "left": left(found)}


def exchange(spec: dict[str, Any], size: str, workspace: Workspace) -> dict[str, Any]:
    """Before mkfs, remove the joined device, so that another one can take its number, or give its name another disk.
    Return what was said, and what was written to that disk."""
    wanted, said, written = StackSpec.model_validate(spec), [], []
    kind = type(LAYOUTS.get(wanted.layout))
    assemble = kind.assemble
    for attack in (_remove, _redirect):
        with (
            site_with(workspace, parsed_stack(wanted).disks, size) as here,
            disks(1, "64m", "v") as (victim,),
            ExitStack() as undo,
        ):
            victim.path.write_bytes(b"precious" * (1 << 20))

            def attacked(
                self: Any, *given: Any, _attack: Any = attack, _victim: Path = victim.path, **how: Any
            ) -> StackDevice:
                device: StackDevice = assemble(self, *given, **how)
                _attack(sysfs.text(sysfs.block_directory(device.path) / "dm/name"), _victim)
                return device

            kind.assemble = attacked  # type: ignore[method-assign]
            try:
                stack.build(wanted, here, undo, slot="m", make=True)
                said.append("built")
            except FslabError as error:
                said.append(error.what)
            finally:
                kind.assemble = assemble  # type: ignore[method-assign]
            written.append(victim.path.read_bytes()[: 8 << 20] != b"precious" * (1 << 20))
    return {"said": said, "written": written}


def _remove(name: str, victim: Path) -> None:
    done = subprocess.run(["dmsetup", "remove", "--noudevsync", name], check=False)
    if done.returncode == 0:  # then another device gets its number
        shell("dmsetup", "create", "--noudevsync", "other", "--table", f"0 16384 linear {victim} 0")


def _redirect(name: str, victim: Path) -> None:
    shell("dmsetup", "load", name, "--table", f"0 16384 linear {victim} 0")
    shell("dmsetup", "suspend", "--noudevsync", name)
    shell("dmsetup", "resume", "--noudevsync", name)


def pools(spec: dict[str, Any], size: str, workspace: Workspace) -> dict[str, Any]:
    """Do as ``crash`` beside a pool of somebody else's; then try to build the stack while somebody's pool has its name.

    Return what ``crash`` returns, the pools that are imported then, and the same of the second attempt.
    """
    own, argv = (
        f"fslab-{workspace.campaign}-pool",
        ["zpool", "create", "-f", "-o", "cachefile=none", "-m", "none"],
    )
    wanted, said = StackSpec.model_validate(spec), ""
    kernel.has_filesystem("zfs")  # loads the module
    with disks(1, "100m", prefix="pool") as (disk,):
        shell(*argv, "somebody", disk.path)
        seen = crash(spec, size, workspace)
        seen["pools"] = shell("zpool", "list", "-H", "-o", "name").split()
        shell("zpool", "destroy", "somebody")
        shell(*argv, own, disk.path)
        with site_with(workspace, parsed_stack(wanted).disks, size) as here:
            with CampaignJournal(workspace.campaign) as journal, ExitStack() as undo:
                try:
                    stack.build(wanted, replace(here, journal=journal), undo, slot="m", make=True)
                except FslabError as error:
                    said = str(error)
            done = [(entry.kind, entry.target) for entry in cleanup.clean(workspace.campaign)]
        listed = shell("zpool", "list", "-H", "-o", "name").split()
        shell("zpool", "destroy", own)
    return {**seen, "own": own, "said": said, "done_then": done, "pools_then": listed}


def hold(spec: dict[str, Any], paths: list[str], workspace: Workspace) -> None:
    """Build a stack on these devices with a campaign's journal, print a line, and write to it until SIGKILL."""
    wanted, found = StackSpec.model_validate(spec), [Path(each) for each in paths]
    facts = [sysfs.geometry(each) for each in found]
    made = [
        StackDevice(path=path, size_bytes=each["size_bytes"], discard=False, facts=each)
        for path, each in zip(found, facts, strict=True)
    ]
    with CampaignJournal(workspace.campaign) as journal, ExitStack() as undo:
        attached = dict(zip(disk_slots("m", len(made)), made, strict=True))
        here = replace(workspace, journal=journal, attached=attached, made=set(), media={})
        up = stack.build(wanted, here, undo, slot="m", make=True)
        sys.stdout.write("up\n")
        sys.stdout.flush()
        while True:
            (up.work / "file").write_bytes(b"x" * 1_000_000)


def killed(spec: dict[str, Any], size: str, workspace: Workspace) -> dict[str, Any]:
    """SIGKILL a process that holds a stack, and clean. Return what was there before, what was undone, and what is left:
    pools, nodes, mounts, and devices in use."""
    with disks(parsed_stack(StackSpec.model_validate(spec)).disks, size) as found:
        paths = [str(each.path) for each in found]

        def look() -> list[str]:
            pools = shell("zpool", "list", "-H", "-o", "name").split()
            nodes = [str(path) for path in Path("/dev").glob("fslab-*")]
            mounted = [str(each.target) for each in mountinfo.mounted() if each.filesystem == "zfs"]
            return [*pools, *nodes, *mounted, *filter(is_in_use, paths)]

        words = json.dumps([{"spec": spec, "paths": paths}])
        argv = [sys.executable, "-m", "tests.guest.layouts_in_guest", "hold", workspace.campaign, words]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holding:
            assert holding.stdout is not None
            assert holding.stdout.readline() == "up\n"
            before = look()
            holding.kill()
        done = [(entry.kind, entry.target) for entry in cleanup.clean(workspace.campaign)]
        return {"before": before, "done": done, "left": look()}


def is_in_use(path: str) -> bool:
    """Return whether the kernel refuses O_EXCL."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
    except OSError:
        return True
    return False


class NoJournal:
    """A journal that keeps nothing, because the guest is discarded after the test."""

    def will_create(self, kind: str, target: str, devices: Sequence[str] = ()) -> str:
        return f"{kind} {target}"

    def undone(self, entry: str) -> None:
        assert entry


def main() -> None:
    function, campaign, calls = sys.argv[1:]
    runtime = paths.runtime() / campaign
    runtime.mkdir(parents=True, exist_ok=True)
    workspace = Workspace(campaign=campaign, runtime=runtime, images=runtime / "images", journal=NoJournal())
    functions: dict[str, Callable[..., object]] = {
        "between": between, "build": build, "keep": keep, "crash": crash, "dead": dead, "exchange": exchange,
        "halfway": halfway, "hold": hold, "killed": killed, "places": places, "pools": pools, "refusals": refusals,
        "unjoined": unjoined,
    }  # fmt: skip
    results = [functions[function](**arguments, workspace=workspace) for arguments in json.loads(calls)]
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
