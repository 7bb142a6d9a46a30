"""Tests of the output of ``fslab claims``: its text without colour, its tables and its width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.made import known
from tests.unit.claimed import (
    DIFFERS,
    NO_LONGER,
    OPEN,
    OPPOSITE,
    REPLICATED,
    REVERSED,
    SMALL,
    TIE,
    UNKNOWN,
    cell,
    claim,
    noisy,
    steady,
    trials,
)

from fslab.claims.build import judged, tables
from fslab.claims.campaign_estimates import Trials
from fslab.claims.claim_words import summaries
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import ClaimAnswer, ClaimVerdict, Verdicts, agreement
from fslab.claims.published import read_figures
from fslab.claims.schema import Published
from fslab.claims.scope import Scope
from fslab.report import claims_terminal as terminal

EXT4, XFS, REISER4 = (cell(name) for name in ("ext4", "xfs", "reiser4"))
CSV = """\
table,workload,filesystem,variant,metric,unit,value
II,w,ext4,defaults,iops,1/s,50
II,w,xfs,defaults,iops,1/s,40
II,w,reiser4,defaults,iops,1/s,60
"""


def made() -> Verdicts:
    scope = Scope(cells=(EXT4, XFS, REISER4))
    records = [*trials(EXT4, steady(100.0)), *trials(XFS, noisy(200.0))]
    judge = Evaluator(trials=Trials(records=records, impossible={REISER4.id: "no kernel has it"}))
    figures = read_figures(CSV, "x.csv", Published(), scope)
    claims = [claim("xfs > ext4"), claim("xfs / ext4 >= 2", id="2"), claim("reiser4 is first", id="3")]
    return Verdicts(
        study="s", title="t", source="A Very Long Citation " * 8, campaign="c", conditions="here: campaign c",
        claims=judged(claims, study=scope, printed=figures, campaign=scope, judge=judge),
        tables=tables(figures, Published(), judge, figures),
    )  # fmt: skip


def shown(width: int = 80, **more: bool) -> str:
    out = io.StringIO()
    terminal.show(made(), Console(file=out, width=width), **more)
    return out.getvalue()


def test_each_claim_has_both_answers() -> None:
    text = shown()
    assert "printed  ✗ contradicted: xfs / ext4 is 0.80, not > 1 (w, table II)" in text
    assert "here     ✓ replicated: xfs / ext4 is 2.00 (1.90–2.11) (w)" in text
    assert "here     ? open: at the limit (within 10 % of it): xfs / ext4 is 2.00" in text
    assert "here     – not measured here: no kernel has it" in text


def test_a_publication_without_figures_has_no_line_beside_measured_ones() -> None:
    verdicts = made()
    none = ClaimAnswer(verdict=UNKNOWN, words="not printed", parts=1)
    claims = tuple(each.model_copy(update={"published": none}) for each in verdicts.claims)

    def said(**more: object) -> str:
        out = io.StringIO()
        terminal.show(verdicts.model_copy(update={"claims": claims, **more}), Console(file=out, width=80))
        return out.getvalue()

    assert "printed" not in said()
    unmeasured = tuple(each.model_copy(update={"measured": None}) for each in claims)
    assert "printed  – not printed" in said(claims=unmeasured, campaign=None)


def test_two_sentences_come_before_the_claims() -> None:
    printed = "Of 3 claims, by the published figures: 1 holds, 2 are contradicted (1, 2)."
    here = (
        "Tested 2 of 3: replicated 1, open 1 (1 at the limit); not tested here 1 (1: no kernel has it); published "
        "tables contradict 2."
    )
    assert summaries(made()) == [printed, here]
    assert printed in shown(120).splitlines()
    claims = tuple(each.model_copy(update={"measured": None}) for each in made().claims)
    alone = made().model_copy(update={"claims": claims})
    assert summaries(alone) == [printed]


def test_claims_are_counted() -> None:
    assert made().counts(published=True) == {ClaimVerdict.HOLDS: 1, ClaimVerdict.CONTRADICTED: 2}
    assert made().counts(published=False) == {REPLICATED: 1, OPEN: 1, UNKNOWN: 1}


def test_a_table_shows_printed_and_measured_multiples() -> None:
    (table,) = made().tables
    assert [cell.printed for cell in table.lines[0].cells] == [1.0, 0.8, 1.2]
    assert [cell.measured for cell in table.lines[0].cells] == pytest.approx([1.0, 2.0, None])
    xfs = table.lines[0].cells[1]
    assert (xfs.low, xfs.high) == pytest.approx((1.9195, 2.0839), rel=1e-4)
    assert table.lines[0].cells[2].why == "no kernel has it"


def test_what_is_measured_is_told_also_where_it_is_not_printed() -> None:
    """For ``w``, only the figure of XFS is printed. There is no printed ratio to ext4, but the measured one is shown.

    ``v`` was not measured and has no ratio.
    """
    text = CSV.splitlines()[0] + "\nII,w,xfs,defaults,iops,1/s,40\nII,v,ext4,defaults,iops,1/s,50\n"
    scope = Scope(cells=(EXT4, XFS, cell("ext4", "v")))
    judge = Evaluator(trials=Trials(records=[*trials(EXT4, steady(100.0)), *trials(XFS, noisy(200.0))]))
    figures = read_figures(text, "x.csv", Published(), scope)
    (table,) = tables(figures, Published(reference="ext4"), judge, figures)
    found = {line.workload: dict(zip(table.stacks, line.cells, strict=True)) for line in table.lines}
    assert [found["w"][name].printed for name in ("ext4", "xfs")] == [None, None]
    assert [found["w"][name].measured for name in ("ext4", "xfs")] == pytest.approx([1.0, 2.0])
    assert [found["v"][name].measured for name in ("ext4", "xfs")] == [None, None]


def test_verdicts_of_two_campaigns_are_compared_where_both_decided() -> None:
    """The first claim is reversed in the second campaign, the second is decided only there, the third means another."""
    one, first, second, third = made(), *made().claims
    reversed_ = first.measured.model_copy(update={"verdict": REVERSED, "words": "it is 0.5"})  # type: ignore[union-attr]
    claims = (
        first.model_copy(update={"measured": reversed_}),
        second.model_copy(update={"measured": reversed_}),
        third.model_copy(update={"that": ("reiser4 is last",), "measured": reversed_}),
    )
    found = agreement(one, one.model_copy(update={"claims": claims}))
    assert (found.common, found.only_a, found.only_b) == (1, (), ("2", "3"))
    assert [(each.id, each.b.verdict) for each in found.changed] == [("1", REVERSED)]
    out = io.StringIO()
    terminal.show_agreement(found, ("x", "y"), Console(file=out, width=80))
    assert "0 of 1 results that both give are the same (0 %)" in out.getvalue()
    assert "decided only in B: 2, 3" in out.getvalue()
    assert "A        ✓ replicated: xfs / ext4 is 2.00" in out.getvalue()
    assert "B        ✗ reversed: it is 0.5" in out.getvalue()
    assert agreement(one, one).changed == ()


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (TIE, OPPOSITE, True),
        (SMALL, TIE, True),
        (REVERSED, DIFFERS, True),
        (TIE, REVERSED, False),
        (REPLICATED, SMALL, False),
        (NO_LONGER, REVERSED, False),
    ],
)
def test_the_same_result_in_other_words_is_no_change(a: ClaimVerdict, b: ClaimVerdict, same: bool) -> None:
    first = made().claims[0]
    answers = (known(first.measured).model_copy(update={"verdict": each}) for each in (a, b))
    claims = (first.model_copy(update={"measured": each}) for each in answers)
    sides = [made().model_copy(update={"claims": (each,)}) for each in claims]
    out = io.StringIO()
    terminal.show_agreement(agreement(*sides), ("x", "y"), Console(file=out, width=200))
    shown = " ".join(out.getvalue().split())
    told = (
        "1 of 1 results that both give are the same (100 %), in other words: 1" if same else "0 of 1 results"
    )
    assert told in shown


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    out = io.StringIO()
    terminal.show(made(), Console(file=out, width=width))
    assert max(map(len, out.getvalue().splitlines())) <= width
