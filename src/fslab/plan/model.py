"""The plan of a study: its cells, the order of its trials, their commands, and the space and time that they need.

Frozen values with a JSON form. Nothing here reads or changes the system.
"""

from enum import StrEnum

from pydantic import Field

from fslab.cell import Cell, Frozen
from fslab.scaling import Scaled
from fslab.stopping_settings import StoppingRule


class Stage(StrEnum):
    BOOT = "boot"
    ATTACH = "attach"
    MKFS = "mkfs"
    MOUNT = "mount"
    PREPARE = "prepare"
    RUN = "run"
    CLEANUP = "cleanup"
    DETACH = "detach"


class PlannedCommand(Frozen):
    """A command line that a trial will run. Placeholders are in capitals: /dev/loopN, CAMPAIGN."""

    stage: Stage
    argv: tuple[str, ...]


class PlannedTrial(Frozen):
    """One trial in the order: its cell (by id) and its block, counted from 0."""

    block: int
    cell: str


class Shared(Frozen):
    """What a cell shares with the others of its ``group``.

    ``files``: the file system with its prepared files. False: the empty file system.
    """

    group: str
    files: bool


class PlannedMachine(Frozen):
    """A machine of a plan and the names of the stacks that are measured there.

    ``emulated``: every instruction is emulated, so that no figure says how fast anything is; None: not known yet.
    """

    type: str
    stacks: tuple[str, ...]
    emulated: bool | None


class Plan(Frozen):
    """The plan of a study.

    ``trials``: per cell; ``stopping`` decides whether these are all, or only the first ones. ``order``: each of these
    trials once, in the order of running. ``commands`` maps a cell's id to the commands of each of its trials.
    ``impossible``: the reason for each cell that is not possible. ``left_out``: ids of the cells that only claims need
    which cannot be tested here. Neither kind has trials. ``refused``: why ``run`` would not start here.
    ``machines``: where the stacks are measured.
    ``devices``: the block devices in use, or their placeholders. ``space`` maps a place (a directory, or ``memory``) to
    the bytes needed there at the same time. ``wipes``: devices whose content will be lost.

    ``expected_s``: a rough duration. ``expected_most_s``: that of the maximum number of trials, if trials are repeated
    to a precision. ``budget_s``: None without a limit. ``scaled``: the study's amounts that ``scale`` changed.
    ``costs``: warnings of what the scaling loses. ``notices``: what workloads do otherwise than the study says.
    ``whole``: why workloads are not measured in slices, although the study asks for it, by their names.
    ``shared`` maps the id of a cell that begins with the same file system or files as others to their group: in each
    block, one of the group makes them, and the others begin with a copy.
    """

    study: str
    title: str
    cells: tuple[Cell, ...]
    trials: int
    seed: int
    order: tuple[PlannedTrial, ...] = Field(repr=False)
    commands: dict[str, tuple[PlannedCommand, ...]] = Field(repr=False)
    impossible: dict[str, str] = Field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    refused: tuple[str, ...] = ()
    machines: tuple[PlannedMachine, ...] = ()
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
    notices: tuple[str, ...] = ()
    whole: dict[str, str] = Field(default_factory=dict)
    shared: dict[str, Shared] = Field(default_factory=dict)

    @property
    def measured(self) -> tuple[Cell, ...]:
        """The cells that have trials; all of them if none is possible here."""
        found = [cell for cell in self.cells if cell.id not in self.impossible.keys() | self.left_out]
        return tuple(found) or self.cells
