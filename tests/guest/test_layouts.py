"""Tests of layouts in a guest, whose kernel has LVM and md: each one is built as requested and completely removed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.guest.layouts_in_guest import OF_LVM, UDEV
from tests.limits import RUN_LIMIT_S

from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import Geometry, MachineSpec, MediumSpec, StackSpec
from fslab.storage.layouts import REGISTRY, volume_name
from fslab.storage.parsed_stack import parsed_stack
from fslab.units import parse_size

ROOT = Path(__file__).parents[2]
# Those of ZFS need its module: test_zfs.py.
JOINING = [name for name, layout in REGISTRY if name != "single" and "zfs" not in (layout.filesystems or ())]
KERNEL_S = [name for name in JOINING if REGISTRY.get(name).undo_kind]


def slow(*values: object) -> Any:
    """Return test parameters that are marked slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


def spec(
    layout: str, filesystem: str = "ext4", geometry: Geometry = Geometry.DEFAULT, **options: Any
) -> StackSpec:
    return StackSpec(
        name="s", medium=MediumSpec(name="m", type="ram", options={"size": "4m"}), layout=layout,
        layout_options=options, filesystem=filesystem, geometry=geometry, machine=MachineSpec(type="uml", memory="1g"),
    )  # fmt: skip


def inside(guests: TrialMachines, function: str, on: StackSpec | None = None, **arguments: Any) -> Any:
    """Return the result of a function of ``layouts_in_guest``. ``on``: a stack on the guest's machine."""
    (result,) = inside_each(guests, function, [arguments], on)
    return result


def inside_each(
    guests: TrialMachines, function: str, calls: list[dict[str, Any]], on: StackSpec | None = None
) -> list[Any]:
    """Return the results of a function of ``layouts_in_guest`` for each of these arguments, in one process."""
    words = json.dumps([{key: _plain(value) for key, value in arguments.items()} for arguments in calls])
    module = ("-m", "tests.guest.layouts_in_guest", function, guests.workspace.campaign, words)
    argv = ["env", f"PYTHONPATH={ROOT}", sys.executable, *module]
    request = {"do": "command", "argv": argv, "timeout_s": RUN_LIMIT_S}
    done = guests.ask(on or spec("single"), "m", request, timeout_s=RUN_LIMIT_S)
    assert done["returncode"] == 0, done["stderr"]
    results: list[Any] = json.loads(done["stdout"])
    return results


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.model_dump(mode="json") if isinstance(value, StackSpec) else value


def on_disks(layout: str, count: int) -> dict[str, Any]:
    """Return the options of a layout on at least so many disks; none for one that takes a single disk."""
    least = getattr(REGISTRY.get(layout).parse_options({}), "disks", None)
    return {"disks": max(count, 4 if least == 4 else 0)} if least else {}


def come_up(
    stacks: list[StackSpec], guests: TrialMachines, size: str = "320m", *, beside_udev: bool = False
) -> None:
    """Check that each stack can be built on four disks and is completely removed, all in one guest."""
    answers = inside(guests, "build", specs=stacks, sizes=[size] * len(stacks), beside_udev=beside_udev)
    for stack, seen in zip(stacks, answers, strict=True):
        of_udev = OF_LVM if beside_udev else ()  # its rules run LVM's programs
        assert [each for each in seen["left"] if each not in of_udev] == [], stack
        assert seen["watched"] == seen["disks"], "the disks are watched, not what they are joined to"
        assert seen["facts"]["layout"] == stack.layout
        assert seen["passes_zeros"] is parsed_stack(stack).passes_zeros(), stack
        assert [part["device"] for part in seen["facts"]["parts"]] == seen["disks"]


def test_every_layout_comes_up_and_leaves_no_trace(shared: TrialMachines) -> None:
    own = {name: "btrfs" for name in JOINING if REGISTRY.get(name).filesystems}
    wanted = [spec(layout, own.get(layout, "ext4"), **on_disks(layout, 4)) for layout in JOINING]
    come_up(
        [*wanted, spec("lvm-snapshot", thin=True), spec("luks", workqueues=False, sector_size=4096)], shared
    )


