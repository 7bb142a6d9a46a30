"""Tests of the gate, which decides whether a change fails a build, and of refusals and errors of ``fslab compare``."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from datetime import timedelta
from math import exp
from pathlib import Path
from typing import Any

import pytest
from benches.gate_rule import compared as simulated
from benches.gate_rule import judged, series, share
from tests.made import campaign, known, stored
from tests.unit.compared import BEGUN, CLAT, FACTS, IOPS, around, cell, compared, trials

from fslab.analysis import regression_gate
from fslab.analysis.campaign_comparison_lines import CampaignComparison
from fslab.analysis.regression_gate import GateAnswer, GateVerdict, failed_words, gate_words, unsure_words
from fslab.answers.model import INDEPENDENCE_LEAST
from fslab.cli.compare import Gate, compare
from fslab.cli.option_groups import described
from fslab.errors import InconclusiveError, NotComparableError, RegressionError, StoreError, UsageError
from fslab.store import Format
from fslab.store.export import render
from fslab.store.store import Store
from fslab.trial_record import Metric, Status
from fslab.units import Direction, Unit

LIMITS: list[dict[str, Any]] = [{"slower": 0.05}, {"different": True}]


def gate(found: CampaignComparison, *, slower: float | None = None, different: bool = False) -> GateVerdict:
    return regression_gate.judge(found, slower=slower, different=different)


class TestGate:
    def judged(
        self,
        factors: Sequence[float],
        *,
        values: int = 5,
        slower: float | None = 0.05,
        different: bool = False,
    ) -> GateVerdict:
        cells = [cell(workload=f"w{number}") for number in range(len(factors))]
        a = [trial for each in cells for trial in trials(each, around(100)[:values])]
        sides = zip(cells, factors, strict=True)
        b = [trial for each, by in sides for trial in trials(each, around(100 * by)[:values], "b")]
        return gate(compared(a, b), slower=slower, different=different)

    def counts(self, verdict: GateVerdict) -> tuple[int, int, int]:
        return len(verdict.fails), len(verdict.clear), len(verdict.unsure)

    def test_what_is_slower_by_the_limit_fails_and_what_rules_it_out_is_clear(self) -> None:
        assert self.counts(self.judged([0.90, 1.02, 1.2])) == (1, 2, 0)
        assert self.judged([0.90, 1.0]).fails[0].workload == "w0"

    def test_a_small_certain_slowdown_does_not_fail(self) -> None:
        """B is significantly slower, but only by 4 %. The interval starts at 0.93.

        This does not rule out a slowdown of 5 % (unsure), but it rules out 10 % (clear).
        """
        verdict = self.judged([0.96])
        assert self.counts(verdict) == (0, 0, 1)
        assert self.counts(self.judged([0.96], slower=0.10)) == (0, 1, 0)
        figures = [100 * (1 + 0.01 * by) for by in (-1, -0.6, -0.2, 0.2, 0.6, 1)]
        sure = compared(trials(cell(), figures), trials(cell(), [0.957 * each for each in figures], "b"))
        (line,) = sure.lines
        assert (line.answer.holds, line.answer.fragile) == (True, False)
        verdict = gate(sure, slower=0.05)
        assert self.counts(verdict) == (0, 0, 1)
        assert known(verdict.needed) > 6, "until the interval ends before 0.95"

    def test_what_is_ruled_out_only_if_trials_are_independent_is_unsure(self) -> None:
        """Five trials of one line do not show whether they are: an interval that allows for that is wider."""
        assert self.counts(self.judged([1.02])) == (0, 1, 0)
        verdict = self.judged([0.985])
        (line,) = verdict.unsure
        assert known(line.answer.interval).low > 0.95
        assert known(line.answer.interval_if_correlated).low < 0.95
        assert 5 < known(verdict.needed) <= 20

    def test_a_tie_only_if_trials_are_independent_is_unsure(self) -> None:
        """The interval is 0.94 to 1.06, and 0.89 to 1.12 for trials that resemble the ones before."""
        values = [100 * step for step in (0.96, 0.98, 1.0, 1.02, 1.04)]
        found = compared(trials(cell(), values), trials(cell(), values, "b"))
        verdict = gate(found, different=True)
        assert self.counts(verdict) == (0, 0, 1)
        assert found.lines[0].verdict == "alike (± 10 %)"
        assert verdict.needed == INDEPENDENCE_LEAST

    def test_too_few_trials_are_unsure_and_it_says_how_many_would_do(self) -> None:
        verdict = self.judged([0.5, 1.0], values=2)
        assert self.counts(verdict) == (0, 0, 2)
        assert verdict.needed == 3

    @pytest.mark.parametrize(
        ("b", "counted", "told"),
        [
            ([0, 0, 0, 0], (0, 1, 0), "none in 4 trials each (95 % CI: at most 53 % of trials)"),
            ([9, 8, 11, 10], (1, 0, 0), "9.5 more"),
            (
                [0, 0, 10, 0],
                (0, 0, 1),
                "no difference shown: B up to 10 in 1 of 4 trials, A none in 4 trials",
            ),
        ],
    )
    def test_counts_of_nothing_do_not_fail_and_more_losses_do(
        self, b: list[float], counted: tuple[int, int, int], told: str
    ) -> None:
        lost, one = Metric(name="lost", unit=Unit.COUNT, better=Direction.LOWER), cell()
        found = compared(
            trials(one, [0, 0, 0, 0], metric=lost), trials(one, b, "b", lost), metrics_of=lambda _: (lost,)
        )
        assert [line.verdict for line in found.lines] == [told]
        verdict = gate(found, slower=0.05)
        assert self.counts(verdict) == counted
        if counted == (0, 1, 0):
            assert gate_words(verdict) == "PASSED: 1 of 1 figures; no event in 1 of them"

    def noisy(self, spread: float, metric: Metric = IOPS, **limits: Any) -> GateVerdict:
        figures = [100 * (1 + spread * by) for by in (-1, -0.6, -0.2, 0.2, 0.6, 1)]
        one = cell(workload="sync" if metric is CLAT else "noisy")
        found = compared(trials(one, figures, metric=metric), trials(one, figures, "b", metric))
        return gate(found, **limits)

    def test_a_gate_that_would_miss_a_doubling_is_unsure_and_says_so_in_one_line(self) -> None:
        for limits in LIMITS:
            verdict = self.noisy(0.6, **limits)
            assert self.counts(verdict) == (0, 0, 1)
            told = re.fullmatch(
                r"UNSURE: 1 of 1 figures; about (\d+) trials each are needed", gate_words(verdict)
            )
            assert told is not None
            assert int(told[1]) > 100
        sure = self.noisy(0.001, slower=0.05)
        assert gate_words(sure) == "PASSED: 1 of 1 figures; a slowdown of 5.0 % is ruled out"
        alike = self.noisy(0.001, different=True)
        assert self.counts(alike) == (0, 1, 0)
        assert gate_words(alike) == "PASSED: 1 of 1 figures; a difference of 10 % is ruled out"

    def test_a_slowdown_is_ruled_out_by_the_worse_end_of_the_interval(self) -> None:
        rates, times = (self.noisy(0.1, metric, slower=0.05) for metric in (IOPS, CLAT))
        assert self.counts(rates) == self.counts(times) == (0, 0, 1)
        # 5 % less is 5.1 % on logarithms, and 5 % more is 4.9 %.
        assert known(rates.needed) <= known(times.needed) <= 1.2 * known(rates.needed)

    def test_about_as_many_trials_as_it_says_are_enough(self) -> None:
        """An interval narrows with the square root of the number of trials."""
        few = self.noisy(0.1, slower=0.05)
        figures = [100 * (1 + 0.1 * by) for by in (-1, -0.6, -0.2, 0.2, 0.6, 1)] * (
            known(few.needed) // 6 + 1
        )
        random.Random(2).shuffle(figures)  # else they would resemble the ones before
        one = cell(workload="noisy")
        many = gate(compared(trials(one, figures), trials(one, figures, "b")), slower=0.05, different=False)
        assert self.counts(many) == (0, 1, 0)

    def test_what_worked_and_now_fails_is_no_pass(self) -> None:
        whole, broken, invalid = (cell(workload=name) for name in ("whole", "broken", "invalid"))
        good = [*trials(whole, around(100)), *trials(broken, around(100)), *trials(invalid, around(100))]
        crashed = {"status": Status.FAILED, "failure": "crashed", "metrics": {}}
        b = [
            *trials(whole, around(100), "b"),
            *(each.model_copy(update=crashed) for each in trials(broken, around(100), "b")),
            *(
                each.model_copy(update={"status": Status.INVALID})
                for each in trials(invalid, around(100), "b")
            ),
        ]
        verdict = gate(compared(good, b), slower=0.06)
        assert [line.workload for line in verdict.fails] == ["broken"]
        assert [line.workload for line in verdict.unsure] == ["invalid"]  # invalid trials are not failures
        assert failed_words(verdict) == (
            "1 of 3 comparisons are slower by 6.0 % or more, or failed in B: "
            "broken on ext4, write_iops: failed in B"
        )
        assert self.counts(gate(compared(b, good), slower=0.06)) == (0, 1, 2)
        assert self.counts(gate(compared(good, b), different=True)) == (1, 1, 1)

    def test_a_rate_that_falls_to_0_fails(self) -> None:
        one = cell()
        works, stopped = trials(one, around(100)), trials(one, [0.0] * 6, "b")
        for limit, what in zip(LIMITS, ("are slower by 5.0 % or more", "differ"), strict=True):
            verdict = gate(compared(works, stopped), **limit)
            assert failed_words(verdict) == (
                f"1 of 1 comparisons {what}, or are 0 in B: rand-4k on ext4, write_iops: 0 in all 6 trials of B"
            )
            unsure = (
                compared(works, trials(one, [0.0] * 2, "b")),  # by chance, if a rate is often 0
                compared(works, trials(one, [0.0, 0.0, 1.0], "b")),
                compared(trials(one, [0.0, 100.0, 100.0]), stopped),
                compared(trials(one, [0.0] * 6), trials(one, around(100), "b")),
            )
            for found in unsure:
                assert self.counts(gate(found, **limit)) == (0, 0, 1)

    def test_a_cell_that_b_lacks_is_no_pass(self) -> None:
        both, gone = cell(workload="both"), cell(workload="gone")
        a = [*trials(both, around(100)), *trials(gone, around(100))]
        same, half = (trials(both, around(middle), "b") for middle in (100, 50))
        for limits in ({"slower": 0.06}, {"different": True}):
            verdict = gate(compared(a, same), **limits)
            assert verdict.answer is GateAnswer.UNSURE
            assert gate_words(verdict) == "UNSURE: 0 of 1 figures; B lacks 1 cell of A"
            assert "gone on ext4" in unsure_words(verdict)
            assert gate(compared(same, a), **limits).answer is GateAnswer.CLEAR
        worse = gate(compared(a, half), slower=0.06)
        assert gate_words(worse) == (
            "FAILED: 1 of 1 figures are slower by 6.0 % or more; B lacks 1 cell of A"
        )

    def test_no_trials_are_asked_for_where_they_give_no_ratio(self) -> None:
        one, other = cell(workload="one"), cell(workload="other")
        stopped = compared(trials(one, around(100)), trials(one, [0.0, 0.0, 0.0, 0.0, 1.0], "b"))
        verdict = gate(stopped, slower=0.05)
        told = "1 without a ratio: a side has no usable value, or a value is 0"
        assert gate_words(verdict) == f"UNSURE: 1 of 1 figures; {told}"
        a = [*trials(one, around(100)), *trials(other, around(100)[:2])]
        b = [*trials(one, [0.0, 0.0, 0.0, 0.0, 1.0], "b"), *trials(other, around(100)[:2], "b")]
        verdict = gate(compared(a, b), slower=0.05)
        assert gate_words(verdict) == (f"UNSURE: 2 of 2 figures; about 3 trials each are needed; {told}")

    def test_what_is_measured_at_the_limit_needs_the_trials_that_show_a_difference(self) -> None:
        figures = [100 * (1 + 0.1 * by) for by in (-1, -0.6, -0.2, 0.2, 0.6, 1)]
        one = cell(workload="near")
        found = compared(trials(one, figures), trials(one, [0.95 * each for each in figures], "b"))
        (line,) = found.lines
        assert line.answer.further
        verdict = gate(found, slower=0.05)
        assert verdict.needed == 6 + line.answer.further

    def test_what_holds_only_if_trials_are_independent_fails_no_build(self) -> None:
        one = cell(workload="near")
        figures = [100 * (1 + 0.03 * by) for by in (-1, -0.6, -0.2, 0.2, 0.6, 1)]
        found = compared(trials(one, figures), trials(one, [0.945 * each for each in figures], "b"))
        (line,) = found.lines
        assert line.answer.holds
        assert line.answer.fragile
        for limits in LIMITS:
            verdict = gate(found, **limits)
            assert self.counts(verdict) == (0, 0, 1)
            assert verdict.needed == 20

    def test_a_gain_never_fails_unless_differences_do(self) -> None:
        assert self.counts(self.judged([1.5])) == (0, 1, 0)
        assert self.counts(self.judged([1.5], slower=None, different=True)) == (1, 0, 0)
        assert self.counts(self.judged([1.0], slower=None, different=True)) == (0, 1, 0)

    def test_the_more_severe_of_two_answers_counts(self) -> None:
        for factor in (0.5, 1.5):
            verdict = self.judged([factor], different=True)
            assert self.counts(verdict) == (1, 0, 0)
            assert gate_words(verdict) == "FAILED: 1 of 1 figures differ"

    def test_a_stack_is_not_slower_than_itself_but_can_fail(self) -> None:
        one = cell()
        crashed = {"status": Status.FAILED, "failure": "crashed", "metrics": {}}
        half = trials(one, around(50), "b")
        for limits in LIMITS:
            for b, counted in (
                (half, (0, 1, 0)), ([each.model_copy(update=crashed) for each in half], (1, 0, 0)),
                (trials(one, [0.0] * 6, "b"), (1, 0, 0)),
            ):  # fmt: skip
                found = compared(trials(one, around(100)), b).model_copy(update={"same_stack": "ext4"})
                verdict = gate(found, **limits)
                assert self.counts(verdict) == counted
                if verdict.answer is GateAnswer.CLEAR:
                    assert gate_words(verdict) == "PASSED: 1 of 1 figures; A and B are the same stack"
        cpu = Metric(name="cpu_user", unit=Unit.PERCENT, better=Direction.NEITHER)
        sides = (trials(one, around(100), side, cpu) for side in ("a", "b"))
        found = compared(*sides, metrics_of=lambda _: (cpu,)).model_copy(update={"same_stack": "ext4"})
        assert gate(found, slower=0.05).total == 0, "nothing was tested"

    def test_no_smaller_difference_is_ruled_out_than_that_of_the_widest_margin(self) -> None:
        tail = Metric(name="clat_p99", unit=Unit.NANOSECONDS, better=Direction.LOWER)
        one, other = cell(workload="one"), cell(workload="other")
        a, b = (
            [*trials(one, around(100), side), *trials(other, around(100), side, tail)] for side in ("a", "b")
        )
        found = compared(a, b, metrics_of=lambda of: (tail,) if of.name == "other" else (IOPS,))
        least, most = sorted(line.answer.margin for line in found.lines)
        assert least < most == gate(found, slower=None, different=True).margin

    def test_latency_is_worse_when_it_is_higher(self) -> None:
        one = cell(workload="sync")
        found = compared(trials(one, around(100), metric=CLAT), trials(one, around(110), "b", metric=CLAT))
        assert len(gate(found, slower=0.05).fails) == 1
        back = compared(trials(one, around(110), metric=CLAT), trials(one, around(100), "b", metric=CLAT))
        assert len(gate(back, slower=0.05).clear) == 1

    @pytest.mark.parametrize(
        ("text", "value"), [("5%", 0.05), ("0.05", 0.05), ("0.5 %", 0.005), ("12.5%", 0.125)]
    )
    def test_shares_are_written_as_for_precision(self, text: str, value: float) -> None:
        assert Gate(slower=text).limit() == pytest.approx(value)

    @pytest.mark.parametrize("text", ["", "x", "0%", "-5%", "100%", "nan", "5"])
    def test_no_shares(self, text: str) -> None:
        with pytest.raises(UsageError, match="write 5%"):
            Gate(slower=text).limit()


class TestCommand:
    """``fslab compare`` with a real store. The printed text is not checked."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> str:
        measured = []
        for number, (middle, kernel) in enumerate(((100, "6.1.0-25"), (90, "6.1.0-25"), (90, "6.1.0-26"))):
            name, machine = f"2026112{number}-a", {**FACTS, "kernel": kernel}
            begun = BEGUN + timedelta(days=number)
            made = campaign(name, cells=(cell(),), created=begun, machine=machine)
            measured.append((made, trials(cell(), around(middle), name, kernel=kernel)))
        return stored(tmp_path / "store.sqlite", measured)

    def run(self, store: str, a: str | None = None, b: str | None = None, **more: Any) -> None:
        given: dict[str, Any] = {
            "stack": None, "kernel": None, "metric": ["write_iops"], "differing": None, "force": False, "slower": None,
            "different": False, "unsure_ok": False, "as_json": True,
        }  # fmt: skip
        described(compare)(a=a, b=b, **{**given, "store": store, **more})

    def test_another_kernel_is_refused_by_name(self, store: str) -> None:
        with pytest.raises(NotComparableError, match=r"kernel: 6.1.0-25 → 6.1.0-26\n.*--differing kernel"):
            self.run(store)
        self.run(store, differing=["kernel"])
        self.run(store, force=True)

    def test_the_gate_s_codes(self, store: str) -> None:
        # The second campaign is 10 % slower than the first, and the third is equal to the second.
        with pytest.raises(RegressionError, match="1 of 1 comparisons differ"):
            self.run(store, "20261120", "20261121", different=True)
        with pytest.raises(InconclusiveError, match=r"a slowdown of 0\.10? % is neither"):
            self.run(store, "last~1", "last", slower="0.1%", force=True)
        self.run(store, "last~1", "last", slower="0.1%", force=True, unsure_ok=True)
        self.run(store, "last~1", "last", different=True, force=True)
        with pytest.raises(UsageError, match="needs --fail-if-slower"):
            self.run(store, unsure_ok=True)
        codes = NotComparableError.exit_code, RegressionError.exit_code, InconclusiveError.exit_code
        assert codes == (9, 10, 11)

    def test_a_gate_that_tests_no_figure_does_not_pass(self, tmp_path: Path) -> None:
        """No CPU time is better or worse."""
        cpu = Metric(name="cpu_user", unit=Unit.PERCENT, better=Direction.NEITHER)
        for name, middle in (("a", 10), ("b", 20)):
            found = trials(cell(), around(middle), name, metric=cpu)
            (tmp_path / f"{name}.json").write_bytes(render(found, Format.JSON))
        paths = [str(tmp_path / f"{name}.json") for name in ("a", "b")]
        with pytest.raises(UsageError, match="tests no figure"):
            self.run("", *paths, metric=["cpu_user"], slower="5%")
        with pytest.raises(RegressionError):
            self.run("", *paths, metric=["cpu_user"], different=True)

    def test_exports_of_two_machines(self, store: str, tmp_path: Path) -> None:
        with Store.open(store) as opened:
            for name in ("20261120-a", "20261122-a"):
                (tmp_path / f"{name}.json").write_bytes(render(opened.trials(name), Format.JSON))
        paths = [str(tmp_path / f"{name}.json") for name in ("20261120-a", "20261122-a")]
        with pytest.raises(NotComparableError):
            self.run(store, *paths)
        self.run(store, *paths, differing=["kernel"])

    def test_what_does_not_fit_together(self, store: str) -> None:
        for a, b, more, said in (
            ("last", "last", {}, "the same campaign"),
            ("last", None, {"stack": ["ext4", "ext4"]}, "with itself"),
            ("last", None, {"kernel": ["6"]}, "twice"),
            ("last", None, {"kernel": ["5", "6"]}, "6.1.0-26"),
            ("last~1", "last", {"stack": ["a", "b", "c"]}, "at most twice"),
            ("20261120", "20261121", {"metric": ["write_iosp"]}, "did you mean 'write_iops'"),
            ("20261120", "20261121", {"differing": ["kernl"]}, "did you mean 'kernel'"),
        ):
            with pytest.raises(UsageError, match=said):
                self.run(store, a, b, **more)

    def test_one_campaign_alone_is_told_what_can_be_compared(self, tmp_path: Path) -> None:
        path = str(tmp_path / "one.sqlite")
        with Store.open(path) as opened:
            opened.create_campaign(campaign("20261120-a", cells=(cell(),), machine=FACTS))
        with pytest.raises(StoreError, match=r"the store has 1 campaign\n.*run a study twice, or .*--stack"):
            self.run(path)
        with pytest.raises(StoreError, match="fslab results --list"):
            self.run(path, "last~1", "last")


