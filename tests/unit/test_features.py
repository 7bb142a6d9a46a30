"""Tests of the table of features, and of the parts of feature tests that need no file system."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from fslab.features import (
    REGISTRY,
    Examination,
    FeatureFinding,
    Support,
    in_order,
    largest,
    no,
    refused,
    unknown,
    value,
    yes,
)
from fslab.features.data import flip
from fslab.report import features_terminal as report
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS

GIB = 1 << 30


def test_every_feature_has_a_line_that_fits() -> None:
    assert len({feature.title for _, feature in REGISTRY}) == len(REGISTRY.names())
    for _, feature in REGISTRY:
        assert len(feature.title) < report.TITLE_WIDTH - 2
        assert feature.summary
    assert {feature.name for feature in in_order()} == set(REGISTRY.names())


def test_switches_name_features_that_there_are() -> None:
    for name, filesystem in FILESYSTEMS:
        assert set(filesystem.switches) <= set(REGISTRY.names()), name


@pytest.mark.parametrize("limit", [1, 2, 3, 64, 999, 1000])
def test_the_largest_that_works_is_found(limit: int) -> None:
    asked: list[int] = []

    def works(number: int) -> bool:
        asked.append(number)
        return number <= limit

    assert largest(works, low=1, high=1000) == limit
    assert len(asked) <= 12, "1000 numbers need ten halvings"


def test_none_works() -> None:
    assert largest(lambda _: False, low=1, high=8) is None


def test_every_copy_is_flipped_also_across_the_window_s_border(tmp_path: Path) -> None:
    device = tmp_path / "device"
    content = bytearray(20 << 20)
    needle = b"needle" * 8
    places = [0, (8 << 20) - 20, (16 << 20) - 1, (20 << 20) - len(needle)]
    for place in places:
        content[place : place + len(needle)] = needle
    device.write_bytes(content)
    assert flip(device, needle) == 4
    for place in places:
        content[place] ^= 0xFF
    assert device.read_bytes() == content
    assert flip(device, needle) == 0


@pytest.mark.parametrize(
    ("finding", "says"),
    [
        (yes(), "yes"), (no("because"), "no"), (unknown("why"), "?"), (value("dynamic", at_least=True), "dynamic"),
        (value(66000, at_least=True), "≥ 66,000"), (value(4036, "B"), "3.94 KiB"), (value((1 << 63) - 1, "B"), "8 EiB"),
        (value((4 * GIB) - 1, "B"), "4 GiB"), (value(17_592_186_040_320, "B"), "16 TiB"), (value(1, "ns"), "1 ns"),
        (value(2_000_000_000, "ns"), "2 s"), (value(82.5, "%"), "82.5 %"), (value(255, "chars"), "255 chars"),
        (value(1000, "ns"), "1 µs"), (value(10_000_000, "ns"), "10 ms"),
    ],
)  # fmt: skip
def test_a_finding_in_a_few_letters(finding: FeatureFinding, says: str) -> None:
    assert report.word(finding) == says


def examination(name: str, **changes: object) -> Examination:
    findings = {feature: yes("seen") for feature in REGISTRY.names()}
    return Examination.model_validate(
        {"filesystem": name, "kernel": "6.18.4-x", "size_bytes": GIB, "findings": findings, **changes}
    )


def printed(*found: Examination, details: bool = False, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    report.show(found, console, details=details)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_four_file_systems_stand_side_by_side_in_80_columns() -> None:
    text = printed(*(examination(name) for name in ("ext4", "xfs", "btrfs", "reiserfs")))
    assert max(map(len, text.splitlines())) <= 80
    (head,) = [line.split() for line in text.splitlines() if "reiserfs" in line]
    assert head == ["ext4", "xfs", "btrfs", "reiserfs"]
    assert "…" not in text


def test_a_long_title_of_a_plug_in_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    title = "names of files that end with a dot or a space"
    monkeypatch.setattr(REGISTRY.get("acl"), "title", title)
    assert f" {title} " in printed(examination("ext4"))
    narrow = printed(*map(examination, ("ext4", "xfs", "btrfs", "reiserfs")))
    assert max(map(len, narrow.splitlines())) <= 80
    assert " ".join(narrow.split()).count("…") == 0


def test_a_fifth_goes_into_a_table_below() -> None:
    text = printed(*(examination(name) for name in ("ext2", "ext3", "jfs", "udf", "vfat")))
    assert ["vfat"] in [line.split() for line in text.splitlines()]


def test_answers_of_different_kernels_are_not_passed_off_as_one() -> None:
    assert "different kernels" in printed(examination("ext4"), examination("f2fs", kernel="6.1.176"))
    assert "different kernels" not in printed(examination("ext4"), examination("f2fs"))


def test_notes_say_why_once_for_all_that_share_it() -> None:
    findings = {
        "encryption": FeatureFinding(answer=Support.YES, switch="mkfs -O encrypt"),
        "dax": unknown("no memory"),
    }
    text = printed(
        examination("ext4", findings=findings),
        examination("jfs", findings={"dax": unknown("no memory"), "acl": no("not there")}),
        examination("zfs", findings={}, not_possible="no kernel has it"),
    )
    assert "ext4, jfs DAX: no memory" in text
    assert "ext4 encryption: yes with mkfs -O encrypt, no without *" in text
    assert "zfs not possible here: no kernel has it" in text
    assert "not there" not in text, "what was seen is said with --details only"
    assert "jfs access control lists: not there" in printed(
        examination("jfs", findings={"acl": no("not there")}), details=True
    )


def test_what_the_kernel_lacks_is_not_passed_off_as_the_file_system_s() -> None:
    lacking = refused(no("Operation not supported"), "mkfs -O encrypt", "Operation not supported")
    text = printed(examination("ext4", findings={"encryption": lacking}), width=120)
    said = "no with this kernel, also not with mkfs -O encrypt: Operation not supported"
    assert f"ext4 encryption: {said}" in text, "also without --details"


@pytest.mark.parametrize(
    ("finding", "said", "agree"),
    [
        (yes(), {"answer": "yes"}, True), (no(), {"answer": "yes"}, False), (unknown("?"), {"answer": "yes"}, None),
        (value(4036, "B"), {"value": 4096}, True), (value(1024, "B"), {"value": 4096}, False),
        (value(100, "B", at_least=True), {"value": 4096}, True), (no(), {"value": 4096}, False),
    ],
)  # fmt: skip
def test_what_is_documented_against_what_is_found(
    finding: FeatureFinding, said: dict[str, object], agree: bool | None
) -> None:
    assert report.agrees(finding, said) is agree


def test_the_documented_ones_are_named_with_their_source() -> None:
    data = report.documented()
    assert set(data["features"]) <= set(REGISTRY.names())
    for name, said in data["filesystems"].items():
        assert name in FILESYSTEMS.names()
        assert set(said) == set(data["features"])
        assert all(each["source"] for each in said.values())
    disagreeing = printed(examination("ext4", findings={"checksums": yes(), "reflink": no()}))
    assert "no ≠" in disagreeing
