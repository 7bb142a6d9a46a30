"""Tests of ``fslab results`` for a campaign with 48 cells: on a terminal of 80 columns, without colour, in a pipe."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
import signal
import struct
import termios
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests import made
from tests.e2e.conftest import Fslab
from tests.limits import LIMIT_S

from fslab.campaign import launch
from fslab.cell import Cell, MediumSpec, StackSpec, WorkloadSpec
from fslab.cli import app, run
from fslab.errors import InterruptedBySignal
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.trial_record import Severity, Status, TrialRecord, ValidityWarning, Value
from fslab.units import Unit

BEGUN = datetime(2026, 11, 20, 12, tzinfo=UTC)
DISK = MediumSpec(name="disk", type="loop", options={"size": "2g"})
MOUNTS = {
    "ext4": ("defaults", "noatime,nodiratime", "noatime,data=journal", "noatime,data=writeback,barrier=0"),
    "xfs": ("defaults", "noatime,inode64", "noatime,logbufs=8", "noatime,logbufs=8,logbsize=256k"),
    "btrfs": ("defaults", "noatime,space_cache=v2", "noatime,compress=zlib", "noatime,compress=zstd"),
}
OWN = """\
title: own
media: {m: {type: ram, size: 512m}}
stacks: {fs: {medium: m, filesystem: [ext4, xfs]}}
workloads: {w: {tool: fio, rw: randwrite, size: 16m, runtime: 2s}}
"""
MIXES = ("randwrite", "randread", "write", "read")
WARNING = ValidityWarning(
    kind="cpu_saturated", severity=Severity.WARNING, message="all CPUs were busy", hint="fewer jobs"
)
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
# Codes of colours: 30–37, 40–47, 90–97, 100–107, and 38 and 48. Bold (1), dim (2) and their ends are not colours.
COLOUR = re.compile(r"(?:^|;)(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;|$)")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with one campaign: twelve stacks (three file systems), four workloads, five trials each.

    Some trials have warnings. All trials of one cell failed.
    """
    stacks = [
        StackSpec(name=f"{name}-{number}", medium=DISK, filesystem=name, mount_options=options)
        for name, variants in MOUNTS.items()
        for number, options in enumerate(variants)
    ]
    works = [
        WorkloadSpec(
            name=f"fio-{mix}-4k-qd32",
            tool="fio",
            parameters={"rw": mix, "bs": "4k", "size": "64m", "iodepth": 32, "direct": True},
        )
        for mix in MIXES
    ]
    planned = tuple(Cell(stack=stack, workload=work) for work in works for stack in stacks)
    file = tmp_path_factory.mktemp("store") / "store.sqlite"
    with Store.open(str(file)) as opened:
        opened.create_campaign(
            made.campaign(
                study_id="loop-vm", study_title="ext4, XFS and btrfs on loop devices", cells=planned,
                status=CampaignStatus.FINISHED,
            )
        )  # fmt: skip
        for number, cell in enumerate(planned):
            for block in range(5):
                opened.add_trial(trial(cell, number, block))
    return file


def trial(cell: Cell, number: int, block: int) -> TrialRecord:
    kind = "read" if "read" in cell.workload.name else "write"
    value, unit = 1000.0 * (number + 1) * (1 + block / 100), Unit.IOPS
    metrics = {
        f"{kind}_iops": Value(value=value, unit=unit),
        f"{kind}_bandwidth": Value(value=value * 4096, unit=Unit.BYTES_PER_SECOND),
    }
    failed = number == 7
    if failed:
        error = "fio exited 1: No space left on device"
        return made.trial(block, cell, status=Status.FAILED, failure="no_space", error=error)
    return made.trial(block, cell, metrics=metrics, validity=(WARNING,) if number % 5 == 0 else ())