class TestErrorRates:
    """How often the gate fails with and without a slowdown: twelve lines of log-normal figures, a limit of 5 %."""

    def test_false_alarms_are_few(self) -> None:
        # 5 %, and three standard errors of 1.26 % each (300 runs).
        assert share(0.0, trials=8, scatter=0.05, runs=300) <= 0.05 + 3 * 0.0126

    @pytest.mark.parametrize("count", [8, 20])
    def test_trials_that_resemble_the_ones_before_fail_no_more_builds(self, count: int) -> None:
        """Plain intervals of these show a difference in about half of the runs."""
        rng, cells, runs = random.Random(3), [cell(workload=f"w{number}") for number in range(12)], 40
        fails = 0
        for _ in range(runs):
            a, b = (
                [
                    trial
                    for each in cells
                    for trial in trials(each, [100 * exp(one) for one in series(rng, count, 0.02, 0.5)], name)
                ]
                for name in "ab"
            )
            fails += bool(gate(compared(a, b), different=True).fails)
        assert fails / runs <= 0.05 + 3 * 0.0345  # the standard error of 5 % in 40 runs

    def test_regressions_are_found(self) -> None:
        """Eight trials of twelve lines show whether trials resemble the ones before."""
        assert share(0.07, trials=8, scatter=0.02, runs=100) >= 0.95 - 3 * 0.022
        assert share(0.15, trials=10, scatter=0.05, runs=100) >= 0.9

    @pytest.mark.parametrize("count", [4, 5])
    def test_what_ranks_of_few_trials_of_twelve_lines_cannot_show_is_found(self, count: int) -> None:
        """2 / C(2n, n) is at most 0.05 / 12 from 6 trials on: below, means are compared instead."""
        assert [each.workload for each in judged(0.5, trials=count, scatter=0.01, seed=1).fails] == ["w0"]
        assert share(0.15, trials=count, scatter=0.01, runs=100) >= 0.9
        same = (simulated(0.0, trials=count, scatter=0.02, along=0.5, seed=seed) for seed in range(300))
        false = sum(bool(gate(each, different=True).fails) for each in same)
        assert false / 300 <= 0.05 + 3 * 0.0126  # the standard error of 5 % in 300 runs
