"""Tests of combinations of lists: each occurs once, in the order of the study, with a unique name."""

from __future__ import annotations

import io
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fslab.cell import Scalar
from fslab.plan.expand import expand
from fslab.study import matrix
from fslab.study.load import load_text
from fslab.study.model import StudyLayout, StudyMedium, StudyStack, StudyWorkload

KEYS = st.text("abcdefgh", min_size=1, max_size=3)
VALUES = st.one_of(st.integers(0, 9), st.sampled_from(["4k", "64k", "1m"]))
AXES = st.dictionaries(KEYS, st.lists(VALUES, min_size=1, max_size=4, unique_by=str).map(tuple), max_size=4)


def study(**changes: Any) -> str:
    """Return a study as YAML text. ``changes`` replace its top-level keys."""
    written = {
        "title": "t",
        "media": {
            "fast": {"type": "ram", "size": "1g"},
            "slow": {"type": "loop", "size": ["2g", "4g"]},
            "same": {"type": "ram", "size": "1g"},
            "other": {"type": "ram", "size": "2g"},
        },
        "stacks": {"fs": {"medium": "fast", "filesystem": ["ext4", "xfs"]}},
        "workloads": {"rw": {"tool": "fio", "rw": "randwrite", "bs": ["4k", "64k"], "size": "64m"}},
        **changes,
    }
    out = io.StringIO()
    YAML(typ="safe", pure=True).dump(written, out)
    return out.getvalue()


def stack_names(stacks: dict[str, Any]) -> list[str]:
    loaded = load_text(study(stacks=stacks), "s.yaml")
    return [spec.name for _, spec in matrix.stack_specs(loaded.stacks, loaded.media)]


@given(AXES)
def test_every_combination_comes_out_once(axes: dict[str, tuple[Scalar, ...]]) -> None:
    combinations = [matrix.values_at(axes, point) for point in matrix.points(axes)]
    assert len(combinations) == matrix.count(axes) == prod(len(values) for values in axes.values())
    assert len({str(combination) for combination in combinations}) == len(combinations)
    assert all(set(combination) == set(axes) for combination in combinations)
    for key, values in axes.items():
        assert {combination[key] for combination in combinations} == set(values)


@given(AXES)
def test_the_first_key_varies_slowest(axes: dict[str, tuple[Scalar, ...]]) -> None:
    indices = [tuple(point.values()) for point in matrix.points(axes)]
    assert indices == sorted(indices)


@given(AXES)
def test_names_tell_combinations_apart_and_mention_only_what_varies(
    axes: dict[str, tuple[Scalar, ...]],
) -> None:
    specs = matrix.workload_specs("w", StudyWorkload(tool="fio", parameters=axes))
    assert len({spec.name for spec in specs}) == len(specs)
    for key, values in axes.items():
        assert all(
            (f"{key}=" in spec.name.replace(",", "[").split("[", 1)[-1]) or len(values) == 1 for spec in specs
        )
    if all(len(values) == 1 for values in axes.values()):
        assert [spec.name for spec in specs] == ["w"]


def test_names_of_workloads() -> None:
    workload = StudyWorkload(
        tool="fio", parameters={"bs": ("4k", "64k"), "direct": (True, False), "size": ("1g",)}
    )
    assert [spec.name for spec in matrix.workload_specs("rw", workload)] == [
        "rw[bs=4k,direct=true]",
        "rw[bs=4k,direct=false]",
        "rw[bs=64k,direct=true]",
        "rw[bs=64k,direct=false]",
    ]


