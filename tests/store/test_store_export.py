"""Tests of exports: JSON has one object per trial, CSV and Parquet one row per figure or failed trial."""

from __future__ import annotations

import csv
import io
import json
import sys
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from tests import made
from tests.made import campaign, trial

from fslab.cell import Cell, MediumSpec, TrialKey
from fslab.errors import FslabError, StoreError, UsageError
from fslab.stopping_settings import StoppingRule
from fslab.store import Format
from fslab.store.export import PIECE, Exported, _long_rows, export, frame, read, render
from fslab.store.store import Store
from fslab.trial_record import (
    Command,
    Provenance,
    Severity,
    Status,
    ValidityWarning,
    Value,
)
from fslab.units import Unit

STARTED = datetime(2026, 11, 20, 21, 49, 7, tzinfo=UTC)
MEDIUM = MediumSpec(name="memory", type="ram", options={"size": "1g"})
CELL = made.cell(
    made.spec("xfs", name="xfs-tuned", medium=MEDIUM, mount_options="noatime,logbufs=8"),
    parameters={"rw": "randwrite", "iodepth": 32},
    name="rand-write",
)
USABLE = trial(
    0, CELL, key=TrialKey(campaign="c1", block=0, seed=7), started=STARTED, duration_s=2.5,
    metrics={
        "write_iops": Value(value=61700.0, unit=Unit.IOPS),
        "p999": Value(value=None, unit=Unit.NANOSECONDS),
    },
    probes={"device_written_bytes": Value(value=0.0, unit=Unit.BYTES)},
    validity=(ValidityWarning(kind="cpu_saturated", severity=Severity.WARNING, message="busy"),),
    provenance=Provenance(commands=(Command(stage="mkfs", argv=("mkfs.xfs", "/dev/loop0")),)),
)  # fmt: skip
FAILED = trial(
    0, CELL, key=TrialKey(campaign="c1", block=1, seed=8), status=Status.FAILED, failure="no_space",
    error="disk full", started=STARTED, duration_s=0.5,
)  # fmt: skip


def test_json_has_one_object_per_trial() -> None:
    found = json.loads(render([USABLE, FAILED], Format.JSON))
    assert Cell.model_validate(found[0].pop("spec")) == CELL
    assert found[0] == {
        "version": 2,
        "campaign": "c1",
        "cell": {
            "id": CELL.id, "stack": "xfs-tuned", "workload": "rand-write", "cache": "cold", "fresh": "trial",
            "time_limit_s": 600.0, "tuning": {},
        },
        "block": 0,
        "seed": 7,
        "stack": {
            "name": "xfs-tuned", "medium": "ram", "medium_name": "memory", "medium_options": {"size": "1g"},
            "layout": "single", "layout_options": {}, "filesystem": "xfs", "mkfs_options": "",
            "mount_options": "noatime,logbufs=8", "geometry": "default", "machine": "host", "settings": {},
        },
        "workload": {
            "name": "rand-write", "tool": "fio", "parameters": {"rw": "randwrite", "iodepth": 32},
        },
        "status": "ok",
        "error": None,
        "metrics": {
            "write_iops": {"value": 61700.0, "unit": "IOPS"}, "p999": {"value": None, "unit": "ns"},
        },
        "probes": {"device_written_bytes": {"value": 0.0, "unit": "B"}},
        "validity": [
            {"kind": "cpu_saturated", "severity": "warning", "message": "busy", "hint": None, "data": {}},
        ],
        "provenance": {
            "commands": [
                {"stage": "mkfs", "argv": ["mkfs.xfs", "/dev/loop0"], "duration_s": None, "exit_code": None}
            ],
            "tools": {}, "machine": {}, "device": {}, "observed": {}, "parts": {}, "plugins": {}, "slices": None,
            "files_copied_from_cell": None, "filesystem_copied_from_cell": None, "memory_held_bytes": 0,
        },
        "started": "2026-11-20T21:49:07Z",
        "duration_s": 2.5,
        "stopping": None,
    }  # fmt: skip
    assert (found[1]["status"], found[1]["error"], found[1]["metrics"]) == (
        "failed:no_space",
        "disk full",
        {},
    )
    assert len(found) == 2


def test_csv_has_one_row_per_figure_and_one_for_a_failure() -> None:
    rows = list(csv.DictReader(io.StringIO(render([USABLE, FAILED], Format.CSV).decode())))
    assert [(row["block"], row["kind"], row["name"], row["value"], row["unit"]) for row in rows] == [
        ("0", "metric", "write_iops", "61700.0", "IOPS"),
        ("0", "metric", "p999", "", "ns"),
        ("0", "probe", "device_written_bytes", "0.0", "B"),
        ("1", "", "", "", ""),
    ]
    first = rows[0]
    assert (first["stack"], first["medium"], first["filesystem"]) == ("xfs-tuned", "ram", "xfs")
    assert (first["mkfs_options"], first["mount_options"]) == ("", "noatime,logbufs=8")
    assert json.loads(first["parameters"]) == {"rw": "randwrite", "iodepth": 32}
    assert (first["warnings"], rows[3]["status"]) == ("warning:cpu_saturated", "failed:no_space")


def test_the_text_of_a_file_is_not_in_each_row_of_a_table() -> None:
    """A megabyte of a job file would be a gigabyte of a table with a thousand figures."""
    given = {"file": "jobs.fio", "file_text": "[a]\nrw=read\n", "size": "1g"}
    record = USABLE.model_copy(update={"cell": made.cell(made.spec("xfs"), parameters=given, name="jobs")})
    rows = csv.DictReader(io.StringIO(render([record], Format.CSV).decode()))
    assert {row["parameters"] for row in rows} == {'{"file": "jobs.fio", "size": "1g"}'}
    assert json.loads(render([record], Format.JSON))[0]["workload"]["parameters"] == given


