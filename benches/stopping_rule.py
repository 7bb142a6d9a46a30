"""Simulates the stopping rule, a fixed number of trials, and rerunning until the spread is small.

Two cells whose true ratio is known are measured in blocks; each rule decides when to stop and what to conclude.
fslab's own code computes the intervals, for many comparisons at once. Prints the tables of docs/simulations.md; with
``--write``, replaces them in that file. Fixed seeds; takes about 8 minutes on one core.

    python benches/stopping_rule.py [--repetitions 1000] [--write docs/simulations.md]
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log, log1p, sqrt
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.simulations_page import main, table
from benches.stopping_data import MOST, SHAPES, Floats, Shape, autocorrelated, measure

from fslab.analysis.table_rows import row_answers
from fslab.analysis.workload_groups import Sample
from fslab.cell import MediumSpec, StackSpec
from fslab.stats.counts import compare_counts
from fslab.stats.difference_interval import Located, locate
from fslab.stats.estimate_model import CORRELATED, INDEPENDENCE_LEAST
from fslab.stats.interim_looks import Looks
from fslab.stats.moderated_variance import fit
from fslab.stats.paired_differences import takes_ranks
from fslab.stopping_settings import MARGIN
from fslab.units import Direction, Unit

SPREADS = (0.003, 0.01, 0.03, 0.1, 0.3)
RATIOS = (1.0, 1.02, 1.05, 1.2, 2.0)
PRECISION, FIRST = 0.05, 5
TIE_SPREADS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1)
LOOKS = Looks(first=FIRST, most=MOST)
LATE = Looks(first=20, most=MOST)
MEMORY = MediumSpec(name="memory", type="ram")
COMMAND = "benches/stopping_rule.py"
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcomes:
    """The results of a rule for many comparisons; each array has one value per comparison.

    ``covered``: whether the intervals of all its looks contain the true ratio. ``verdict``: 1 if a is larger, −1 if b
    is larger, 0 if they are equivalent, NaN if the comparison stays open. ``trials``: trials per cell.
    """

    covered: Flags
    verdict: Floats
    trials: Floats

    @property
    def answered(self) -> Flags:
        return ~np.isnan(self.verdict)

    @property
    def decided(self) -> Flags:
        found: Flags = np.abs(self.verdict) == 1
        return found

    def wrong(self, ratio: float) -> Flags:
        """Return which verdicts are wrong for the true ratio.

        Wrong is a difference that does not exist or has the other direction, and "equivalent" for a difference larger
        than the precision.
        """
        beyond = abs(log(ratio)) > log1p(PRECISION) * (1 + 1e-9)
        found: Flags = (self.decided & (self.verdict != np.sign(log(ratio)))) | ((self.verdict == 0) & beyond)
        return found


Rule = Callable[[Floats, Floats, float], Outcomes]


def interval(differences: Floats, coverage: float) -> Located:
    return locate(differences, coverage, ranks=takes_ranks(differences.shape[1], coverage))


def verdict_of(found: Located, precision: float) -> Floats:
    """Return the verdicts (see ``Outcomes``). A comparison that is decided and equivalent counts as decided."""
    verdict = np.where(equivalent(found, precision), 0.0, np.nan)
    return np.where(found.low > 0, 1.0, np.where(found.high < 0, -1.0, verdict))


def equivalent(found: Located, precision: float) -> Flags:
    limit = log1p(precision)
    inside: Flags = (-limit <= found.low) & (found.high <= limit)
    return inside


def sure(found: Located, verdict: Floats) -> Flags:
    """Return which comparisons are decided, and would be for an autocorrelation of 0.5.

    For fewer than 20 blocks: decided, but not ``RatioEstimate.rests_on_independence``.
    """
    middle, half = (found.low + found.high) / 2, (found.high - found.low) / 2
    kept: Flags = (np.abs(verdict) == 1) & (np.abs(middle) >= CORRELATED / found.widening * half)
    return kept


def covers(found: Located, ratio: float) -> Flags:
    inside: Flags = (found.low <= log(ratio)) & (log(ratio) <= found.high)
    return inside


def repeated(
    a: Floats, b: Floats, ratio: float, *, looks: Looks, precision: float = PRECISION,
    margin: bool = True,
) -> Outcomes:  # fmt: skip
    """Look after the scheduled numbers of blocks, and after ``MOST`` blocks, until it is decided.

    ``margin``: below 20 blocks, a difference ends a comparison only if it does not rest on independent trials
    (``sure``).
    """
    count = len(a)
    covered, verdict, trials = np.ones(count, bool), np.full(count, np.nan), np.full(count, float(MOST))
    running, blocks = np.arange(count), 0
    while blocks < MOST and len(running):
        blocks = min(MOST, looks.next_after(blocks))
        found = interval((a - b)[running, :blocks], looks.coverage_at(blocks))
        covered[running] &= covers(found, ratio)
        now = verdict_of(found, precision)
        settled = ~np.isnan(now)
        if margin and blocks < INDEPENDENCE_LEAST:
            settled = sure(found, now) | equivalent(found, precision)
        ended = settled | (blocks == MOST)
        verdict[running[ended]], trials[running[ended]] = now[ended], blocks
        running = running[~ended]
    return Outcomes(covered=covered, verdict=verdict, trials=trials)


def until_decided(looks: Looks = LOOKS, precision: float = PRECISION) -> Rule:
    """Return fslab's rule."""
    return lambda a, b, ratio: repeated(a, b, ratio, looks=looks, precision=precision)


