"""The noise of a comparison as the other cells of its campaign suggest it; ``moderated_variance`` computes with it.

Values only; must not import numpy: most commands compare nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

KNOWN_LEAST = 50  # values of all cells that show an autocorrelation of 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class CommonCorrelation:
    """The autocorrelation ``lag1`` from block to block, estimated from so many ``values`` of all cells.

    ``least``: the number of them from which on the estimate counts as known.
    """

    lag1: float
    values: float
    least: int = KNOWN_LEAST

    @property
    def is_known(self) -> bool:
        return self.values >= self.least


Correlations = tuple[CommonCorrelation | None, CommonCorrelation | None]  # of both sides; None: unknown


@dataclass(frozen=True, kw_only=True, slots=True)
class NoisePrior:
    """The ``variance``, suggested by other cells, of a difference of logarithms in one block.

    It counts as ``freedom`` degrees of freedom (may be infinite). Together with a comparison's own degrees of freedom,
    these are at most ``most``, the number of all cells of the group together. The prior counts in full if at least one
    in ``among`` comparisons would have such a large variance. It counts less for a larger variance, whose cell may
    differ from the others. Without any degree of freedom, only autocorrelations are known: ``correlation`` of
    differences by block, and ``alone`` of the values of each side, which matters where they have no blocks in common.
    """

    variance: float
    freedom: float
    most: float
    among: int = 4
    correlation: CommonCorrelation | None = None
    alone: Correlations = (None, None)

    def times(self, factor: float) -> "NoisePrior":
        """Return the prior of a difference whose variance is ``factor`` times as large."""
        return replace(self, variance=self.variance * factor)

    @staticmethod
    def of_sum(parts: "Sequence[NoisePrior]") -> "NoisePrior | None":
        """Return the prior of the sum of independent differences; None without any."""
        if not parts:
            return None
        known = [part.correlation for part in parts if part.correlation is not None]
        return NoisePrior(
            variance=sum(part.variance for part in parts),
            freedom=min(part.freedom for part in parts),
            most=min(part.most for part in parts),
            correlation=max(known, key=lambda one: one.lag1, default=None),
        )


def of_two_campaigns(one: CommonCorrelation | None, other: CommonCorrelation | None) -> NoisePrior:
    """Return the prior of a comparison without common blocks, of which only the autocorrelation of each side is
    known."""
    return NoisePrior(variance=1.0, freedom=0.0, most=0.0, alone=(one, other))
