"""Tests of the library that is preloaded into User-Mode Linux: it is built once, then taken from the user's cache."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import pytest

from fslab.errors import ToolFailedError
from fslab.machine.kinds import uml
from fslab.system import paths, tools


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_it_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if tools.find(uml.COMPILER.program) is None:
        pytest.skip("no C compiler")
    assert uml.install_xstate(tmp_path) == "./xstate.so"
    assert ctypes.CDLL(str(tmp_path / "xstate.so")).ptrace
    (kept,) = paths.cache().iterdir()
    assert kept.read_bytes() == (tmp_path / "xstate.so").read_bytes()
    monkeypatch.setattr(uml, "COMPILER", replace(uml.COMPILER, program="false"))
    (again := tmp_path / "again").mkdir()
    uml.install_xstate(again)
    assert (again / "xstate.so").read_bytes() == kept.read_bytes()


def test_a_compiler_that_fails_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uml, "COMPILER", replace(uml.COMPILER, program="false"))
    with pytest.raises(ToolFailedError, match="exited 1") as raised:
        uml.install_xstate(tmp_path)
    assert "apt-get install" in (raised.value.hint or "")
    assert not paths.cache().exists()
