"""What one study says over several machines, as plain values, for the terminal and ``--json``. Computes nothing."""

from enum import StrEnum

from fslab.analysis.comparison_model import Span
from fslab.cell import Frozen
from fslab.units import Direction, Unit


class FleetVerdict(StrEnum):
    """What may be said of a stack against the reference.

    ``everywhere``: it differs on average, and another machine would have it the same way round; ``on_average``: it
    differs on average, but another machine may have it the other way round; ``undecided``: the interval of the average
    contains 1; ``few_machines``: fewer than five, which are listed and not combined.
    """

    EVERYWHERE = "everywhere"
    ON_AVERAGE = "on_average"
    UNDECIDED = "undecided"
    FEW_MACHINES = "few_machines"


class FleetMachine(Frozen):
    """One machine and the campaigns that it contributes, oldest first."""

    name: str
    campaigns: tuple[str, ...]
    kernel: str | None
    cpu: str | None


class MachineRatio(Frozen):
    """What one machine says: the stack's figure ÷ the reference's, from the ``n`` blocks that have both."""

    machine: str
    ratio: float
    interval: Span
    n: int


class FactSplit(Frozen):
    """Facts that divide the machines into two groups, whose ratios differ: it coincides, which is no cause.

    ``facts``: each as ``name: value on the first group / on the second``. ``ratios`` are the groups' geometric means;
    ``p_value`` is after Holm's correction over all divisions that were tried.
    """

    facts: tuple[str, ...]
    machines: tuple[tuple[str, ...], tuple[str, ...]]
    ratios: tuple[float, float]
    p_value: float


class FleetRow(Frozen):
    """One stack against the reference in one metric. Ratios are the stack's figure ÷ the reference's.

    ``average`` is the ratio over machines with its ``interval``; ``prediction`` is where the true ratio of a machine
    lies that is like these. ``spread``: the standard deviation between machines as a share (0.1: ± 10 %); ``share``:
    how much of the variance of the machines' ratios is between machines, rather than noise on each. ``left_out``:
    machines without three blocks of both, or with figures that have no ratio (0), or are too coarse to tell noise.
    """

    workload: str
    metric: str
    unit: Unit
    better: Direction
    stack: str
    reference: str
    verdict: FleetVerdict
    machines: tuple[MachineRatio, ...]
    left_out: tuple[str, ...] = ()
    average: float | None = None
    interval: Span | None = None
    prediction: Span | None = None
    spread: float | None = None
    share: float | None = None
    coincides: tuple[FactSplit, ...] = ()


class Fleet(Frozen):
    """A study over machines. ``needed``: how many machines it takes to combine them.

    ``partial`` names comparisons that no machine has in enough blocks; ``uncommon`` counts cells that not all machines
    have.
    """

    study: str
    machines: tuple[FleetMachine, ...]
    rows: tuple[FleetRow, ...]
    needed: int
    uncommon: int
    partial: tuple[str, ...] = ()
