"""Tests of stacks that differ only in numbers: which options count as numbers, and the figures over them."""

from __future__ import annotations

import pytest
from tests.unit.test_page_words import Middles, made, stack, work

from fslab.analysis.workload_groups import groups
from fslab.cell import MediumSpec, Scalar, StackSpec
from fslab.report.page import sweeps


def logged(filesystem: str, profile: str, options: str) -> StackSpec:
    """Return a stack on a modelled disk; ``options`` are for mkfs."""
    medium = MediumSpec(name=profile, type="virtual", options={"profile": profile, "size": "16g"})
    return StackSpec(
        name=f"{filesystem} {options} {profile}", medium=medium, filesystem=filesystem, mkfs_options=options
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [(4, 4.0), ("64k", 65536.0), ("1.5", None), ("libaio", None), (True, None), (0.5, 0.5)],
)
def test_numbers_among_parameters(value: Scalar, expected: float | None) -> None:
    assert sweeps.number(value) == expected


def test_sizes_of_a_log_on_two_disks() -> None:
    """Each numeric mkfs option gets a figure with one curve per disk. btrfs has no such option here, and no figure."""
    disks = ("hdd-7200", "ssd-sata")
    cells: Middles = []
    for profile in disks:
        for size in (16, 64, 256):
            cells.append((logged("ext4", profile, f"-J size={size}"), work("cut"), 100.0 * size))
        for log in ("64m", "256m"):
            cells.append((logged("xfs", profile, f"-l size={log}"), work("cut"), 100.0))
        cells.append((logged("btrfs", profile, ""), work("cut"), 100.0))
    report, campaign, trials = made(cells)
    ext4, xfs = sweeps.figures(report, list(groups(campaign.cells, trials)))
    assert ext4.title.endswith("by mkfs -J size")
    assert (ext4.marks["step"], ext4.marks["curve"]) == (6, 2)
    assert "ext4 on hdd-7200" in ext4.alt
    assert xfs.title.endswith("by mkfs -l size")
    assert ext4.id != xfs.id


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-J size=64", {"mkfs -J size": "64"}),
        (
            "-b 4096 -E stride=16,stripe_width=64",
            {"mkfs -b": "4096", "mkfs -E stride": "16", "mkfs stripe_width": "64"},
        ),
        ("-O ^has_journal -L disk1", {}),
        ("-d su=64k,sw=2", {"mkfs -d su": "64k", "mkfs sw": "2"}),
    ],
)
def test_numbers_given_to_mkfs(options: str, expected: dict[str, Scalar]) -> None:
    found = sweeps.numbers(logged("ext4", "hdd-7200", options))
    assert {key: value for key, value in found.items() if key.startswith("mkfs")} == expected


def test_numbers_given_to_mount() -> None:
    options = "commit=5,compress=zstd:3,noatime"
    mounted = stack("btrfs").model_copy(update={"mount_options": options})
    assert sweeps.numbers(mounted) == {"medium size": "1g", "mount commit": "5"}
