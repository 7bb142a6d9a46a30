"""Tests of figures as files: vl-convert draws every figure of a page as SVG and PNG, with the light colours."""

from __future__ import annotations

import struct
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.browser import campaigns

from fslab.errors import UsageError
from fslab.report.figures import files, palette
from fslab.report.page import assemble

PNG = b"\x89PNG\r\n\x1a\n"


def test_every_figure_is_an_svg_and_a_png(tmp_path: Path) -> None:
    campaign, trials = campaigns.small()
    figures = list(
        assemble.figures(assemble.page([assemble.CampaignSource(campaign=campaign, trials=trials)]))
    )
    written = files.write(figures, tmp_path / "new" / "figures")
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
    heat = (tmp_path / "new/figures/heat.svg").read_text()
    assert all(name in heat for name in ("ext4", "xfs", "btrfs", "1.00", "0.50"))
    points = (tmp_path / "new/figures/w-sizes-bs-4k-write-iops.svg").read_text()
    assert palette.SERIES_LIGHT[palette.slots(["ext4"])["ext4"]] in points


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot create the directory"):
        files.write([], tmp_path / "file" / "figures")
