"""Tests of sizes, durations and units: input is read exactly, values are printed with three digits and a unit."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.study.fields import adapter_of
from fslab.study.load import load
from fslab.units import (
    LARGEST_BYTES,
    Unit,
    counted,
    first_of,
    format_duration,
    format_size,
    format_value,
    in_one_scale,
    metric_text,
    parse_duration,
    parse_size,
)
from fslab.workloads import REGISTRY as WORKLOADS


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("512", 512),
        (4096, 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4KiB", 4096),
        ("4kb", 4096),
        (" 64 m ", 67_108_864),
        ("1.5g", 1_610_612_736),
        ("2t", 2_199_023_255_552),
    ],
)
def test_sizes_are_powers_of_1024(text: str | int, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "k", "4x", "4kk", "-1", "1e3", "4 k 2", "0.3", "1.0001k", "٤q"])
def test_an_invalid_size_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|bytes"):
        parse_size(text)


@given(st.integers(min_value=0, max_value=LARGEST_BYTES))
@example(LARGEST_BYTES)
def test_any_number_of_bytes_is_read_back(size_bytes: int) -> None:
    assert parse_size(str(size_bytes)) == size_bytes


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        (2.5, 2.5),
        ("30s", 30),
        ("10m", 600),
        ("1h30m", 5400),
        ("700ms", 0.7),
        ("250us", 0.00025),
        ("1m500msec", 60.5),
        ("20USEC", 0.00002),
        ("1d", 86400),
    ],
)
def test_durations(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "m", "10 m", "5 minutes", "-3s", "1x", "s10", "\u0663s"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.50 KiB"),
        (1023.6 * 1024, "1.00 MiB"),
        (1 << 30, "1 GiB"),
        (5 << 40, "5 TiB"),
    ],
)
def test_sizes_print_in_powers_of_1024(size_bytes: float, text: str) -> None:
    assert format_size(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.85, "850 ms"),
        (0.9996, "1.00 s"),
        (12.34, "12.3 s"),
        (125, "2 min 05 s"),
        (4320, "1 h 12 min"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
    ],
)
def test_durations_print_in_two_units_at_most(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, Unit.IOPS, "–"),
        (61_700, Unit.IOPS, "61.7k IOPS"),
        (999_700, Unit.IOPS, "1.00M IOPS"),
        (1.21e9, Unit.BYTES_PER_SECOND, "1.21 GB/s"),
        (35_000, Unit.BYTES_PER_SECOND, "35 kB/s"),
        (85_300, Unit.NANOSECONDS, "85.3 µs"),
        (999_700, Unit.NANOSECONDS, "1.00 ms"),
        (2_500_000_000, Unit.NANOSECONDS, "2.50 s"),
        (0.000_4, Unit.SECONDS, "400 µs"),
        (0.001_4, Unit.SECONDS, "1.40 ms"),
        (125.0, Unit.SECONDS, "2 min 05 s"),
        (12.5, Unit.PERCENT, "12.5 %"),
        (1.9, Unit.RATIO, "1.90"),
    ],
)
def test_values_print_as_people_read_them(value: float | None, unit: Unit, text: str) -> None:
    assert format_value(value, unit) == text


@pytest.mark.parametrize(
    ("values", "unit", "texts", "name"),
    [
        ([1.69e9, 695e6, 2.18e9], Unit.BYTES_PER_SECOND, ["1.69", "0.695", "2.18"], "GB/s"),
        ([999_700, 20_900], Unit.IOPS, ["1.00", "0.0209"], "million IOPS"),
        ([12, 75_700, 217_000], Unit.FILES_PER_SECOND, ["0.012", "75.7", "217"], "thousand files/s"),
        ([4_100, 85_300, 22_800], Unit.NANOSECONDS, ["4.10", "85.3", "22.8"], "µs"),
        ([0.000_4, 0.5, 125.0], Unit.SECONDS, ["0.4", "500", "125000"], "ms"),
        ([3 * 2**20, 0, 2**30], Unit.BYTES, ["3", "0", "1024"], "MiB"),
        ([12.5], Unit.PERCENT, ["12.5"], "%"),
        ([1.9, 0.05], Unit.RATIO, ["1.90", "0.05"], ""),
        ([], Unit.IOPS, [], "IOPS"),
    ],
)
def test_the_values_of_a_row_have_one_unit(
    values: list[float], unit: Unit, texts: list[str], name: str
) -> None:
    assert in_one_scale(values, unit) == (texts, name)


@given(st.floats(min_value=0, max_value=1e15), st.sampled_from(list(Unit)))
def test_every_value_of_every_unit_prints(value: float, unit: Unit) -> None:
    shown = format_value(value, unit)
    assert shown[0].isdigit()
    assert "e" not in shown.split(" ", maxsplit=1)[0]


def test_one_grammar_for_every_size() -> None:
    """All keys for a size, of all media, layouts and workloads, accept the same notations."""
    sized = [
        (entry.name, key, entry.Options if hasattr(entry, "Options") else entry.Parameters)
        for registry in (MEDIA, LAYOUTS, WORKLOADS)
        for _, entry in registry
        for key, info in (
            entry.Options if hasattr(entry, "Options") else entry.Parameters
        ).model_fields.items()
        if adapter_of(info).json_schema().get("title") == "size"
        or any(each.get("title") == "size" for each in adapter_of(info).json_schema().get("anyOf", ()))
    ]
    assert len(sized) > 20
    for name, key, model in sized:
        adapter = adapter_of(model.model_fields[key])
        for written in ("64kb", "64KB", "64K", "64KiB", 65536, "65536", "0.0625m"):
            assert parse_size(adapter.validate_python(written)) == 65536, (name, key, written)
        with pytest.raises(ValidationError, match="is not a size: write a number with k, m, g or t"):
            adapter.validate_python("64q")


@pytest.mark.parametrize("key", ["media.memory.size", "workloads.random-write.size", "guest_memory"])
def test_a_size_on_the_command_line_may_be_a_plain_number(key: str) -> None:
    on = ["on=uml"] if key == "guest_memory" else []
    study = load("quick", [*on, f"{key}=2147483648", "media.memory.size=3gb", "media.memory.room=3gb"])
    assert study.media["memory"].options["size"] == ("3gb",)


def test_a_name_that_only_shares_letters_is_not_suggested() -> None:
    with pytest.raises(ValueError, match="no mount option 'data': it is an option of ext3, ext4, reiserfs"):
        FILESYSTEMS.get("zfs").check_mount_options("data=ordered")
    with pytest.raises(ValueError, match="did you mean 'noatime'"):
        FILESYSTEMS.get("zfs").check_mount_options("noatme")


@pytest.mark.parametrize(
    "text", ["9" * 400, "9" * 30, "1" + "0" * 400 + "k", "16777216t", "1e400", "inf", "nan"]
)
def test_what_no_machine_has_is_no_size_and_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"is larger than|is not a size"):
        parse_size(text)
    if text[-1] != "k" and text[-1] != "t":
        with pytest.raises(ValueError, match=r"is longer than|is not a duration"):
            parse_duration(text)


def test_one_of_a_kind_is_singular() -> None:
    assert [counted(count, "trial") for count in (0, 1, 2)] == ["0 trials", "1 trial", "2 trials"]


def test_the_first_names_and_how_many_there_are_besides() -> None:
    assert first_of([], 2) == ""
    assert first_of(["a", "b"], 2) == "a, b"
    assert first_of(["a", "b", "c", "d", "e"], 2) == "a, b and 3 more"
    assert first_of(["a, b", "c", "d"], 2, ";") == "a, b; c; and 1 more"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("read_clat_p99_9", "read clat p99.9"),
        ("r_read_clat_p99", "r read clat p99"),
        ("p50_1_p9", "p50.1 p9"),
    ],
)
def test_the_names_of_metrics_as_people_read_them(name: str, text: str) -> None:
    assert metric_text(name) == text
