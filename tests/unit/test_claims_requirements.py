"""Tests of what a claim requires of the cells that decide it: each requirement on both sides of its threshold."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.made import known
from tests.unit.claimed import (
    NO_LONGER,
    NOT_TESTED,
    REPLICATED,
    REVERSED,
    UNKNOWN,
    cell,
    claim,
    known_independent,
    noisy,
    steady,
    trials,
)

from fslab.cell import Cell, MachineSpec
from fslab.claims import claim_words
from fslab.claims.build import asked_of
from fslab.claims.campaign_estimates import Trials
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import ClaimAnswer, EvaluatedClaim, PartFinding
from fslab.claims.parts import Bounds
from fslab.claims.requirement_check import RequirementCheck, Setting, answers
from fslab.claims.requirements import REGISTRY, CellFacts, Compared, Lever, demand, demands
from fslab.claims.schema import Claim
from fslab.claims.scope import Scope
from fslab.claims.verdict import margin_of
from fslab.trial_record import Metric, Provenance, RunPart, Severity, TrialRecord, ValidityWarning
from fslab.units import Direction, Unit

__all__ = ["known_independent"]
pytestmark = pytest.mark.usefixtures("known_independent")

EXT4, XFS = cell("ext4"), cell("xfs")
NOATIME = cell("ext4", mount="noatime")
ONE, FIVE = (cell("xfs", layout={"type": "md-raid0", "disks": disks}) for disks in (1, 5))
SERVED = {
    name: each.model_copy(update={"stack": each.stack.model_copy(update={"served": True})})
    for name in ("lvm-stripe", "md-raid0")
    for each in [cell("xfs", layout={"layout": name, "disks": 5, "chunk": "64k"})]
}
FOUR_THREADS = cell("ext4", numjobs=4)
RATE = Metric(name="write_bandwidth", unit=Unit.BYTES_PER_SECOND)
FILES = Metric(name="seq_create_rate", unit=Unit.FILES_PER_SECOND)
SHARE = Metric(name="cpu_user", unit=Unit.PERCENT)
EXTENTS = Metric(name="extents", unit=Unit.COUNT, better=Direction.LOWER)
MIB = 1 << 20


def facts(of: Cell = EXT4, metric: Metric = RATE, **more: object) -> CellFacts:
    return CellFacts(cell=of, metric=metric, **{"value": 100.0 * MIB, "seconds": 10.0, **more})  # type: ignore[arg-type]


def of(*sides: CellFacts, **more: object) -> Compared:
    return Compared(sides=sides, **more)  # type: ignore[arg-type]


def two(*, other: Cell = XFS, metric: Metric = RATE, **more: object) -> Compared:
    """Return two cells of which the second has these facts."""
    return of(facts(metric=metric), facts(other, metric, **more))


# For each requirement: cells that meet it, cells that just do not, and words of the reason.
BOTH_SIDES: Mapping[str, tuple[Compared, Compared, str]] = {
    "wait": (
        of(facts(wait=0.9), facts(XFS, value=50.0 * MIB, wait=0.5)),
        of(facts(wait=0.9), facts(XFS, value=50.0 * MIB, wait=0.04)),
        "the disks were waited for 4 % of the time, so they can change this by at most 1.04 ×",
    ),
    "native": (
        of(facts(wait=0.6, emulated=True), facts(XFS, wait=0.5, emulated=True)),
        of(facts(wait=0.49, emulated=True), facts(XFS, wait=0.49, emulated=True)),
        "the CPU of a guest decides this: the disks were waited for 49 %",
    ),
    "from-disk": (
        two(written_bytes=500.0 * MIB),
        two(written_bytes=499.0 * MIB),
        "only 499 MiB of 1000 MiB came from the disks",
    ),
    "cpus": (
        of(facts(threads=4, cpus=4), facts(XFS, threads=4, cpus=4)),
        of(facts(threads=4, cpus=3), facts(XFS, threads=4, cpus=3)),
        "4 threads share 3 CPUs",
    ),
    "checksums": (
        two(checksum="crc32c (crc32c-generic)", written_bytes=0.5e9),
        two(checksum="crc32c (crc32c-generic)", written_bytes=0.51e9),
        "xfs computed checksums by tables (crc32c (crc32c-generic)), about 5 % of the time",
    ),
    "flushes": (
        two(metric=FILES, value=100.0, flushes=100.0),
        two(metric=FILES, value=100.0, flushes=101.0),
        "101 flushes for 1,000 operations",
    ),
    "larger-than-memory": (
        two(working_set_bytes=1024 * MIB, memory_bytes=1024 * MIB),
        two(working_set_bytes=1023 * MIB, memory_bytes=1024 * MIB),
        "files of 1023 MiB fit in memory (1 GiB)",
    ),
    "fixed-cost": (
        two(fixed_share=0.05),
        two(fixed_share=0.06),
        "6 % of the time of w on xfs do not grow with the size",
    ),
    "rate": (
        two(printed=(34.0 * MIB, 900.0 * MIB)),
        two(printed=(33.0 * MIB, 900.0 * MIB)),
        "xfs has 105 MB/s here, 34.6 MB/s in print (3.0 × apart)",
    ),
    "options": (
        of(facts(EXT4, options=("relatime",)), facts(NOATIME, options=("noatime",))),
        of(facts(EXT4, options=("noatime",)), facts(NOATIME, options=("noatime",))),
        "ext4 and ext4 noatime have the same options in effect",
    ),
    "layouts": (
        of(facts(SERVED["lvm-stripe"]), facts(EXT4)),
        of(facts(SERVED["lvm-stripe"]), facts(SERVED["md-raid0"])),
        "the disk server stripes, md and LVM themselves are not part of it",
    ),
    "stored-data": (
        two(),
        two(warnings=frozenset({"zeros_only"})),
        "and xfs did not store all of it",
    ),
}


@pytest.mark.parametrize(("run", "known"), [(100.0, True), (101.0, False)])
def test_few_flushes_of_the_whole_run_are_few_of_a_short_part(run: float, known: bool) -> None:
    """Of 1000 operations; many flushes of the run can be those of its other parts."""
    sides = [facts(of_, FILES, value=100.0, run_flushes=run) for of_ in (EXT4, XFS)]
    found = REGISTRY.get("flushes").unmet(of(*sides), declared=True)
    assert (found is None) is known
    assert known or "it is unknown how often" in str(found)


@pytest.mark.parametrize("name", REGISTRY.names())
def test_each_requirement_has_a_cell_on_each_side_of_its_threshold(name: str) -> None:
    met, unmet, words = BOTH_SIDES[name]
    rule = REGISTRY.get(name)
    assert rule.unmet(met, declared=True) is None
    found = known(rule.unmet(unmet, declared=True))
    assert words in found.what
    assert found.requirement == name


@pytest.mark.parametrize("name", sorted({*REGISTRY.names()} - {"native", "layouts", "stored-data"}))
def test_what_is_unknown_is_an_objection_only_if_the_claim_requires_it(name: str) -> None:
    unknown = of(facts(EXT4), facts(NOATIME))
    rule = REGISTRY.get(name)
    assert rule.unmet(unknown, declared=False) is None
    found = known(rule.unmet(unknown, declared=True))
    assert found.what == f"it is unknown {rule.summary}"


def test_a_wait_that_is_unknown_in_a_guest_is_an_objection() -> None:
    found = known(REGISTRY.get("native").unmet(of(facts(emulated=True, guest=True)), declared=False))
    assert found.try_ == "--on host"


def test_a_guest_can_count_and_show_that_no_disk_is_needed() -> None:
    rule = REGISTRY.get("native")
    assert rule.unmet(of(facts(metric=EXTENTS, emulated=True)), declared=True) is None
    idle = {"emulated": True, "wait": 0.0, "read_bytes": 0.0, "written_bytes": 0.0}
    pair = facts(ONE, FILES, **idle), facts(FIVE, FILES, **idle)
    for name in ("native", "wait"):
        assert REGISTRY.get(name).unmet(of(*pair, tie=True), declared=True) is None
        assert REGISTRY.get(name).unmet(of(*pair), declared=True) is not None  # that more disks are faster
        busy = facts(FIVE, FILES, **{**idle, "written_bytes": 2.0 * MIB})
        assert REGISTRY.get(name).unmet(of(pair[0], busy, tie=True), declared=True) is not None


@pytest.mark.parametrize(
    ("one", "other", "levers"),
    [
        (EXT4, XFS, {Lever.FILESYSTEM}), (ONE, FIVE, {Lever.DISKS}), (EXT4, NOATIME, {Lever.OPTIONS}),
        (EXT4, FOUR_THREADS, {Lever.THREADS}), (EXT4, cell("ext4", bs="4k"), {Lever.WORK}),
    ],
)  # fmt: skip
def test_what_cells_differ_in_decides_what_is_implied(one: Cell, other: Cell, levers: set[Lever]) -> None:
    compared = of(facts(one), facts(other))
    assert compared.levers == levers
    assert REGISTRY.get("wait").implied(compared) is (levers == {Lever.DISKS})
    assert REGISTRY.get("options").implied(compared) is (levers == {Lever.OPTIONS})


@pytest.mark.parametrize(
    ("span", "met"),
    [((90.0, 120.0), True), ((91.0, 120.0), False), (None, False)],
)
def test_a_rate_is_another_one_only_if_its_whole_interval_is(
    span: tuple[float, float] | None, met: bool
) -> None:
    """Printed 30, measured 100: 3.3 times as much, in an interval that begins at 3 times as much or not.

    Of too few trials there is no interval, and the median decides.
    """
    rule = REGISTRY.get("rate")
    found = rule.unmet(of(facts(EXT4), facts(XFS, value=100.0, span=span, printed=(30.0,))), declared=False)
    assert (found is None) is met
    assert met or "(3.3 × apart)" in str(found)


def test_a_claim_about_cpu_time_or_a_figure_needs_no_printed_rate() -> None:
    rule, far = REGISTRY.get("rate"), facts(XFS, printed=(1.0,))
    assert rule.implied(of(facts(), far))
    assert not rule.implied(of(facts(), far, lever=Lever.CPU))
    assert not rule.implied(of(far, of_figure=True))
    assert not rule.implied(of(facts(metric=SHARE), facts(XFS, SHARE, printed=(1.0,))))


def test_a_requirement_is_written_with_a_limit_in_its_own_sense() -> None:
    assert demand("wait >= 80%").limit == 0.8
    assert demand("flushes >= 0.5").at_least
    assert demands(("none",)) == ()
    for wrong, words in (
        ("wait <= 0.5", "'wait' takes '>='"),
        ("wiat", "no requirement 'wiat'"),
        ("wait > 1", "is not a requirement"),
    ):
        with pytest.raises(ValueError, match=words):
            demand(wrong)


def test_flushes_can_be_required_too() -> None:
    rule, seldom = REGISTRY.get("flushes"), two(metric=FILES, value=99.2, flushes=5.0)
    assert rule.unmet(seldom, declared=True) is None
    found = known(rule.unmet(seldom, limit=0.5, at_least=True, declared=True))
    assert (found.what, found.by_software) == ("5 flushes for 992 operations", True)
    short = two(metric=FILES, value=99.2, run_flushes=5.0)
    found = known(rule.unmet(short, limit=0.5, at_least=True, declared=True))
    assert found.what == "at most 5 flushes for 992 operations"


# Whole claims.


def waited(records: list[TrialRecord], wait: float, **of_part: object) -> list[TrialRecord]:
    parts = {"run": RunPart(seconds=1.0, wait=wait), **of_part}
    return [record.model_copy(update={"provenance": Provenance(parts=parts)}) for record in records]


def disks(one: float, five: float, **of_part: object) -> list[TrialRecord]:
    """Return trials on one disk and on five, twice as fast, that waited for this share of the time."""
    ours, theirs = trials(ONE, steady(100.0)), trials(FIVE, noisy(200.0))
    return [*waited(ours, one, **of_part), *waited(theirs, five, **of_part)]


def answer(of_claim: Claim, records: list[TrialRecord], setting: Setting | None = None) -> ClaimAnswer:
    scope = Scope(cells=tuple({record.cell.id: record.cell for record in records}.values()))
    return answers([asked_of(of_claim, scope)], Evaluator(trials=Trials(records=records)), setting)[0]


def judged(
    *that: str, one: float = 0.9, five: float = 0.9, setting: Setting | None = None, **more: object
) -> ClaimAnswer:
    return answer(claim(*that, **more), disks(one, five), setting)


FASTER, SLOWER = "xfs[disks=5] > xfs[disks=1]", "xfs[disks=1] > xfs[disks=5]"


def test_a_claim_is_not_tested_whatever_its_figures_say() -> None:
    assert judged(FASTER).verdict is REPLICATED
    assert judged(SLOWER).verdict is REVERSED
    for that in (FASTER, SLOWER, "xfs[disks=1] ~ xfs[disks=5] within 300%"):
        found = judged(that, one=0.04)
        assert found.verdict is NOT_TESTED
        assert found.findings[0].value == pytest.approx(2.0 if that == FASTER else 0.5, rel=0.01)
        assert found.words.startswith("the disks were waited for 4 % of the time, so they can change this by")
        assert (found.direction, found.size, found.more_s, found.reason) == (None, None, None, None)


def test_the_slower_cell_counts() -> None:
    assert judged(FASTER, five=0.1).verdict is REPLICATED
    assert judged(FASTER, one=0.49).verdict is NOT_TESTED
    assert judged(FASTER, one=0.49, requires="wait >= 0.4").verdict is REPLICATED


def test_pauses_of_a_tool_that_is_held_back_are_no_part_of_its_latency() -> None:
    """20 writes per second wait for the disk for a third of the time, and a latency is all wait."""
    layouts = [{"type": "md-raid0", "disks": disks} for disks in (1, 5)]
    paced, free = [cell("xfs", layout=each, rate="80k") for each in layouts], [ONE, FIVE]
    for (one, five), verdict in ((paced, REPLICATED), (free, NOT_TESTED)):
        records = [
            *trials(one, steady(9.4e6), "write_lat_mean"),
            *trials(five, noisy(4.7e6), "write_lat_mean"),
        ]
        assert answer(claim(FASTER, metric="write_lat_mean"), waited(records, 0.3)).verdict is verdict


def test_on_the_publications_machine_a_changed_software_counts() -> None:
    same = Setting(same_machine=True)
    assert judged(FASTER, one=0.1, setting=same).verdict is NO_LONGER
    assert judged(FASTER, setting=same).verdict is REPLICATED
    small = judged(FASTER, setting=same, requires="larger-than-memory")  # 64 MB, and memory is unknown
    assert small.verdict is NOT_TESTED


def test_one_tested_part_that_fails_decides_and_an_untested_one_leaves_the_rest_untested() -> None:
    """XFS differs in its disks and hardly waited; ext4 and XFS on one disk differ in the file system only."""
    ext4 = cell("ext4", layout={"type": "md-raid0", "disks": 1})
    records = [*disks(0.1, 0.1), *trials(ext4, steady(50.0))]
    fails = answer(claim(FASTER, "ext4 > xfs for disks=1"), records)
    assert fails.verdict is REVERSED
    assert [finding.verdict for finding in fails.findings] == [NOT_TESTED, REVERSED]
    holds = answer(claim(FASTER, "xfs > ext4 for disks=1"), records)
    assert holds.verdict is NOT_TESTED
    assert holds.words.startswith("1 of 2 parts: the disks were waited for 10 %")


def test_stripes_of_the_disk_server_are_compared_with_one_disk_and_not_with_each_other() -> None:
    """Whatever a run shows: that the disks were waited for too little is not the first reason."""
    lvm, md = SERVED["lvm-stripe"], SERVED["md-raid0"]
    records = [
        record
        for of_, wait in ((cell("xfs"), 0.9), (lvm, 0.1), (md, 0.1))
        for record in waited(trials(of_, steady(100.0 if wait == 0.9 else 200.0)), wait)
    ]

    def found(that: str) -> ClaimAnswer:
        return answer(claim(that, requires="wait >= 0.5"), records)

    between = found("xfs[layout=lvm-stripe] ~ xfs[layout=md-raid0] within 10%")
    assert between.verdict is NOT_TESTED
    assert between.words.startswith("the disk server stripes, md and LVM themselves are not part of it")
    assert claim_words.untested_words([between]) == "1: md and LVM are not part of the disks"
    assert between.unmet[0].try_ == "--on guest"
    for layout in ("lvm-stripe", "md-raid0"):
        assert found(f"xfs[layout={layout}] > xfs[layout=single]").verdict is REPLICATED


def test_like_reasons_are_counted_together_whatever_stack_lacks_the_figure() -> None:
    why = [
        "reiser4 ssd on host: Linux 6.18 has no reiser4 (never in Linux itself)",
        "reiser4 hdd on host: Linux 6.18 has no reiser4 (never in Linux itself)",
        "stat_rate of files on ext4[disks=2] is unknown",
        "files on xfs has no usable trial: it crashed",
        "delete[threads=1] on ext4 is not measured",
        "search on xfs is not measured",
    ]
    unknown = UNKNOWN
    part = PartFinding(what="w", where="", bound="", verdict=unknown)
    found = [
        ClaimAnswer(verdict=unknown, words="", parts=1, findings=(part.model_copy(update={"why": each}),))
        for each in why
    ]
    told = "2: Linux 6.18 has no reiser4; 2: not measured; 1: no stat_rate; 1: it crashed"
    assert claim_words.untested_words(found) == told


def test_untested_claims_cost_the_others_nothing() -> None:
    """The clear claim has the whole error: an untested one beside it is no claim with a verdict, and no open one."""
    records = [*disks(0.1, 0.1), *trials(EXT4, steady(100.0)), *trials(XFS, noisy(200.0))]
    scope = Scope(cells=(ONE, FIVE, EXT4, XFS))
    asked = [asked_of(claim(text), scope) for text in ("xfs[layout=single] / ext4 >= 1.91", FASTER)]
    clear, untested = answers(asked, Evaluator(trials=Trials(records=records)))
    assert (clear.verdict, untested.verdict) == (REPLICATED, NOT_TESTED)


def test_a_figure_is_judged_by_its_own_part_of_the_run() -> None:
    """The metric is write_iops: the part 'write' waited, the whole run hardly."""
    part = RunPart(seconds=0.5, wait=0.9)
    found = answer(claim(FASTER), disks(0.1, 0.1, write=part))
    assert (found.parts, found.verdict) == (1, REPLICATED)


def test_facts_come_from_usable_trials() -> None:
    guest = EXT4.model_copy(
        update={"stack": EXT4.stack.model_copy(update={"machine": MachineSpec(type="uml")})}
    )
    warning = ValidityWarning(kind="zeros_only", severity=Severity.WARNING, message="m")
    records = [
        record.model_copy(update={"validity": (warning,)}) for record in trials(guest, steady(100.0))
    ] + trials(XFS, steady(50.0))
    machine = records[0].model_copy(
        update={"provenance": Provenance(machine={"cpus": 1, "memory_bytes": MIB})}
    )
    check = RequirementCheck(trials=Trials(records=[machine, *records[1:]]))
    asked = asked_of(claim("ext4 / xfs > 1", metric="iops"), Scope(cells=(guest, XFS)))
    one = check.side(asked.parts[0].figures[0])
    assert (one.cpus, one.memory_bytes, one.emulated) == (1, MIB, True)
    assert one.warnings == {"zeros_only"}
    assert (one.value, one.working_set_bytes) == (100.0, 64 * MIB)


def test_two_sizes_show_the_cost_that_does_not_grow() -> None:
    """64 MiB at 64 MiB/s take 1 s, 128 MiB at 80 MiB/s take 1.6 s: 0.4 s of each do not grow."""
    small, large = (cell("ext4", rw="write", bs="1m", size=size) for size in ("64m", "128m"))
    records = [
        *trials(small, steady(64.0 * MIB), "write_bandwidth"),
        *trials(large, steady(80.0 * MIB), "write_bandwidth"),
    ]
    text = "ext4[size=128m] / ext4[size=64m] > 1"
    asked = asked_of(claim(text, metric="write_bandwidth"), Scope(cells=(small, large)))
    check = RequirementCheck(trials=Trials(records=records))
    assert [check.side(figure).fixed_share for figure in asked.parts[0].figures] == pytest.approx([0.25, 0.4])


def test_a_small_stated_effect_halves_the_margin() -> None:
    assert margin_of([Bounds(low=1.0, strict=True)], 0.1) == 0.1
    assert margin_of([Bounds(low=1.04, high=1.06)], 0.1) == pytest.approx(0.025, rel=0.01)
    assert margin_of([Bounds(low=0.94, high=0.96)], 0.1) == pytest.approx(0.026, rel=0.02)
    assert margin_of([Bounds(low=0.95, high=1.05), Bounds(low=2.7, high=3.3)], 0.1) == 0.1


def test_the_summary_tells_how_many_claims_are_tested_and_why_not() -> None:
    claims = tuple(
        EvaluatedClaim(id=str(number), says="s", that=(FASTER,), measured=answer)
        for number, answer in enumerate((judged(FASTER), judged(SLOWER), judged(FASTER, one=0.1)))
    )
    said = claim_words.summary(claims)
    assert said == (
        "Tested 2 of 3: replicated 1, contradicted 1 (1 reversed); not tested here 1 "
        "(1: the disks were waited for too little)."
    )
