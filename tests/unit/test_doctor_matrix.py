"""Tests of the table of ``fslab doctor``: what each machine lacks for file systems and layouts, each item once."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fslab.api.capabilities import MachineCapabilities
from fslab.cli import doctor
from fslab.cli.doctor import lines, show
from fslab.feasibility import Capability, Lack, MatrixEntry, _machines, _overview, matrix
from fslab.machine.kinds import Need

ENTRIES = [
    MatrixEntry(kind="file system", name="ext4", machine="host", lack=Lack.NOTHING),
    MatrixEntry(
        kind="file system",
        name="jfs",
        machine="host",
        lack=Lack.KERNEL,
        needs=("Linux 6.18.4 has no jfs", "mkfs.jfs is not installed"),
        remedies=(),
    ),
    MatrixEntry(
        kind="file system",
        name="reiserfs",
        machine="host",
        lack=Lack.KERNEL,
        needs=("Linux 6.18.4 has no reiserfs (last in 6.12)",),
    ),
    MatrixEntry(
        kind="file system",
        name="ext4",
        machine="qemu",
        lack=Lack.MACHINE,
        needs=("no QEMU",),
        remedies=("get it",),
    ),
    MatrixEntry(
        kind="file system",
        name="jfs",
        machine="qemu",
        lack=Lack.MACHINE,
        needs=("no QEMU",),
        remedies=("get it",),
    ),
    MatrixEntry(
        kind="layout", name="md-raid0", machine="host", lack=Lack.KERNEL, needs=("Linux 6.18.4 has no raid0",)
    ),
    MatrixEntry(kind="layout", name="single", machine="host", lack=Lack.TOOL, needs=("x is not installed",)),
]


def test_each_missing_thing_is_said_once_with_all_that_wait_for_it() -> None:
    assert list(lines(ENTRIES)) == [
        "host: Linux 6.18.4 has no jfs, reiserfs (last in 6.12), raid0",
        "qemu: no QEMU",
        "→ get it",
    ]


def test_a_layout_of_one_file_system_lacks_what_that_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Need(what="this kernel has no zfs")
    monkeypatch.setattr(
        _machines, "missing_filesystem", lambda name, spec: (missing,) if name == "zfs" else ()
    )
    monkeypatch.setattr(_overview, "missing_programs", lambda tools: ())
    rows = {each.name: each for each in matrix() if (each.kind, each.machine) == ("layout", "host")}
    assert rows["zfs-mirror"].lack is Lack.KERNEL
    assert missing.what in rows["zfs-raidz"].needs
    assert missing.what not in rows["btrfs-raid1"].needs


def test_the_table_has_a_column_for_each_machine_and_a_word_for_each_pair() -> None:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    every = [
        MatrixEntry(kind="file system", name=name, machine=machine, lack=lack)
        for name, machine, lack in (
            ("ext4", "host", Lack.NOTHING),
            ("ext4", "uml", Lack.MACHINE),
            ("zfs", "host", Lack.KERNEL),
            ("zfs", "uml", Lack.KERNEL),
        )
    ]
    show(every, {"ext4": "mkfs.ext4 1.47.0"}, console)
    assert isinstance(console.file, io.StringIO)
    rows = [line.split() for line in console.file.getvalue().splitlines()]
    assert ["file", "system", "on", "host", "on", "uml", "programs"] in rows
    assert ["ext4", "runs", "machine", "mkfs.ext4", "1.47.0"] in rows
    assert ["zfs", "kernel", "kernel"] in rows


def test_no_name_is_cut_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    tools: dict[str, str | None] = {"fslab-engine": "0.1.0", "sysbench": "1.0.20"}
    found = [
        Capability(kind="workload", name="engine", summary="", available=True, versions=tools),
        Capability(
            kind="workload", name="iozone", summary="", available=False, versions={},
            missing=("iozone is not installed",),
        ),
    ]  # fmt: skip
    out = io.StringIO()
    monkeypatch.setattr(doctor, "console", lambda **_: Console(file=out, width=40, markup=True))
    doctor._show(
        MachineCapabilities(
            machine={}, advice=(), reference_spread=None, capabilities=found, matrix=(), packages_missing=(),
            remedies=(), description={},
        )
    )  # fmt: skip
    said = " ".join(out.getvalue().split())
    assert "fslab-engine 0.1.0," in said
    assert "iozone is not" in said
    assert "…" not in said
