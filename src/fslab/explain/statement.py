"""What is said about a mechanism: in words and figures, with where they come from and what would refute it."""

from enum import StrEnum

from fslab.cell import Frozen
from fslab.units import Unit, format_value


class Certainty(StrEnum):
    """``observed``: counted by the kernel. ``coincides``: seen together, which proves nothing. ``caused``: it was
    switched off, interleaved with the original, and the speed changed."""

    OBSERVED = "observed"
    COINCIDES = "coincides"
    CAUSED = "caused"


class EvidenceFigure(Frozen):
    """One figure: the median of ``n`` trials from ``low`` to ``high`` (their range), and where it was read.
    ``shared``: it may hold what others did, so that it only coincides."""

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
    """``text`` is for everybody, ``figures`` for who knows the file system. ``refuted_by`` is a measurement."""

    mechanism: str
    workload: str
    stack: str
    text: str
    figures: tuple[EvidenceFigure, ...]
    certainty: Certainty
    refuted_by: str
    weight: float = 0.0
