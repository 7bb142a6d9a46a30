"""The results of one study on several machines, as plain values for the terminal and ``--json``. Computes nothing."""

from enum import StrEnum

from fslab.answers.across_machines import OverMachines
from fslab.answers.model import Interval
from fslab.cell import Frozen
from fslab.units import Direction, Unit


class FleetVerdict(StrEnum):
    """The verdict on a stack against the reference.

    ``everywhere``: it differs on average, and in the same direction on another such machine (the prediction interval
    excludes 1). ``on_average``: it differs on average, but may differ in the other direction on another machine.
    ``undecided``: the interval of the average contains 1. ``few_machines``: fewer than five machines; they are listed
    and not combined.
    """

    EVERYWHERE = "everywhere"
    ON_AVERAGE = "on_average"
    UNDECIDED = "undecided"
    FEW_MACHINES = "few_machines"


class FleetMachine(Frozen):
    """One machine and its campaigns, oldest first."""

    name: str
    campaigns: tuple[str, ...]
    kernel: str | None
    cpu: str | None


class MachineRatio(Frozen):
    """The ratio on one machine: the stack's figure ÷ the reference's, from the ``n`` blocks that have both."""

    machine: str
    ratio: float
    interval: Interval
    n: int


class FactSplit(Frozen):
    """Facts that divide the machines into two groups with different ratios. This is a coincidence, not a cause.

    ``facts``: each as ``name: value in the first group / in the second``. ``ratios``: geometric mean of each group.
    ``p_value``: after the correction of Benjamini and Hochberg over all divisions in all rows.
    """

    facts: tuple[str, ...]
    machines: tuple[tuple[str, ...], tuple[str, ...]]
    ratios: tuple[float, float]
    p_value: float


class FleetRow(OverMachines):
    """One stack against the reference in one metric. Ratios are the stack's figure ÷ the reference's.

    ``left_out``: machines without three blocks of both, with figures that have no ratio (0), or with figures that are
    too coarse to estimate the noise.
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
    coincides: tuple[FactSplit, ...] = ()


class Fleet(Frozen):
    """A study on several machines. ``needed``: number of machines needed to combine them.

    ``partial``: comparisons for which no machine has enough blocks. ``uncommon``: number of cells that not all machines
    have.
    """

    study: str
    machines: tuple[FleetMachine, ...]
    rows: tuple[FleetRow, ...]
    needed: int
    uncommon: int
    partial: tuple[str, ...] = ()
