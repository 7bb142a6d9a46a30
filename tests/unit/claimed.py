"""What the tests of claims make: cells of a small study, and trials with values worked out beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from math import exp

import pytest
from tests import made

from fslab.cell import Cell, MediumSpec, Scalar, StackSpec, WorkloadSpec
from fslab.claims.build import asked_of
from fslab.claims.campaign_estimates import Trials
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import ClaimAnswer, ClaimVerdict
from fslab.claims.parts import Part
from fslab.claims.schema import Claim
from fslab.claims.scope import Scope
from fslab.stats import estimate_model
from fslab.stats.interim_looks import Looks
from fslab.trial_record import Status, TrialRecord, Value
from fslab.units import Unit


@pytest.fixture
def known_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four blocks count as enough to know that trials are independent: for tests of what an interval decides.

    What few blocks do to a verdict has tests of its own. Modules that are loaded when first used must have their copy
    of the constant before it is changed: they would keep the changed one for the tests that follow.
    """
    import_module("fslab.stats.difference_interval")
    monkeypatch.setattr(estimate_model, "INDEPENDENCE_LEAST", 4)


REPLICATED, PARTLY, OPEN = ClaimVerdict.REPLICATED, ClaimVerdict.PARTLY, ClaimVerdict.OPEN
SMALL, TIE, OPPOSITE = ClaimVerdict.SMALL, ClaimVerdict.TIE, ClaimVerdict.OPPOSITE
DIFFERS, REVERSED = ClaimVerdict.DIFFERS, ClaimVerdict.REVERSED
NOT_TESTED, NO_LONGER, UNKNOWN = ClaimVerdict.NOT_TESTED, ClaimVerdict.NO_LONGER, ClaimVerdict.UNKNOWN
RAM = MediumSpec(name="memory", type="ram")
FIO = {"rw": "randwrite", "size": "64m", "runtime": "1s"}
# Four differences with mean 0 and standard deviation √(20e-4/3); t(3) at 95 % is 3.18245, at 97.5 % 4.17653:
# half-widths of 0.041085 and 0.053919.
NOISE = (-0.03, -0.01, 0.01, 0.03)
HALF, HALF_975 = 0.041085, 0.053919


def cell(stack: str, workload: str = "w", mount: str = "defaults", layout: Mapping[str, Scalar] | None = None,
         **parameters: Scalar) -> Cell:  # fmt: skip
    name = stack if mount == "defaults" else f"{stack} {mount}"
    told = dict(layout or {})
    spec = StackSpec(
        name=name, medium=RAM, filesystem=stack, mount_options=mount, layout=str(told.pop("layout", "single")),
        layout_options=told,
    )  # fmt: skip
    return Cell(
        stack=spec, workload=WorkloadSpec(name=workload, tool="fio", parameters={**FIO, **parameters})
    )


def trials(of: Cell, values: Sequence[float | None], metric: str = "write_iops") -> list[TrialRecord]:
    return [
        made.trial(block, of, status=Status.FAILED, failure="crashed", error="it crashed")
        if value is None
        else made.trial(block, of, metrics={metric: Value(value=value, unit=Unit.IOPS)})
        for block, value in enumerate(values)
    ]


def noisy(middle: float) -> list[float]:
    return [middle * exp(each) for each in NOISE]


def steady(middle: float) -> list[float]:
    return [middle] * 4


def claim(*that: str, **more: object) -> Claim:
    return Claim.model_validate({"id": "1", "says": "s", "that": that, **more})


def parts(of: Claim, cells: Sequence[Cell], memory_bytes: int | None = None) -> tuple[list[Part], list[str]]:
    found = asked_of(of, Scope(cells=tuple(cells), memory_bytes=memory_bytes))
    return [*found.parts], [*found.missing]


def names(of: Claim, cells: Sequence[Cell], memory_bytes: int | None = None) -> list[str]:
    found, _ = parts(of, cells, memory_bytes)
    return [f"{part.name} {part.bounds.shown}" for part in found]


def answer(
    of: Claim, values: Sequence[tuple[Cell, Sequence[float | None]]], metric: str = "write_iops",
    looks: Looks | None = None, margin: float = 0.1, interim: bool = False,
) -> ClaimAnswer:  # fmt: skip
    records = [record for each, figures in values for record in trials(each, figures, metric)]
    found, missing = parts(of, [each for each, _ in values])
    evaluator = Evaluator(trials=Trials(records=records), looks=looks, interim=interim)
    return evaluator.answer(found, missing, margin=margin)