@pytest.mark.slow
@pytest.mark.parametrize("filesystem", ["xfs", "btrfs", "ext3", "f2fs"])
def test_every_layout_of_the_kernel_takes_every_file_system(filesystem: str, guests: TrialMachines) -> None:
    # XFS needs 300 MB, and a snapshot takes a part of the disk.
    come_up([spec(layout, filesystem, **on_disks(layout, 4)) for layout in KERNEL_S], guests, "700m")


@pytest.mark.slow
@pytest.mark.skipif(not Path(UDEV).exists(), reason="no udev")
def test_every_layout_of_the_kernel_comes_up_beside_udev(guests: TrialMachines) -> None:
    stacks = [spec(layout, **on_disks(layout, 4)) for layout in KERNEL_S]
    come_up(stacks * 2, guests, beside_udev=True)


# Each layout has two disks' worth of data: chunks of 64 KiB and stripes of 128 KiB are 16 and 32 blocks of 4 KiB.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "disks"),
    [("lvm-stripe", 2), ("md-raid0", 2), ("md-raid5", 3), ("md-raid6", 4), ("md-raid10", 4)],
)
def test_geometry_is_what_was_asked_on_a_real_stripe(layout: str, disks: int, guests: TrialMachines) -> None:
    # Below 1 GiB, mkfs.xfs ignores the geometry of the device.
    sizes = {"ext4": "100m", "xfs": "1100m"}
    expected = {
        ("ext4", Geometry.DEFAULT): (["RAID stride: 16", "RAID stripe width: 32"], {"stripe": "32"}),
        ("ext4", Geometry.ALIGNED): (["RAID stride: 16", "RAID stripe width: 32"], {"stripe": "32"}),
        ("ext4", Geometry.NONE): ([], None),
        ("xfs", Geometry.DEFAULT): (["unit = 16", "width = 32"], {"sunit": "128", "swidth": "256"}),
        ("xfs", Geometry.ALIGNED): (["unit = 16", "width = 32"], {"sunit": "128", "swidth": "256"}),
        ("xfs", Geometry.NONE): (["unit = 0", "width = 0"], None),
    }
    stacks = [
        spec(layout, filesystem, geometry, disks=disks, chunk="64k") for filesystem, geometry in expected
    ]
    answers = inside(guests, "build", specs=stacks, sizes=[sizes[filesystem] for filesystem, _ in expected])
    for (asked, (stripes, in_use)), seen in zip(expected.items(), answers, strict=True):
        facts = seen["facts"]
        assert (facts["minimum_io_bytes"], facts["optimal_io_bytes"]) == (64 << 10, 128 << 10)
        assert (seen["stripes"], facts["stripes_in_use"]) == (stripes, in_use), asked
        assert bool(facts["mkfs_told_of_stripes"]) == (asked[1] is not Geometry.DEFAULT)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["lvm-stripe", "md-raid0"])
