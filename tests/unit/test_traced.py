"""Tests of traced trials: an interruption that a library loses ends them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import pytest
from tests.unit.test_campaign import cell, record

from fslab import feasibility
from fslab.campaign import cleanup, machine_lock, traced
from fslab.errors import InterruptedBySignal
from fslab.machine import facts
from fslab.system import signals
from fslab.trial_record import Status


class _Store:
    stored = 0

    @contextmanager
    def patient(self, *_: object) -> Iterator[None]:
        yield

    def add_traced(self, _: object) -> None:
        self.stored += 1


class _Campaign:
    id, seed = "c", 1


def test_an_interruption_that_a_library_loses_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_trial(*_: object, **__: object) -> Any:
        with suppress(InterruptedBySignal):  # a callback that ignores exceptions
            signals._handle(signal.SIGINT, None)
        return record(Status.TRACED, cell())

    monkeypatch.setattr(traced, "run_trial", run_trial)
    monkeypatch.setattr(traced, "_check_tracing", lambda: None)
    monkeypatch.setattr(feasibility, "check_named", lambda *_: None)
    monkeypatch.setattr(feasibility, "check", lambda *_: None)
    monkeypatch.setattr(facts, "gather", dict)
    monkeypatch.setattr(cleanup, "opened_workspace", lambda *_: nullcontext())
    monkeypatch.setattr(machine_lock, "held", lambda *_: nullcontext())
    monkeypatch.setattr(signals._SignalState, "left_at", None)
    monkeypatch.setattr(signals._SignalState, "raised", None)
    store = _Store()
    with pytest.raises(InterruptedBySignal):
        list(traced.trace(_Campaign(), [cell()], store, None))  # type: ignore[arg-type]
    assert store.stored == 0
