"""Tests of the HTML page: conclusion, heat map, figures over numbers, limits of size; and of tables for papers."""

from __future__ import annotations

import base64
import gzip
import io
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from markupsafe import escape
from rich.console import Console
from tests.made import campaign as new_campaign
from tests.made import trial

from fslab.analysis.standings import StandingCertainty
from fslab.analysis.workload_groups import groups
from fslab.cell import Cell, MachineSpec, MediumSpec, Scalar, StackSpec, WorkloadSpec
from fslab.report import conclusion_terminal, paper_table
from fslab.report.build import build
from fslab.report.conclusion import conclude
from fslab.report.figures import styles
from fslab.report.figures.over_time import RateSeries
from fslab.report.model import Report
from fslab.report.page import assemble, heat, observed, render, sections, sweeps
from fslab.report.page.sections import SectionBuilder
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.trial_record import Command, Metric, Provenance, TrialRecord, Value
from fslab.units import Direction, Unit

CREATED = datetime(2026, 11, 20, 21, 49, tzinfo=UTC)
MEDIUM = MediumSpec(name="memory", type="ram", options={"size": "1g"})
IOPS = Metric(name="write_iops", unit=Unit.IOPS)
CLAT = Metric(name="clat_mean", unit=Unit.NANOSECONDS, better=Direction.LOWER)
STEPS = (0.98, 0.99, 1.0, 1.01, 1.02)


def stack(name: str, **layout_options: Scalar) -> StackSpec:
    layout = "md-raid0" if layout_options else "single"
    label = " ".join([name, *(f"{key}={value}" for key, value in layout_options.items())])
    return StackSpec(name=label, medium=MEDIUM, filesystem=name, layout=layout, layout_options=layout_options)


Middles = list[tuple[StackSpec, WorkloadSpec, float]]


def made(middles: Middles, title: str = "T") -> tuple[Report, Campaign, list[TrialRecord]]:
    """Return the report, campaign and trials: five trials of each cell, with its middle as the median. Workloads named
    ``sync`` measure a latency, others IOPS."""
    cells = [Cell(stack=stack, workload=work) for stack, work, _ in middles]
    trials = []
    for cell, (_, work, middle) in zip(cells, middles, strict=True):
        metric = CLAT if work.name == "sync" else IOPS
        for block, step in enumerate(STEPS):
            value = Value(value=middle * step, unit=metric.unit)
            trials.append(trial(block, cell, metrics={metric.name: value}))
    campaign = new_campaign(study_title=title, cells=tuple(cells), status=CampaignStatus.FINISHED)
    known = build(campaign, trials, known=lambda work: (CLAT if work.name == "sync" else IOPS,))
    return known, campaign, trials


def work(name: str, **parameters: Scalar) -> WorkloadSpec:
    return WorkloadSpec(name=name, tool="fio", parameters=parameters)


def test_a_page_concludes_as_a_terminal_does() -> None:
    """The page and the terminal give the same conclusion and warnings.

    random: xfs has twice the IOPS of ext4. sync: the latency of ext4 is a quarter of that of xfs. same: both are equal.
    """
    ext4, xfs = stack("ext4"), stack("xfs")
    report, campaign, trials = made([
        (ext4, work("random"), 1000), (xfs, work("random"), 2000), (ext4, work("sync"), 100),
        (xfs, work("sync"), 400), (ext4, work("same"), 500), (xfs, work("same"), 500),
    ])  # fmt: skip
    source = assemble.CampaignSource(campaign=campaign, trials=trials)
    part = assemble.part(source, known=lambda work: (CLAT if work.name == "sync" else IOPS,))
    assert part.conclusion == conclude(report)
    terminal = io.StringIO()
    conclusion_terminal.show(report, part.conclusion, Console(width=200, file=terminal, color_system=None))
    said = terminal.getvalue()
    html = render.html(assemble.page([source], known=lambda work: (CLAT if work.name == "sync" else IOPS,)))
    for each in (part.conclusion.sentence, *(warning.what for warning in part.conclusion.warnings)):
        assert " ".join(each.split()) in " ".join(said.split())
        assert escape(each) in html
    random, sync, same = part.lines
    assert random.startswith("random: xfs, 2k IOPS, 2.00 × ext4 (")
    assert sync.startswith("sync: ext4, 100 ns, xfs 4.00 × as long (")
    assert same.startswith("same: ")
    assert all(escape(each) in html for each in part.lines)


