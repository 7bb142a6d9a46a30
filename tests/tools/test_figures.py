"""Tests of figures as files: vl-convert draws every figure of a page as SVG and PNG, with the light colours."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.browser import campaigns

from fslab.analysis import disk_request_map
from fslab.errors import UsageError
from fslab.report.figures import costs, paper, ratios, styles
from fslab.report.figures.styles import StackStyles
from fslab.report.page import assemble
from fslab.report.page.model import HeatRow, HeatTile

PNG = b"\x89PNG\r\n\x1a\n"


def test_every_figure_is_an_svg_and_a_png(tmp_path: Path) -> None:
    campaign, trials = campaigns.small()
    figures = list(
        assemble.figures(assemble.page([assemble.CampaignSource(campaign=campaign, trials=trials)]))
    )
    written = paper.write(figures, tmp_path / "new" / "figures")
    assert {path.name for path in written} == {
        f"{figure.id}.{kind}" for figure in figures for kind in ("svg", "png")
    }
    for figure in figures:
        text = (tmp_path / "new/figures" / f"{figure.id}.svg").read_text()
        assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(--" not in text
        image = (tmp_path / "new/figures" / f"{figure.id}.png").read_bytes()
        assert image[:8] == PNG
        width, height = struct.unpack(">II", image[16:24])
        assert min(width, height) > 100
    drawn = (tmp_path / "new/figures/heat.svg").read_text()
    assert all(name in drawn for name in ("ext4", "xfs", "btrfs", "1.00", "0.50"))
    points = (tmp_path / "new/figures/w-sizes-bs-4k-write-iops.svg").read_text()
    assert styles.SERIES_LIGHT[styles.slots(["ext4"])["ext4"]] in points


def test_labels_that_differ_at_their_ends_are_not_cut_to_the_same_text(tmp_path: Path) -> None:
    shared = "btrfs-mounted-on-the-large-disk noatime,space_cache=v2,autodefrag,compress=zstd"
    stacks, metrics = [f"{shared}:{level}" for level in (1, 15)], ("read", "write")
    tiles = tuple(HeatTile(stack=stack, share=1.0, value="", words="", decided=True) for stack in stacks)
    heats = [
        HeatRow(workload=shared * 2, anchor="", metric=metric, lower=False, tiles=tiles, take="", sure="")
        for metric in metrics
    ]
    rows = [f"{shared * 2}, {metric}" for metric in metrics]
    ratio = ratios.ForestRatio(label="", ratio=2.0, low=1.5, high=2.5, sure=True)
    forest = [replace(ratio, label=each) for each in rows]
    shares = paper.figure("heat", heats, stacks)
    assert shares is not None
    paper.write([shares, ratios.forest_figure("forest", "t", "a", forest)], tmp_path)
    assert "Dashed: may equal the best." in (tmp_path / "heat.svg").read_text(), (
        "a file has no page around it"
    )
    for name, labels in (("heat", [*stacks, *rows]), ("forest", rows)):
        texts = [
            each.text for each in ET.parse(tmp_path / f"{name}.svg").iter("{http://www.w3.org/2000/svg}text")
        ]
        assert [label for label in labels if texts.count(label) != 1] == []


def test_the_frame_of_a_tile_is_no_edge_of_its_neighbour(tmp_path: Path) -> None:
    tiles = tuple(
        HeatTile(stack=stack, share=1.0, value="", words="", decided=stack == "xfs")
        for stack in ("ext4", "xfs")
    )
    row = HeatRow(workload="w", anchor="", metric="rate", lower=False, tiles=tiles, take="", sure="")
    shares = paper.figure("heat", [row], ["ext4", "xfs"])
    assert shares is not None
    paper.write([shares], tmp_path)
    drawn = (tmp_path / "heat.svg").read_text()
    sizes = {}
    for name in ("tile", "undecided"):
        path = re.search(rf'class="[^"]*{name}_marks".*? d="M[^h]*h([\d.]+)v([\d.]+)', drawn)
        assert path is not None
        sizes[name] = (float(path[1]), float(path[2]))
    assert sizes["undecided"][0] < sizes["tile"][0] - 2
    assert sizes["undecided"][1] < sizes["tile"][1] - 2


LOOKS = StackStyles(labels=("ext4", "xfs"), slot=(0, 1), variant=(0, 0))


def request_map_of(*regions: int) -> disk_request_map.RequestMap:
    cells = [("write", at % disk_request_map.INTERVALS, at % len(regions), 4096) for at in range(40)]
    return disk_request_map.RequestMap(
        seconds=2.0, region_bytes=1 << 20, regions=regions, cells=(("read", 3, 0, 8192), *cells),
        distances={"write": {0: 30, 4096: 9}, "read": {1 << 30: 1}},
    )  # fmt: skip


def test_figures_of_disks(tmp_path: Path) -> None:
    """Each cell of a map is one mark, a stack without a request of some distance has a share of 0 there."""
    maps = {"ext4": request_map_of(0, 1 << 20, 1 << 39), "xfs": request_map_of(0)}
    drawn = [
        costs.request_figure("map", "w", maps, 5, LOOKS),
        costs.distance_figure("distances", "w", maps, LOOKS),
        costs.amplification_figure("amplification", "w", {"ext4": (1.2, 2.5), "xfs": (0.9, 1.5)}, LOOKS),
    ]
    paper.write(drawn, tmp_path)
    text = {figure.id: (tmp_path / f"{figure.id}.svg").read_text() for figure in drawn}
    assert text["map"].count('aria-roledescription="rect mark"') == drawn[0].marks["requests"] == 2 * 41
    assert "first of 5 disks" in drawn[0].caption
    assert all(place in text["map"] for place in ("0 B", "550 GB", "ext4", "xfs"))
    assert all(name in text["distances"] for name in ("none", "4 KiB", "1 GiB"))
    assert text["distances"].count('aria-roledescription="line mark"') == drawn[1].marks["stacks"] == 2
    assert text["amplification"].count('aria-roledescription="bar"') == drawn[2].marks["factors"] == 4


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        paper.write([], tmp_path / "file" / "figures")