def on_terminal(fslab: Fslab, store: Path, *options: str) -> str:
    """Return what fslab writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    process = fslab.start("results", "c", "--store", store, *options, terminal=theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    assert process.wait(timeout=LIMIT_S) == 0
    return said.decode().replace("\r\n", "\n")


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")


def test_it_fits_80_columns_and_colours_repeat_what_signs_say(store: Path, fslab: Fslab) -> None:
    said = on_terminal(fslab, store, "--all")
    assert any(COLOUR.search(found) for found in ESCAPE.findall(said))
    plain = ESCAPE.sub("", said)
    assert "\x1b" not in plain
    assert max(map(cell_len, plain.splitlines())) <= 80
    # All twelve stacks are shown, although 80 columns are too narrow to show them side by side. One cell failed.
    assert len(re.findall(r"\d[kM]? IOPS", plain)) == 4 * 12 - 1
    assert plain.count("MB/s") == 4 * 12 - 1
    assert "No space left on device" in plain


def test_without_colour_the_same_is_reported(
    store: Path, fslab: Fslab, monkeypatch: pytest.MonkeyPatch
) -> None:
    coloured = on_terminal(fslab, store)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = on_terminal(fslab, store)
    assert not any(COLOUR.search(found) for found in ESCAPE.findall(plain))
    assert ESCAPE.sub("", plain) == ESCAPE.sub("", coloured)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in on_terminal(fslab, store)


def test_what_is_no_terminal_gets_plain_text(store: Path, fslab: Fslab) -> None:
    done = fslab("results", "c", "--store", store)
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    assert max(map(cell_len, done.stdout.splitlines())) <= 80


def test_the_answer_fits_one_screen(store: Path, fslab: Fslab) -> None:
    plain = ESCAPE.sub("", on_terminal(fslab, store)).rstrip().splitlines()
    assert len(plain) <= 24
    assert max(map(cell_len, plain)) <= 80
    assert "Behind by up to: ext4-0" in " ".join(plain)
    assert any("fslab results c1 --store" in line for line in plain)


def test_an_interrupted_run_shows_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a table with the command that finishes it, or as JSON; nothing if no trial is stored."""
    file, study = str(tmp_path / "store.sqlite"), tmp_path / "own.yaml"
    study.write_text(OWN)
    monkeypatch.setattr(run, "undo_leftovers", lambda **_: None)
    monkeypatch.setenv("FSLAB_STORE", file)

    def shown(blocks: int, *options: str) -> tuple[str, str]:
        def interrupted(campaign: Campaign, opened: Store, *_: object, **__: object) -> None:
            for number, cell in enumerate(campaign.cells):
                for block in range(blocks):
                    made = trial(cell, number, block)
                    key = made.key.model_copy(update={"campaign": campaign.id})
                    opened.add_trial(made.model_copy(update={"key": key}))
            raise InterruptedBySignal(signal.SIGINT)

        monkeypatch.setattr(launch, "run", interrupted)
        with pytest.raises(InterruptedBySignal):
            app(["run", str(study), "--quiet", *options], standalone_mode=False)
        with Store.open(file) as opened:
            return capsys.readouterr().out, opened.campaign().id

    assert (shown(0)[0], shown(0, "--json")[0]) == ("", "")
    table, campaign = shown(5)
    first, *rest, last = table.splitlines()
    assert (first, last) == (
        "interrupted; the results so far:",
        f"to finish it: fslab run --resume {campaign}",
    )
    assert any("IOPS" in line for line in rest)
    document, campaign = shown(5, "--json")
    found = json.loads(document)
    assert (found["campaign"], found["counts"]["stored"]) == (campaign, 10)


def test_the_commands_that_are_shown_work_as_they_are_shown(
    store: Path, fslab: Fslab, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = fslab("results", "c", "--store", store).stdout.replace("\n  ", " ")
    command = re.search(r"fslab (explain c1 --store \S+)", shown)
    assert command is not None
    assert fslab(*shlex.split(command[1])).returncode == 0
    monkeypatch.setenv("FSLAB_STORE", str(store))
    assert "--store" not in fslab("results", "c").stdout