def test_single_trials_get_no_colour() -> None:
    ext4, xfs = stack("ext4"), stack("xfs")
    report, _, _ = made([(ext4, work("random"), 500), (xfs, work("random"), 2000)])
    untested = tuple(item.model_copy(update={"interval": None}) for item in report.rows[0].answers)
    row = report.rows[0].model_copy(update={"answers": untested})
    report = report.model_copy(update={"rows": (row,)})
    (found,) = heat.rows(report, conclude(report).standings, {"random": "r"})
    assert [tile.share for tile in found.tiles] == [None, None]
    assert "–" not in {tile.value for tile in found.tiles}


def test_the_values_of_a_single_stack_are_shown() -> None:
    """They are not "1.00, may equal the best"."""
    _, campaign, trials = made([(stack("ext4"), work("random"), 2000)])
    page = assemble.page([assemble.CampaignSource(campaign=campaign, trials=trials)], known=lambda _: (IOPS,))
    ((tile,),) = (row.tiles for row in page.parts[0].heat)
    assert (tile.share, tile.value, tile.decided) == (None, "2k IOPS", True)
    html = render.html(page)
    assert '<span class="why">2k IOPS</span>' in html
    assert "elative to the best" not in html.partition("</caption>")[0]


def test_a_heat_map_says_what_to_take() -> None:
    """A tile shows the share of the best: 500 of 2000 IOPS is 0.25. For a latency, the smallest value has share 1."""
    ext4, xfs = stack("ext4"), stack("xfs")
    report, _, _ = made([
        (ext4, work("random"), 500), (xfs, work("random"), 2000), (ext4, work("sync"), 100), (xfs, work("sync"), 400),
    ])  # fmt: skip
    random, sync = heat.rows(report, conclude(report).standings, {"random": "r", "sync": "s"})
    assert [tile.share for tile in random.tiles] == [0.25, 1.0]
    assert [tile.share for tile in sync.tiles] == [1.0, 0.25]
    assert (random.take, sync.take, sync.lower) == ("xfs", "ext4", True)
    assert random.sure.startswith("4.00 × ext4 (")
    assert sync.sure.startswith("xfs 4.00 × as ")
    assert all(tile.decided for tile in random.tiles)


def test_a_heat_map_recommends_nothing_where_nothing_is_decided() -> None:
    report, _, _ = made([(stack("ext4"), work("random"), 1000), (stack("xfs"), work("random"), 1001)])
    (known,) = conclude(report).standings
    vague = known.model_copy(update={"certainty": StandingCertainty.OPEN, "further_s": 40.0})
    (found,) = heat.rows(report, [vague], {"random": "r"})
    assert (found.take, found.sure) == ("needs more trials", "needs about 40 s more")
    behind = vague.model_copy(update={"worse": ("btrfs",)})
    (found,) = heat.rows(report, [behind], {"random": "r"})
    assert found.take == "ext4 or xfs", "btrfs is out, the order of the others is open"


def test_a_heat_map_calls_no_stack_worse_that_is_not_compared() -> None:
    guest = stack("btrfs").model_copy(update={"machine": MachineSpec(type="uml")})
    report, _, _ = made([
        (stack("ext4"), work("random"), 1000), (stack("xfs"), work("random"), 1001), (guest, work("random"), 500),
    ])  # fmt: skip
    (found,) = heat.rows(report, conclude(report).standings, {"random": "r"})
    assert [tile.share is None for tile in found.tiles] == [False, False, True]
    assert found.tiles[2].words == "on another kind of machine, not compared"


