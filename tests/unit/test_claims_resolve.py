"""Tests of how claims are resolved: which cells of a study their parts compare."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.made import known
from tests.unit.claimed import cell, claim, names, noisy, parts, steady, trials

from fslab.cell import Cell, MediumSpec, Scalar
from fslab.claims.build import judged
from fslab.claims.campaign_estimates import Trials
from fslab.claims.claim_words import scoped_words
from fslab.claims.evaluate import Evaluator
from fslab.claims.mistakes import mistakes
from fslab.claims.model import ClaimAnswer, ClaimVerdict
from fslab.claims.parts import Quotient, Spread
from fslab.claims.scope import GUEST_MEMORY, Scope
from fslab.machine.kinds import DEFAULT_MEMORY
from fslab.storage.layouts import REGISTRY as LAYOUT_TYPES
from fslab.workloads import REGISTRY as WORKLOADS

THREE = [cell(name) for name in ("ext4", "xfs", "btrfs")]
LATENCY = {"numjobs": 1}


def test_an_order_is_about_neighbours() -> None:
    assert names(claim("xfs > ext4 > btrfs"), THREE) == ["xfs / ext4 > 1", "ext4 / btrfs > 1"]
    assert names(claim("xfs, ext4 > btrfs"), THREE) == ["xfs / btrfs > 1", "ext4 / btrfs > 1"]


def test_better_is_less_where_less_is_better() -> None:
    assert names(claim("xfs > ext4", metric="clat_mean"), THREE) == ["xfs / ext4 < 1"]


def test_larger_counts_where_nothing_is_better() -> None:
    assert names(claim("xfs > ext4", metric="cpu_user"), THREE) == ["xfs / ext4 > 1"]


def test_first_and_last_are_about_all_others() -> None:
    assert names(claim("xfs is first"), THREE) == ["xfs / ext4 > 1", "xfs / btrfs > 1"]
    assert names(claim("xfs is last"), THREE) == ["ext4 / xfs > 1", "btrfs / xfs > 1"]
    assert names(claim("ext4, xfs are first"), THREE) == ["ext4 / btrfs > 1", "xfs / btrfs > 1"]
    assert names(claim("ext4 is first of ext4, btrfs"), THREE) == ["ext4 / btrfs > 1"]


def test_a_tie_is_about_every_two() -> None:
    shown = "within 10 %"
    assert names(claim("ext4 ~ xfs ~ btrfs within 10%"), THREE) == [
        f"ext4 / xfs {shown}",
        f"ext4 / btrfs {shown}",
        f"xfs / btrfs {shown}",
    ]


MOUNTS = [
    *(cell("ext4", mount=mount) for mount in ("defaults", "noatime", "noatime,data=journal")),
    *(cell("xfs", mount=mount) for mount in ("defaults", "noatime,logbufs=8")),
]


def test_stacks_are_compared_that_are_alike_in_all_else() -> None:
    found, missing = parts(claim("xfs > ext4"), MOUNTS)
    assert len(found) == 1
    assert {figure.cell.stack.mount_options for figure in found[0].figures} == {"defaults"}
    assert missing == []


def test_brackets_choose_among_variants() -> None:
    found, _ = parts(claim("ext4[data=journal] / ext4[defaults] <= 0.5"), MOUNTS)
    assert [figure.cell.stack.mount_options for figure in found[0].figures] == [
        "noatime,data=journal",
        "defaults",
    ]


def test_spreads_are_over_the_variants_of_each() -> None:
    found, _ = parts(claim("ext4 varies more than xfs over mount_options"), MOUNTS)
    (spread,) = found
    assert isinstance(spread, Spread)
    assert (len(spread.ones), len(spread.others), spread.more) == (3, 2, True)


def test_less_than_a_share_is_about_every_two_variants() -> None:
    shown = "within 2 %"
    assert names(claim("ext4 varies less than 2% over mount_options"), MOUNTS) == [
        f"ext4[defaults] / ext4[noatime] {shown}",
        f"ext4[defaults] / ext4[noatime,data=journal] {shown}",
        f"ext4[noatime] / ext4[noatime,data=journal] {shown}",
    ]


SIZES = [cell(name, f"w[bs={bs}]", bs=bs) for name in ("ext4", "xfs") for bs in ("64k", "4k", "1m")]


def test_workloads_are_matched_whole_by_their_base_name_or_by_pattern() -> None:
    for pattern, count in (("w", 3), ("w[bs=4k]", 1), ("w*", 3), ("*4k]", 2)):
        assert len(names(claim("xfs > ext4", on=pattern), SIZES)) == count, pattern


def test_a_spread_sees_that_names_and_counts_go_with_the_block_size() -> None:
    made = [cell("ext4", f"{op}-{bs}", rw=op, bs=bs, number_ios=n) for op in ("read", "write")
            for bs, n in (("4k", 256), ("64k", 16))]  # fmt: skip
    found, _ = parts(claim("ext4 varies less than 2% over bs", metric="bandwidth"), made)
    assert [[figure.cell.workload.name for figure in part.figures] for part in found] == [
        ["read-4k", "read-64k"],
        ["write-4k", "write-64k"],
    ]


def test_what_is_about_several_workloads_is_not_placed_on_the_first() -> None:
    made = [
        cell("ext4", f"{op}-{bs}", rw=op, bs=bs) for op in ("read", "write") for bs in ("4k", "64k", "1m")
    ]
    found, _ = parts(claim("ext4 varies less than 2% over bs", metric="bandwidth"), made)
    assert [part.where for part in found] == ["read-*"] * 3 + ["write-*"] * 3
    cells = [cell("ext4", name, bs=bs) for name, bs in (("small", "4k"), ("large", "64k"))]
    (alone,), _ = parts(claim("ext4 varies less than 2% over bs"), cells)
    assert alone.where == ""


def test_terms_can_be_of_other_workloads() -> None:
    made = [cell("ext4", "a", rw="read"), cell("ext4", "b", rw="write"), cell("xfs", "a", rw="read"),
            cell("xfs", "b", rw="write")]  # fmt: skip
    found, _ = parts(claim("each on a / each on b >= 2", metric="bandwidth"), made)
    assert [part.name for part in found] == ["ext4 on a / ext4 on b", "xfs on a / xfs on b"]


@pytest.mark.parametrize(
    ("that", "compared"),
    [
        ("xfs > each", ["xfs / ext4", "xfs / btrfs"]),
        ("each > xfs", ["ext4 / xfs", "btrfs / xfs"]),
        ("xfs > ext4 > each", ["xfs / ext4", "ext4 / btrfs"]),
        ("xfs ~ each within 10%", ["xfs / ext4", "xfs / btrfs"]),
        ("xfs is first of each", ["xfs / ext4", "xfs / btrfs"]),
        ("ext4 varies more than each over bs", ["spread of ext4 / of xfs", "spread of ext4 / of btrfs"]),
        ("each varies more than ext4 over bs", ["spread of xfs / of ext4", "spread of btrfs / of ext4"]),
        ("each varies less than 2% over bs", ["ext4[4k] / ext4[64k]", "xfs[4k] / xfs[64k]", "btrfs[4k] / btrfs[64k]"]),
        ("xfs gains more than each from bs=4k to bs=64k", ["gain of xfs / of ext4", "gain of xfs / of btrfs"]),
    ],
)  # fmt: skip
def test_each_beside_a_named_stack_is_every_other_one(that: str, compared: list[str]) -> None:
    made = [cell(name, f"w[bs={bs}]", bs=bs) for name in ("ext4", "xfs", "btrfs") for bs in ("4k", "64k")]
    found, missing = parts(claim(that), made)
    assert list(dict.fromkeys(part.name for part in found)) == compared
    assert missing == []
    for part in found:
        if isinstance(part, Spread):
            assert (len(part.ones), len(part.others)) == (2, 2)


def test_a_gain_is_a_ratio_of_ratios() -> None:
    made = [cell(name, f"w[numjobs={n}]", numjobs=n) for name in ("ext4", "xfs") for n in (1, 4)]
    found, _ = parts(claim("xfs gains more than ext4 from numjobs=1 to numjobs=4", metric="iops"), made)
    (gain,) = found
    assert isinstance(gain, Quotient)
    said = [
        (figure.cell.stack.name, figure.cell.workload.parameters["numjobs"], weight)
        for figure, weight in gain.weights
    ]
    assert said == [("xfs", 4, 1), ("xfs", 1, -1), ("ext4", 4, -1), ("ext4", 1, 1)]


def test_a_gain_in_latency_is_a_fall() -> None:
    made = [cell(name, f"w[numjobs={n}]", numjobs=n) for name in ("ext4", "xfs") for n in (1, 4)]
    found, _ = parts(claim("xfs gains more than ext4 from numjobs=1 to numjobs=4", metric="clat_mean"), made)
    assert isinstance(found[0], Quotient)
    assert [weight for _, weight in found[0].weights] == [-1, 1, 1, -1]


def test_overall_is_one_mean_over_all_it_is_about() -> None:
    found, _ = parts(claim("overall xfs / ext4 >= 2"), SIZES)
    (mean,) = found
    assert isinstance(mean, Quotient)
    assert len(mean.weights) == 6
    assert {round(abs(weight), 9) for _, weight in mean.weights} == {round(1 / 3, 9)}


LAYOUTS: list[dict[str, Scalar]] = [
    {"layout": "single"},
    {"layout": "lvm-stripe", "disks": 2, "chunk": "64k"},
    {"layout": "lvm-stripe", "disks": 3, "chunk": "64k"},
    {"layout": "lvm-stripe", "disks": 3, "chunk": "16k"},
]
STRIPES = [cell(name, layout=layout) for name in ("ext4", "xfs") for layout in LAYOUTS]


def test_one_disk_goes_with_every_stripe() -> None:
    found, _ = parts(claim("xfs[layout=lvm-stripe] / xfs[layout=single] > 1"), STRIPES)
    assert len(found) == 3
    assert {part.figures[1].cell.stack.layout for part in found} == {"single"}


def test_stripes_are_compared_with_like_stripes() -> None:
    assert len(names(claim("xfs > ext4"), STRIPES)) == 4
    assert len(names(claim("xfs > ext4 for disks > 1 and chunk=64k"), STRIPES)) == 2
    assert (
        len(names(claim("xfs varies less than 2% over disks for layout=lvm-stripe and chunk=64k"), STRIPES))
        == 1
    )


def test_a_region_is_below_or_above_memory() -> None:
    made = [cell(name, f"w[size={size}]", size=size) for name in ("ext4", "xfs") for size in ("1g", "64g")]
    below, above = claim("xfs > ext4 for size < memory"), claim("xfs > ext4 for size > memory")
    assert [part.where for part in parts(below, made, 8 << 30)[0]] == ["w[size=1g]"]
    assert [part.where for part in parts(above, made, 8 << 30)[0]] == ["w[size=64g]"]
    assert parts(below, made)[0] == []  # the size of the memory is unknown


def test_nothing_is_compared_with_itself() -> None:
    assert parts(claim("ext4 > ext4"), THREE) == ([], ["ext4 / ext4 compares ext4 with itself"])


def test_what_is_not_there_is_reported() -> None:
    assert parts(claim("reiser4 > ext4"), THREE) == ([], ["there is no reiser4"])
    made = [cell(name, "w[size=1g]", size="1g") for name in ("ext4", "xfs")]
    for that in ("xfs > ext4", "xfs is first", "xfs varies less than 5% over size"):
        found, missing = parts(claim(f"{that} for size > memory"), made, 8 << 30)
        assert (found, missing[0]) == ([], "nothing is measured with size > memory"), that


@pytest.mark.parametrize(
    ("that", "why"),
    [
        ("ext4 in 5ms..900us", "'in 5ms..900us' is empty: write the smaller value first"),
        ("ext4 in 1000us..1ms", "'in 1000us..1ms' is empty: write the smaller value first"),
        (
            "overall ext4 varies more than xfs over mount_options",
            "'overall' cannot be combined with a comparison of spreads ('varies …')",
        ),
    ],
)
def test_a_statement_that_no_figure_can_answer_is_refused(that: str, why: str) -> None:
    of = claim(that, metric="clat_mean")
    assert parts(of, MOUNTS) == ([], [why])
    ((where, said),) = mistakes(of, Scope(cells=tuple(MOUNTS)))
    assert where == ("that", 0)
    assert why in said


@pytest.mark.parametrize("name", ["ext4 noatime", "ext4"])
def test_a_stack_goes_by_file_system_and_by_name(name: str) -> None:
    scope = Scope(cells=tuple(MOUNTS))
    assert name in scope.stacks


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
    judge = Evaluator(trials=Trials(records=records))
    (found,) = judged([claim(that)], study=scope, printed=None, campaign=scope, judge=judge)
    return known(found.measured)


@pytest.mark.parametrize("that", ["xfs is first", "xfs[defaults] is first"])
def test_what_is_left_out_is_reported(that: str) -> None:
    found = measured(that)
    assert found.verdict is ClaimVerdict.REPLICATED
    assert found.compared == ("xfs", "ext4", "btrfs")
    assert found.left_out == ("ext4 data=journal", "btrfs nodatacow")
    told = "; compared: xfs, ext4, btrfs; left out: ext4 data=journal, btrfs nodatacow"
    assert scoped_words(found).endswith(told)
    assert found.model_dump(mode="json")["left_out"] == ["ext4 data=journal", "btrfs nodatacow"]


def test_a_condition_can_name_what_a_medium_sets() -> None:
    media = (MediumSpec(name=f"m.{size}", type="ram", options={"sector": size}) for size in (512, 4096))
    stacks = (XFS.stack.model_copy(update={"medium": medium}) for medium in media)
    small, large = (XFS.model_copy(update={"stack": stack}) for stack in stacks)
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
    options = {name for each in LAYOUT_TYPES.names() for name in LAYOUT_TYPES.get(each).Options.model_fields}
    assert {"chunk", "disks"} <= options
    hidden = {each: options & set(WORKLOADS.get(each).Parameters.model_fields) for each in WORKLOADS.names()}
    assert {tool: names for tool, names in hidden.items() if names} == {}
