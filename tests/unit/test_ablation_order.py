"""Tests of ablations: which two stacks are chosen if more than two were measured, and what their campaign keeps."""

from __future__ import annotations

import os

from tests import made

from fslab.api.ablations import ablation_of, slower_and_faster
from fslab.explain.evidence import Evidence
from fslab.stopping_settings import StoppingRule

WORK = {"rw": "randwrite", "size": "1m"}


def seen(name: str, iops: float) -> Evidence:
    cell = made.cell(made.spec(options={"size": "1g"}, name=name), parameters=WORK)
    trial = made.trial(of=cell, metrics=made.iops(iops))
    return Evidence(cell=cell, workload="w", stack=name, trials=[trial])


def test_without_a_name_the_slowest_is_asked_about() -> None:
    every = [seen("middle", 200.0), seen("slow", 100.0), seen("fast", 300.0)]
    slow, fast, metric = slower_and_faster(every, first=False)
    assert (slow.stack, fast.stack, metric.name) == ("slow", "fast", "write_iops")


def test_an_ablation_has_the_user_the_scale_and_the_files_of_its_campaign() -> None:
    slow, fast, metric = slower_and_faster([seen("slow", 100.0), seen("fast", 300.0)])
    settings = {"scale": 0.5, "files": {"a.job": "text"}, "directory": "/srv", "budget_s": 5}
    of = made.campaign(settings=settings, cells=(slow.cell, fast.cell), trials=3)
    ablation = ablation_of(of, slow, fast, metric, ["journal"], None)
    found = ablation.settings
    assert (found.scale, found.files, found.directory) == (0.5, {"a.job": "text"}, "/srv")
    assert (found.user_id, found.budget_s, found.stopping) == (os.geteuid(), None, StoppingRule(trials=3))
    assert found.ablation is not None
    assert found.ablation.common == ("journal",), "both are ext4"


def test_two_that_are_equal_are_two() -> None:
    slow, fast, _ = slower_and_faster([seen("one", 100.0), seen("other", 100.0)])
    assert (slow.stack, fast.stack) == ("one", "other")


def test_a_named_one_is_compared_with_the_best_of_the_others() -> None:
    every = [seen("middle", 200.0), seen("slow", 100.0), seen("fast", 300.0)]
    assert [each.stack for each in slower_and_faster(every)[:2]] == ["middle", "fast"]
    best = [seen("fast", 300.0), seen("slow", 100.0), seen("middle", 200.0)]
    assert [each.stack for each in slower_and_faster(best)[:2]] == ["middle", "fast"]
