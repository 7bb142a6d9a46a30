"""The contents of a report as plain values. The terminal, a page and ``--json`` all show these values.

Holds no text layout and computes nothing; ``build`` fills it.
"""

from datetime import datetime

from fslab.analysis.standings import ComparedRow
from fslab.analysis.table_rows import Mark, Rank
from fslab.cell import Frozen
from fslab.stats import Interval
from fslab.store.campaign import CampaignStatus

SIGN = {Mark.BEST: "★", Mark.MAYBE_BEST: "☆", Mark.NONE: " "}


class StackColumn(Frozen):
    """One column. ``lines``: its label: the file system, then only the options in which stacks differ.

    ``settings``: its attributes, filling, command after mounts and tuning. ``same_as``: the label of an earlier stack
    that is the same stack here, with which it is not compared. ``changed``: the options of both that are not in effect.
    """

    id: str
    lines: tuple[str, ...]
    name: str
    filesystem: str | None
    medium: str
    layout: str
    mkfs_options: str
    mount_options: str
    same_as: str | None = None
    changed: tuple[str, ...] = ()
    settings: str = ""

    @property
    def label(self) -> str:
        return " ".join(self.lines)


class Summary(Frozen):
    """One metric of one workload on one stack.

    ``values``: those of the usable trials, in the order of blocks. ``spread``: half their range, as a fraction of the
    median. Numbers of trials: ``n_usable`` are compared; of these, ``n_with_warnings`` have warnings, and ``n_unknown``
    lack this metric. ``n_invalid`` and ``n_failed`` are not compared; of the failed ones, ``n_impossible`` are not
    supported by this machine. ``planned``: whether the study combines the workload with the stack.
    """

    stack: str
    values: tuple[float, ...]
    median: float | None
    interval: Interval | None
    spread: float | None
    n_usable: int
    n_with_warnings: int
    n_unknown: int
    n_invalid: int
    n_failed: int
    n_impossible: int = 0
    planned: bool = True
    mark: Mark = Mark.NONE
    notes: tuple[int, ...] = ()

    @property
    def sign(self) -> str:
        return SIGN[self.mark]

    @property
    def absence(self) -> str:
        """Why there is no value."""
        if self.is_impossible:
            return "not possible here"
        if self.n_failed:
            return "failed"
        if self.n_invalid:
            return "invalid"
        return "unknown" if self.n_unknown else "no trial"

    @property
    def is_impossible(self) -> bool:
        """Whether all trials without figures are trials that this machine does not support."""
        return 0 < self.n_failed == self.n_impossible


class Row(ComparedRow):
    """One metric of one workload on all stacks, in the order of the plan. ``words``: the result in words."""

    summaries: tuple[Summary, ...]
    ranking: tuple[Rank, ...] = ()
    words: str


class NotePlace(Frozen):
    """A workload and a stack that a note concerns: ``count`` of its trials, out of ``of``."""

    workload: str
    stack: str
    count: int
    of: int


class Note(Frozen):
    """Why some trials have warnings or are missing. ``kind``: that of the warning, or the status of a failure.

    ``summary``: what warnings of this kind mean, in a few words. ``by_others``: it comes from outside the trials.
    ``message``: that of the first such warning, with its values.
    """

    number: int
    severity: str
    kind: str
    summary: str | None = None
    message: str
    hint: str | None
    by_others: bool = False
    places: tuple[NotePlace, ...] = ()

    @property
    def trials(self) -> int:
        """Number of trials that the note concerns; 0 if it concerns the whole campaign."""
        return sum(place.count for place in self.places)


class Counts(Frozen):
    """Numbers of trials of the campaign: planned and stored ones.

    Of the stored ones: ``usable`` includes those ``with_warnings``. ``failed`` includes ``impossible`` (not
    possible here). A campaign with a precision has at least ``planned`` and at most ``planned_most`` trials. A cell
    that is not possible counts as one trial.
    """

    planned: int
    planned_most: int = 0
    stored: int
    usable: int
    with_warnings: int
    invalid: int
    failed: int
    impossible: int = 0

    @property
    def as_needed(self) -> bool:
        """Whether the stopping rule chooses the number of trials."""
        return self.planned_most > self.planned


class GuestSummary(Frozen):
    """A kind of guest in which trials ran: the machine's type, its kernel, CPUs and memory."""

    machine: str
    kernel: str | None
    cpus: int | None
    memory_bytes: int | None


class Report(Frozen):
    """A campaign's results. ``coverage``: the coverage required of every ratio's interval.

    ``in_commands``: how commands name the campaign. ``resumable``: whether ``run --resume`` adds trials: only the agent
    of its machine does to one of a fleet. ``kernel``, ``cpu``, ``cpus`` and ``memory_bytes`` are those of the
    host, or what the study limits it to. Trials in ``guests`` ran on those of the guest instead; ``on_host``: whether
    trials ran on the host, too.
    ``scale``: factor for the sizes, counts and run times that the study defines. ``extended_from``: trials per cell
    before each time that a user, who knew the results, added trials. ``in_slices``: the workloads with trials in
    slices. ``block_s``: about how many seconds a trial of every cell takes.
    """

    campaign: str
    in_commands: str
    resumable: bool = True
    study: str
    title: str
    status: CampaignStatus
    created: datetime
    kernel: str | None
    cpu: str | None
    cpus: int | None
    memory_bytes: int | None
    guests: tuple[GuestSummary, ...] = ()
    on_host: bool = True
    media: tuple[str, ...]
    scale: float = 1.0
    extended_from: tuple[int, ...] = ()
    in_slices: tuple[str, ...] = ()
    block_s: float = 0.0
    coverage: float
    counts: Counts
    stacks: tuple[StackColumn, ...]
    rows: tuple[Row, ...]
    notes: tuple[Note, ...]

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the stacks, by their ids."""
        return {stack.id: stack.label for stack in self.stacks}
