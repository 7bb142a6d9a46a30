"""Tests of the mkfs and mount commands of whole stacks: layout, geometry and the study's options combined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fslab.cell import Cell, Fresh, Geometry, MediumSpec, StackSpec, WorkloadSpec
from fslab.names import is_word
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.parsed_stack import disk_slots, parsed_stack, served


def spec(filesystem: str, layout: str = "md-raid5", geometry: str = "default", **more: Any) -> StackSpec:
    return StackSpec(
        name="s", medium=MediumSpec(name="m", type="ram"), filesystem=filesystem, layout=layout,
        geometry=Geometry(geometry), **more,
    )  # fmt: skip


def told(filesystem: str, geometry: str, mkfs_options: str = "", **layout_options: Any) -> str:
    """Return the mkfs options for the stripes of a RAID 5 of 4 disks, with chunks of 64 KiB by default."""
    wanted = {"disks": 4, "chunk": "64k", **layout_options}
    made = spec(filesystem, geometry=geometry, mkfs_options=mkfs_options, layout_options=wanted)
    parsed_stack(made).check_together()
    return parsed_stack(made).geometry_options(parsed_stack(made).layout_plan(["/a", "/b", "/c", "/d"], "c"))


@pytest.mark.parametrize("filesystem", FILESYSTEMS.names())
def test_by_default_mkfs_is_told_nothing(filesystem: str) -> None:
    assert told(filesystem, "default") == ""


def test_aligned_is_what_the_layout_says() -> None:
    # Three disks hold data: a chunk of 64 KiB has 16 blocks of 4 KiB, a full stripe 48.
    assert told("ext4", "aligned") == "-E stride=16,stripe_width=48"
    assert told("ext3", "aligned", "-b 1024") == "-E stride=64,stripe_width=192"
    assert told("ext2", "aligned", "-b4k", chunk="4k") == "-E stride=1,stripe_width=3"
    assert told("xfs", "aligned") == "-d su=65536,sw=3"
    assert told("btrfs", "aligned") == ""


def test_none_keeps_mkfs_from_asking_the_device() -> None:
    assert told("ext4", "none") == "-E stride=0,stripe_width=0"
    assert told("xfs", "none") == "-d noalign"
    assert told("btrfs", "none") == ""


def test_geometry_stands_before_the_study_s_own_options() -> None:
    made = spec("ext4", geometry="none", mkfs_options="-E packed_meta_blocks=1 -b 2048")
    plan = parsed_stack(made).layout_plan(["/a", "/b", "/c"], "c")
    assert parsed_stack(made).mkfs_argv(plan, "/dev/md9", discard=False) == [
        "mkfs.ext4", "-F", "-q", "-E",
        "lazy_itable_init=0,lazy_journal_init=0,nodiscard,stride=0,stripe_width=0,packed_meta_blocks=1",
        "-b", "2048", "/dev/md9",
    ]  # fmt: skip


def test_btrfs_over_its_own_devices() -> None:
    made = spec("btrfs", "btrfs-raid0", mkfs_options="-n 32k", mount_options="noatime,compress=zstd")
    plan = parsed_stack(made).layout_plan(["/dev/a", "/dev/b"], "c")
    assert parsed_stack(made).mkfs_argv(plan, plan.device, discard=False) == [
        "mkfs.btrfs", "-f", "-q", "-K", "-d", "raid0", "-m", "raid1", "-n", "32k", "/dev/a", "/dev/b",
    ]  # fmt: skip
    assert parsed_stack(made).mount_argv(plan, plan.device, "/m") == [
        "mount", "-t", "btrfs", "-o", "noatime,compress=zstd,device=/dev/b", "/dev/a", "/m",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("defaults", "defaults,no_prefetch_block_bitmaps"),
        ("noatime,data=journal", "noatime,data=journal,no_prefetch_block_bitmaps"),
        ("prefetch_block_bitmaps", "prefetch_block_bitmaps"),
        ("no_prefetch_block_bitmaps,noatime", "no_prefetch_block_bitmaps,noatime"),
    ],
)
def test_a_trial_begins_without_work_in_the_background(given: str, used: str) -> None:
    made = parsed_stack(spec("ext4", mount_options=given))
    plan = made.layout_plan(["/dev/a"], "c")
    assert made.mount_argv(plan, "/dev/a", "/m", settled=True)[4] == used
    assert made.mount_argv(plan, "/dev/a", "/m")[4] == given


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            spec("ext4", "btrfs-raid0"),
            "layout 'btrfs-raid0' works with btrfs only, not with ext4",
        ),
        (spec("btrfs", "btrfs-raid1", mkfs_options="-m dup"), "sets a profile"),
        (spec("ext4", "single", "aligned"), "layout 'single' has no stripe"),
        (spec("ext4", "md-raid1", "aligned"), "layout 'md-raid1' has no stripe"),
        (spec("btrfs", "btrfs-raid0", "aligned"), "layout 'btrfs-raid0' has no stripe"),
        (spec("ext4", geometry="aligned", mkfs_options="-E stride=16"), "set 'stride' too"),
        (spec("ext4", geometry="none", mkfs_options="-Estripe-width=16"), "set 'stripe-width' too"),
        (spec("xfs", geometry="none", mkfs_options="-d su=64k,sw=2"), "set 'su' too"),
        (spec("ext4", geometry="aligned", mkfs_options="-T news"), "the stride is in blocks"),
        (spec("none", fill="80%"), "'none' has no files"),
    ],
)
def test_what_does_not_go_together_is_refused(wrong: StackSpec, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parsed_stack(wrong).check_together()


def test_other_words_are_not_taken_for_stripes() -> None:
    parsed_stack(
        spec("xfs", geometry="none", mkfs_options="-d agcount=8 -i sparse=0 -b size=4k")
    ).check_together()
    parsed_stack(
        spec("ext4", geometry="aligned", mkfs_options="-E resize=10g -O sparse_super2")
    ).check_together()


def test_the_slots_of_several_disks_are_those_of_no_other_medium() -> None:
    assert disk_slots("disk", 1) == ["disk"]
    slots = disk_slots("disk", 3)
    assert len(set(slots)) == 3
    assert not any(is_word(slot) for slot in slots), "no medium can have such a name"


def as_served(filesystem: str, geometry: str = "default", layout: str = "md-raid0", **more: Any) -> StackSpec:
    """Return a stripe of three disks that the disk server makes."""
    disk = MediumSpec(
        name="m", type="virtual", options={"profile": "hdd-7200", "size": "1g", "memory": "64m"}
    )
    made = spec(filesystem, layout, geometry, layout_options={"disks": 3, "chunk": "64k"}, **more)
    return served(made.model_copy(update={"medium": disk}))


@pytest.mark.parametrize("layout", ["md-raid0", "lvm-stripe"])
def test_a_stripe_of_the_server_is_one_device_without_modules_and_tools(layout: str) -> None:
    made = as_served("ext4", layout=layout)
    parsed = parsed_stack(made)
    assert (made.served, made.layout, parsed.layout.name) == (True, layout, layout)
    assert (parsed.disks, parsed.layout.modules, parsed.layout.tools) == (1, (), ())
    (options,) = parsed.each_medium_options()
    assert (options.array_disks, options.array_chunk, options.memory) == (3, "65536", str(192 << 20))  # type: ignore[attr-defined]
    assert parsed.medium_plan(Path()).size_bytes == parsed.usable_bytes(3 << 30) == 3 << 30
    plan = parsed.layout_plan(["/dev/loop0"], "c")
    assert (plan.device, plan.create, plan.remove) == ("/dev/loop0", (), ())


def test_mkfs_is_told_of_the_server_s_stripe_as_it_reads_that_of_md_from_the_device() -> None:
    def words(*given: Any, **more: Any) -> str:
        parsed = parsed_stack(as_served(*given, **more))
        parsed.check_together()
        return parsed.geometry_options(parsed.layout_plan(["/d"], "c"))

    assert words("ext4") == words("ext4", "aligned") == "-E stride=16,stripe_width=48"
    assert words("xfs") == words("xfs", "aligned") == "-d su=65536,sw=3"
    assert words("btrfs") == ""
    assert words("xfs", "none") == "-d noalign"
    assert words("xfs", mkfs_options="-d su=16k,sw=2") == "", "the study's own come first"
    assert words("ext4", mkfs_options="-b 65536 -C 131072") == "-E stride=1,stripe_width=3"


def test_only_a_stripe_that_the_medium_can_make_is_served() -> None:
    on_memory = spec("ext4", "md-raid0")
    assert served(on_memory) == on_memory
    assert served(spec("ext4", "single")).served is False
    with pytest.raises(ValueError, match="'ram' cannot make the stripe of layout 'md-raid0'"):
        parsed_stack(on_memory.model_copy(update={"served": True}))


def test_a_medium_s_stripes_have_one_image_beside_that_of_its_disks() -> None:
    def slot(stack: StackSpec, fresh: Fresh = Fresh.TRIAL) -> str:
        return Cell(stack=stack, workload=WorkloadSpec(name="w", tool="fio"), fresh=fresh).slot

    stripe = as_served("ext4")
    assert slot(stripe) == slot(as_served("xfs", layout="lvm-stripe")) != slot(spec("ext4", "single"))
    assert not is_word(slot(stripe)), "no medium can have such a name"
    assert slot(stripe, Fresh.CAMPAIGN).startswith(slot(stripe))
