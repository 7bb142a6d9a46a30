"""What a study means: its cells, the order of its trials, the commands, the room and time it takes.

Frozen values with a JSON form. Nothing here touches anything.
"""

from enum import StrEnum

from pydantic import Field

from fslab.cell import Cell, Frozen
from fslab.scaling import Scaled
from fslab.stopping import StoppingRule


class Stage(StrEnum):
    """What a command is for, in the order of a trial."""

    BOOT = "boot"
    ATTACH = "attach"
    MKFS = "mkfs"
    MOUNT = "mount"
    PREPARE = "prepare"
    RUN = "run"
    CLEANUP = "cleanup"
    DETACH = "detach"


class PlannedCommand(Frozen):
    """A command line that a trial will run. Stand-ins are in capitals: /dev/loopN, CAMPAIGN."""

    stage: Stage
    argv: tuple[str, ...]


class PlannedTrial(Frozen):
    """One place in the order: which cell (by id) in which block, counted from 0."""

    block: int
    cell: str


class Plan(Frozen):
    """A study expanded.

    ``commands`` maps a cell's id to what each of its trials runs; ``order`` has every trial once, in the
    order of running; ``refused`` is why ``run`` would not start here;
    ``impossible`` has the reason for each cell that is not possible; ``devices`` are the
    block devices in use (or their stand-ins); ``space`` maps a place (a directory, or ``memory``) to the bytes
    needed there at the same time; ``wipes`` are devices whose content will be lost. ``stopping`` says
    whether ``trials`` are all, or those to begin with (``order`` has no others). ``expected_s`` is a rough duration,
    ``expected_most_s`` that of the most trials where the ranking decides, ``budget_s`` None where there is no limit.
    ``scaled`` is what the ``scale`` made of what the study writes, ``costs`` says what that costs.
    """

    study: str
    title: str
    cells: tuple[Cell, ...]
    trials: int
    seed: int
    order: tuple[PlannedTrial, ...] = Field(repr=False)
    commands: dict[str, tuple[PlannedCommand, ...]] = Field(repr=False)
    impossible: dict[str, str] = Field(default_factory=dict)
    refused: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    space: dict[str, int] = Field(default_factory=dict)
    wipes: tuple[str, ...] = ()
    stopping: StoppingRule
    expected_s: float
    expected_most_s: float | None = None
    budget_s: float | None = None
    scale: float = 1.0
    scaled: tuple[Scaled, ...] = ()
    costs: tuple[str, ...] = ()