def fixed(blocks: int, precision: float = PRECISION) -> Rule:
    """Return the rule that looks once, with 95 %, after ``blocks`` blocks."""

    def conclude(a: Floats, b: Floats, ratio: float) -> Outcomes:
        found = interval((a - b)[:, :blocks], 0.95)
        trials = np.full(len(a), float(blocks))
        return Outcomes(covered=covers(found, ratio), verdict=verdict_of(found, precision), trials=trials)

    return conclude


def while_spread(a: Floats, b: Floats, ratio: float) -> Outcomes:
    """Apply the rule of the Phoronix Test Suite: 3 runs of each cell, more while their CoV is 2.5 % or more.

    This is its increase_run_count_check for runs of less than two minutes: up to 12 runs; up to 15 if the CoV has
    changed by less than half of its value after 3 runs. Cell b is measured after cell a. The conclusion comes from
    Welch's t interval at 95 % on logarithms, which the suite itself does not print.
    """
    mean_a, error_a, runs_a = _reruns(a, np.zeros(len(a), int))
    mean_b, error_b, runs_b = _reruns(b, runs_a)
    error = np.sqrt(error_a**2 + error_b**2)
    freedom = error**4 / (error_a**4 / (runs_a - 1) + error_b**4 / (runs_b - 1))
    half, middle = stdtrit(np.maximum(1, np.floor(freedom)), 0.975) * error, mean_a - mean_b
    found = Located(
        center=middle, low=middle - half, high=middle + half, asymmetric=np.zeros(len(a), bool),
        widening=np.ones(len(a)), coverage=0.95, error=error, freedom=freedom,
    )  # fmt: skip
    trials = (runs_a + runs_b) / 2
    return Outcomes(covered=covers(found, ratio), verdict=verdict_of(found, PRECISION), trials=trials)