def test_figures_over_what_varies() -> None:
    """Workloads that vary in one number (t) get a curve, in two numbers (z) a surface. If a word varies as well (m),
    there is no figure."""
    ext4 = stack("ext4")
    cells: Middles = [
        (ext4, work(f"t[threads={count}]", threads=count), 100.0 * count) for count in (1, 2, 4)
    ]
    cells += [(ext4, work(f"z[{a},{b}]", bs=a, size=b), 100.0) for a in ("4k", "8k") for b in ("1m", "2m")]
    cells += [(ext4, work(f"m[{a},{b}]", depth=a, engine=b), 100.0) for a, b in ((1, "sync"), (2, "libaio"))]
    report, campaign, trials = made(cells)
    found = {figure.id: figure for figure in sweeps.figures(report, list(groups(campaign.cells, trials)))}
    assert set(found) == {"sweep-t-write_iops", "sweep-z-write_iops"}
    assert found["sweep-t-write_iops"].marks["step"] == 3
    assert found["sweep-z-write_iops"].marks["field"] == 4


def test_disks_by_chunk() -> None:
    grid = [(disks, chunk) for disks in (2, 3, 4) for chunk in ("64k", "1m")]
    cells = [(stack("xfs", disks=disks, chunk=chunk), work("seq"), 100.0 * disks) for disks, chunk in grid]
    report, campaign, trials = made(cells)
    (figure,) = sweeps.figures(report, list(groups(campaign.cells, trials)))
    assert figure.marks["field"] == 6
    assert "disks" in figure.title
    assert "chunk" in figure.title


