"""Tests of the judge of a crash state: a finding counts only if a second examination finds it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fslab.crash.examine import Examined, Subject
from fslab.crash.judge import WHOLE, Judge, Outcome, Positions
from fslab.crash.sequences import Sequences
from fslab.crash.sources import Finding, Kind
from fslab.crash.states import State
from fslab.crash.trial import Tally
from fslab.errors import NoSpaceError
from fslab.storage.filesystems import REGISTRY

STATE = State(cut=1, fate="kept")


class Builder:
    made = 0

    def make(self, state: State, image: Path) -> tuple[int, ...]:
        assert state == STATE
        self.made += 1
        image.touch()
        return ()


class Examiner:
    """An examiner whose examinations find these kinds, one argument for each examination."""

    def __init__(self, *findings: Iterable[Kind]) -> None:
        self.each = iter(findings)

    def examine(self, image: Path, runs: Iterable[int], *, cut_repair: bool) -> Examined:
        assert image.exists()
        assert not cut_repair
        assert list(runs) == []
        found = [Finding(kind=kind, broken=True, detail="", source="") for kind in next(self.each)]
        return Examined(recovery_ns=1, findings=found)


def judge(directory: Path, examiner: Examiner, builder: Builder) -> Judge:
    promises = REGISTRY.get("xfs").promises(["rw"], b"")
    assert promises is not None
    tested = Subject(driver=REGISTRY.get("xfs"), options="rw", promises=promises, root="work")
    positions = Positions(rows=(), places=(), steps=(), times_ns=(), returned_ns={})
    parts: dict[str, Any] = {"builder": builder, "examiner": examiner}
    return Judge(tested=tested, source=Sequences(chosen=()), positions=positions, images=directory, **parts)


def test_what_a_file_system_does_where_memory_for_its_image_is_full_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fslab.crash.judge.os.statvfs", lambda _: SimpleNamespace(f_bavail=0))
    with pytest.raises(NoSpaceError, match="memory for images of crash states is full"):
        judge(tmp_path, Examiner([Kind.UNMOUNTABLE]), Builder()).after(STATE)
    assert not [*tmp_path.glob("*.img")]


@pytest.mark.parametrize(
    ("each", "found", "unrepeated"),
    [
        ([[]], [], False),
        ([[Kind.DAMAGED], [Kind.DAMAGED]], [Kind.DAMAGED], False),
        ([[Kind.DAMAGED], []], [], True),
        ([[Kind.DAMAGED, Kind.KERNEL_LOG], [Kind.KERNEL_LOG]], [Kind.KERNEL_LOG], True),
        ([[Kind.UNMOUNTABLE], [Kind.DAMAGED]], [], True),
    ],
)
def test_only_what_comes_again_is_found(
    tmp_path: Path, each: list[list[Kind]], found: list[Kind], unrepeated: bool
) -> None:
    builder = Builder()
    outcome = judge(tmp_path, Examiner(*each), builder).after(STATE)
    assert [finding.kind for finding in outcome.findings] == found
    assert (builder.made, outcome.unrepeated) == (len(each), unrepeated)
    tally = Tally()
    tally.add(outcome)
    assert tally.damaged == bool(found), "damage that only one look finds is none"
    assert not list(tmp_path.iterdir())


def test_a_file_system_that_cannot_be_read_breaks_every_promise() -> None:
    seen = Examined(contents={1: {}})
    finding = Finding(kind=Kind.UNMOUNTABLE, broken=True, detail="", source="")
    outcome = Outcome(seen=seen, findings=[finding], promised={(0, 1), (0, 2), (1, 1)})
    assert outcome.broken_steps == {(WHOLE, 0), (0, 1), (0, 2)}
    lost = Finding(kind=Kind.LOST_NAME, broken=True, detail="", source="", sequence=3, step=0)
    assert replace(outcome, findings=[lost]).broken_steps == {(3, 0)}, "it was durable before"
    assert replace(outcome, findings=[replace(finding, broken=False)]).broken_steps == set()


def test_a_state_after_two_cuts_is_named_by_both(tmp_path: Path) -> None:
    judged = judge(tmp_path, Examiner([Kind.DAMAGED], [Kind.DAMAGED]), Builder())
    (finding,) = judged.after_both(State(cut=9, fate="lost"), STATE, judged.builder).findings
    assert finding.state == "9-lost+1-kept"
