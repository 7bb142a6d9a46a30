"""What is found about claims, as plain values: the one thing that the terminal, a page and ``--json`` all show."""

from __future__ import annotations

from enum import StrEnum

from fslab.cell import Frozen
from fslab.units import Unit


class ClaimVerdict(StrEnum):
    """``in_part``: all that is known upholds it, and something is not known. ``unknown``: nothing is known."""

    HOLDS = "holds"
    IN_PART = "holds_in_part"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    UNKNOWN = "unknown"


class PartFinding(Frozen):
    """What is found about one part of a claim.

    ``value`` is a ratio, or where ``unit`` is given a figure in it; ``low`` to ``high`` is its interval of
    ``coverage`` (over all looks of a campaign), None where it is a printed figure of ``table``. ``bound`` is where
    it must lie, ``margin`` how far inside it is on logarithms (negative: outside), ``further`` about how many more
    blocks would decide it. ``why``: the reason why nothing is known. ``rests_on_independence``: the verdict would be
    gone if trials resembled the ones before them, and there are too few blocks to know whether they do.
    """

    what: str
    where: str
    bound: str
    verdict: ClaimVerdict
    value: float | None = None
    low: float | None = None
    high: float | None = None
    coverage: float | None = None
    blocks: int | None = None
    unit: Unit | None = None
    table: str | None = None
    margin: float | None = None
    further: int | None = None
    why: str | None = None
    rests_on_independence: bool = False


class ClaimAnswer(Frozen):
    """A verdict, what it rests on, and that in words. ``parts`` is how many parts the claim has.

    ``compared`` are the stacks that these are about; ``left_out`` those that the words of the claim mean too and that
    are like no other in all that the claim leaves open.
    """

    verdict: ClaimVerdict
    words: str
    parts: int
    findings: tuple[PartFinding, ...] = ()
    compared: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class EvaluatedClaim(Frozen):
    """One claim and both answers; an answer is None where nobody asked for it."""

    id: str
    says: str
    that: tuple[str, ...]
    on: tuple[str, ...] = ()
    note: str | None = None
    published: ClaimAnswer | None = None
    measured: ClaimAnswer | None = None


class TableCell(Frozen):
    """One field of a table: a figure as a multiple of the reference's, printed and measured.

    ``low`` to ``high`` is the interval of the measured one; ``why`` the reason why there is none.
    """

    printed: float | None
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    why: str | None = None


class TableLine(Frozen):
    """One row of a table: a metric of a workload on each stack; ``reference`` stands for 1."""

    workload: str
    metric: str
    cells: tuple[TableCell, ...]


class PublishedTable(Frozen):
    """A table of the publication: stacks across, workloads down, each figure as a multiple of ``reference``'s."""

    name: str
    stacks: tuple[str, ...]
    reference: str
    lines: tuple[TableLine, ...]


class Verdicts(Frozen):
    """Everything that ``fslab claims`` says. ``campaign`` is None where nothing was run for it."""

    study: str
    title: str
    source: str | None
    campaign: str | None = None
    conditions: str | None = None
    claims: tuple[EvaluatedClaim, ...] = ()
    tables: tuple[PublishedTable, ...] = ()

    def counts(self, *, published: bool) -> dict[ClaimVerdict, int]:
        answers = [claim.published if published else claim.measured for claim in self.claims]
        known = [answer.verdict for answer in answers if answer is not None]
        return {verdict: known.count(verdict) for verdict in ClaimVerdict if verdict in known}
