"""Tests of claims against the published figures. The expected verdicts were derived by hand from the tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from io import StringIO
from math import prod
from pathlib import Path

import pytest
from tests.made import known
from tests.unit.claimed import UNKNOWN, cell, claim, noisy, trials

from fslab.api import claims
from fslab.api.claims import of_campaign
from fslab.api.pages import html_of, page_of
from fslab.api.results import CampaignResults
from fslab.campaign import launch
from fslab.cell import Cell
from fslab.claims.build import asked_of, judged, tables
from fslab.claims.metric_units import in_unit, printed
from fslab.claims.model import ClaimAnswer, ClaimVerdict, EvaluatedClaim, Verdicts
from fslab.claims.published import PublishedFigures, read_figures
from fslab.claims.schema import Claim, Published
from fslab.claims.scope import Scope
from fslab.errors import StudyError
from fslab.plan.expand import expand
from fslab.report.figures import paper
from fslab.report.page import assemble
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.study import load, shipped
from fslab.units import Unit

HEAD = "table,workload,filesystem,variant,metric,unit,value\n"
OWN = """\
title: own
media: {m: {type: ram, size: 1g}}
stacks: {fs: {medium: m, filesystem: [ext4, xfs]}}
workloads: {w: {tool: fio, rw: randwrite, size: 16m, runtime: 2s}}
claims: [{says: XFS is faster, that: xfs > ext4}]
published: {figures: printed.csv}
"""


def of_study(study_id: str) -> tuple[dict[str, EvaluatedClaim], PublishedFigures]:
    study = load.load(study_id)
    assert study.published is not None
    scope = Scope(cells=expand(study))
    text = shipped.figures(study.published.figures) if study.published.figures else None
    figures = read_figures(text, "x.csv", study.published, scope) if text else PublishedFigures(printed=())
    return {one.id: one for one in judged(study.claims, study=scope, printed=figures)}, figures


def verdicts(study_id: str) -> dict[str, ClaimVerdict]:
    found, _ = of_study(study_id)
    return {name: one.published.verdict for name, one in found.items() if one.published}


def test_ext_generations_contradicts_six_of_its_own_claims() -> None:
    """The tables contradict these claims (MB/s, at 512 KB if not stated otherwise); all other claims hold.

    Table III: ext3 428 > XFS 373 (claim 1), ext4 354 < ext3 428 (6a). IV: ext4 17.64 < XFS 18.48 (2b). V at 2048 KB:
    ext4 283 > XFS 251 (3c). VI: ext3 26.88 > XFS 23.52 (4a), ext2 18.48 > ext4 16.8 (6c).
    """
    found = verdicts("ext-generations")
    against = {name for name, verdict in found.items() if verdict is ClaimVerdict.CONTRADICTED}
    assert against == {"1", "2b", "3c", "4a", "6a", "6c"}
    assert {name for name, verdict in found.items() if verdict is ClaimVerdict.HOLDS} == set(found) - against


def test_the_figures_that_contradict_are_named() -> None:
    found, _ = of_study("ext-generations")
    answer = known(found["1"].published)
    assert "xfs / ext3 is 0.87, not > 1 (filebench-seqread-512k, table III)" in answer.words
    # Of 8 parts, 4 are contradicted. At 512 KB only ext3 is faster than XFS; at 2048 KB ext3, ext4 and btrfs are.
    against = [one.what for one in answer.findings if one.verdict is ClaimVerdict.CONTRADICTED]
    assert sorted(against) == ["xfs / btrfs", "xfs / ext3", "xfs / ext3", "xfs / ext4"]


def test_loop_vm_contradicts_itself_between_its_tables() -> None:
    """The tables contradict these claims; claim 2 is unknown, because its figures are not printed.

    Random writes of ext4 and XFS: 127k and 379k IOPS in table IV, 428k and 420k in VI (claims 3, 13b). Random reads of
    btrfs are faster than those of ext4 in IV and slower in VI (4a). Reads of btrfs with dd, 868, 451 and 682 MB/s,
    differ by more than 50 % (7c). sysbench writes 8054 MiB/s on ext4, only 1.12 times the 7.57 GB/s of fio (8a). On the
    geometric mean of the printed bandwidths, XFS is faster than ext4 (13a).
    """
    found = verdicts("loop-vm")
    against = {name for name, verdict in found.items() if verdict is ClaimVerdict.CONTRADICTED}
    assert against == {"3", "4a", "7c", "8a", "13a", "13b"}
    assert {name for name, verdict in found.items() if verdict is UNKNOWN} == {"2"}


def test_tables_are_kept_apart() -> None:
    found, figures = of_study("loop-vm")
    answer = known(found["3"].published)
    by_table = {
        one.table: one.value for one in answer.findings if one.what == "xfs / ext4" and one.bound == "> 1"
    }
    assert by_table == {"IV": pytest.approx(378689 / 127370), "VI": pytest.approx(419934 / 428089)}
    assert "holds in table IV" in answer.words
    assert len(figures.anywhere(figures.tables)) < len(
        set().union(*(figures.of(one) for one in figures.tables))
    )


def test_an_overall_claim_is_the_mean_over_all_printed() -> None:
    """The ratio of claim 6d is the geometric mean over all eight printed figures: four tests, two I/O sizes."""
    text = known(shipped.figures("ext-generations.csv"))
    rows = list(csv.DictReader(StringIO(text)))
    mean = {
        name: prod(float(row["value"]) for row in rows if row["filesystem"] == name)
        for name in ("ext2", "ext4")
    }
    found, _ = of_study("ext-generations")
    answer = known(found["6d"].published)
    ratio = next(one for one in answer.findings if one.what == "ext4 / ext2")
    assert ratio.value == pytest.approx((mean["ext4"] / mean["ext2"]) ** (1 / 8))


def test_stable_can_be_read_in_two_ways() -> None:
    """btrfs varies by more than 50 % (claim 7c is contradicted), but less than the others (claim 7d holds).

    Largest ÷ smallest bandwidth of btrfs, XFS and ext4 with dd: 868 ÷ 451 = 1.92, 2458 ÷ 453 = 5.43 and 10.7 for reads;
    1.39, 6.64 and 504 ÷ 161 = 3.13 for writes. The spread of btrfs is at most 0.444 of another one (ext4, writes).
    Claim 7a: from 4k to 1m, reads of ext4 gain a factor of 10.69 and writes 3.02.
    """
    found, _ = of_study("loop-vm")
    least, larger = found["7d"].published, found["7a"].published
    assert least is not None
    assert larger is not None
    assert least.verdict is larger.verdict is ClaimVerdict.HOLDS
    told = {one.what: one.value for one in least.findings if one.value and one.value > 0.4}
    assert told == {"spread of btrfs / of ext4": pytest.approx(587 / 422 / (504 / 161))}
    gain = next(one for one in larger.findings if one.what.startswith("gain"))
    assert gain.value == pytest.approx(4403 / 412 / (486 / 161))


@pytest.mark.parametrize("study_id", ["multi-disk", "iozone-ssd-hdd"])
def test_where_nothing_is_printed_nothing_is_reported(study_id: str) -> None:
    assert set(verdicts(study_id).values()) == {UNKNOWN}


def test_nas_file_management_prints_little() -> None:
    """Claim 1b: 10500 is 23.5 % above 8500 files/s, not 18 %. Claim 1c: 10700 is 28.9 % above 8300, not 22 %."""
    found = verdicts("nas-file-management")
    assert {name for name, verdict in found.items() if verdict is ClaimVerdict.CONTRADICTED} == {"1b", "1c"}
    assert found["1a"] is ClaimVerdict.IN_PART


def test_steady_into_large_files_is_not_asked_of_small_files_alone() -> None:
    study = load.load("iozone-ssd-hdd")
    asked = {one.id: asked_of(one, Scope(cells=expand(study))) for one in study.claims}
    sizes = [
        {figure.cell.workload.name.partition("[")[0] for figure in part.figures}
        for name in ("5c", "5d")
        for part in asked[name].parts
    ]
    assert sizes == [{"iozone-random", "iozone-large"}] * 6


@pytest.mark.parametrize("study_id", ["loop-vm", "ext-generations", "nas-file-management"])
def test_every_printed_figure_is_one_of_the_study(study_id: str) -> None:
    _, figures = of_study(study_id)
    assert [one for one in figures.printed if not one.cells] == []


def test_a_table_is_told_in_multiples_of_its_reference() -> None:
    _, figures = of_study("ext-generations")
    first = tables(figures, Published(), None, None)[0]
    assert (first.name, first.reference, first.stacks) == (
        "III",
        "ext2",
        ("ext2", "ext3", "ext4", "btrfs", "xfs"),
    )
    assert [cast.printed for cast in first.lines[0].cells][:2] == [1.0, pytest.approx(428.4 / 303.24)]
    other = tables(figures, Published(reference="ext4"), None, None)[0]
    assert other.lines[0].cells[4].printed == pytest.approx(372.96 / 353.64)


def by_print(of: Claim, figures: Sequence[tuple[Cell, float]], unit: str) -> ClaimAnswer:
    rows = (
        f"I,{each.workload.name},{each.stack.name},defaults,{of.metric},{unit},{value}\n"
        for each, value in figures
    )
    scope = Scope(cells=tuple(each for each, _ in figures))
    (found,) = judged(
        [of], study=scope, printed=read_figures(HEAD + "".join(rows), "x.csv", Published(), scope)
    )
    return known(found.published)


@pytest.mark.parametrize(
    ("that", "metric", "figures", "verdict"),
    [
        ("xfs / ext4 >= 2", "iops", (98, 49), ClaimVerdict.HOLDS),
        ("xfs / ext4 > 2", "iops", (98, 49), ClaimVerdict.CONTRADICTED),
        ("xfs > ext4", "clat_mean", (49, 49), ClaimVerdict.CONTRADICTED),
        ("xfs ~ ext4 within 15%", "iops", (100, 115), ClaimVerdict.HOLDS),
        ("xfs / ext4 ~ 2.1 within 10%", "iops", (231, 100), ClaimVerdict.HOLDS),
        ("overall xfs / ext4 >= 2", "iops", (98, 49), ClaimVerdict.HOLDS),
    ],
)
def test_printed_figures_are_exact(
    that: str, metric: str, figures: tuple[float, float], verdict: ClaimVerdict
) -> None:
    """98 × 49⁻¹ would be 1.9999999999999998."""
    stacks = zip(("xfs", "ext4"), figures, strict=True)
    printed = [
        (cell(name, work, bs=bs), value) for name, value in stacks for work, bs in (("a", "4k"), ("b", "8k"))
    ]
    unit = "ns" if metric == "clat_mean" else "1/s"
    assert by_print(claim(that, metric=metric), printed, unit).verdict is verdict


def test_a_mean_of_printed_figures_has_their_unit() -> None:
    figures = [(cell("ext4", "a"), 4.0), (cell("ext4", "b", bs="8k"), 16.0)]
    found = by_print(claim("overall ext4 in 4us..5us", metric="clat_mean"), figures, "us")
    assert (found.verdict, found.findings[0].unit) == (ClaimVerdict.CONTRADICTED, Unit.NANOSECONDS)
    assert "ext4 is 8 µs, not in 4us..5us" in found.words


def test_units_are_those_of_the_metric() -> None:
    assert printed(7.57, "GB/s") == 7.57e9
    assert printed(2, "MiB/s") == 2 * 1024**2
    assert printed(4.8, "us") == pytest.approx(4800)
    assert printed(5, "%") == 5
    assert printed(2, "s", Unit.SECONDS) == 2
    assert printed(2, "s", Unit.NANOSECONDS) == 2e9
    assert printed(5, "k", Unit.IOPS) == 5000
    assert printed(7, "1/s", Unit.FILES_PER_SECOND) == 7
    assert in_unit("4.5us", Unit.NANOSECONDS) == pytest.approx(4500)
    assert in_unit("5k", Unit.IOPS) == 5000
    with pytest.raises(ValueError, match="'4us' is not a figure in IOPS"):
        in_unit("4us", Unit.IOPS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workload,value\n", "columns"),
        (HEAD + "I,w,ext4,defaults,iops,1/s,many\n", "x.csv:2: cannot be read"),
        (HEAD + "I,w,ext4,defaults,iops,furlongs,1\n", "unknown unit 'furlongs'"),
        (HEAD + "I,w,ext4,defaults,iops,1/s,0\n", "'0' must be a number greater than 0"),
        (HEAD + "I,w,ext4,defaults,iops,1/s,inf\n", "'inf' must be a number greater than 0"),
    ],
)
def test_a_file_of_figures_that_cannot_be_read_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_figures(text, "x.csv", Published(), Scope(cells=(cell("ext4"),)))
    assert said in str(caught.value)


def test_figures_go_with_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are needed where the file is not: in another directory, on a machine of a fleet, with a stored campaign."""
    file = tmp_path / "study" / "own.yaml"
    file.parent.mkdir()
    file.write_text(OWN)
    printed_here = HEAD + "I,w,ext4,defaults,iops,1/s,100\nI,w,xfs,defaults,iops,1/s,200\n"
    file.with_name("printed.csv").write_text(printed_here)
    study = load.load(file)
    assert study.files == {"printed.csv": printed_here}
    file.with_name("printed.csv").unlink()
    monkeypatch.chdir(tmp_path)
    sent = load.load_text(study.text, "own.yaml", study.overrides, study.files)
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        store.create_campaign(launch.of_study(sent, "own.yaml"))
        (found,) = of_campaign(store.campaign(), store).claims
    assert known(found.published).verdict is ClaimVerdict.HOLDS