def _reruns(cell: Floats, start: NDArray[np.int64]) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return the mean and the standard error of the logarithms of a cell's runs, and the number of runs.

    ``start``: the index of the first run in the row of each comparison.
    """
    runs = np.take_along_axis(cell, start[:, None] + np.arange(15), axis=1)
    values, first, done = np.exp(runs), None, np.full(len(cell), 0)
    for count in range(3, 16):
        deviation = values[:, :count].std(axis=1, ddof=1) / values[:, :count].mean(axis=1)
        first = deviation if first is None else first
        more = (count < 12) | ((count < 15) & (np.abs(first - deviation) < first / 2))
        done[(done == 0) & ((deviation < 0.025) | ~more)] = count
    kept = np.arange(15) < done[:, None]
    mean = np.where(kept, runs, 0).sum(axis=1) / done
    squares = np.where(kept, (runs - mean[:, None]) ** 2, 0).sum(axis=1)
    return mean, np.sqrt(squares / (done - 1) / done), done


# -- tables

RULES: dict[str, Rule] = {
    "fslab, until decided": until_decided(),
    "rerun while CoV > 2.5 %": while_spread,
}
# The shapes of the table over all ratios; the others are between these.
TELLING = {
    "log-normal", "bimodal in one cell only", "the same, 85 : 15", "autocorrelated (AR 0.5)",
}  # fmt: skip
# Nothing is called equivalent here: a comparison that ended as equivalent could no longer show a false difference.
NULL_RULES: dict[str, Rule] = {
    **{f"{blocks} blocks": fixed(blocks, 0) for blocks in (5, 10, 20, 40)},
    "until decided, 5 to 40": until_decided(precision=0),
    "the same without the margin": lambda a, b, ratio: repeated(
        a, b, ratio, looks=LOOKS, precision=0, margin=False
    ),
    "until decided, 20 to 40": until_decided(LATE, precision=0),
}


def data_for(shape: Shape, spread: float, ratio: float, count: int) -> tuple[Floats, Floats]:
    """Return the data of ``measure``. The seed depends on the arguments, so that all rules get the same data."""
    seed = zlib.crc32(f"{shape.name} {spread} {ratio}".encode())
    return measure(np.random.default_rng(seed), shape, spread, ratio, count)


def percent(hits: Flags | list[Flags]) -> str:
    return f"{100 * np.concatenate(np.atleast_2d(hits)).mean():.1f}"


def over_grid(rule: Rule, shape: Shape, count: int) -> list[str]:
    """Return table cells over all ratios and spreads, in the order of ``GRID_HEAD`` and ``TRIALS_HEAD``."""
    covered: list[Flags] = []
    false: list[Flags] = []
    wrong: list[Flags] = []
    known: list[Flags] = []
    trials: list[str] = []
    for spread in SPREADS:
        used = []
        for ratio in RATIOS:
            found = rule(*data_for(shape, spread, ratio, count), ratio)
            covered.append(found.covered)
            (false if ratio == 1 else wrong).append(found.wrong(ratio))
            known.append(found.answered)
            used.append(found.trials.mean())
        if spread in SHOWN:
            trials.append(f"{np.mean(used):.1f}")
    return [*map(percent, (covered, false, wrong, known)), *trials]


GRID_HEAD = ["covered %", "false difference at ratio 1 %", "wrong otherwise %", "answered %"]
SHOWN = SPREADS[2:]  # with less noise, each rule needs about its fewest trials
TRIALS_HEAD = [f"{'trials at CoV ' if n == 0 else ''}{100 * s:g} %" for n, s in enumerate(SHOWN)]


def by_shape(count: int) -> str:
    rows = (
        [shape.name, name, *over_grid(rule, shape, count)]
        for shape in SHAPES
        if shape.name in TELLING
        for name, rule in RULES.items()
    )
    return table(["data", "rule", *GRID_HEAD, *TRIALS_HEAD], rows, words=2)


def nulls(count: int) -> str:
    rows = (
        [
            shape.name,
            *(percent(rule(*data_for(shape, 0.1, 1.0, count), 1.0).decided) for rule in NULL_RULES.values()),
        ]
        for shape in SHAPES
    )
    return table(["data, ratio 1", *NULL_RULES], rows)


def by_autocorrelation(count: int) -> str:
    """Return the table of the cost (without autocorrelation) and the benefit (with it) of widened intervals."""
    rng = np.random.default_rng(13)
    rows = [
        [str(blocks), f"{along:g}", *_with_and_without(rng, blocks, along, count)]
        for blocks in (10, 15, 20, 30)
        for along in (0.0, 0.5, 0.7)
    ]
    head = [
        "blocks", "autocorrelation", "false differences, plain %", "widened %", "median width ÷ plain",
        "power where plain has 80 %",
    ]  # fmt: skip
    return table(head, rows)


def _with_and_without(rng: np.random.Generator, blocks: int, along: float, count: int) -> list[str]:
    samples = autocorrelated(rng, count, along)[:, :blocks]
    found = interval(samples, 0.95)
    plain_low = found.center - (found.center - found.low) / found.widening
    plain_high = found.center + (found.high - found.center) / found.widening
    shift = np.quantile(-plain_low, 0.8)  # 80 % of the plain intervals show a difference of this size
    return [
        percent((plain_low > 0) | (plain_high < 0)),
        percent((found.low > 0) | (found.high < 0)),
        f"{np.median(found.widening):.2f}",
        percent(found.low + shift > 0) if along == 0 else "",
    ]


# Groups of cells that are alike, and the number of workloads.
FAMILIES = (((3,), 1), ((2, 1), 1), ((6,), 1), ((5, 1), 1), ((3, 3), 1), ((3,), 8))


def by_family(count: int) -> str:
    """Return how many rows of cells have at least one false difference, of the kind of rows with the most.

    A difference that holds only if trials are independent is not counted. Cells of different groups differ by a factor
    of 2, so that their differences are true.
    """
    rows = [
        _false_rows(groups, workloads, along, count) for groups, workloads in FAMILIES for along in (0.0, 0.5)
    ]
    most = [f"{max(kind):.1f} %" for kind in zip(*rows, strict=True)]
    groups = ", ".join(" + ".join(map(str, each)) for each, workloads in FAMILIES if workloads == 1)
    return (
        f"Rows of a table: at most {most[0]} (10 blocks), {most[1]} (20), {most[2]} (40) and {most[3]} (until decided, "
        f"5 to 40) of {count:,} rows of one kind have a false difference after Holm's correction. The kinds: {groups} "
        f"cells (cells of different groups differ by a factor of 2), or 3 cells with 7 more workloads, each with "
        'autocorrelations of 0 and 0.5. Differences that are marked "only if trials are independent" do not count.'
    )


def _false_rows(groups: Sequence[int], workloads: int, along: float, count: int) -> list[float]:
    cells, group = sum(groups), [number for number, size in enumerate(groups) for _ in range(size)]
    rng = np.random.default_rng(cells)
    data = [
        [0.1 * autocorrelated(rng, count, along) + log(2) * group[cell] for cell in range(cells)]
        for _ in range(workloads)
    ]
    hits = np.zeros(4)
    for number in range(count):
        own = [[series[number] for series in workload] for workload in data]
        hits[:3] += [bool(_false(own, group, blocks, None)) for blocks in (10, 20, 40)]
        blocks = 0
        while blocks < MOST:
            blocks = min(MOST, LOOKS.next_after(blocks))
            if _false(own, group, blocks, LOOKS):
                hits[3] += 1
                break
    return [float(100 * hit / count) for hit in hits]


def _false(own: list[list[Floats]], group: Sequence[int], blocks: int, looks: Looks | None) -> int:
    """Return how many pairs of one group, in the first workload's row, are shown to differ by fslab's analysis."""
    logs = [[dict(enumerate(map(float, series[:blocks]))) for series in workload] for workload in own]
    prior = fit(logs)
    prior = prior and prior.times(2)
    samples = [
        Sample(
            stack=str(number),
            spec=StackSpec(name=str(number), medium=MEMORY),
            values={block: exp(log) for block, log in one.items()},
        )
        for number, one in enumerate(logs[0])
    ]
    row = row_answers(samples, Direction.HIGHER, unit=Unit.IOPS, looks=looks, prior=lambda *_: prior)
    return sum(
        bool(each.holds) and not each.fragile
        for each in row.answers
        if group[int(each.over)] == group[int(each.under)]
    )


def by_tie(count: int) -> str:
    """Return the table of how often cells that differ by the margin of 10 % are called alike.

    Of several spreads, that with the most: with less noise, the difference is shown; with more, nothing is.
    """
    rules = {
        **{f"{blocks} blocks": fixed(blocks, MARGIN) for blocks in (5, 10, 20)},
        "until decided, 5 to 40": until_decided(precision=MARGIN),
    }
    rows = [
        [f"{along:g}", *(f"{max(_alike(rule, along, count)):.1f}" for rule in rules.values())]
        for along in (0.0, 0.5)
    ]
    return table(["autocorrelation", *rules], rows)


def _alike(rule: Rule, along: float, count: int) -> list[float]:
    """Return how often the rule calls cells that differ by the margin equivalent, in %, by the spread of a cell."""
    ratio = 1 + MARGIN
    rng = np.random.default_rng(19)
    noise = [autocorrelated(rng, count, along) for _ in "ab"]
    found = [rule(spread * noise[0] + log(ratio), spread * noise[1], ratio) for spread in TIE_SPREADS]
    return [100 * (each.verdict == 0).mean() for each in found]


# Events per trial of the two cells. "In bursts": ten at once, in so few trials that the mean is the same.
EVENTS = ((0.0, 0.0), (0.1, 0.1), (0.5, 0.5), (0.0, 1.0), (0.5, 1.5), (0.0, 2.0))
SINGLE, BURSTS, AMOUNTS = "single", "in bursts of 10", "amounts"
BURST, AMOUNT_SPREAD = 10, 1.0
COUNTED = (4, 20)  # blocks


def by_events(count: int) -> str:
    """Return the table of counts of events of which most are 0, and of the amounts of such events."""
    rng = np.random.default_rng(17)
    rows = [
        [kind, f"{a:g}", f"{b:g}", *_counted(rng, (a, b), kind, count)]
        for kind in (SINGLE, BURSTS, AMOUNTS)
        for a, b in (EVENTS if kind == SINGLE else EVENTS[2:])
    ]
    return table(["events", "true mean of a", "of b", *(f"{blocks} blocks" for blocks in COUNTED)], rows)


def _events(rng: np.random.Generator, mean: float, kind: str, count: int) -> Floats:
    """Return what was counted in each trial. An amount is the sum of what its events took, log-normal with mean 1."""
    burst = BURST if kind == BURSTS else 1
    number = rng.poisson(mean / burst, (count, max(COUNTED)))
    if kind != AMOUNTS:
        return burst * number.astype(float)
    each = np.exp(rng.normal(-(AMOUNT_SPREAD**2) / 2, AMOUNT_SPREAD, (*number.shape, number.max(initial=0))))
    found: Floats = np.where(np.arange(each.shape[2]) < number[..., None], each, 0).sum(axis=2)
    return found


def _counted(rng: np.random.Generator, means: tuple[float, float], kind: str, count: int) -> list[str]:
    a, b = (_events(rng, mean, kind, count) for mean in means)
    found = []
    for blocks in COUNTED:
        pairs = zip(a[:, :blocks].tolist(), b[:, :blocks].tolist(), strict=True)
        estimates = [
            compare_counts(dict(enumerate(one)), dict(enumerate(other)), amounts=kind == AMOUNTS)
            for one, other in pairs
        ]
        seen = [each for each in estimates if each.more_interval is not None]
        true = means[0] - means[1]
        covered = sum(each.more_interval.low <= true <= each.more_interval.high for each in seen)  # type: ignore[union-attr]
        shares = (
            1 - len(seen) / count,
            covered / len(seen) if seen else None,
            sum(each.differs is True for each in estimates) / count,
        )
        found.append(" / ".join("–" if share is None else f"{100 * share:.1f}" for share in shares))
    return found


def tables(repetitions: int) -> str:
    count = repetitions * len(SPREADS) * len(RATIOS)
    null_count = 5 * repetitions
    error, null_error = (
        NormalDist().inv_cdf(0.975) * sqrt(0.05 * 0.95 / n) * 100 for n in (count, null_count)
    )
    null_words = (
        f"Equal cells (ratio exactly 1): how many of {2 * null_count:,} comparisons show a difference, in %, where "
        "equivalence does not end a comparison (the worst case):"
    )
    grid_words = (
        f"All ratios. Each row: {count:,} comparisons, {repetitions} for each of the true ratios "
        f"{', '.join(f'{ratio:g}' for ratio in RATIOS)} at each CoV; 95 % is known to ± {error:.1f}, the false "
        f"differences (of {null_count:,}) to ± {null_error:.1f}."
    )
    parts = [
        f"Made by `{COMMAND}`.",
        null_words,
        nulls(2 * null_count),
        grid_words,
        by_shape(repetitions),
        f"Autocorrelation, one look at 95 %, {10 * repetitions:,} of each:",
        by_autocorrelation(10 * repetitions),
        by_family(repetitions // 2),
        (
            f"Cells that differ by the margin of {100 * MARGIN:g} %: how many of {2 * repetitions:,} are called "
            "alike, in %, at the standard deviation from 1 to 10 % where it is most:"
        ),
        by_tie(2 * repetitions),
        (
            "Counts of events of which most are 0, and amounts (each event takes 1 on average, log-normal with a "
            f"standard deviation of the logarithm of {AMOUNT_SPREAD:g}), {repetitions:,} comparisons of each: no event "
            "in any trial / intervals of the others that cover the true difference / shown to differ, in %:"
        ),
        by_events(repetitions),
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(main(__doc__, "stopping-rule", ("--repetitions", 1000), tables))
