"""Tests of a report's page in a real browser: every figure has all its marks, tables sort, nothing is downloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.browser import campaigns
from tests.browser.conftest import SCREENSHOTS, Opened, Opener

from fslab.claims.model import ClaimAnswer, ClaimVerdict, EvaluatedClaim, OpenReason, Verdicts
from fslab.explain.evidence import Certainty, Explanation
from fslab.report.page import assemble, render
from fslab.report.page.compare import comparisons
from fslab.report.page.model import Page
from fslab.trial_record import Value
from fslab.units import Unit

if TYPE_CHECKING:
    from playwright.sync_api import Locator

MARKS = """id => {
  const figure = document.getElementById('fig-' + id), counts = {};
  for (const group of figure.querySelectorAll('.canvas [class*="_marks"]')) {
    const own = [...group.classList].find(each => each.endsWith('_marks'));
    const name = own.replace(/^.*?child_/, '').replace(/_marks$/, '');
    counts[name] = (counts[name] || 0) + group.querySelectorAll(':scope > path, :scope > text, :scope > line').length;
  }
  return counts;
}"""


@pytest.fixture(scope="module")
def page() -> Page:
    campaign, trials = campaigns.small()
    statement = Explanation(
        mechanism="twice", workload="random", stack="btrfs", text="btrfs writes <b>twice</b>", figures=(),
        certainty=Certainty.OBSERVED, refuted_by="equally slow without it",
    )  # fmt: skip
    printed = ClaimAnswer(verdict=ClaimVerdict.HOLDS, words="2.1", parts=1)
    here = ClaimAnswer(verdict=ClaimVerdict.REPLICATED, words="2.00 (1.9–2.1)", parts=1)
    claim = EvaluatedClaim(id="1", says="xfs > ext4", that=("xfs > ext4",), published=printed, measured=here)
    verdicts = Verdicts(study=campaign.study_id, title=campaign.study_title, source=None, claims=(claim,))
    source = assemble.CampaignSource(
        campaign=campaign, trials=trials, statements=(statement,), verdicts=verdicts
    )
    return assemble.page([source])


@pytest.fixture(scope="module")
def html(page: Page) -> str:
    return render.html(page)


def drawn(found: Opened) -> Opened:
    found.page.evaluate("fslab.drawAll()")
    return found


def activate(control: Locator) -> None:
    """Activate a control with the keyboard: figures drawn during scrolling can move it away from the mouse pointer."""
    control.focus()
    control.press("Enter")


@pytest.fixture(scope="module")
def long_html() -> str:
    campaign, trials = campaigns.long_names()
    return render.html(assemble.page([assemble.CampaignSource(campaign=campaign, trials=trials)]))


@pytest.mark.parametrize("names", ["html", "long_html"])
def test_on_a_phone_tables_keep_to_their_box_and_verdicts_are_in_sight(
    names: str, opened: Opener, request: pytest.FixtureRequest
) -> None:
    page = opened(request.getfixturevalue(names), width=400).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    for verdict in page.locator("td.verdict").all():
        box = verdict.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400
    cut = "each => each.scrollWidth > innerWidth && getComputedStyle(each.closest('.scroll')).overflowX !== 'auto'"
    assert page.evaluate(f"[...document.querySelectorAll('table')].filter({cut}).length") == 0


def test_on_a_phone_three_stacks_fit_beside_their_workloads(html: str, opened: Opener) -> None:
    page = opened(html, width=400).page
    box = page.locator(".scroll", has=page.locator("table.heat")).first
    assert box.evaluate("each => each.scrollWidth - each.clientWidth") <= 1


def test_a_long_verdict_leaves_room_for_what_decides_it(opened: Opener) -> None:
    campaign, trials = campaigns.small()
    answer = ClaimAnswer(
        verdict=ClaimVerdict.OPEN, words="xfs / ext4 is 2.00 (1.90–2.10); " * 4, parts=1, more_s=163.0,
        reason=OpenReason.INDEPENDENCE, tendency=ClaimVerdict.REPLICATED,
    )  # fmt: skip
    claim = EvaluatedClaim(id="1", says="xfs is better than ext4 " * 3, that=("xfs > ext4",), measured=answer)
    verdicts = Verdicts(study=campaign.study_id, title=campaign.study_title, source=None, claims=(claim,))
    source = assemble.CampaignSource(campaign=campaign, trials=trials, verdicts=verdicts)
    page = opened(render.html(assemble.page([source])), width=768).page
    verdict, decided = (page.locator(f"td[data-head='{head}']") for head in ("here", "decided by"))
    assert "replicated only if trials are independent" in verdict.inner_text()
    reason = decided.bounding_box()
    assert reason is not None
    assert reason["x"] + reason["width"] <= 768


@pytest.mark.parametrize("names", ["html", "long_html"])
def test_in_print_tables_fit_the_paper_and_nothing_waits_for_a_click(
    names: str, opened: Opener, request: pytest.FixtureRequest
) -> None:
    """A4 with margins of 15 mm is 680 CSS pixels wide."""
    page = opened(request.getfixturevalue(names), width=680).page
    page.emulate_media(media="print")
    shown = "[...document.querySelectorAll('table')].filter(each => each.checkVisibility())"
    rights = page.evaluate(f"{shown}.map(each => each.getBoundingClientRect().right)")
    assert len(rights) > 3
    assert max(rights) <= 680
    assert (
        page.evaluate(
            "[...document.querySelectorAll('summary')].filter(s => s.checkVisibility() && !s.parentElement.open)"
        )
        == []
    )
    assert page.evaluate("getComputedStyle(document.querySelector('th button'), '::after').content") == "none"


def test_every_mark_is_drawn(page: Page, html: str, opened: Opener) -> None:
    shown = drawn(opened(html)).page
    figures = [figure for figure in assemble.figures(page) if figure.id != "heat"]
    assert shown.locator("figure.chart").count() == len(figures)
    for figure in figures:
        counts = shown.evaluate(MARKS, figure.id)
        assert {name: counts.get(name, 0) for name in figure.marks} == dict(figure.marks), figure.id


def test_counts_worked_out_by_hand(page: Page, html: str, opened: Opener) -> None:
    """The numbers of marks follow from the campaign: 3 stacks with 5 trials each.

    Each stack has one median and the 11 percentiles from 50 on that fio reports.
    """
    shown = drawn(opened(html)).page
    marks = shown.evaluate(MARKS, "w-sizes-bs-4k-write-iops")
    assert (marks["trial"], marks["median"]) == (15, 3)
    assert shown.evaluate(MARKS, "w-sizes-bs-4k-latency-write")["percentile"] == 3 * 11
    assert shown.evaluate(MARKS, "sweep-sizes-write_iops")["step"] == 2 * 3
    assert shown.evaluate(MARKS, "order")["trial"] == 8 * 5
    assert shown.locator("table.heat td.tile").count() == 9
    assert shown.locator("table.heat td.tile.open").count() == 0


def test_nothing_is_asked_and_nothing_complains(html: str, opened: Opener) -> None:
    found = drawn(opened(html))
    assert [url for url in found.asked if not url.startswith(("file:", "data:"))] == []
    assert [url for url in found.asked if url.startswith("file:")] == [found.page.url]
    assert [text for text in found.said if text.startswith(("error", "warning"))] == []
    assert found.page.evaluate("fslab.errors") == []


def test_names_stay_text(html: str, opened: Opener) -> None:
    shown = drawn(opened(html)).page
    assert shown.evaluate("window.evil") is None
    assert shown.locator("h1").inner_text() == campaigns.TITLE
    assert shown.locator("section.workload h3").nth(2).text_content() == campaigns.NAME
    assert shown.title().startswith(campaigns.TITLE)
    assert "btrfs writes <b>twice</b>" in shown.locator(".why-one").inner_text()


def test_the_first_screen_answers(html: str, opened: Opener) -> None:
    shown = opened(html).page
    first = shown.locator(".answer p")
    assert first.nth(0).inner_text() == "Claims: tested 1 of 1: replicated 1."
    assert (
        first.nth(1)
        .inner_text()
        .startswith("Recommended: xfs, best in all 3 metrics. Behind by up to: ext4 ")
    )
    assert "× btrfs (" in first.nth(2).inner_text()
    row = shown.locator("table.heat tbody tr").first
    assert row.locator("td.take b").inner_text() == "xfs"
    assert row.locator("td.tile").all_inner_texts()[0].startswith("0.50")
    heat, window = shown.locator("table.heat").bounding_box(), 900
    assert heat is not None
    assert heat["y"] < window


def test_tables_sort(html: str, opened: Opener) -> None:
    shown = opened(html).page
    table = shown.locator("section.workload table").first
    names = table.locator("tbody th")
    assert names.all_inner_texts() == ["ext4", "xfs", "btrfs"]
    heading = table.locator("thead th").nth(1)
    activate(heading.locator("button"))
    assert names.all_inner_texts() == ["ext4", "btrfs", "xfs"]
    assert heading.get_attribute("aria-sort") == "ascending"
    shown.keyboard.press("Enter")
    assert names.all_inner_texts() == ["xfs", "btrfs", "ext4"]
    assert heading.get_attribute("aria-sort") == "descending"


def test_switches(html: str, opened: Opener) -> None:
    found = drawn(opened(html))
    shown = found.page
    figure = shown.locator("#fig-w-sizes-bs-4k-write-iops")
    assert "÷ the best median" not in (figure.locator("svg").text_content() or "")
    for label, expected in (("ratio", "÷ the best median"), ("absolute", "write IOPS")):
        shown.get_by_label(label, exact=True).check()
        figure.locator("svg", has_text=expected).wait_for()
    shown.get_by_label("log", exact=True).check()
    figure.locator("svg", has_text="100k").wait_for()
    kind = "document.querySelector('#fig-w-sizes-bs-4k-write-iops').view.view.scale('x').type"
    assert shown.evaluate(kind) == "log"
    bandwidth = shown.locator("td[data-unit='B/s']").first
    shown.locator("details", has=bandwidth).first.evaluate("each => each.open = true")
    assert bandwidth.inner_text() == "246 MB/s"  # 60 000 × 4096 B/s
    shown.get_by_label("MiB", exact=True).check()
    assert bandwidth.inner_text() == "234 MiB/s"
    bandwidth.evaluate("cell => cell.dataset.v = 1023.7 * 1024")
    shown.get_by_label("MB", exact=True).check()
    shown.get_by_label("MiB", exact=True).check()
    assert bandwidth.inner_text() == "1.00 MiB/s"
    assert [text for text in found.said if text.startswith("error")] == []


def test_raw_output_is_one_click_away(html: str, opened: Opener) -> None:
    shown = opened(html).page
    activate(shown.locator("details", has_text="Exact commands").first.locator("> summary"))
    raw = shown.locator("details.raw").first
    activate(raw.locator("summary"))
    raw.locator("pre", has_text="fio version").wait_for()
    assert raw.locator("pre").text_content() == (campaigns.GOLDEN / "randwrite-4k-qd32.json").read_text()
    assert "fio '--name=a b'" in shown.locator("pre.commands").first.inner_text()


@pytest.mark.parametrize(
    "dark", [pytest.param(False, id="light"), pytest.param(True, id="dark", marks=pytest.mark.slow)]
)
def test_no_serious_accessibility_violation(html: str, opened: Opener, dark: bool) -> None:
    shown = drawn(opened(html, dark=dark)).page
    shown.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    found = Axe().run(shown).response["violations"]
    grave = [
        (each["id"], [node["html"][:200] for node in each["nodes"][:3]])
        for each in found
        if each["impact"] in {"serious", "critical"}
    ]
    assert grave == []


@pytest.mark.parametrize(
    "width", [360, *(pytest.param(width, marks=pytest.mark.slow) for width in (1280, 1920))]
)
def test_it_fits_and_is_kept_as_a_picture(html: str, opened: Opener, width: int) -> None:
    shown = drawn(opened(html, width=width)).page
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    shown.screenshot(path=SCREENSHOTS / f"report-{width}.png", full_page=True)


CLIPPED = """() => {
  const found = [];
  for (const svg of document.querySelectorAll('figure.chart svg')) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (box.right > frame.right + 1 || box.left < frame.left - 1) found.push(text.textContent);
    }
  }
  return found;
}"""


@pytest.mark.parametrize("width", [360, pytest.param(1280, marks=pytest.mark.slow)])
def test_no_text_of_a_figure_is_clipped(html: str, opened: Opener, width: int) -> None:
    """No text of a figure is cut off. The figure of CPU time has so many components that its legend must wrap."""
    shown = opened(html, width=width).page
    shown.add_style_tag(content="section.workload { content-visibility: visible !important }")
    shown.evaluate("fslab.drawAll()")
    legend = shown.locator("figure.chart", has_text="taken by the hypervisor")
    assert legend.count() > 0
    assert "idle, waiting for I/O" in (legend.first.text_content() or "")
    assert shown.evaluate(CLIPPED) == []


@pytest.mark.parametrize("width", [400, 1280])
def test_long_names_are_whole_in_the_figures(long_html: str, opened: Opener, width: int) -> None:
    shown = opened(long_html, width=width).page
    shown.add_style_tag(content="section.workload { content-visibility: visible !important }")
    shown.evaluate("fslab.drawAll()")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.evaluate(CLIPPED) == []
    shown.screenshot(path=SCREENSHOTS / f"long-names-{width}.png")


def test_fields_over_two_numbers(opened: Opener) -> None:
    """A sweep over two numeric parameters is drawn as fields, like IOzone's surfaces: 2 × 3 sizes × 3 stacks = 18."""
    sizes = [(bs, size) for bs in ("4k", "64k") for size in ("64m", "128m", "1g")]
    works = [campaigns.workload(f"w[bs={bs},size={size}]", bs=bs, size=size) for bs, size in sizes]
    planned = campaigns.cells(*works)
    trials = [
        campaigns.trial(cell, block, 1000.0 * (block + 1), raw={}) for cell in planned for block in range(4)
    ]
    made = assemble.page([assemble.CampaignSource(campaign=campaigns.campaign(planned), trials=trials)])
    shown = drawn(opened(render.html(made))).page
    assert shown.evaluate(MARKS, "sweep-w-write_iops") == {"field": 18, "figure": 18}