def test_the_kernel_stripes_as_the_disk_server_does(layout: str, guests: TrialMachines) -> None:
    """Each block lies on the disk, and at the place after the layout's own head, where the server's model has it:
    every_sector_lies_where_md_and_lvm_put_it (engine/disk/model/tests/array.rs) has the same formula."""
    for disks, chunk in ((2, "1m"), (3, "64k"), (5, "16k")):
        seen = inside(guests, "places", spec=spec(layout, disks=disks, chunk=chunk), size="13m")
        blocks = parse_size(chunk) // 4096
        assert len(seen) >= disks * 8 * 256, "md keeps some of each disk for itself"
        assert seen == [
            [number // blocks % disks, number // blocks // disks * blocks + number % blocks]
            for number in range(len(seen))
        ]


def together(*fast: str, slow_ones: Sequence[str] = ()) -> pytest.MarkDecorator:
    """Return the parameters ``layouts``: the fast ones in one test, because a process in a guest is dear."""
    return pytest.mark.parametrize("layouts", [fast, *(slow((name,)) for name in slow_ones)], ids=",".join)


def tried(function: str, layouts: Sequence[str], disks: int, guests: TrialMachines) -> list[tuple[str, Any]]:
    """Return the result of a function of ``layouts_in_guest`` for each layout, on at least so many disks of 100 MiB."""
    calls = [{"spec": spec(each, **on_disks(each, disks)), "size": "100m"} for each in layouts]
    return list(zip(layouts, inside_each(guests, function, calls), strict=True))


CRASHED = ("md-raid1", "luks", "lvm-thin")


@together(*CRASHED, slow_ones=[name for name in KERNEL_S if name not in CRASHED])
def test_after_a_crash_it_is_undone_and_nothing_else(layouts: Sequence[str], shared: TrialMachines) -> None:
    name = volume_name(shared.workspace.campaign)
    for layout, seen in tried("crash", layouts, 3, shared):
        kind = REGISTRY.get(layout).undo_kind
        assert seen["held"] == on_disks(layout, 3).get("disks", 1), layout
        assert [each for each, _ in seen["done"]] == ["mount", kind]
        assert seen["done"][1] == [kind, name]
        assert seen["again"] == [], layout
        assert seen["left"] == [], layout
        assert seen["others_alive"], layout


@together("lvm-stripe", "md-raid0", "luks", slow_ones=("lvm-thin", "md-raid1", "md-raid5"))
def test_after_a_crash_it_is_undone_on_disks_that_are_dead(
    layouts: Sequence[str], shared: TrialMachines
) -> None:
    name = volume_name(shared.workspace.campaign)
    for layout, seen in tried("dead", layouts, 3, shared):
        kind = REGISTRY.get(layout).undo_kind
        assert [each for each, _ in seen["done"]] == ["mount", kind]
        assert seen["done"][1] == [kind, name]
        assert (seen["again"], seen["left"]) == ([], []), layout


@together("lvm-stripe", "md-raid1", "luks")
def test_signatures_without_a_volume_are_removed_if_they_carry_the_campaign_s_name(
    layouts: Sequence[str], shared: TrialMachines
) -> None:
    for layout, seen in tried("halfway", layouts, 2, shared):
        # LUKS has two headers on a disk.
        disks = [len({line.split()[0] for line in seen[which]}) for which in ("before", "others")]
        assert disks == [on_disks(layout, 2).get("disks", 1)] * 2, layout
        assert seen["left"] == [], layout
        assert set(seen["done"]) == {REGISTRY.get(layout).undo_kind}


@together("lvm-stripe", slow_ones=("luks", "md-raid1"))
def test_what_is_kept_for_a_later_trial_is_removed_after_a_crash(
    layouts: Sequence[str], shared: TrialMachines
) -> None:
    for layout, seen in tried("between", layouts, 2, shared):
        assert seen == {"done": [REGISTRY.get(layout).undo_kind], "left": []}


@pytest.mark.slow
@pytest.mark.parametrize("layout", JOINING)
def test_what_is_kept_is_brought_up_again(layout: str, guests: TrialMachines) -> None:
    filesystem = "btrfs" if REGISTRY.get(layout).filesystems else "ext4"
    seen = inside(guests, "keep", spec=spec(layout, filesystem, **on_disks(layout, 3)), size="160m")
    assert seen == {"text": "kept", "between": [], "left": []}


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["lvm-stripe", "md-raid1"])
def test_a_disk_in_use_is_not_taken(layout: str, guests: TrialMachines) -> None:
    seen = inside(guests, "refusals", spec=spec(layout, **on_disks(layout, 2)))
    assert "busy" in seen["said"].lower()
    assert seen["left"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "options", "size", "reason"),
    [
        ("luks", {"cipher": "aes-foo-plain64"}, "64m", "device-mapper: table: "),
        ("md-raid0", {"disks": 2, "chunk": "64k"}, "1m", "mdadm: create aborted"),
    ],
)
def test_disks_that_cannot_be_joined_are_a_failure_of_the_layout(
    layout: str, options: dict[str, Any], size: str, reason: str, guests: TrialMachines
) -> None:
    seen = inside(guests, "unjoined", spec=spec(layout, **options), size=size)
    assert (seen["failure"], seen["left"]) == ("layout", [])
    assert reason in seen["said"]


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["lvm-stripe", "luks"])
def test_one_that_somebody_exchanges_is_not_formatted(layout: str, guests: TrialMachines) -> None:
    seen = inside(guests, "exchange", spec=spec(layout, **on_disks(layout, 2)), size="100m")
    built, refused = seen["said"]
    assert built == "built", "while it is open, it cannot be removed"
    assert refused.startswith("lies on ")
    assert seen["written"] == [False, False]