def test_a_file_system_keeps_its_colour() -> None:
    """Each of the most common file systems has its own colour, whatever other file systems are in the report."""
    names = ["ext4", "xfs", "btrfs", "f2fs", "ext3", "ext2", "jfs", "nilfs2"]
    all_of_them = styles.slots(names)
    assert sorted(all_of_them.values()) == list(range(8))
    for name in names:
        assert styles.slots([name]) == {name: all_of_them[name]}


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, as WCAG 2.1 defines it by relative luminance."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_colours_stand_off_their_page(dark: bool) -> None:
    """Contrast is at least 4.5:1 for text and 3:1 for marks (WCAG 2.1, 1.4.3 and 1.4.11). Black on white is 21:1."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    colours = styles.variables(dark=dark)
    assert contrast(colours["ink"], colours["paper"]) >= 7
    assert contrast(colours["muted"], colours["paper"]) >= 4.5
    assert contrast(colours["ink"], colours["heat"]) >= 4.5
    for slot in range(8):
        assert contrast(colours[f"s{slot}"], colours["paper"]) >= 3


def test_what_a_study_does_not_ask_is_blank() -> None:
    """The study runs workload a on both stacks, and workload b on xfs only."""
    a, b = work("a"), work("b")
    report, _, _ = made([(stack("ext4"), a, 1000), (stack("xfs"), a, 2000), (stack("xfs"), b, 500)])
    rows = heat.rows(report, conclude(report).standings, {"a": "w-a", "b": "w-b"})
    assert [[tile.asked for tile in row.tiles] for row in rows] == [[True, True], [False, True]]
    assert [(stacks, [row.workload for row in alike]) for stacks, alike in render._heats(rows)] == [
        ([0, 1], ["a"]),
        ([1], ["b"]),
    ]


def test_options_break_in_narrow_headings() -> None:
    assert str(render._breaks("<b>data=journal,nobarrier")) == "&lt;b&gt;data=<wbr>journal,<wbr>nobarrier"


def test_tables_for_a_paper() -> None:
    report, _, _ = made(
        [(stack("ext4"), work("a_b|c"), 1000), (stack("xfs"), work("a_b|c"), 2000)], title="50 % & <b>"
    )
    markdown = paper_table.markdown(report)
    assert "| workload | ext4 | xfs |" in markdown
    assert "| a\\_b\\|c, write IOPS | 1k IOPS ± 2.0 % | ★ 2k IOPS ± 2.0 % |" in markdown
    latex = paper_table.latex(report)
    row = r"a\_b\textbar{}c, write IOPS (thousand) & 1 $\pm$ 2.0 & $\star$ 2 $\pm$ 2.0 \\"
    assert row in latex
    assert r"\caption{50 \% \& \textless{}b\textgreater{}. Median of 5 trials" in latex


def printed_tables(latex: str) -> list[list[list[list[str]]]]:
    """Return the lines of each field of each table, as they are printed; the heads of columns first."""
    found = []
    for table in latex.split("\\begin{table}")[1:]:
        body = re.search(r"\\toprule\n(.*)\\bottomrule", table, re.DOTALL)
        assert body
        rows = [line.strip().removesuffix(r"\\") for line in body[1].splitlines() if line.endswith(r" \\")]
        found.append([[printed_lines(field) for field in re.split(r" ?(?<!\\)& ", row)] for row in rows])
    return found


ARGUMENT = re.compile(r"(\\\\|rule)\s+[*\[]")  # of the end of a line, or of a rule


def printed_lines(field: str) -> list[str]:
    nested = re.fullmatch(r"\\begin{tabular}\[[tb]\]{@{}[lr]@{}}(.*)\\end{tabular}", field.strip())
    lines = nested[1].split(r" \\ ") if nested else [field.strip()]
    raised = [re.sub(r"\$\^\\mathrm{(.*)}\$", lambda marks: "^" * len(marks[1]), line) for line in lines]
    plain = [re.sub(r"\$\\\w+\$", "±", line).replace("\\", "") for line in raised]
    return [re.sub(r"{([*\[])}", r"\1", line) for line in plain]


@pytest.mark.parametrize(
    ("name", "workload", "tables"),
    [
        ("ext4-{}", "w{}", 4),
        ("disk ext4 {} data=writeback", "w{}", 4),
        ("ext4 noatime,data=journal,barrier=0,nodelalloc,commit={}", "w{}", 4),
        ("ext4-{}", "a-long-name-of-a-workload{}[bs=4k]", 6),
        (
            "ext4 compress_extension=abcdef{}",
            "a-workload-with-a-name-of-fifty-eight-letters-{}-bs=4k-qd=32",
            8,
        ),
        ("stack{}of_letters" + "x" * 50, "workload{}of" + "x" * 58, 14),
    ],
)
def test_tables_in_latex_fit_a_page(name: str, workload: str, tables: int) -> None:
    """455 points in \\small are about 100 characters; the 12 points beside a column are three."""
    names = [name.format(number) for number in range(13)]
    stacks = [StackSpec(name=name, medium=stack("ext4").medium, filesystem="ext4") for name in names]
    report, _, _ = made(
        [(each, work(workload.format(row)), 1000 + row) for row in range(29) for each in stacks]
    )
    latex = paper_table.latex(report)
    found = printed_tables(latex)
    assert len(found) == tables
    assert f"({tables} of {tables})" in latex
    for table in found:
        widths = [max(len(line) for row in table for line in row[at]) for at in range(len(table[0]))]
        assert sum(widths) + 3 * (len(widths) - 1) <= 100
        assert sum(max(map(len, row)) for row in table) <= 44
    whole = {"".join(row[0]).replace(" ", "") for table in found for row in table[1:]}
    heads = {"".join(head).replace(" ", "") for table in found for head in table[0][1:]}
    for each in (stack.label for stack in report.stacks):
        assert each.replace(" ", "") in whole | heads
    assert sum(len(row) - 1 for table in found for row in table[1:]) == 13 * 29
    assert not ARGUMENT.search(latex)


def test_a_table_in_latex_has_what_was_measured_on_the_same_stacks() -> None:
    names = [f"ext4-{number}" for number in range(5)]
    stacks = [StackSpec(name=name, medium=stack("ext4").medium, filesystem="ext4") for name in names]
    found = [(each, work("all"), 1000.0) for each in stacks] + [
        (each, work("few"), 1.0) for each in stacks[:2]
    ]
    report, _, _ = made(found)
    first, second = printed_tables(paper_table.latex(report))
    assert [row[0] for row in second] == [[""], ["few, write IOPS"]]
    assert [head for (head,) in second[0][1:]] == ["ext4-0", "ext4-1"]
    assert (len(first), len(first[0])) == (2, 6)


def test_few_workloads_on_many_stacks_have_a_row_per_stack() -> None:
    stacks = [
        StackSpec(name=f"ext4-{number}", medium=stack("ext4").medium, filesystem="ext4")
        for number in range(12)
    ]
    report, _, _ = made([(each, work(name), 1000.0) for name in ("a", "b") for each in stacks])
    (table,) = printed_tables(paper_table.latex(report))
    assert [row[0] for row in table[1:]] == [[f"ext4-{number}"] for number in range(12)]


@pytest.mark.parametrize("name", ["[ext4]", "*ext4", "[5pt]" + " ext4" * 30])
def test_a_name_is_no_argument_of_the_line_before_it(name: str) -> None:
    stacks = [StackSpec(name=f"{name}{n}", medium=stack("ext4").medium, filesystem="ext4") for n in range(9)]
    for works in (["w"], [f"{name} w", "v"]):
        report, _, _ = made([(each, work(called), 1000.0) for called in works for each in stacks])
        assert not ARGUMENT.search(paper_table.latex(report))


def test_what_a_store_calls_its_media_is_no_line_of_tex() -> None:
    report, _, _ = made([(stack("ext4"), work("w"), 1000), (stack("xfs"), work("w"), 2000)])
    named = report.model_copy(update={"media": ("ram\n\\input{/etc/passwd}",), "cpu": "x\n\\input{y}"})
    assert not [line for line in paper_table.latex(named).splitlines() if line.startswith(r"\input")]


def test_raw_output_has_room_or_says_that_it_has_none() -> None:
    report, _, trials = made([(stack("ext4"), work("a"), 1000)])
    filled = trials[0].model_copy(update={"raw": {"fio.json": "x" * 300_000, "stdout": " \n"}})
    builder = SectionBuilder(report=report, brief=False)
    (first,) = builder._packed(filled)
    assert gzip.decompress(base64.b64decode(first.packed)) == b"x" * (256 << 10)
    assert first.left_out == "37.0 KiB"  # 300 000 − 262 144 bytes
    assert builder.skipped == 0
    full = SectionBuilder(report=report, brief=False, left_bytes=10)
    assert (list(full._packed(filled)), full.skipped) == ([], 1)


@pytest.mark.parametrize(("values", "drawn"), [((), False), ((5.0,), False), ((5.0, 6.0), True)])
def test_a_rate_without_a_course_has_no_panel(
    monkeypatch: pytest.MonkeyPatch, values: tuple[float, ...], drawn: bool
) -> None:
    """A rate needs two intervals for a line. With fewer, its panel would be empty and is not drawn."""
    _, campaign, trials = made([(stack("ext4"), work("a"), 1000), (stack("xfs"), work("a"), 2000)])

    def seen(label: str, _: object) -> observed.ObservedFigures:
        course = RateSeries(stack=label, trial=0, interval_s=0.1, values=values)
        return observed.ObservedFigures(latencies={}, courses={"write rate": (course,)})

    monkeypatch.setattr(observed, "seen", seen)
    source = assemble.CampaignSource(campaign=campaign, trials=trials)
    figures = assemble.figures(assemble.page([source], known=lambda _: (IOPS,)))
    assert any(figure.id.endswith("over-time") for figure in figures) is drawn


def test_a_page_says_what_it_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page states how many tool outputs do not fit: here ten, with room for 10 bytes. Of a large campaign, or one
    with more metrics than BRIEF_FROM, the page also states which parts are omitted, and why."""
    _, campaign, trials = made([(stack("ext4"), work("a"), 1000), (stack("xfs"), work("a"), 2000)])
    command = Command(stage="run", argv=("fio",))
    filled = [
        trial.model_copy(
            update={"raw": {"fio.json": f"{{{number}}}"}, "provenance": Provenance(commands=(command,))}
        )
        for number, trial in enumerate(trials)
    ]
    source = assemble.CampaignSource(campaign=campaign, trials=filled)

    def page() -> str:
        return render.html(assemble.page([source], known=lambda _: (IOPS,)))

    assert "no room" not in page()
    monkeypatch.setattr(sections, "ALL_BYTES", 10)
    assert page().count("5 more tool outputs are omitted on this page") == 2
    brief = render.html(assemble.page([replace(source, large="10 trials")], known=lambda _: (IOPS,)))
    assert brief.count(sections.LEFT_OUT) == 1
    assert (
        f"Omitted, because the campaign has 10 trials. To see mechanisms: fslab explain {campaign.id}"
        in brief
    )
    assert "Omitted, because there are" not in brief
    monkeypatch.setattr(assemble, "BRIEF_FROM", 0)
    assert "Omitted, because there are 1 metrics" in page()