def test_two_campaigns_side_by_side(opened: Opener) -> None:
    """The second campaign has half the xfs values of the first: its 3 xfs ratios are 0.5."""
    first, trials = campaigns.small()
    halved = [
        each.model_copy(update={"metrics": {"write_iops": Value(value=(value or 0) / 2, unit=Unit.IOPS)}})
        if each.cell.stack.name == "xfs" and (value := each.metrics["write_iops"].value)
        else each
        for each in trials
    ]
    sources = [
        assemble.CampaignSource(campaign=first, trials=trials),
        assemble.CampaignSource(campaign=first.model_copy(update={"id": "later"}), trials=halved),
    ]
    found = drawn(opened(render.html(assemble.page(sources, comparisons(sources)))))
    shown = found.page
    assert shown.evaluate(MARKS, "compare-1-higher")["ratio"] == 8
    table = shown.locator(".comparison table", has_text="Every figure").first
    rows = table.locator("tbody tr", has_text="xfs")
    assert [text.split("\t")[3] for text in rows.all_inner_texts()] == ["0.50"] * 3
    assert shown.locator("article.part").count() == 2
    assert [text for text in found.said if text.startswith(("error", "warning"))] == []


def test_many_workloads_open_one_by_one(opened: Opener) -> None:
    campaign, trials = campaigns.many(90)
    found = opened(render.html(assemble.page([assemble.CampaignSource(campaign=campaign, trials=trials)])))
    shown = found.page
    assert shown.locator("details.workload").count() == 90
    assert shown.locator("table.heat tbody tr").count() == 60
    activate(shown.get_by_role("button", name="Show all 90 rows"))
    shown.locator("table.heat tbody tr").nth(89).wait_for()
    last = shown.locator("details.workload").nth(57)
    activate(last.locator("summary"))
    last.locator("svg").first.wait_for()
    assert last.locator("table").first.locator("tbody th").all_inner_texts() == ["ext4", "xfs", "btrfs"]
    assert [text for text in found.said if text.startswith(("error", "warning"))] == []
