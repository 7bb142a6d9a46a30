"""Tests of mechanisms: explanations need evidence, their text for given figures, and the cells that switches make."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fslab.api import explanations
from fslab.cell import Cell, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.explain import ablation, mechanisms
from fslab.explain.attribution import attribute
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import REGISTRY
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.statements import evidence_of, statements_of
from fslab.explain.switch import Switch, all_off
from fslab.record import Provenance, Severity, Status, TrialRecord, ValidityWarning, Value
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.units import Unit

MIB = 1 << 20
SYNCED = {"rw": "randwrite", "bs": "4k", "fsync": 1, "size": "64m"}
DIRECT = {"rw": "randwrite", "bs": "4k", "direct": True, "size": "64m"}


def cell(
    filesystem: str = "btrfs", mount: str = "defaults", parameters: dict[str, Any] | None = None, **more: Any
) -> Cell:
    stack = StackSpec(
        name=f"{filesystem} {mount}", medium=MediumSpec(name="m", type="ram", options={"size": "1g"}),
        filesystem=filesystem, mount_options=mount, **more,
    )  # fmt: skip
    return Cell(stack=stack, workload=WorkloadSpec(name="w", tool="fio", parameters=parameters or SYNCED))


def trial(of: Cell, figures: dict[str, float], block: int = 0, **more: Any) -> TrialRecord:
    units = {"_bytes": Unit.BYTES, "_time": Unit.SECONDS}
    probes = {
        name: Value(value=value, unit=next((u for end, u in units.items() if name.endswith(end)), Unit.COUNT))
        for name, value in figures.items()
    }
    fields: dict[str, Any] = {"status": Status.OK, "probes": probes, **more}
    key = TrialKey(campaign="c", block=block, seed=1)
    return TrialRecord(key=key, cell=of, started=datetime(2026, 11, 21, tzinfo=UTC), duration_s=1.0, **fields)


def seen(of: Cell, figures: dict[str, float], traced: TrialRecord | None = None, **more: Any) -> Evidence:
    return Evidence(
        cell=of, workload="w", stack=of.stack.name, trials=[trial(of, figures, **more)], traced=traced
    )


def by_mechanism(found: Evidence) -> dict[str, str]:
    return {statement.mechanism: statement.text for statement in statements_of(found)}


EVERY = [
    cell(filesystem, mount, parameters)
    for filesystem in ("ext4", "xfs", "btrfs")
    for mount in ("defaults", "data=journal" if filesystem == "ext4" else "discard")
    for parameters in (SYNCED, DIRECT, {"rw": "randread", "size": "64m"}, {**SYNCED, "numjobs": 4})
]


@pytest.mark.parametrize("of", EVERY, ids=lambda of: f"{of.stack.name} {of.workload.parameters}")
def test_without_evidence_nothing_is_said(of: Cell) -> None:
    assert statements_of(seen(of, {})) == []


@pytest.mark.parametrize("of", EVERY, ids=lambda of: f"{of.stack.name} {of.workload.parameters}")
def test_a_switch_makes_another_cell_that_its_file_system_takes(of: Cell) -> None:
    for name, mechanism in REGISTRY:
        found = seen(of, {})
        switch = mechanism.switch(found) if mechanism.applies(found) else None
        changed = switch.off(of) if switch else None
        if switch is None or changed is None:
            continue
        assert changed.id != of.id, name
        assert switch.off(changed) is None, f"{name}: once off it is off"
        driver = FILESYSTEMS.get(str(of.stack.filesystem))
        driver.check_mount_options(changed.stack.mount_options)
        driver.check_mkfs_options(changed.stack.mkfs_options)


@pytest.mark.parametrize(
    ("mkfs_options", "applies"),
    [("", True), ("-O has_journal", True), ("-O dir_index,^metadata_csum", True), ("-O ^has_journal", False),
     ("-O^has_journal", False), ("-b 1k -O extent,^has_journal", False), ("-O ^has_journal_dev", True)],
)  # fmt: skip
def test_a_feature_that_is_named_is_not_off(mkfs_options: str, applies: bool) -> None:
    found = seen(cell("ext4", mkfs_options=mkfs_options), {})
    assert REGISTRY.get("journal").applies(found) is applies


def test_a_feature_that_is_off_is_not_on() -> None:
    for options, given in (("-O fast_commit", True), ("-O ^fast_commit", False), ("", False)):
        assert mechanisms._is_word("fast_commit", options) is given
    assert mechanisms._is_word("-m single", "-d single -m single")
    assert not mechanisms._is_word("-m single", "-m dup")
    assert mechanisms._is_word("agcount", "-d agcount=4")


def test_writes_of_btrfs_with_fsync() -> None:
    # 2048 writes of 4 KiB, 8 MiB in total. The device received 34 times as much, and 4096 flushes: two for each write.
    figures = {
        "device_written_bytes_flushed": 34.0 * 8 * MIB, "write_amplification": 34.0, "device_flushes": 4096.0,
        "btrfs_metadata_copies": 2.0, "file_extents_before": 2.0, "file_extents": 2050.0,
    }  # fmt: skip
    found = by_mechanism(seen(cell(), figures))
    assert found["barriers"] == "Each fsync caused 2.00 cache flushes of the device on average."
    assert (
        "stored 2 times (DUP or RAID1); the device received 34 bytes"
        in found["metadata_duplication".replace("_", "-")]
    )
    assert "2050 extents (before: 2)" in found["copy-on-write"]


def test_direct_writes_that_were_not() -> None:
    figures = {
        "device_written_bytes_flushed": 2.0 * 64 * MIB, "write_amplification": 2.0, "volume_dirtied_bytes": 64.0 * MIB,
    }  # fmt: skip
    of = cell("ext4", "data=journal", DIRECT)
    (statement,) = [
        each for each in statements_of(seen(of, figures)) if each.mechanism == "direct-not-honoured"
    ]
    assert "(100 %)" in statement.text
    assert statement.certainty is Certainty.OBSERVED
    honest = {**figures, "volume_dirtied_bytes": 0.0}
    assert "direct-not-honoured" not in by_mechanism(seen(of, honest))


def test_figures_of_the_machine_are_nothing_beside_foreign_load() -> None:
    load = ValidityWarning(kind="foreign_load", severity=Severity.DOUBT, message="make")
    figures = {
        "device_written_bytes_flushed": 64.0 * MIB, "write_amplification": 1.0, "page_cache_dirtied_bytes": 64.0 * MIB,
    }  # fmt: skip
    of = cell("ext4", "data=journal", DIRECT)
    assert "direct-not-honoured" in by_mechanism(seen(of, figures))
    assert "direct-not-honoured" not in by_mechanism(seen(of, figures, validity=(load,)))


@pytest.mark.parametrize(
    ("filesystem", "mount", "commits", "window_s", "interval_s"),
    [
        ("ext4", "defaults", 1, 1.3, None),
        # One of the 3 was due when the run began, the others are from the flush at its end.
        ("ext4", "defaults", 3, 1.3, None),
        ("ext4", "defaults", 12, 60.0, None),
        ("btrfs", "defaults", 12, 60.0, 30),
        ("ext4", "commit=1", 12, 10.0, None),
        ("ext4", "commit=60", 12, 10.0, 60),
        ("ext4", "commit=0", 12, 10.0, 5),
        ("ext4", "defaults", 12, 10.0, 5),
    ],
)
def test_more_commits_than_the_interval_asks_for(
    filesystem: str, mount: str, commits: int, window_s: float, interval_s: int | None
) -> None:
    name = "btrfs_commits" if filesystem == "btrfs" else "journal_commits"
    of = cell(filesystem, mount, DIRECT)
    text = by_mechanism(seen(of, {name: commits, "clock_window": window_s})).get("commit-interval")
    if interval_s is None:
        assert text is None
    else:
        assert text is not None
        assert (
            f"{commits} commits in {window_s:.1f} s; the commit interval of {interval_s} s alone makes"
            in text
        )


def test_a_withdrawn_trace_says_nothing() -> None:
    figures = {"device_written_bytes_flushed": 80.0 * MIB, "write_amplification": 10.0}
    of = cell()
    traffic = {"traced_written_bytes": 80.0 * MIB, "traced_metadata_bytes": 72.0 * MIB}
    sound = trial(of, traffic, status=Status.TRACED)
    assert "90 % of that was marked as metadata" in by_mechanism(seen(of, figures, sound))["metadata-traffic"]
    off = trial(
        of, traffic, status=Status.TRACED, provenance=Provenance(observed={"trace_withdrawn": ("off",)})
    )
    assert "metadata-traffic" not in by_mechanism(seen(of, figures, off))


def test_an_unknown_figure_of_one_trial_is_no_figure() -> None:
    of = cell()
    one = trial(of, {"device_flushes": 5.0})
    other = trial(of, {}, block=1)
    assert Evidence(cell=of, workload="w", stack="s", trials=[one, other]).figure("device_flushes") is None


def test_a_disk_that_is_not_the_trial_s_alone_only_coincides() -> None:
    figures = {
        "device_flushes": 512.0, "device_written_bytes_flushed": 4.0 * MIB, "write_amplification": 4.0,
    }  # fmt: skip
    alone = cell("ext4")
    here = alone.stack.model_copy(
        update={"medium": MediumSpec(name="m", type="directory", options={"path": "/x"})}
    )
    shared = alone.model_copy(update={"stack": here})
    (barriers,) = [each for each in statements_of(seen(alone, figures)) if each.mechanism == "barriers"]
    assert barriers.certainty is Certainty.OBSERVED
    (barriers,) = [each for each in statements_of(seen(shared, figures)) if each.mechanism == "barriers"]
    assert barriers.certainty is Certainty.COINCIDES
    assert barriers.figures[0].evidence.endswith("of the whole disk")
    busy = ValidityWarning(kind="foreign_load", severity=Severity.DOUBT, message="", data={})
    assert "barriers" in by_mechanism(seen(alone, figures, validity=(busy,)))
    assert "barriers" not in by_mechanism(seen(shared, figures, validity=(busy,)))


@pytest.mark.parametrize(
    ("slow", "chance", "stated"), [(78.0, 15.0, True), (39.0, 15.0, False), (100.0, 90.0, False)]
)
def test_commits_coincide_with_slow_operations_beyond_chance(
    slow: float, chance: float, stated: bool
) -> None:
    of = cell("ext4")
    figures = {
        "traced_slow_in_commits": slow, "traced_chance_in_commits": chance, "traced_all_in_commits": 14.0,
        "traced_slow_operations": 41.0, "traced_slow_from": 2e6,
    }  # fmt: skip
    found = statements_of(seen(of, {}, traced=trial(of, figures, status=Status.TRACED)))
    assert [each.certainty for each in found if each.mechanism == "commit-stalls"] == [
        Certainty.COINCIDES
    ] * stated
    assert all("By chance 15 %" in each.text for each in found if each.mechanism == "commit-stalls")


def test_traced_trials_are_evidence_and_no_trials() -> None:
    of = cell()
    traced = trial(of, {}, status=Status.TRACED)
    assert evidence_of([of], []) == []
    assert [each.trials for each in evidence_of([of], [traced])] == [[]]
    (found,) = evidence_of([of], [trial(of, {})], [traced])
    assert found.traced == traced


def test_switches_together() -> None:
    of = cell("btrfs", "noatime,compress=zstd")
    off = all_off(of, [Switch(mount=("nodatasum",), instead=("datasum",)), Switch(mount=("nodatacow",))])
    assert off.stack.mount_options == "noatime,compress=zstd,nodatacow", "which is without checksums as well"
    assert Switch(mkfs="-m single").off(off).stack.mkfs_options == "-m single"  # type: ignore[union-attr]


def test_an_ablation_has_every_combination_of_up_to_three() -> None:
    slow, fast = seen(cell(parameters=DIRECT), {}), seen(cell("xfs", parameters=DIRECT), {})
    switches = ablation.candidates(slow, fast, ["copy-on-write", "data-checksums"])
    found, complete = ablation.cells(slow, fast, switches)
    assert complete
    assert set(found) == {"copy-on-write", "data-checksums", "copy-on-write+data-checksums"}
    assert found["copy-on-write"] == found["copy-on-write+data-checksums"], "one cell, measured once"


def test_a_counterfactual_that_is_the_faster_stack_is_measured_once() -> None:
    slow, fast = seen(cell("ext4", "data=journal"), {}), seen(cell("ext4", "data=ordered"), {})
    found, _ = ablation.cells(slow, fast, ablation.candidates(slow, fast, ["data-journalling"]))
    assert found == {"data-journalling": fast.cell}


def test_words_name_what_is_not_the_cause_and_always_the_rest() -> None:
    plan = ablation.Ablation(
        of="c", workload="w", slow="btrfs", fast="xfs", slow_cell="s", fast_cell="f", metric="write_iops",
        higher_is_better=True, off={"copy-on-write": "x", "data-checksums": "y"},
        switches={"copy-on-write": "mount -o nodatacow", "data-checksums": "mount -o nodatasum"},
    )  # fmt: skip
    noise = {0: 1.0, 1: 1.02, 2: 0.99, 3: 1.01, 4: 0.98}
    values = {
        "s": noise, "f": {block: 8 * value for block, value in noise.items()},
        "x": {block: 4 * value for block, value in noise.items()},
        "y": {4 - block: value for block, value in noise.items()},
    }  # fmt: skip
    found = ablation.attributed(plan, values, 0.95)
    assert found is not None
    words = ablation.in_words(plan, found)
    assert words[0].startswith("w: xfs is better than btrfs by a factor of 8 (8–8)")
    assert words[1] == "btrfs is slower because of copy-on-write."
    assert any(
        "Switching copy-on-write off (mount -o nodatacow) narrows the gap by a factor of 4" in line
        for line in words
    )
    assert any(line.startswith("  data checksums: not the cause") for line in words)
    assert "remains unexplained" in words[-1]
    reversed_here = ablation.attributed(plan, {name: {0: 1 / each[0]} for name, each in values.items()}, 0.95)
    assert reversed_here is not None
    words = ablation.in_words(plan, reversed_here)
    assert (
        words[0]
        == "w: xfs is not better than btrfs in these trials: a factor of 0.125 (write_iops, 1 block)."
    )


@pytest.mark.parametrize(
    ("ratio", "first"),
    [
        ((0.5, 0.51, 0.49, 0.5), "w: b is not better than a in these trials: a factor of 0.5"),
        (
            (0.9, 1.1, 1.05, 0.96),
            "w: b and a are indistinguishable in these trials: a factor of 0.999 (0.866–1.15)",
        ),
    ],
)
def test_without_a_gap_nothing_is_its_cause_and_nothing_narrows_it(
    ratio: tuple[float, ...], first: str
) -> None:
    plan = ablation.Ablation(
        of="c", workload="w", slow="a", fast="b", slow_cell="s", fast_cell="f", metric="m", higher_is_better=True,
        off={"copy-on-write": "x", "data-checksums": "y"},
        switches={"copy-on-write": "nodatacow", "data-checksums": "nodatasum"},
    )  # fmt: skip
    values = {
        "s": dict.fromkeys(range(4), 1.0), "f": dict(enumerate(ratio)),
        "x": dict(enumerate((2.0, 2.02, 1.98, 2.0))), "y": dict(enumerate((0.5, 0.51, 0.49, 0.5))),
    }  # fmt: skip
    found = ablation.attributed(plan, values, 0.95)
    assert found is not None
    words = ablation.in_words(plan, found)
    assert words[0].startswith(first)
    assert words[1].startswith("  Switching copy-on-write off (nodatacow) makes a faster by a factor of 2 (")
    assert words[2].startswith(
        "  Switching data checksums off (nodatasum) makes a slower by a factor of 0.5 ("
    )


def test_a_wide_interval_around_nothing_acquits_nobody() -> None:
    plan = ablation.Ablation(
        of="c", workload="w", slow="a", fast="b", slow_cell="s", fast_cell="f", metric="m", higher_is_better=True,
        off={"journal": "x"}, switches={"journal": "j"},
    )  # fmt: skip
    level = dict.fromkeys(range(4), 1.0)
    values = {"s": level, "f": dict.fromkeys(range(4), 2.0), "x": {0: 0.5, 1: 2.0, 2: 1.0, 3: 1.1}}
    found = ablation.attributed(plan, values, 0.95)
    assert found is not None
    assert "inconclusive" in ablation.in_words(plan, found)[1]


def test_a_mechanism_that_could_not_be_measured_is_left_out() -> None:
    plan = ablation.Ablation(
        of="c", workload="w", slow="a", fast="b", slow_cell="s", fast_cell="f", metric="m", higher_is_better=False,
        off={"journal": "x", "barriers": "gone"}, switches={"journal": "j", "barriers": "b"},
    )  # fmt: skip
    # lower is better: 8 s, 2 s for the faster stack, 4 s without the journal
    found = ablation.attributed(plan, {"s": {0: 8.0}, "f": {0: 2.0}, "x": {0: 4.0}}, 0.95)
    assert found is not None
    assert found.ratio.factor == pytest.approx(4)
    assert found.shares["journal"].factor == pytest.approx(2)
    assert set(found.shares) == {"journal"}
    assert attribute({frozenset(): {}}, {0: 1.0}) is None


def test_mechanisms_are_ranked_by_their_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(mechanism: str, stack: str, weight: float) -> Explanation:
        return Explanation(
            mechanism=mechanism, workload="w", stack=stack, text=f"{mechanism} {weight}", figures=(),
            certainty=Certainty.OBSERVED, refuted_by="r", weight=weight,
        )  # fmt: skip

    found = [
        one("journal", "a", 1.0),
        one("barriers", "a", 6.0),
        one("journal", "b", 3.0),
        one("atime", "b", 1.0),
    ]
    monkeypatch.setattr("fslab.explain.statements.all_statements", lambda _: iter(found))
    ranked = explanations.ranking([])
    assert [(each.mechanism, each.weight) for each in ranked] == [
        ("barriers", 6.0),
        ("journal", 3.0),
        ("atime", 1.0),
    ]
    assert ranked[1].cells == ("w on a", "w on b")
    assert ranked[1].strongest.stack == "b"
    assert explanations.leading(ranked) == 1, "6 of 10"
    assert explanations.leading(ranked[1:]) == 1
    assert explanations.leading([]) == 0
    assert explanations.leading(ranked[1:2] * 11) == 0, "five have less than half"


@pytest.mark.parametrize(("ratio", "said"), [(3.1, True), (1.0, False)])
def test_what_an_ssd_writes_to_its_flash(ratio: float, said: bool) -> None:
    figures = {"device_write_amplification": ratio, "flash_written_bytes": 310.0 * MIB}
    found = by_mechanism(seen(cell("ext4"), figures))
    assert ("flash-collection" in found) is said
    if said:
        assert "wrote 310 MiB to its flash, 3.10 bytes" in found["flash-collection"]
