"""Two sets of results side by side: who is whose partner, what refuses, what is said of each line, the gate."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fslab.cell import Cache, Cell, MachineSpec, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.cli.compare import compare, fraction
from fslab.errors import RegressionError, UnlikeError, UnsureError, UsageError
from fslab.record import (
    Metric,
    Provenance,
    Severity,
    Status,
    TrialRecord,
    ValidityWarning,
    Value,
)
from fslab.report import contrast_terminal, gate
from fslab.report.contrast import ALL, Results, contrast, refused
from fslab.report.contrast_lines import percent
from fslab.report.contrast_model import Contrast, Outcome
from fslab.report.match import By, chosen, match
from fslab.store.campaign import Campaign
from fslab.store.export import Format, render
from fslab.store.store import Store
from fslab.units import Direction, Unit

BEGUN = datetime(2026, 11, 20, 21, 49, tzinfo=UTC)
MEDIUM = MediumSpec(name="memory", type="ram", options={"size": "1g"})
IOPS = Metric(name="write_iops", unit=Unit.IOPS)
CLAT = Metric(name="clat_mean", unit=Unit.NANOSECONDS, better=Direction.LOWER)
STEPS = (0.98, 0.99, 1.0, 1.01, 1.02)
FACTS = {"kernel": "6.1.0-25", "governor": "performance", "hostname": "lab", "memory_bytes": 24 << 30}


def cell(stack: str = "ext4", workload: str = "rand-4k", bs: str = "4k", **more: Any) -> Cell:
    spec = more.pop("spec", StackSpec(name=stack, medium=MEDIUM, filesystem=stack))
    return Cell(stack=spec, workload=WorkloadSpec(name=workload, tool="fio", parameters={"bs": bs}), **more)


def trials(
    of: Cell, values: Sequence[float | None], campaign: str = "a", metric: Metric = IOPS, **facts: Any
) -> list[TrialRecord]:
    return [
        TrialRecord(
            key=TrialKey(campaign=campaign, block=block, seed=block), cell=of, status=Status.OK,
            started=BEGUN + timedelta(minutes=block), duration_s=1.0,
            metrics={metric.name: Value(value=value, unit=metric.unit)},
            provenance=Provenance(
                machine={**FACTS, **facts}, tools={"fio": "3.33"}, device={"model": "X", "device": "loop0"}
            ),
        )
        for block, value in enumerate(values)
    ]  # fmt: skip


def around(middle: float) -> list[float]:
    return [middle * step for step in STEPS]


def metrics_of(workload: WorkloadSpec) -> tuple[Metric, ...]:
    return (CLAT,) if workload.name == "sync" else (IOPS,)


def compared(a: Sequence[TrialRecord], b: Sequence[TrialRecord], **more: Any) -> Contrast:
    sides = (Results.of_trials("A", list(a)), Results.of_trials("B", list(b)))
    return contrast(*sides, **{"metrics_of": metrics_of, **more})


class TestPartners:
    def test_by_content_then_by_name_and_what_differs_is_named(self) -> None:
        same, changed = cell("ext4"), cell("xfs")
        other = cell("xfs", bs="64k", tuning={"cpu_governor": "performance", "vm.laptop_mode": "1"})
        lonely = cell("btrfs")
        found = match([same, changed, lonely], [other, same], By.STACK)
        assert [(each.a, each.b) for each in found.partners] == [(same, same), (changed, other)]
        assert [str(each) for each in found.partners[0].differences] == []
        # The governor is a fact of the machine, and told as that.
        assert [str(each) for each in found.partners[1].differences] == [
            "parameters.bs: 4k → 64k", "tuning.vm.laptop_mode: – → 1",
        ]  # fmt: skip
        assert (found.only_a, found.only_b) == ((lonely,), ())

    def test_a_cold_cell_is_no_partner_of_a_warm_one(self) -> None:
        found = match([cell()], [cell(cache=Cache.WARM)], By.STACK)
        assert not found.partners

    def test_stacks_of_one_campaign_by_their_workload(self) -> None:
        left, right = [cell("ext4"), cell("ext4", "seq")], [cell("xfs", "seq"), cell("xfs")]
        found = match(left, right, By.WORKLOAD)
        assert [(each.a.workload.name, each.b.workload.name) for each in found.partners] == [
            ("rand-4k", "rand-4k"), ("seq", "seq"),
        ]  # fmt: skip
        assert not any(each.differences for each in found.partners)

    def test_kernels_of_one_campaign_by_all_else(self) -> None:
        specs = [
            StackSpec(
                name=f"ext4 {kernel}",
                medium=MEDIUM,
                filesystem="ext4",
                machine=MachineSpec(type="uml", kernel=kernel),
            )
            for kernel in ("/boot/a", "/boot/b")
        ]
        found = match([cell(spec=specs[0])], [cell(spec=specs[1])], By.MACHINE)
        assert len(found.partners) == 1
        assert not found.partners[0].differences

    def test_a_stack_is_named_by_itself_or_by_its_file_system(self) -> None:
        one, two = (StackSpec(name=f"ext4 {name}", medium=MEDIUM, filesystem="ext4") for name in ("a", "b"))
        cells = [cell(spec=one), cell(spec=two), cell("xfs")]
        assert chosen(cells, "xfs") == [cells[2]]
        assert chosen(cells, "ext4 b") == [cells[1]]
        with pytest.raises(UsageError, match="2 stacks"):
            chosen(cells, "ext4")
        with pytest.raises(UsageError, match="'ext4 a'"):
            chosen(cells, "zfs")


class TestFacts:
    def differing(self, *allowed: str, **facts: Any) -> tuple[list[str], list[str]]:
        """All that differs, and what of it refuses."""
        one = cell()
        found = compared(trials(one, around(1)), trials(one, around(1), "b", **facts), allowed=allowed)
        return [each.fact for each in found.differences], [each.fact for each in refused(found)]

    def test_equal_facts_differ_in_nothing(self) -> None:
        assert self.differing() == ([], [])

    def test_what_matters_refuses_until_it_is_allowed(self) -> None:
        facts = {"kernel": "6.1.0-26", "governor": "powersave", "hostname": "other"}
        assert self.differing(**facts) == (["kernel", "governor", "hostname"], ["kernel", "governor"])
        assert self.differing("kernel", **facts)[1] == ["governor"]
        assert self.differing("kernel", "governor", **facts)[1] == []
        assert self.differing(ALL, **facts)[1] == []

    def test_what_is_unknown_to_one_side_is_said_and_does_not_refuse(self) -> None:
        assert self.differing(governor=None) == (["governor"], [])

    def test_memory_is_compared_in_whole_gib(self) -> None:
        assert self.differing(memory_bytes=(24 << 30) - 10_000_000) == ([], [])
        assert self.differing(memory_bytes=16 << 30)[1] == ["memory_bytes"]
        assert self.differing("machine", memory_bytes=16 << 30)[1] == []

    def test_the_booted_files_are_no_difference_and_a_switch_is(self) -> None:
        line = "BOOT_IMAGE=/vmlinuz-{} root=/dev/sda1"
        one, two = line.format(25), line.format(26)
        a = trials(cell(), around(1), kernel_command_line=one)
        assert compared(a, trials(cell(), around(1), kernel_command_line=two)).differences == ()
        off = compared(a, trials(cell(), around(1), kernel_command_line=f"{two} mitigations=off"))
        assert [each.b for each in refused(off)] == [("root=/dev/sda1 mitigations=off",)]

    def test_parts_of_a_fact_are_named(self) -> None:
        a = trials(cell(), around(1), mitigations={"meltdown": "Mitigation: PTI", "mds": "Not affected"})
        b = trials(cell(), around(1), mitigations={"meltdown": "Vulnerable", "mds": "Not affected"})
        found = refused(compared(a, b))
        assert [(each.fact, each.a, each.b) for each in found] == [
            ("mitigations.meltdown", ("Mitigation: PTI",), ("Vulnerable",))
        ]
        assert not refused(compared(a, b, allowed=["mitigations"]))
        assert not refused(compared(a, b, allowed=["kernel"]))

    def test_what_a_study_sets_stands_for_what_was_found(self) -> None:
        """B found another governor, but both measured with the one that the study set."""
        tuned = cell(tuning={"cpu_governor": "performance", "vm.dirty_bytes": "1048576"})
        a = trials(tuned, around(1), governor="powersave", dirty_ratio=20)
        b = trials(tuned, around(1), "b", governor="schedutil", dirty_ratio=10)
        assert compared(a, b).differences == ()
        untuned = trials(cell(), around(1), "b", governor="schedutil", dirty_bytes=0, dirty_ratio=20)
        found = {each.fact: (each.a, each.b) for each in refused(compared(a, untuned))}
        assert found == {
            "governor": (("performance",), ("schedutil",)),
            "dirty_bytes": (("1048576",), ("0",)),
            "dirty_ratio": (("0",), ("20",)),
        }

    def test_devices_and_tools_matter_and_the_name_of_a_device_does_not(self) -> None:
        a, b = trials(cell(), around(1)), trials(cell(), around(1), "b")
        b = [
            trial.model_copy(update={"provenance": Provenance(
                machine=FACTS, tools={"fio": "3.36"}, device={"model": "Y", "device": "loop7"})})
            for trial in b
        ]  # fmt: skip
        assert {each.fact for each in refused(compared(a, b))} == {"fio", "device.model"}
        assert {each.fact for each in refused(compared(a, b, allowed=["tools"]))} == {"device.model"}
        # Two stacks of one campaign lie on devices of their own.
        stacks = contrast(
            Results.of_trials("A", a), Results.of_trials("B", b), by=By.WORKLOAD, metrics_of=metrics_of
        )
        assert [each.fact for each in stacks.differences] == ["fio"]


class TestLines:
    def test_slower_and_faster_follow_the_metric(self) -> None:
        sync = cell(workload="sync")
        a = [*trials(cell(), around(1000)), *trials(sync, around(100), metric=CLAT)]
        b = [*trials(cell(), around(880), "b"), *trials(sync, around(80), "b", metric=CLAT)]
        rate, latency = compared(a, b).lines
        assert (rate.outcome, rate.verdict, latency.outcome, latency.verdict) == (
            Outcome.WORSE, "12 % slower", Outcome.BETTER, "20 % faster",
        )  # fmt: skip
        assert rate.ratio == pytest.approx(0.88)
        # Five against five: the third smallest of 25 quotients is 0.88·0.99/1.02 (after 0.98/1.02, 0.98/1.01).
        assert rate.interval is not None
        assert rate.interval.low == pytest.approx(0.88 * 0.99 / 1.02)
        # Disjoint samples of 5: p = 2 / C(10, 5); two lines, so Holm doubles it.
        assert rate.p_value == pytest.approx(2 / 252)
        assert rate.p_family == pytest.approx(4 / 252)

    def test_large_changes_are_factors(self) -> None:
        sync = cell(workload="sync")
        a = [*trials(cell(), around(100)), *trials(sync, around(100), metric=CLAT)]
        b = [*trials(cell(), around(350), "b"), *trials(sync, around(300), "b", metric=CLAT)]
        assert [line.verdict for line in compared(a, b).lines] == ["3.50 × as fast", "3.00 × as long"]

    def test_no_difference_says_what_would_have_been_seen(self) -> None:
        one = cell()
        (line,) = compared(trials(one, around(100)), trials(one, around(100.5), "b")).lines
        assert line.outcome is Outcome.NOT_SEEN
        assert line.detectable is not None
        assert line.verdict == f"no difference ≥ {percent(line.detectable)}"
        assert 0.01 < line.detectable < 0.1

    def test_many_comparisons_make_a_difference_a_maybe(self) -> None:
        """4 against 4, p = 2 / C(8, 4) = 0.029: alone it counts, among three it does not."""
        names = ("x", "y", "z")
        cells = [cell(workload=name) for name in names]
        a = [trial for each in cells for trial in trials(each, around(100)[:4])]
        b = [trial for each in cells for trial in trials(each, around(120)[:4], "b")]
        assert [line.verdict for line in compared(a, b).lines] == ["maybe 20 % faster"] * 3
        assert [line.verdict for line in compared(a[:4], b[:4]).lines] == ["20 % faster"]

    def test_too_few_none_and_unsound(self) -> None:
        one, two, three = cell(workload="x"), cell(workload="y"), cell(workload="z")
        a = [*trials(one, [1, 2, 3]), *trials(two, [1.0] * 5), *trials(three, [0.0] * 5)]
        b = [*trials(one, [1, 2, 3], "b"), *trials(two, [1.0] * 5, "b"), *trials(three, [1.0] * 5, "b")]
        bad = ValidityWarning(kind="kernel_error", severity=Severity.INVALID, message="I/O error")
        b = [trial.model_copy(update={"validity": (bad,)}) if trial.cell == two else trial for trial in b]
        assert [line.verdict for line in compared(a, b).lines] == [
            "too few trials (4 each are enough)", "no sound trial in B", "no ratio: not all values are positive",
        ]  # fmt: skip

    def test_side_by_side_blocks_cancel_drift(self) -> None:
        """Every block is slower than the one before, B always by 10 %: only pairs can show that."""
        ext4, xfs = cell("ext4"), cell("xfs")
        drift = [100 * 0.7**block for block in range(6)]
        a = trials(
            ext4,
            [value * step for value, step in zip(drift, (1.0, 1.01, 0.99, 1.0, 1.01, 0.99), strict=True)],
        )
        b = trials(xfs, [value * 0.9 for value in drift])
        assert compared(a, b, by=By.WORKLOAD, paired=True).lines[0].outcome is Outcome.WORSE
        assert compared(a, b, by=By.WORKLOAD).lines[0].outcome is Outcome.NOT_SEEN

    def test_means_keep_directions_and_block_sizes_apart(self) -> None:
        made = [cell(workload=f"w{n}-{bs}", bs=bs) for bs in ("4k", "1m") for n in (1, 2)]
        a = [trial for each in made for trial in trials(each, around(100))]
        factors = (2.0, 0.5, 3.0, 1.2)
        b = [
            trial
            for each, by in zip(made, factors, strict=True)
            for trial in trials(each, around(100 * by), "b")
        ]
        means = compared(a, b).means
        assert [(mean.block_size, mean.of) for mean in means] == [("4k", 2), ("1m", 2)]
        assert [mean.ratio for mean in means] == [pytest.approx(1.0), pytest.approx(sqrt(3.6))]
        # Each of the two intervals at 97.5 % or more; both lie between the extremes of all quotients.
        interval = means[0].interval
        assert interval is not None
        assert interval.coverage >= 0.95
        assert 0.98 / 1.02 <= interval.low < 1 < interval.high <= 1.02 / 0.98


class TestGate:
    def judged(
        self,
        factors: Sequence[float],
        *,
        values: int = 5,
        slower: float | None = 0.05,
        different: bool = False,
    ) -> gate.Verdict:
        cells = [cell(workload=f"w{number}") for number in range(len(factors))]
        a = [trial for each in cells for trial in trials(each, around(100)[:values])]
        b = [
            trial
            for each, by in zip(cells, factors, strict=True)
            for trial in trials(each, around(100 * by)[:values], "b")
        ]
        return gate.judge(compared(a, b), slower=slower, different=different)

    def counts(self, verdict: gate.Verdict) -> tuple[int, int, int]:
        return len(verdict.fails), len(verdict.clear), len(verdict.unsure)

    def test_what_is_slower_by_the_limit_fails_and_what_rules_it_out_is_clear(self) -> None:
        assert self.counts(self.judged([0.90, 1.0, 1.2])) == (1, 2, 0)
        assert self.judged([0.90, 1.0]).fails[0].workload == "w0"

    def test_a_small_certain_slowdown_does_not_fail(self) -> None:
        """4 % less with ± 2 %: certainly slower, but the interval (0.93 …) reaches 5 %."""
        assert self.counts(self.judged([0.96])) == (0, 0, 1)
        assert self.counts(self.judged([0.96], slower=0.10)) == (0, 1, 0)

    def test_too_few_trials_are_unsure_and_it_says_how_many_would_do(self) -> None:
        verdict = self.judged([0.5, 1.0], values=3)
        assert self.counts(verdict) == (0, 0, 2)
        # Two comparisons: 2 / C(2n, n) ≤ 0.025 needs n = 5 (2/252).
        assert verdict.needed == 5

    def test_a_gain_never_fails_unless_differences_do(self) -> None:
        assert self.counts(self.judged([1.5])) == (0, 1, 0)
        assert self.counts(self.judged([1.5], slower=None, different=True)) == (1, 0, 0)
        assert self.counts(self.judged([1.0], slower=None, different=True)) == (0, 1, 0)

    def test_latency_is_worse_when_it_is_higher(self) -> None:
        one = cell(workload="sync")
        found = compared(trials(one, around(100), metric=CLAT), trials(one, around(110), "b", metric=CLAT))
        assert len(gate.judge(found, slower=0.05, different=False).fails) == 1
        back = compared(trials(one, around(110), metric=CLAT), trials(one, around(100), "b", metric=CLAT))
        assert len(gate.judge(back, slower=0.05, different=False).clear) == 1

    @pytest.mark.parametrize(
        ("text", "value"), [("5%", 0.05), ("5", 0.05), ("0.5 %", 0.005), ("12.5%", 0.125)]
    )
    def test_percentages(self, text: str, value: float) -> None:
        assert fraction(text) == pytest.approx(value)

    @pytest.mark.parametrize("text", ["", "x", "0%", "-5%", "100%", "nan"])
    def test_no_percentages(self, text: str) -> None:
        with pytest.raises(UsageError, match="5%"):
            fraction(text)


def shown(found: Contrast, width: int = 80) -> str:
    console = Console(width=width, color_system=None, file=io.StringIO(), record=True)
    contrast_terminal.show(found, console)
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def test_the_terminal_at_80_columns() -> None:
    a = [*trials(cell(), around(1000)), *trials(cell("xfs"), around(1000))]
    b = [
        *trials(cell(), around(880), "b", kernel="6.1.0-26"),
        *trials(cell("xfs"), around(1200), "b", kernel="6.1.0-26"),
    ]
    said = shown(compared(a, b, allowed=["kernel"]))
    assert (
        said
        == """\
