"""What other cells of a campaign say of the noise of a comparison. ``moderation`` computes with it.

Pure. Must not import numpy at the top: most commands compare nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class NoisePrior:
    """The ``variance`` that other cells suggest for a difference of logarithms of one block.

    It counts as ``freedom`` degrees of freedom (may be infinite). With a comparison's own degrees of freedom, the sum
    is at most ``most``: those of all cells of the group together. It counts in full for a variance that at least one in
    ``among`` comparisons would exceed, and less for a larger one, whose cell may differ from the others.
    """

    variance: float
    freedom: float
    most: float
    among: int = 4

    def times(self, factor: float) -> "NoisePrior":
        """Return the prior of a difference whose variance is ``factor`` times as large."""
        return replace(self, variance=self.variance * factor)


def fit_noise(workloads: Sequence[Sequence[Mapping[int, float]]]) -> NoisePrior | None:
    """Call :func:`fslab.stats.moderation.fit`."""
    from fslab.stats.moderation import fit

    return fit(workloads)
