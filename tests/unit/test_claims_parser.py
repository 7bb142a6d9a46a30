"""Tests of the language of claims: the meaning of each form, and the column of each mistake."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fslab.claims.language import (
    Condition,
    Extreme,
    Gains,
    Level,
    Misread,
    Op,
    Order,
    Range,
    RatioForm,
    Term,
    Tie,
    Varies,
)
from fslab.claims.parser import parse


def term(name: str, column: int = 1, **more: object) -> Term:
    return Term(name=name, column=column, **more)  # type: ignore[arg-type]


def test_an_order_has_groups() -> None:
    assert parse("xfs > ext4, btrfs").form == Order(
        groups=((term("xfs"),), (term("ext4", 7), term("btrfs", 13)))
    )


def test_a_ratio_lies_in_a_range() -> None:
    assert parse("xfs / ext4 >= 2").form == RatioForm(
        over=term("xfs"), under=term("ext4", 7), range=Range(low="2")
    )
    assert parse("xfs/ext4 in 2.5..3.5").form == RatioForm(
        over=term("xfs"), under=term("ext4", 5), range=Range(low="2.5", high="3.5")
    )
    near = parse("xfs / ext4 ~ 2 within 25%").form
    assert isinstance(near, RatioForm)
    assert near.range == Range(low="2", high="2", within=0.25)
    assert str(near.range) == "2 within 25 %"


def test_a_figure_itself_has_a_unit() -> None:
    assert parse("ext4 in 4us..5us").form == Level(term=term("ext4"), range=Range(low="4us", high="5us"))
    assert parse("ext4 < 5.5MB/s").form == Level(term=term("ext4"), range=Range(high="5.5MB/s", strict=True))


def test_a_tie_and_an_extreme() -> None:
    assert parse("ext4 ~ xfs within 10%").form == Tie(terms=(term("ext4"), term("xfs", 8)), within=0.1)
    assert parse("btrfs is last").form == Extreme(terms=(term("btrfs"),), first=False)
    assert parse("ext4 is first of ext2, ext3").form == Extreme(
        terms=(term("ext4"),), first=True, among=(term("ext2", 18), term("ext3", 24))
    )


def test_a_spread_is_compared_with_another_or_with_a_share() -> None:
    assert parse("ext4 varies more than xfs over mount_options").form == Varies(
        term=term("ext4"), more=True, keys=("mount_options",), other=term("xfs", 23), column=6
    )
    alike = Varies(term=term("ext4"), more=False, keys=("disks",), within=0.02, column=6)
    assert parse("ext4 varies less than 2% over disks").form == alike
    assert parse("ext4 does not depend on disks within 2%").form == replace(alike, column=11)
    least = parse("btrfs varies least over disks and chunk").form
    assert least == Varies(term=term("btrfs"), more=False, keys=("disks", "chunk"), column=7)


def test_a_gain_goes_from_one_set_up_to_another() -> None:
    form = parse("f2fs gains more than ext4 from threads=1 to threads=4").form
    assert isinstance(form, Gains)
    assert (form.start, form.end) == (
        (Condition(key="threads", op=Op.EQUAL, value="1", column=32),),
        (Condition(key="threads", op=Op.EQUAL, value="4", column=45),),
    )


def test_conditions_narrow_a_stack_and_a_region_the_statement() -> None:
    whole = parse("overall ext4[data=journal, noatime] on 'a b' > xfs for size < memory and threads >= 2")
    assert whole.overall
    assert [str(condition) for condition in whole.region] == ["size < memory", "threads >= 2"]
    assert isinstance(whole.form, Order)
    assert str(whole.form.groups[0][0]) == "ext4[data=journal, noatime] on a b"


def test_a_name_that_is_a_word_of_the_language_is_quoted() -> None:
    assert parse("'is' > 'ext4 noatime'").form == Order(groups=((term("is"),), (term("ext4 noatime", 8),)))


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("xfs >", 6, "expected a stack, not the end"),
        ("xfs is best", 8, "expected 'first' or 'last', not 'best'"),
        ("xfs £ 3", 5, "'£' is not allowed here"),
        (
            "xfs < ext4",
            7,
            "expected a figure (in an order, write the better stack first: xfs > ext4), not 'ext4'",
        ),
        ("xfs / ext4", 11, "expected a statement"),
        ("xfs / ext4 >= two", 15, "expected a figure such as 2, 10% or 4us, not 'two'"),
        ("ext4 ~ xfs", 11, "expected 'within', not the end"),
        ("ext4 ~ xfs within 0%", 19, "'0%' is not a share"),
        ("ext4 ~ xfs within 10", 19, "'10' is 1000 %: write 10%, or 1000%"),
        ("xfs[threads=4 > ext4", 15, "expected ']', not '>'"),
        ("xfs > ext4 btrfs", 12, "expected the end, or 'for' with a condition, not 'btrfs'"),
        ("ext4 gains more than xfs to threads=4", 26, "expected 'from', not 'to'"),
        ("xfs / ext4 >= 5s", 15, "'5s' is not a ratio: write a number without a unit"),
        ("xfs / ext4 in 1..2k", 18, "'2k' is not a ratio"),
        ("xfs / ext4 ~ 10% within 5%", 14, "'10%' is not a ratio"),
        ("xfs / ext4 in 3..2", 15, "3..2 is empty: write the smaller value first"),
        ("ext4 in 5us..4us", 9, "5us..4us is empty"),
        (", ".join(["xfs"] * 101), 501, "longer than 200 words and signs"),
        ("xfs / ext4 < 0", 14, "no figure and no ratio is below 0"),
        ("ext4 ~ 0 within 10%", 8, "a share of 0 is 0"),
        ("ext4 <= 0.0us", 9, "no figure and no ratio is below 0"),
        (f"xfs / ext4 > {'9' * 400}", 14, "'99999999999999999999…' is too large"),
        ("", 1, "expected a stack, not the end"),
    ],
)
def test_a_mistake_has_its_column(text: str, column: int, what: str) -> None:
    with pytest.raises(Misread) as caught:
        parse(text)
    assert caught.value.column == column
    assert caught.value.what.startswith(what)


WORDS = ["xfs", "ext4", ">", "~", "/", "is", "first", "within", "10%", "over", "varies", "[", "]", "for", "a=1", ",",
         "2", "..", "in", "gains", "more", "than", "from", "'", "on", "£"]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_whatever_is_written_is_read_or_refused_with_a_column(text: str) -> None:
    try:
        assert parse(text).text == " ".join(text.split())
    except Misread as misread:
        assert 1 <= misread.column <= len(text) + 1  # noqa: PT017 - other texts are parsed