A  A · a · 2026-11-20 21:49 UTC · kernel 6.1.0-25 · 10 trials: 10 sound
B  B · b · 2026-11-20 21:49 UTC · kernel 6.1.0-26 · 10 trials: 10 sound
differs: kernel: 6.1.0-25 → 6.1.0-26

                    A                 B      B ÷ A (95 %)  B is
rand-4k, write iops
  ext4  1k IOPS ± 2 %    880 IOPS ± 2 %  0.88 (0.85–0.91)  12 % slower
  xfs   1k IOPS ± 2 %  1.20k IOPS ± 2 %  1.20 (1.16–1.24)  20 % faster

medians of the sound trials (± half their range, where there is room)"""
    )


class TestCommand:
    """The verb itself, on a real store; what is printed is not looked at here."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> str:
        path = str(tmp_path / "store.sqlite")
        with Store.open(path) as opened:
            for number, (middle, kernel) in enumerate(
                ((100, "6.1.0-25"), (90, "6.1.0-25"), (90, "6.1.0-26"))
            ):
                name = f"2026112{number}-a"
                opened.create_campaign(
                    Campaign(
                        id=name, study_id="s", study_title="S", study_source="", seed=1, cells=(cell(),), trials=5,
                        created=BEGUN + timedelta(days=number), machine={**FACTS, "kernel": kernel},
                    )
                )  # fmt: skip
                for trial in trials(cell(), around(middle), name, kernel=kernel):
                    opened.add_trial(trial)
        return path

    def run(self, store: str, a: str | None = None, b: str | None = None, **more: Any) -> None:
        given: dict[str, Any] = {
            "stack": None, "kernel": None, "metric": ["write_iops"], "differing": None, "force": False, "slower": None,
            "different": False, "unsure": False, "as_json": True,
        }  # fmt: skip
        compare(a, b, **{**given, "store": store, **more})

    def test_another_kernel_is_refused_by_name(self, store: str) -> None:
        with pytest.raises(UnlikeError, match=r"kernel: 6.1.0-25 → 6.1.0-26\n.*--differing kernel"):
            self.run(store)
        self.run(store, differing=["kernel"])
        self.run(store, force=True)

    def test_the_gate_s_codes(self, store: str) -> None:
        # Better in no direction (another tool's metric): different, never slower.
        with pytest.raises(RegressionError, match="1 of 1 comparisons differ"):
            self.run(store, "20261120", "20261121", different=True)
        self.run(store, "last~1", "last", different=True, force=True)
        with pytest.raises(UsageError, match="unsure about what"):
            self.run(store, unsure=True)
        assert (UnlikeError.exit_code, RegressionError.exit_code, UnsureError.exit_code) == (9, 10, 11)

    def test_exports_of_two_machines(self, store: str, tmp_path: Path) -> None:
        with Store.open(store) as opened:
            for name in ("20261120-a", "20261122-a"):
                (tmp_path / f"{name}.json").write_bytes(render(opened.trials(name), Format.JSON))
        paths = [str(tmp_path / f"{name}.json") for name in ("20261120-a", "20261122-a")]
        with pytest.raises(UnlikeError):
            self.run(store, *paths)
        self.run(store, *paths, differing=["kernel"])

    def test_what_does_not_fit_together(self, store: str) -> None:
        for a, b, more, said in (
            ("last", "last", {}, "one and the same"),
            ("last", None, {"stack": ["ext4", "ext4"]}, "with itself"),
            ("last", None, {"kernel": ["6"]}, "twice"),
            ("last", None, {"kernel": ["5", "6"]}, "6.1.0-26"),
            ("last~1", "last", {"stack": ["a", "b", "c"]}, "two at most"),
            ("20261120", "20261121", {"metric": ["write_iosp"]}, "did you mean 'write_iops'"),
            ("20261120", "20261121", {"differing": ["kernl"]}, "did you mean 'kernel'"),
        ):
            with pytest.raises(UsageError, match=said):
                self.run(store, a, b, **more)
