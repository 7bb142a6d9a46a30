"""Tests of the replication page: rows, conditions, summary, cost, and the mechanisms of failed claims."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.made import campaign as new_campaign
from tests.made import stored
from tests.unit.claimed import cell, claim, noisy, steady, trials
from tests.unit.test_claims_terminal import EXT4, XFS, made

from fslab.api import claims, explanations, replications
from fslab.claims import replication
from fslab.claims.build import judged
from fslab.claims.campaign_estimates import Trials
from fslab.claims.claim_words import summary
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import ClaimVerdict
from fslab.claims.publication_likeness import ROWS, Condition, Situation, conditions_of, same_machine
from fslab.claims.replication import measured_share, wall_s
from fslab.claims.schema import Published
from fslab.claims.scope import Scope
from fslab.cli import claims as cli_claims
from fslab.cli import run
from fslab.errors import InterruptedBySignal, StoreError
from fslab.explain.evidence import Certainty, Evidence, Explanation
from fslab.explain.ranking import NOTABLE
from fslab.machine import facts
from fslab.plan.expand import expand
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.study.load import load_text
from fslab.trial_record import Command, Provenance, Status, TrialRecord


def page(**more: object) -> replication.ReplicationPage:
    verdicts = made()
    return replication.ReplicationPage.model_validate(
        {
            "study": "s", "title": "A | title", "source": "x", "campaign": "c", "measured": "here: campaign c",
            "rows": replication.rows_of(verdicts), "effort": "8 trials", "level": "at most 5 %",
            "conditions": conditions_of(
                {"distribution": "x", "kernel": "6.17", "memory": "8 GiB", "medium": "disk"},
                Situation(texts={"kernel": "6.1", "memory": "8 GiB", "distribution": "x"}, memory_bytes=8 << 30),
            ),
            "summary": summary(verdicts.claims), **more,
        }
    )  # fmt: skip


def test_a_row_has_what_was_printed_and_what_is_here_of_the_same_part() -> None:
    first, second, third = page().rows
    assert (first.printed, first.supported) == ("0.80 (table II)", "contradicted")
    assert first.here == "xfs / ext4 is 2.00 (1.90–2.11) (w)"
    assert (first.verdict, first.said) == (ClaimVerdict.REPLICATED, "replicated")
    assert second.said == "open: at the limit (within 10 % of it)"
    assert (third.verdict, third.said) == (ClaimVerdict.UNKNOWN, "not tested here")
    assert third.here == "not measured here: no kernel has it"


def test_conditions_that_decide_are_always_named_and_others_if_they_differ() -> None:
    assert [(one.name, one.near) for one in page().conditions] == [("memory", True), ("kernel", None)]


THEIRS = {
    "processors": "4", "memory": "8 GiB", "medium": "five 465 GB SATA disks", "amounts": "all", "kernel": "3.6.10",
}  # fmt: skip
LIKE_THEIRS = Situation(
    texts=dict.fromkeys(THEIRS, "x"),
    cpus=4,
    memory_bytes=16 << 30,
    kernel="3.6.1",
    media=["virtual hdd-7200"],
)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("processors", {"cpus": 3}), ("memory", {"memory_bytes": 17 << 30}), ("memory", {"memory_bytes": 3 << 30}),
        ("medium", {"media": ["ram 2g"]}), ("medium", {"slowed": True}), ("amounts", {"scaled": True}),
        ("kernel", {"kernel": "6.1.0"}),
    ],
)  # fmt: skip
def test_each_row_tells_whether_it_is_near_the_publication(name: str, change: dict[str, Any]) -> None:
    near = conditions_of(THEIRS, LIKE_THEIRS)
    assert [one.name for one in near] == list(ROWS)
    assert all(one.near for one in near)
    assert same_machine(near)
    far = conditions_of(THEIRS, replace(LIKE_THEIRS, **change))
    assert [one.name for one in far if not one.near] == [name]
    assert same_machine(far) is (name == "kernel")  # a newer kernel is what may have changed the result


def test_a_medium_is_recognised_by_its_words() -> None:
    def near(theirs: str, *media: str) -> bool | None:
        (one,) = conditions_of({"medium": theirs}, Situation(texts={"medium": "x"}, media=media))
        return one.near

    assert near("480 GB SATA SSD and 6 TB SATA hard disk", "virtual ssd-sata 256g", "virtual hdd-7200")
    assert not near("480 GB SATA SSD and 6 TB SATA hard disk", "virtual ssd-sata 256g")
    assert near("one NVMe SSD", "virtual nvme 256g")
    assert not near("one NVMe SSD", "virtual ssd-sata")
    assert near("loop 2g", "loop 2g")
    assert near("one NVMe SSD", "device /dev/x") is None


def test_markdown_begins_with_the_summary_and_has_a_row_for_each_claim() -> None:
    lines = list(replication.lines(page()))
    assert lines[0] == "# A \\| title"
    rows = [line for line in lines if line.startswith(("| 1 |", "| 2 |", "| 3 |"))]
    assert len(rows) == 3
    assert {line.count("|") - 2 * line.count("\\|") for line in rows} == {7}
    assert lines.index("| kernel | 6.17 | 6.1 | – |") < lines.index(rows[0])
    assert lines[2] == f"**{summary(made().claims)}**"


def test_what_an_earlier_row_says_is_not_repeated() -> None:
    said = ["no disk. Measured: 1", "no disk. Measured: 2", "no disk. Measured: 1", "no cpu. Measured: 2"]
    row = page().rows[0]
    rows = tuple(row.model_copy(update={"id": f"{n}", "here": here}) for n, here in enumerate(said))
    lines = [line for line in replication.lines(page(rows=rows)) if line.startswith("| ")][-4:]
    told = [line.removesuffix(" |").split(" | ")[5] for line in lines]
    assert told == [said[0], "as 0. Measured: 2", "as 0", said[3]]


def test_columns_of_printed_figures_are_left_out_if_there_are_none() -> None:
    rows = tuple(row.model_copy(update={"printed": "–", "supported": "–"}) for row in page().rows)
    assert "| | claim | verdict | here |" in [*replication.lines(page(rows=rows))]
    head = "| | claim | verdict | printed | supported by their table | here |"
    assert head in [*replication.lines(page())]


def test_what_is_not_possible_here_is_no_trial_that_failed() -> None:
    """A campaign stores it as one trial of each such cell."""
    ran = trials(EXT4, steady(1.0))
    lost = ran[0].model_copy(update={"cell": XFS, "status": Status.UNSUPPORTED})
    judge: Any = SimpleNamespace(trials=SimpleNamespace(records=[*ran, lost], kernels=["6.1"]), others=[])
    told = claims._conditions(new_campaign(), judge, [])
    assert told.endswith(f", {len(ran)} usable of {len(ran)} trials of 1 cell")


def test_the_conditions_are_those_of_trials_that_ran() -> None:
    """The first trial could not run in the guest: its machine is the host."""
    host, guest = (
        Provenance(machine={"cpus": cpus, "memory_bytes": size}) for cpus, size in ((64, 2**36), (1, 2**28))
    )
    first, *others = (record.model_copy(update={"provenance": guest}) for record in trials(EXT4, steady(1.0)))
    lost = first.model_copy(update={"status": Status.UNSUPPORTED, "provenance": host})
    text = """{title: t, scale: 0.5, media: {m: {type: ram, size: 1g}}, stacks: {a: {medium: m, filesystem: ext4}},
      workloads: {w: {tool: dd, op: write, bs: 1m, count: 1024}}}"""
    study = load_text(text, "s.yaml")
    campaign = new_campaign(settings={"scale": 0.5}, cells=(EXT4,), trials=4, machine=host.machine)
    theirs = {"processors": "8", "memory": "16 GiB", "amounts": "all"}
    study = study.model_copy(update={"published": Published(conditions=theirs)})

    def near(records: list[TrialRecord], made: Campaign) -> tuple[Condition, ...]:
        return claims.conditions_here(made, records, study)

    def here(records: list[TrialRecord], scale: float = 0.5) -> dict[str, str]:
        made = campaign.with_settings(scale=scale)
        return {one.name: one.here for one in near(records, made)}

    amounts = "scaled; fslab plan STUDY lists each amount"
    assert here([lost, *others]) == {"processors": "1", "memory": "256 MiB", "amounts": amounts}
    assert here([lost]) == {"processors": "64", "memory": "64 GiB", "amounts": amounts}
    assert here([], 0.25)["amounts"] == "scaled; fslab plan STUDY --scale 0.25 lists each amount"
    study = study.model_copy(update={"id": "quick"})
    assert here([])["amounts"] == "scaled; fslab plan quick lists each amount"
    assert here([], 1.0)["amounts"] == "all"


def test_a_plan_tells_how_near_the_machine_is_to_the_publication() -> None:
    text = """{title: t, on: uml, guest_memory: 512m, media: {m: {type: ram, size: 2g}},
      stacks: {a: {medium: m, filesystem: ext4}}, workloads: {w: {tool: dd, op: write, bs: 1m, count: 1024}},
      published: {conditions: {processors: "1", memory: 512 MiB, amounts: all}}}"""
    guest, host = (
        load_text(each, "s.yaml") for each in (text, text.replace("on: uml, guest_memory: 512m, ", ""))
    )
    near = claims.planned(guest, expand(guest))
    assert {one.name: one.here for one in near} == {"processors": "1", "memory": "512 MiB", "amounts": "all"}
    assert all(one.near for one in near)
    assert claims.near_words(near[:1]) == "beside the publication: processors 1 (there 1: near)"
    assert claims.near_words(()) is None
    here = {one.name: one.here for one in claims.planned(host, expand(host))}
    assert here["processors"] == str(facts.gather()["cpus"])


ONE_CRASHED = [*trials(cell("ext4"), steady(100.0)), *trials(cell("xfs"), [*noisy(200.0)[:3], None])]


def test_the_table_of_all_studies_counts_each_verdict_once() -> None:
    found = replication.result_of(made(), [ONE_CRASHED])
    assert (found.claims, found.replicated, found.contradicted) == (3, 1, 0)
    assert (found.open, found.tested) == (1, 2)
    assert (found.trials, found.with_warnings) == (8, 1)
    line = "| [s](s.md) | 2026-11-20 | 3 | 2 of 3 | 1 | 0 | 0 | 0 | 1 | 0 | 8 | 1 | 0 % |"
    assert line in list(replication.index([found]))


def test_trials_that_cannot_run_here_are_no_warnings() -> None:
    one = trials(cell("btrfs"), [None])[0].model_copy(update={"status": Status.UNSUPPORTED})
    found = replication.result_of(made(), [[*ONE_CRASHED, one]])
    assert (found.trials, found.with_warnings, found.impossible) == (8, 1, 1)
    words = replication.effort_words(found)
    assert words.startswith("8 trials in ")
    assert ", 1 of them failed" in words
    assert words.endswith("; 1 trial cannot run here")
    assert "cannot run" not in replication.effort_words(replication.result_of(made(), [ONE_CRASHED]))


@pytest.mark.parametrize(
    ("study", "link"),
    [
        ("[x](javascript:f)|<b>", r"[\[x\](javascript:f)\|\<b\>](%5Bx%5D%28javascript%3Af%29%7C%3Cb%3E.md)"),
        ("README", "[README](README-study.md)"),
        ("..", "[..](_.-"),
        ("a b", "[a b](a%20b.md)"),
    ],
)
def test_the_name_of_a_study_is_text_and_replaces_no_table(study: str, link: str, tmp_path: Path) -> None:
    """A store or a file of others can have any."""
    found = replication.result_of(made(), [trials(cell("ext4"), steady(100.0))])
    named = found.model_copy(update={"study": study})
    (tmp_path / replication.page_name(study)).touch()
    assert [each.name for each in tmp_path.iterdir()] != ["README.md"]
    table = "\n".join(replication.index([named]))
    assert f"| {link}" in table
    again = "\n".join(replication.index([found, named], table))
    assert again.count(f"| {link}") == 1
    assert "\n".join(replication.index([found], table)) == again


def test_studies_without_a_new_page_keep_their_lines() -> None:
    records = [*trials(cell("ext4"), steady(100.0)), *trials(cell("xfs"), steady(200.0))]
    found = replication.result_of(made(), [records])
    both = "\n".join(replication.index([found, found.model_copy(update={"study": "r"})]))
    stale = both.replace("| [s](s.md) | 2026", "| [s](s.md) | 1999")
    assert "\n".join(replication.index([found], stale)) == both
    assert both.index("| [r]") < both.index("| [s]")
    assert "[verdicts](../claims.md#verdicts)" in both
    elsewhere = "\n".join(replication.index([found], linked=False))
    assert "(verdicts: docs/claims.md)" in elsewhere
    assert "](../" not in elsewhere
    assert "Rules" not in both
    old = "| [q](q.md) | 3 | 1 |"  # of a table with fewer columns
    assert old not in "\n".join(replication.index([found], f"{both}\n{old}"))


def test_the_rules_of_earlier_pages_are_told_as_long_as_there_is_one() -> None:
    found = replication.result_of(made(), [trials(cell("ext4"), steady(100.0))])
    both = "\n".join(replication.index([found, found.model_copy(update={"study": "r"})]))
    mixed = both.replace("| [r](r.md) | 2026-11-20 | 3 |", "| [r](r.md) | 2025-01-01 | 2 |")
    told = "\n".join(replication.index([found], mixed))
    assert "| [r](r.md) | 2025-01-01 | 2 |" in told
    assert "\nRules 2: evaluated by the median of a rate: some claims" in told
    again = "\n".join(replication.index([found], told))
    assert again == told
    assert "\n".join(replication.index([found.model_copy(update={"study": "r"})], told)) == both


def test_the_measured_share_is_that_of_the_run() -> None:
    """Two trials of 3 s with 1 s between them: 2 s of each are the run, and 0.5 s is mkfs."""
    commands = (
        Command(stage="mkfs", argv=("mkfs",), duration_s=0.5),
        Command(stage="run", argv=("fio",), duration_s=2.0),
        Command(stage="prepare", argv=("cp",)),
    )
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    same = {"duration_s": 3.0, "provenance": Provenance(commands=commands)}
    records = [
        record.model_copy(update={**same, "started": begun + timedelta(seconds=4 * number)})
        for number, record in enumerate(trials(cell("ext4"), [1.0, 2.0]))
    ]
    assert wall_s(records) == 7.0
    assert measured_share(records) == pytest.approx(2 / 3)
    assert measured_share([]) is None


def test_where_it_differs_the_mechanism_of_the_deciding_part_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scope = Scope(cells=(EXT4, XFS))
    records = [*trials(EXT4, steady(100.0)), *trials(XFS, noisy(200.0))]
    judge = Evaluator(trials=Trials(records=records))
    claims = [claim("xfs > ext4"), claim("ext4 > xfs", id="2"), claim("ext4 / xfs >= 9", id="3")]
    answered = judged(claims, study=scope, printed=None, campaign=scope, judge=judge)
    verdicts = made().model_copy(update={"claims": answered})
    # The farthest from its limit comes first.
    assert [name for name, _ in replication.deciding(verdicts)] == ["3", "2"]

    def said(mechanism: str, workload: str, stack: str, weight: float) -> Explanation:
        return Explanation(
            mechanism=mechanism, workload=workload, stack=stack, text=f"{mechanism} of {stack}.", figures=(),
            certainty=Certainty.OBSERVED, refuted_by="equally slow without it", weight=weight,
        )  # fmt: skip

    known = [said("copy-on-write", "w", "btrfs defaults", 9), said("xfs-log", "other", "xfs defaults", 8)]
    known += [said("barriers", "w", "ext4 defaults", 7), said("xfs-log", "w", "xfs defaults", 6)]
    known += [
        said("page-cache", "w", stack, 9.5) for stack in ("ext4 defaults", "xfs defaults", "ext4 noatime")
    ]
    cells = {(each.workload, each.stack): Evidence(cell=EXT4, workload=each.workload, stack=each.stack, trials=records)
             for each in known}  # fmt: skip
    monkeypatch.setattr(
        "fslab.explain.mechanisms.all_statements",
        lambda seen: (each for each in known if cells[each.workload, each.stack] in seen),
    )
    monkeypatch.setattr("fslab.explain.mechanisms.Mechanism.known", lambda *_: True)
    (part,) = [part for name, part in replication.deciding(verdicts) if name == "2"]
    variants = part.model_copy(update={"what": "ext4 defaults / ext4 noatime"})
    monkeypatch.setattr(explanations, "deciding", lambda _: [("2", variants)])
    (reason,) = explanations.of_claims(verdicts, [*cells.values()])
    assert reason.where == "w on ext4 defaults", "btrfs and xfs have the same word, and are not compared"
    monkeypatch.setattr(explanations, "deciding", replication.deciding)
    (reason,) = explanations.of_claims(
        verdicts, [*cells.values()]
    )  # one for both claims: they compare the same two cells
    assert (reason.claim, reason.where) == ("3", "w on ext4 defaults")
    assert reason.text == "barriers of ext4 defaults."
    everything = [*cells.values()]
    for without in (known[4:], [said("barriers", "w", "ext4 defaults", NOTABLE)]):
        known[:] = without  # what both have alike; what hardly weighs
        assert explanations.of_claims(verdicts, everything) == ()
    lines = list(replication.lines(page(reasons=(reason,))))
    assert "What the kernel counted where results differ:" in lines
    assert any(line.startswith("- 3, w on ext4 defaults: barriers of ext4") for line in lines)
    assert "what the kernel counted" not in "\n".join(replication.lines(page()))


def test_a_study_of_a_user_has_no_claims_of_the_shipped_one_with_its_name(tmp_path: Path) -> None:
    text = (
        "title: mine\nmedia: {m: {type: ram, size: 1g}}\nstacks: {s: {medium: m, filesystem: ext4}}\n"
        "workloads: {w: {tool: dd, op: write, count: 1}}\n"
    )
    cells = expand(load_text(text, "multi-disk.yaml"))
    mine = new_campaign("c1", study_id="multi-disk", study_source=text, cells=cells)
    with Store.open(stored(tmp_path / "s", [(mine, [])])) as opened:
        assert claims.of_campaign(mine, opened).claims == ()
        with pytest.raises(StoreError, match="no campaign of a study with claims"):
            replications.last_campaigns(opened)


def test_an_interrupted_replication_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise InterruptedBySignal(2)

    monkeypatch.setattr(replications, "run_each", interrupted)
    monkeypatch.setattr(run, "undo_leftovers", lambda **_: None)
    with Store.open(str(tmp_path / "store.sqlite")) as store, pytest.raises(InterruptedBySignal) as end:
        cli_claims._run(["loop-vm"], store, None)
    assert capsys.readouterr().err == "the same command resumes\n"
    assert str(end.value) == "interrupted", "run --resume would make no page"
