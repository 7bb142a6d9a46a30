"""Tests of running several studies: if one fails, the others still run; an interruption ends all."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from fslab.api import replications
from fslab.campaign.launch import RunConditions
from fslab.errors import InterruptedBySignal, UsageError

NO_STORE: Any = None
TERMS = RunConditions()


def run(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> tuple[list[str], list[str]]:
    """Run three studies, of which the second raises ``error``. Return those that finished and the failures."""
    done: list[str] = []

    def measured(name: str, *_: Any) -> str:
        if name == "b":
            raise error
        return name

    monkeypatch.setattr(replications, "_run_study", measured)
    then: Any = done.append
    return done, replications.run_each(["a", "b", "c"], NO_STORE, TERMS, NO_STORE, then)


@pytest.mark.parametrize("error", [UsageError("no such study"), ZeroDivisionError("a bug")])
def test_a_study_that_fails_leaves_the_others(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    done, (failed,) = run(monkeypatch, error)
    assert done == ["a", "c"]
    assert failed.startswith("b: ")
    assert str(error) in failed


def test_an_interruption_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InterruptedBySignal):
        run(monkeypatch, InterruptedBySignal(signal.SIGINT))
