"""Studies that run one after the other: what fails leaves the others, an interruption ends all."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from fslab.api import unattended
from fslab.campaign.launch import RunConditions
from fslab.errors import InterruptedBySignal, UsageError

NO_STORE: Any = None
TERMS = RunConditions(agree=lambda _: None)


def run(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> tuple[list[str], list[str]]:
    """Studies that came to their end, and those that failed; the second of three raises."""
    done: list[str] = []

    def measured(name: str, *_: Any) -> str:
        if name == "b":
            raise error
        return name

    monkeypatch.setattr(unattended, "_campaign", measured)
    then: Any = done.append
    return done, unattended.run_each(["a", "b", "c"], NO_STORE, TERMS, NO_STORE, then)


@pytest.mark.parametrize("error", [UsageError("no such study"), ZeroDivisionError("a bug")])
def test_a_study_that_fails_leaves_the_others(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    done, (failed,) = run(monkeypatch, error)
    assert done == ["a", "c"]
    assert failed.startswith("b: ")
    assert str(error) in failed


def test_an_interruption_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InterruptedBySignal):
        run(monkeypatch, InterruptedBySignal(signal.SIGINT))