def test_parquet_keeps_null_and_zero_apart() -> None:
    frame = pl.read_parquet(io.BytesIO(render([USABLE, FAILED], Format.PARQUET)))
    assert frame["value"].to_list() == [61700.0, None, 0.0, None]
    assert frame["name"].to_list() == ["write_iops", "p999", "device_written_bytes", None]
    assert frame.schema["value"] == pl.Float64
    assert frame.schema["block"] == pl.Int64


def test_columns_do_not_depend_on_the_trials() -> None:
    unknown = USABLE.model_copy(update={"metrics": {"x": Value(value=None, unit=Unit.IOPS)}, "probes": {}})
    frames = [
        pl.read_parquet(io.BytesIO(render(t, Format.PARQUET))) for t in ([], [unknown], [USABLE, FAILED])
    ]
    assert frames[0].schema == frames[1].schema == frames[2].schema
    assert [frame.height for frame in frames] == [0, 1, 4]
    assert json.loads(render([], Format.JSON)) == []


@pytest.fixture
def filled(store: Store) -> Store:
    store.create_campaign(campaign(cells=(CELL,), trials=2))
    store.add_trial(USABLE)
    store.add_trial(FAILED)
    return store


@pytest.mark.parametrize("form", list(Format))
def test_file_is_what_is_rendered(filled: Store, tmp_path: Path, form: Format) -> None:
    out = tmp_path / "out"
    out.write_text("older")
    export(filled, "c1", form, out)
    assert out.read_bytes() == render([USABLE, FAILED], form, filled.campaign("c1").stopping)
    assert {entry.name for entry in tmp_path.iterdir()} <= {"out", "new directory"}


def test_standard_output_is_the_default(filled: Store, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    export(filled, "c1", Format.CSV, None)
    assert capsysbinary.readouterr().out == render([USABLE, FAILED], Format.CSV)


def test_parquet_is_not_written_to_a_terminal(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(UsageError, match="cannot be written to a terminal"):
        export(filled, "c1", Format.PARQUET, None)


def test_place_that_cannot_be_written_is_named(filled: Store, tmp_path: Path) -> None:
    with pytest.raises(FslabError, match="cannot be written: No such file or directory") as caught:
        export(filled, "c1", Format.JSON, tmp_path / "missing" / "out.json")
    assert caught.value.where == str(tmp_path / "missing" / "out.json")


def test_an_export_is_read_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trials.json"
    rule = StoppingRule(trials=5, precision=0.05)
    path.write_bytes(render([USABLE, FAILED], Format.JSON, rule))
    assert read(path) == Exported(trials=[USABLE, FAILED], stopping=rule)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "no trial"),
        ("{", "not JSON"),
        ("{}", "not a list"),
        ('[{"version": 99}]', "newer"),
        ('[{"version": 1}]', "an earlier fslab, in another form"),
        (
            render([USABLE], Format.JSON).decode().replace('"stopping": null', '"stopping": {}'),
            "not a stopping rule",
        ),
        ('[{"version": 2}]', "spec"),
        ('[{"version": null, "spec": {}, "status": "ok"}]', "not an exported trial"),
        ('[{"version": "1", "spec": {}, "status": "ok"}]', "not an exported trial"),
        ('[{"version": 2, "spec": {}, "status": "ok"}]', "not an exported trial"),
    ],
)
def test_what_is_no_export_is_reported(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=said):
        read(path)


def test_the_table_is_made_in_pieces() -> None:
    """As Python objects, 100,000 trials of 100 figures took 12 GB. Here, a third of what all rows take is allowed."""
    figures = {f"figure_{number}": Value(value=1.0, unit=Unit.COUNT) for number in range(100)}
    trials = [
        USABLE.model_copy(
            update={"key": TrialKey(campaign="c1", block=block, seed=7), "metrics": figures, "probes": {}}
        )
        for block in range(4 * PIECE)
    ]
    render(trials[:1], Format.CSV)  # what is loaded once does not count
    tracemalloc.start()
    table = frame(trials)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    rows = [row for trial in trials for row in _long_rows(trial)]
    assert table.to_dicts() == rows
    assert peak < len(rows) * sys.getsizeof(rows[0]) / 3
    assert render(trials, Format.CSV).decode() == table.write_csv(null_value="")


def test_no_cell_of_a_csv_file_is_a_formula() -> None:
    hostile = [
        "=1+cmd|' /C calc'!A0",
        "+1+1",
        "-b 4096",
        "@SUM(A1)",
        "\r=1",
        "\uff1d1",
        "\uff20x",
    ]
    inside = {
        "\t=1": "'\t'=1",
        "\n=1": "'\n'=1",
        'x";=1+1;"': 'x";\'=1+1;"',
        "a;-1;@b": "a;'-1;'@b",
        "a\n+1": "a\n'+1",
    }
    for said in [*hostile, *inside, "-5", "1e3", "a=b", "a; b"]:
        stack = USABLE.cell.stack.model_copy(update={"mkfs_options": said})
        trial = USABLE.model_copy(update={"cell": USABLE.cell.model_copy(update={"stack": stack})})
        rows = csv.DictReader(io.StringIO(render([trial], Format.CSV).decode(), newline=""))
        found = {row["mkfs_options"] for row in rows}
        assert found == {f"'{said}".replace("\r", " ") if said in hostile else inside.get(said, said)}


def test_an_export_that_does_not_fit_in_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path := tmp_path / "trials.json").write_bytes(b" " * (2 << 20))
    monkeypatch.setattr("fslab.system.memory.available_bytes", lambda: 16 << 20)
    with pytest.raises(StoreError, match="is larger than 1 MiB, the limit for the available memory"):
        read(path)
