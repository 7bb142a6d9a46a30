"""Tests of layouts, geometry and several disks in a study: how they combine, and the messages about mistakes."""

from __future__ import annotations

import pytest

from fslab.cell import Geometry
from fslab.errors import StudyError
from fslab.plan.expand import expand
from fslab.study.load import load_text

HEAD = """\
title: t
media:
  disks: {type: ram, size: 160m}
  small: {type: ram, size: 100m}
  two: {type: device, path: /dev/disk/by-id/a /dev/disk/by-id/b}
workloads: {w: {tool: fio, rw: write, bs: 1m, size: 32m}}
stacks:
  s: """


def mistakes(stack: str) -> str:
    """Return the message about the mistake in ``stack``, which is in line 8, without its location."""
    with pytest.raises(StudyError) as caught:
        load_text(HEAD + stack + "\n", "s.yaml")
    (said,) = caught.value.what.splitlines()[1:]
    place, _, what = said.strip().partition(": ")
    assert place == "s.yaml:8"
    return what


def test_manager_disks_chunk_and_file_system_make_every_combination() -> None:
    stack = """
    medium: disks
    layout:
      - {type: lvm-stripe, disks: [2, 3, 4, 5], chunk: [16k, 64k, 256k, 1m]}
      - {type: md-raid0, disks: [2, 3, 4, 5], chunk: [16k, 64k, 256k, 1m]}
    filesystem: [ext4, xfs, btrfs]
"""
    names = [cell.stack.name for cell in expand(load_text(HEAD + stack, "s.yaml"))]
    assert len(set(names)) == len(names) == 96
    assert names[0] == "ext4 lvm-stripe[disks=2,chunk=16k]"


def test_geometry_is_an_axis() -> None:
    stack = "{medium: disks, layout: {type: md-raid0, disks: 5}, filesystem: [ext4, xfs], geometry: [none, aligned]}"
    stacks = [cell.stack for cell in expand(load_text(HEAD + stack, "s.yaml"))]
    assert [(each.name, each.geometry) for each in stacks] == [
        ("ext4 geometry=none", Geometry.NONE),
        ("ext4 geometry=aligned", Geometry.ALIGNED),
        ("xfs geometry=none", Geometry.NONE),
        ("xfs geometry=aligned", Geometry.ALIGNED),
    ]


def test_a_study_without_layouts_keeps_its_cells() -> None:
    (cell,) = expand(load_text(f"{HEAD}{{medium: disks, filesystem: ext4}}", "s.yaml"))
    assert (cell.stack.layout, cell.stack.geometry) == ("single", Geometry.DEFAULT)
    assert '"geometry"' not in cell.stack.model_dump_json(exclude_defaults=True)


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ("medium: disks, layout: {type: lvm-stripe, disks: 1}, filesystem: ext4",
         "stacks.s.layout.disks: must be at least 2, not 1"),
        ("medium: disks, layout: {type: md-raid0, chunk: [64k, 48k]}, filesystem: ext4",
         "stacks.s.layout.chunk.2: chunk '48k' is not a power of two of at least 4 KiB"),
        ("medium: disks, layout: {type: lvm-stripe, chunk: 8m}, filesystem: ext4",
         "stacks.s.layout.chunk: chunk '8m' is larger than an LVM extent (4 MiB)"),
        ("medium: disks, layout: {type: md-raid1, chunk: 64k}, filesystem: ext4",
         "stacks.s.layout.chunk: a mirror has no chunk, because all disks hold the same data: remove 'chunk'"),
        ("medium: disks, layout: {type: btrfs-raid0, chunk: 64k}, filesystem: btrfs",
         "stacks.s.layout.chunk: the chunk of btrfs is always 64 KiB: remove 'chunk'"),
        ("medium: disks, layout: btrfs-raid0, filesystem: [ext4, btrfs]",
         "stacks.s.layout: layout 'btrfs-raid0' works with btrfs only, not with ext4"),
        ("medium: disks, layout: external-journal, filesystem: [ext4, ext2]",
         "stacks.s.layout: layout 'external-journal': ext2 has no external journal"),
        ("medium: disks, layout: external-journal, filesystem: ext4, mkfs_options: -J size=8",
         ("stacks.s.layout: mkfs option '-J' describes the journal, but layout external-journal sets it: remove the "
          "option")),
        ("medium: disks, layout: btrfs-raid1, filesystem: btrfs, mkfs_options: -m single",
         "stacks.s.layout: mkfs option '-m' sets a profile, but layout btrfs-raid1 sets it: remove the option"),
        ("medium: small, layout: btrfs-raid1, filesystem: btrfs",
         "stacks.s.layout: needs disks of at least 125 MiB, and those of medium 'small' have 100 MiB"),
        ("medium: small, layout: lvm-stripe, filesystem: xfs",
         ("stacks.s.filesystem: xfs needs at least 300 MiB, and medium 'small' of stack 's' has 192 MiB with layout "
         "'lvm-stripe'")),
        ("medium: disks, layout: lvm-stripe, filesystem: xfs, geometry: aligned",
         ("stacks.s.filesystem: xfs needs at least 640 MiB with geometry 'aligned', and medium 'disks' of stack 's' "
         "has 312 MiB with layout 'lvm-stripe'")),
        ("medium: disks, filesystem: ext4, geometry: aligned",
         "stacks.s.geometry: geometry 'aligned': layout 'single' has no stripe"),
        ("medium: disks, layout: md-raid0, filesystem: ext4, geometry: alinged",
         "stacks.s.geometry: 'alinged' is not one of default, aligned, none — did you mean 'aligned'?"),
        ("medium: disks, layout: md-raid0, filesystem: btrfs, geometry: [default, none]",
         "stacks.s.geometry: mkfs of btrfs has no stripe options: these stacks would be identical"),
        ("medium: disks, layout: md-raid0, filesystem: ext4, geometry: none, mkfs_options: -E stride=16",
         ("stacks.s.geometry: geometry 'none': the mkfs options '-E stride=16' set 'stride' too; remove "
         "one of the two")),
        ("medium: two, layout: md-raid5, filesystem: ext4",
         "stacks.s.layout: needs 3 disks, and medium 'two' names 2: name more in its 'path', separated by spaces"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_message(stack: str, expected: str) -> None:
    assert mistakes(f"{{{stack}}}") == expected


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/dev/disk/by-id/a /dev/sdb", "not a stable device name"),
        ("/dev/disk/by-id/a /dev/disk/by-id/a", "'/dev/disk/by-id/a' is named twice"),
        ("' '", "at least one device"),
    ],
)
def test_each_of_several_disks_needs_a_stable_name(path: str, says: str) -> None:
    text = HEAD.replace("/dev/disk/by-id/a /dev/disk/by-id/b", path) + "{medium: disks, filesystem: ext4}"
    with pytest.raises(StudyError, match=says):
        load_text(text, "s.yaml")