def test_names_of_media_can_be_parts_of_file_names() -> None:
    medium = StudyMedium(type="loop", options={"size": ("1g", "2g"), "path": ("/a/b", "/c d")})
    assert [spec.name for spec in matrix.medium_specs("disk", medium)] == [
        "disk.1g._a_b", "disk.1g._c_d", "disk.2g._a_b", "disk.2g._c_d",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("stacks", "names"),
    [
        ({"fs": {"medium": "fast", "filesystem": "ext4"}}, ["fs"]),
        ({"fs": {"medium": "fast", "filesystem": ["ext4", "xfs"]}}, ["ext4", "xfs"]),
        ({"fs": {"medium": "fast", "filesystem": ["ext4", "none"]}}, ["ext4", "raw"]),
        (
            {"e": {"medium": "fast", "filesystem": "ext4", "mount_options": ["", "noatime"]}},
            ["e defaults", "e noatime"],
        ),
        (
            {"fs": {"medium": "fast", "filesystem": ["ext4", "xfs"], "mount_options": ["defaults", "noatime"]}},
            ["ext4 defaults", "ext4 noatime", "xfs defaults", "xfs noatime"],
        ),
        (
            {"e": {"medium": "fast", "filesystem": "ext4", "mount_options": ["defaults", "noatime"]}},
            ["e defaults", "e noatime"],
        ),
        (
            {"e": {"medium": "fast", "filesystem": "ext4", "mkfs_options": ["", "-O ^has_journal"]}},
            ["e mkfs-defaults", "e -O ^has_journal"],
        ),
        ({"e": {"medium": ["fast", "slow"], "filesystem": "ext4"}}, ["e fast", "e slow[size=2g]", "e slow[size=4g]"]),
        (
            {"a": {"medium": "fast", "filesystem": ["ext4", "xfs"]}, "b": {"medium": "slow", "filesystem": ["ext4"]}},
            ["ext4", "xfs", "b size=2g", "b size=4g"],
        ),
        (
            {"a": {"medium": "fast", "filesystem": ["ext4", "xfs"]},
             "b": {"medium": "other", "filesystem": ["btrfs", "xfs"], "mount_options": ["defaults", "noatime"]}},
            ["a ext4", "a xfs", "b btrfs defaults", "b btrfs noatime", "b xfs defaults", "b xfs noatime"],
        ),
        (
            {"a": {"medium": "fast", "filesystem": ["ext4", "xfs"]},
             "b": {"medium": "same", "filesystem": ["ext4", "btrfs"], "mount_options": ["defaults", "noatime"]}},
            ["ext4", "xfs", "ext4 defaults", "ext4 noatime", "btrfs defaults", "btrfs noatime"],
        ),
        (
            {"plain": {"medium": "fast", "filesystem": "ext4"},
             "quiet": {"medium": "fast", "filesystem": ["ext4", "xfs"], "mount_options": "noatime"}},
            ["plain", "quiet ext4", "quiet xfs"],
        ),
        (
            {"plain": {"medium": "fast", "filesystem": ["ext4", "xfs"]},
             "quiet": {"medium": "fast", "filesystem": ["ext4"], "mount_options": "noatime"}},
            ["ext4", "xfs", "quiet"],
        ),
        (
            {name: {"medium": "fast", "filesystem": ["ext4", "xfs"]} for name in ("a", "b")},
            ["a ext4", "a xfs", "b ext4", "b xfs"],
        ),
        ({"e": {"medium": {"type": "ram", "size": ["1g", "2g"]}, "filesystem": "ext4"}},
         ["e size=1g", "e size=2g"]),
        ({"e": {"medium": ["fast", {"type": "ram", "size": "1g"}, {"type": "loop", "size": ["1g", "2g"]}],
                "filesystem": "ext4"}},
         ["e fast", "e ram", "e loop[size=1g]", "e loop[size=2g]"]),
        ({"e": {"medium": [{"type": "ram", "size": "1g"}, {"type": "ram", "size": "2g"}], "filesystem": "ext4"}},
         ["e ram[size=1g]", "e ram[size=2g]"]),
    ],
)  # fmt: skip
def test_names_of_stacks(stacks: dict[str, Any], names: list[str]) -> None:
    assert stack_names(stacks) == names


