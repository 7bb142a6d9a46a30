"""What a report says, as plain values: the one thing that the terminal, a page and ``--json`` all show.

Holds no text layout and computes nothing; ``build`` fills it.
"""

from datetime import datetime

from fslab.analysis.comparison_model import Comparison, Mark, Rank, Span
from fslab.cell import Frozen
from fslab.store.campaign import CampaignStatus
from fslab.units import Direction, Unit


class StackColumn(Frozen):
    """One column. ``lines``: its label, the file system first, then only what tells it from the others."""

    id: str
    lines: tuple[str, ...]
    name: str
    filesystem: str | None
    medium: str
    layout: str
    mkfs_options: str
    mount_options: str

    @property
    def label(self) -> str:
        return " ".join(self.lines)


class Summary(Frozen):
    """One metric of one workload on one stack.

    ``values`` are those of the usable trials, in order of blocks; ``spread`` is half their range as a
    fraction of the median. Trials: ``n_sound`` are compared, ``n_doubt`` of them carry a doubt,
    ``n_unknown`` of them lack this figure; ``n_invalid`` and ``n_failed`` are not compared; ``n_impossible`` of
    those that failed could not be tried on this machine. ``planned``: whether the study pairs the two at all.
    """

    stack: str
    values: tuple[float, ...]
    median: float | None
    interval: Span | None
    spread: float | None
    n_sound: int
    n_doubt: int
    n_unknown: int
    n_invalid: int
    n_failed: int
    n_impossible: int = 0
    planned: bool = True
    mark: Mark = Mark.NONE
    notes: tuple[int, ...] = ()


class Row(Frozen):
    """One metric of one workload across all stacks, in their order, and what it means in words."""

    workload: str
    metric: str
    unit: Unit
    better: Direction
    summaries: tuple[Summary, ...]
    leader: str | None
    comparisons: tuple[Comparison, ...]
    ranking: tuple[Rank, ...] = ()
    words: str


class NotePlace(Frozen):
    """How many of the trials of one stack and workload a note is about."""

    workload: str
    stack: str
    count: int
    of: int


class Note(Frozen):
    """Why some trials have warnings or are missing. ``kind``: of the warning, or the status of a failure.

    ``summary`` says in a few words what warnings of this kind mean, ``message`` with its figures what the first one of
    them told.
    """

    number: int
    severity: str
    kind: str
    summary: str | None = None
    message: str
    hint: str | None
    places: tuple[NotePlace, ...]

    @property
    def trials(self) -> int:
        """How many trials it is about; 0 where it is the whole campaign."""
        return sum(place.count for place in self.places)


class Counts(Frozen):
    """Trials of the campaign: planned, stored, and of these sound (with those that have warnings), invalid, failed
    (with those that are not possible here).

    A campaign with a precision has ``planned`` at least and ``planned_most`` at most. A cell that is not possible
    counts once.
    """

    planned: int
    planned_most: int = 0
    stored: int
    sound: int
    doubt: int
    invalid: int
    failed: int
    impossible: int = 0


class GuestSummary(Frozen):
    """A kind of guest that trials ran in: the machine's type, its kernel, CPUs and memory."""

    machine: str
    kernel: str | None
    cpus: int | None
    memory_bytes: int | None


class Report(Frozen):
    """A campaign's results. ``coverage`` is what was wanted of every interval.

    ``kernel``, ``cpu`` and the like are the host's; trials in ``guests`` ran on those instead.
    ``scale`` is the factor on what the study writes of sizes, counts and run times. ``extended_from``: how many
    trials of each cell there were each time before it was given more, by somebody who knew the results.
    """

    campaign: str
    study: str
    title: str
    status: CampaignStatus
    created: datetime
    kernel: str | None
    cpu: str | None
    cpus: int | None
    memory_bytes: int | None
    guests: tuple[GuestSummary, ...] = ()
    media: tuple[str, ...]
    scale: float = 1.0
    extended_from: tuple[int, ...] = ()
    coverage: float
    counts: Counts
    stacks: tuple[StackColumn, ...]
    rows: tuple[Row, ...]
    notes: tuple[Note, ...]
