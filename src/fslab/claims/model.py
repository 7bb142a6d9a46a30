"""What is found about claims, as plain values: the one thing that the terminal, a page and ``--json`` all show."""

from enum import StrEnum

from fslab.cell import Frozen
from fslab.units import Unit


class ClaimVerdict(StrEnum):
    """Of printed figures: ``holds``, ``holds_in_part`` (what is printed upholds it, not all is), ``contradicted``.

    Of trials here: ``replicated``, ``replicated_in_part``, ``tie`` (both within the margin of interest, so that no
    order is replicated), ``differs`` (the size; the direction, where there is one, is replicated), ``reversed``,
    ``open``. ``unknown``: not printed, or not testable here.
    """

    HOLDS = "holds"
    IN_PART = "holds_in_part"
    CONTRADICTED = "contradicted"
    REPLICATED = "replicated"
    PARTLY = "replicated_in_part"
    TIE = "tie"
    DIFFERS = "differs"
    REVERSED = "reversed"
    OPEN = "open"
    UNKNOWN = "unknown"


# A claim of which a part came to one of these is not replicated, the weightiest first.
FAILED = (ClaimVerdict.REVERSED, ClaimVerdict.TIE, ClaimVerdict.DIFFERS)


class Why(StrEnum):
    """Why a claim is open: more trials decide it; truth and limit lie within the margin of each other."""

    NOISE = "noise"
    AT_LIMIT = "at_limit"


class PartFinding(Frozen):
    """What is found about one part of a claim.

    ``value`` is a ratio, or where ``unit`` is given a figure in it; ``low`` to ``high`` is its interval of
    ``coverage`` (over all looks of a campaign), None where it is a printed figure of ``table``. ``bound`` is where
    it must lie, ``margin`` how far inside it is on logarithms (negative: outside), ``further`` about how many more
    blocks would decide it. ``why``: the reason why nothing is known. ``rests_on_independence``: the verdict would be
    gone if trials resembled the ones before them, and there are too few blocks to know whether they do.
    ``direction``: where ``bound`` is about a size beyond 1, the verdict on the side of 1 alone. ``at_limit``: all of
    the interval is nearer to the limit than the margin of interest.
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
    direction: ClaimVerdict | None = None
    at_limit: bool = False


class ClaimAnswer(Frozen):
    """A verdict, what it rests on, and that in words. ``parts`` is how many parts the claim has.

    ``compared`` are the stacks that these are about; ``left_out`` those that the words of the claim mean too and that
    are like no other in all that the claim leaves open. Of trials: ``direction`` and ``size`` are the verdicts on the
    claim's directions and on its sizes apart (None: it has none); ``margin`` is the smallest difference of interest,
    as a share; ``reason`` says why it is open, ``more_s`` how many seconds of trials would decide it, roughly.
    """

    verdict: ClaimVerdict
    words: str
    parts: int
    findings: tuple[PartFinding, ...] = ()
    compared: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    direction: ClaimVerdict | None = None
    size: ClaimVerdict | None = None
    margin: float | None = None
    reason: Why | None = None
    more_s: float | None = None


class EvaluatedClaim(Frozen):
    """One claim and both answers; an answer is None where it was not asked for."""

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
    known_limits: tuple[str, ...] = ()
    claims: tuple[EvaluatedClaim, ...] = ()
    tables: tuple[PublishedTable, ...] = ()

    def counts(self, *, published: bool) -> dict[ClaimVerdict, int]:
        answers = [claim.published if published else claim.measured for claim in self.claims]
        known = [answer.verdict for answer in answers if answer is not None]
        return {verdict: known.count(verdict) for verdict in ClaimVerdict if verdict in known}
