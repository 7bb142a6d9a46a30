"""Tests of which stacks a claim compares: the answer names them, and ``for any`` adds variants."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.unit.claimed import cell, claim, noisy, steady, trials

from fslab.cell import Cell, MediumSpec
from fslab.claims.build import judged
from fslab.claims.evaluate import Evaluator
from fslab.claims.finding_words import scoped_words
from fslab.claims.model import ClaimAnswer, ClaimVerdict
from fslab.claims.scope import GUEST_MEMORY, Scope
from fslab.claims.trials import Trials
from fslab.machine.kinds import DEFAULT_MEMORY
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.workloads import REGISTRY as WORKLOADS

XFS, EXT4, BTRFS = cell("xfs"), cell("ext4"), cell("btrfs")
JOURNAL, NODATACOW = cell("ext4", mount="data=journal"), cell("btrfs", mount="nodatacow")
EVERY = (XFS, EXT4, JOURNAL, BTRFS, NODATACOW)
# btrfs with nodatacow is faster than xfs. All others are slower than xfs.
SPEED = {XFS.id: 200.0, EXT4.id: 100.0, JOURNAL.id: 50.0, BTRFS.id: 90.0, NODATACOW.id: 400.0}


def measured(that: str, cells: tuple[Cell, ...] = EVERY, speed: Mapping[str, float] = SPEED) -> ClaimAnswer:
    scope = Scope(cells=cells)
    records = [
        one for each in cells for one in trials(each, (noisy if each is XFS else steady)(speed[each.id]))
    ]
    (found,) = judged(
        [claim(that)],
        study=scope,
        printed=None,
        campaign=scope,
        judge=Evaluator(trials=Trials(records=records)),
    )
    assert found.measured is not None
    return found.measured


@pytest.mark.parametrize("that", ["xfs is first", "xfs[defaults] is first"])
def test_what_is_left_out_is_reported(that: str) -> None:
    found = measured(that)
    assert found.verdict is ClaimVerdict.REPLICATED
    assert found.compared == ("xfs", "ext4", "btrfs")
    assert found.left_out == ("ext4 data=journal", "btrfs nodatacow")
    assert scoped_words(found).endswith(
        "; compared: xfs, ext4, btrfs; left out: ext4 data=journal, btrfs nodatacow"
    )
    assert found.model_dump(mode="json")["left_out"] == ["ext4 data=journal", "btrfs nodatacow"]


def test_a_condition_can_name_what_a_medium_sets() -> None:
    small, large = (
        XFS.model_copy(
            update={
                "stack": XFS.stack.model_copy(
                    update={"medium": MediumSpec(name=f"m.{size}", type="ram", options={"sector": size})}
                )
            }
        )
        for size in (512, 4096)
    )
    found = measured("xfs[sector=4096] > xfs[sector=512]", (small, large), {small.id: 100, large.id: 200})
    assert found.verdict is ClaimVerdict.REPLICATED


def test_where_nothing_is_left_out_what_was_compared_is_reported() -> None:
    found = measured("xfs > ext4", (XFS, EXT4))
    assert (found.compared, found.left_out) == (("xfs", "ext4"), ())
    assert scoped_words(found) == f"{found.words}; compared: xfs, ext4"


def test_the_memory_of_a_guest_is_that_of_its_machine() -> None:
    """Claims do not import machines."""
    assert GUEST_MEMORY == DEFAULT_MEMORY


def test_no_parameter_of_a_tool_hides_an_option_of_a_layout() -> None:
    """A condition such as ``chunk=64k`` would mean the tool's, and the cells with other chunks would be left out."""
    options = {name for each in LAYOUTS.names() for name in LAYOUTS.get(each).Options.model_fields}
    assert {"chunk", "disks"} <= options
    hidden = {each: options & set(WORKLOADS.get(each).Parameters.model_fields) for each in WORKLOADS.names()}
    assert {tool: names for tool, names in hidden.items() if names} == {}
