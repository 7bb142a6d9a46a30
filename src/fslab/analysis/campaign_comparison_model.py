"""What a comparison of two sets of results says, as plain values: shown in the terminal and by ``--json``.

Holds no text layout and computes nothing; ``compare_results`` fills it. B is always told relative to A.
"""

from datetime import datetime
from enum import StrEnum

from fslab.analysis.comparison_model import Span
from fslab.cell import Frozen
from fslab.units import Direction, Unit


class LineOutcome(StrEnum):
    """What one comparison shows of B. ``higher`` and ``lower``: of a metric that has no preferred direction."""

    BETTER = "better"
    WORSE = "worse"
    HIGHER = "higher"
    LOWER = "lower"
    NOT_SEEN = "no_difference_seen"
    TOO_FEW = "too_few_trials"
    NO_RATIO = "no_ratio"
    MISSING = "no_sound_trial"


class Side(Frozen):
    """One of the two. ``name`` is what the user called it; ``trials`` are stored, ``sound`` ones compared.

    ``sequential``: it repeated its trials until the ranking of its own stacks was clear, so that there are as
    many as its figures asked for.
    """

    name: str
    campaigns: tuple[str, ...]
    study: str | None
    begun: datetime | None
    trials: int
    sound: int
    doubt: int
    kernels: tuple[str, ...]
    machines: tuple[str, ...]
    sequential: bool = False


class FactChange(Frozen):
    """A fact that differs. ``a`` and ``b``: its values, empty where unknown; ``group``: what it belongs to.

    ``decisive``: figures may differ because of it; ``allowed``: the user expects it to differ.
    """

    fact: str
    group: str
    decisive: bool
    allowed: bool
    a: tuple[str, ...]
    b: tuple[str, ...]


class SampleSummary(Frozen):
    """The usable values of one metric of one cell; ``spread``: half their range as a fraction of the median.

    ``failed``: how many of the cell's trials failed, or could not be tried on that machine.
    """

    values: tuple[float, ...]
    median: float | None
    spread: float | None
    failed: int = 0

    @property
    def broken(self) -> bool:
        """Whether there is no value because trials failed."""
        return not self.values and self.failed > 0


class ComparisonLine(Frozen):
    """One metric of one workload on one stack (``ext4 → xfs`` where two are compared). ``ratio`` is B ÷ A.

    ``ruled_out``: a change beyond that fraction in either direction lies outside the interval; ``detectable``:
    one of that fraction would have been seen with a probability of 80 %. ``p_family`` is after Holm's
    correction over all lines; ``holds_together``: it differs even then. ``method`` made the interval.
    ``verdict`` is the outcome in words. ``sampled``: whether each value is one trial's, or the median of one
    campaign's trials; ``needed``: how many each side must have. ``rests_on_independence`` and ``of_medians``: as in
    ``report.model.Comparison``.
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
    ratio: float | None
    interval: Span | None
    p_value: float | None
    p_family: float | None
    holds_together: bool | None
    ruled_out: float | None
    detectable: float | None
    outcome: LineOutcome
    verdict: str
    method: str
    needed: int
    rests_on_independence: bool = False
    of_medians: float | None = None


class RatioMean(Frozen):
    """Geometric mean of the ratios B ÷ A of several workloads, all of metrics that are better in one direction.

    ``interval`` covers the mean of the true ratios (each ratio's interval at a Bonferroni-corrected coverage);
    None where the trials are too few for that.
    """

    stack: str
    better: Direction
    block_size: str | None
    of: int
    ratio: float
    interval: Span | None


class CampaignComparison(Frozen):
    """Two sets of results, side by side. ``only_a``, ``only_b``: cells without a partner."""

    a: Side
    b: Side
    coverage: float
    differences: tuple[FactChange, ...]
    lines: tuple[ComparisonLine, ...]
    means: tuple[RatioMean, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