def test_claims_are_judged_once_for_the_page_and_the_conclusion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = []

    def counting(campaign: Campaign, store: Store) -> Verdicts:
        judged.append(campaign.id)
        return of_campaign(campaign, store)

    monkeypatch.setattr(claims, "of_campaign", counting)
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        study = load.load_text(OWN, "own.yaml", (), {"printed.csv": HEAD + "I,w,xfs,defaults,iops,1/s,200\n"})
        store.create_campaign(launch.of_study(study, "own.yaml"))
        found = CampaignResults(store.campaign(), store)
        page = found.html()
        (claim,) = found.claims().claims
        concluded = found.conclusion().claims
    assert judged == [found.id]
    assert claim.says in page
    assert concluded is not None


def test_a_figure_shows_the_published_value_beside_the_measured_one(tmp_path: Path) -> None:
    """XFS is published as 2 × ext4, btrfs as half of it; measured are 1.5 × ext4, and nothing on btrfs."""
    printed_here = HEAD + "I,w,ext4,defaults,iops,1/s,100\nI,w,xfs,defaults,iops,1/s,200\n"
    printed_here += "I,w,btrfs,defaults,iops,1/s,50\nII,w,xfs,defaults,bandwidth,MB/s,7\n"
    text = OWN.replace("[ext4, xfs]", "[ext4, xfs, btrfs]")
    study = load.load_text(text, "own.yaml", (), {"printed.csv": printed_here})
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        campaign = launch.of_study(study, "own.yaml")
        store.create_campaign(campaign)
        for each in campaign.cells:
            middle = {"ext4": 1000.0, "xfs": 1500.0}.get(each.stack.filesystem or "")
            for record in trials(each, [*noisy(middle), *noisy(middle)]) if middle else ():
                key = record.key.model_copy(update={"campaign": campaign.id})
                store.add_trial(record.model_copy(update={"key": key}))
        page = page_of([campaign], store)
    (figure,) = page.parts[0].published  # of table II, nothing can be compared
    layers = {layer["name"]: layer["data"]["values"] for layer in figure.spec["layer"]}
    xfs, btrfs = layers["published"]
    assert (xfs["label"], xfs["published"], xfs["measured"]) == ("w, IOPS: xfs", 2.0, pytest.approx(1.5))
    assert xfs["low"] < 1.5 < xfs["high"]
    assert (btrfs["published"], btrfs["measured"]) == (0.5, None)
    assert layers["measured"] == layers["interval"] == [xfs]
    assert "Each value is divided by that of ext4" in figure.caption
    assert f'id="fig-{figure.id}"' in html_of(page)
    (table,) = page.parts[0].published_values
    assert (table.caption, table.columns) == (
        "Values of table I",
        ("published", "median here", "here ÷ published"),
    )
    fields = {name: [cell.text for cell in row] for name, row in table.rows}
    assert fields["w, IOPS: xfs"][0] == "200 IOPS"
    assert fields["w, IOPS: xfs"][1] in {f"1.5{digit}k IOPS" for digit in range(10)} | {"1.49k IOPS"}
    assert fields["w, IOPS: btrfs"] == ["50 IOPS", "–", "–"]
    assert "<summary>Values of table I</summary>" in html_of(page)
    svg = next(
        path for path in paper.write(assemble.figures(page), tmp_path) if path.name == f"{figure.id}.svg"
    ).read_text()
    assert [svg.count(f'{name}_marks"') for name in ("published", "measured", "interval")] == [1, 1, 1]
    assert svg.count('aria-roledescription="point"') == 3
    assert re.search(r">w, IOPS</tspan><tspan[^>]*>xfs</tspan>", svg), "the stack has a line of its own"
