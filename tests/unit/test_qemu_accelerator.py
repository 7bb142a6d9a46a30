"""Tests of the cached accelerator of QEMU: a valid entry is used; otherwise KVM is tested again, in a marked guest."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fslab.machine.kinds import _qemu
from fslab.system import process_marks, sysfs

PROGRAM = "/nowhere/qemu"
MARK = (process_marks.MARK, "a-campaign")


@pytest.fixture
def remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the cache file, on a machine with /dev/kvm whose guests do not boot with KVM."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(_qemu, "_boots", lambda *_: False)
    (tmp_path / "fslab").mkdir()
    return tmp_path / "fslab" / "kvm.json"


def accelerator() -> str:
    return _qemu.accelerator(PROGRAM, "kernel", "initrd", MARK)


def written(accelerator: object) -> str:
    key = {"boot_id": sysfs.text(_qemu.BOOT_ID), "program": PROGRAM}
    return json.dumps({**key, "accelerator": accelerator})


def test_what_was_written_is_used(remembered: Path) -> None:
    remembered.write_text(written("kvm"))
    assert accelerator() == "kvm"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "5", "[" * 100_000, written("kvm -S"), written(None), written([]), written({})]
)
def test_anything_else_is_found_out_again(text: str, remembered: Path) -> None:
    remembered.write_text(text)
    assert accelerator() == "tcg"
    assert json.loads(remembered.read_text())["accelerator"] == "tcg"


def test_a_cache_that_cannot_be_written_fails_nothing(remembered: Path) -> None:
    remembered.mkdir()
    assert accelerator() == "tcg"


def test_the_guest_that_tests_kvm_carries_the_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By it, ``fslab clean`` and the next run end what a killed campaign left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda *_: True)
    program = tmp_path / "qemu"
    program.write_text(f'#!/bin/sh\ntest "${MARK[0]}" = "{MARK[1]}" && echo {_qemu.SELF_TEST}\n')
    program.chmod(0o755)
    assert _qemu.accelerator(str(program), "kernel", "initrd", MARK) == "kvm"