def test_layouts_of_one_type_are_told_apart_by_their_values() -> None:
    layouts = (
        StudyLayout(type="stripe", options={"chunk": ("64k",)}),
        StudyLayout(type="stripe", options={"chunk": ("1m",)}),
        StudyLayout(type="single"),
    )
    stacks = {"s": StudyStack(medium=("m",), layout=layouts, filesystem=("xfs",))}
    specs = matrix.stack_specs(stacks, {"m": StudyMedium(type="ram")})
    assert [spec.name for _, spec in specs] == ["s stripe[chunk=64k]", "s stripe[chunk=1m]", "s single"]
    assert [spec.layout_options for _, spec in specs] == [{"chunk": "64k"}, {"chunk": "1m"}, {}]


def test_an_axis_of_one_layout_is_named_by_its_value() -> None:
    stacks = {
        "s": StudyStack(medium=("m",), layout=(StudyLayout(type="stripe", options={"chunk": ("64k", "1m")}),))
    }
    specs = matrix.stack_specs(stacks, {"m": StudyMedium(type="ram")})
    assert [spec.name for _, spec in specs] == ["s chunk=64k", "s chunk=1m"]


@settings(max_examples=40)  # each reads two studies
@given(
    filesystems=st.lists(st.sampled_from(["ext2", "ext3", "ext4", "xfs", "btrfs"]), min_size=1, unique=True),
    variants=st.lists(
        st.sampled_from(["defaults", "noatime", "noatime,nodiratime"]), min_size=1, unique=True
    ),
    blocks=st.lists(st.sampled_from(["4k", "16k", "64k", "1m"]), min_size=1, unique=True),
    medium=st.sampled_from(["fast", "slow"]),
)
def test_a_study_makes_the_product_of_its_lists(
    filesystems: list[str], variants: list[str], blocks: list[str], medium: str
) -> None:
    stacks = {"fs": {"medium": medium, "filesystem": filesystems, "mount_options": variants}}
    workloads = {"rw": {"tool": "fio", "rw": "randwrite", "bs": blocks, "size": "64m"}}
    loaded = load_text(study(stacks=stacks, workloads=workloads), "s.yaml")
    cells = expand(loaded)
    sizes = {"fast": 1, "slow": 2}
    assert len(cells) == len(filesystems) * len(variants) * len(blocks) * sizes[medium]
    assert len({cell.id for cell in cells}) == len(cells)
    assert len({(cell.stack.name, cell.workload.name) for cell in cells}) == len(cells)
    assert expand(load_text(loaded.text, "s.yaml")) == cells


SEVERAL = StudyStack(
    medium=("m", "n"),
    layout=(StudyLayout(type="stripe", options={"chunk": ("64k", "1m")}), StudyLayout(type="single")),
    filesystem=("xfs", "ext4"), mkfs_options=("", "-K"), mount_options=("defaults", "noatime"),
    geometry=("default", "aligned"), tuning={"vm.swappiness": ("1", "2", "3")},
)  # fmt: skip
ON = {"m": StudyMedium(type="ram", options={"size": ("1g", "2g")}), "n": StudyMedium(type="ram")}


def test_the_number_of_stacks_is_known_without_making_them() -> None:
    assert matrix.stack_count(SEVERAL, ON) == len(matrix.stack_specs({"s": SEVERAL}, ON)) == 3 * 3 * 16 * 3
    raw = SEVERAL.model_copy(update={"filesystem": ()})
    assert matrix.stack_count(raw, ON) == len(matrix.stack_specs({"s": raw}, ON))


def test_the_characters_of_the_cells_are_about_those_of_their_json() -> None:
    """Each of six workloads has one of two texts, and each of them runs on three stacks."""
    files = {"script": {"a.sh": "x" * 100_000, "b.sh": "y" * 300_000}}
    work = StudyWorkload(
        tool="shell", parameters={"script": ("a.sh", "b.sh"), "count": (1, 2, 3)}, files=files
    )
    stack = StudyStack(
        medium=("m",), layout=(StudyLayout(type="single"),), filesystem=("xfs", "ext4", "btrfs")
    )
    found = matrix.characters({"s": stack}, {"m": StudyMedium(type="ram")}, {"w": work})
    assert found == pytest.approx(3 * 3 * (100_000 + 300_000), rel=0.01)
