"""The result of comparing two sets of results, as plain values for the terminal and ``--json``.

Contains no layout and computes nothing; ``compare_results`` creates it. B is always described relative to A.
"""

from datetime import datetime

from fslab.answers.model import Answer, Interval, Verdict
from fslab.cell import Frozen
from fslab.machine.differences import Difference
from fslab.units import Direction, Unit


class Side(Frozen):
    """One of the two sets of results. ``name`` is the name given by the user.

    ``trials`` counts the stored trials, ``usable`` those that are compared, ``with_warnings`` the usable ones with
    warnings. ``sequential``: trials were repeated until the ranking of the set's own stacks was clear, so the number
    of trials depends on the measured values.
    """

    name: str
    campaigns: tuple[str, ...]
    study: str | None
    begun: datetime | None
    trials: int
    usable: int
    with_warnings: int
    kernels: tuple[str, ...]
    machines: tuple[str, ...]
    sequential: bool = False


class SampleSummary(Frozen):
    """The usable values of one metric of one cell; ``spread``: half their range as a fraction of the median.

    ``failed``: number of trials of the cell that failed or are unsupported on that machine.
    """

    values: tuple[float, ...]
    median: float | None
    spread: float | None
    failed: int = 0

    @property
    def broken(self) -> bool:
        """Whether there is no value and trials failed."""
        return not self.values and self.failed > 0


class ComparisonLine(Frozen):
    """One metric of one workload on one stack (``ext4 → xfs`` if two stacks are compared). The answer is about B ÷ A.

    ``verdict``: the answer in words. ``sampled``: ``trials`` if each value is that of one trial, ``campaigns`` if it is
    the median of one campaign's trials.
    """

    stack: str
    workload: str
    cache: str
    sampled: str
    block_size: str | None
    metric: str
    unit: Unit
    better: Direction
    a: SampleSummary
    b: SampleSummary
    answer: Answer
    verdict: str

    @property
    def is_broken(self) -> bool:
        """Whether A works and B does not: B has no values because trials failed (invalid trials alone do not count as
        failed), or :attr:`has_stopped`."""
        return (bool(self.a.values) and self.b.broken) or self.has_stopped

    @property
    def has_stopped(self) -> bool:
        """Whether what should be high is above 0 in each trial of A and 0 in each of B, with three or more each.

        If a trial of both had the same chance q to be 0, this would have the probability (q·(1 − q))ⁿ, which is at most
        1/64.
        """
        enough = min(self.answer.n) >= self.answer.needed
        no_ratio = self.answer.verdict is Verdict.NO_RATIO and self.better is Direction.HIGHER
        return no_ratio and enough and min(self.a.values) > 0 and not any(self.b.values)


class RatioMean(Frozen):
    """Geometric mean of the ratios B ÷ A of ``of`` workloads. All their metrics have the same preferred direction.

    ``interval`` covers the mean of the true ratios (each ratio's interval has a Bonferroni-corrected coverage);
    None if there are too few trials.
    """

    stack: str
    better: Direction
    block_size: str | None
    of: int
    ratio: float
    interval: Interval | None


class CampaignComparison(Frozen):
    """A comparison of two sets of results. ``only_a``, ``only_b``: cells without a partner."""

    a: Side
    b: Side
    coverage: float
    differences: tuple[Difference, ...]
    lines: tuple[ComparisonLine, ...]
    means: tuple[RatioMean, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
