"""A statement about a mechanism: text, figures, the sources of the figures, and what would refute it. Values only."""

from enum import StrEnum

from fslab.cell import Frozen
from fslab.units import Unit, format_value


class Certainty(StrEnum):
    """The certainty of a statement. Neither shows a cause: an ablation does.

    ``observed``: counted by the kernel. ``coincides``: seen together, which is not proof.
    """

    OBSERVED = "observed"
    COINCIDES = "coincides"


class EvidenceFigure(Frozen):
    """One figure: the median of ``n`` trials, their range from ``low`` to ``high``, and its source (``evidence``).

    ``shared``: it may include activity of others, so that a statement with it only coincides.
    """

    name: str
    value: float
    unit: Unit
    low: float | None = None
    high: float | None = None
    n: int = 1
    evidence: str
    shared: bool = False

    def __str__(self) -> str:
        spread = (
            f" ({format_value(self.low, self.unit)} to {format_value(self.high, self.unit)})"
            if self.low is not None and self.low != self.high
            else ""
        )
        return f"{self.name} {format_value(self.value, self.unit)}{spread} [{self.evidence}]"


class Explanation(Frozen):
    """A statement. ``text`` is for all readers, ``figures`` are for experts on the file system.

    ``refuted_by``: the measurement that would refute it. ``weight``: strength of the evidence, 0 to 10, for sorting.
    """

    mechanism: str
    workload: str
    stack: str
    text: str
    figures: tuple[EvidenceFigure, ...]
    certainty: Certainty
    refuted_by: str
    weight: float = 0.0
