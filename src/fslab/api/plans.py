"""Plans a study: cells, exact commands, space, time, and how many trials the noise of the machine requires. Changes
nothing."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fslab import feasibility
from fslab.answers.ratio import trials_to_detect
from fslab.api import claims
from fslab.campaign import schedule
from fslab.claims import testable
from fslab.errors import UsageError
from fslab.machine.planned_machine import here, planned_for
from fslab.plan.model import Plan
from fslab.plan.plan import make_plan, without
from fslab.study.model import Study
from fslab.system import cpu_speed, paths
from fslab.trial_record import TrialRecord
from fslab.units import format_duration


@contextmanager
def on_machine(path: Path | None) -> Iterator[str | None]:
    """Plan for the machine that a file describes (``fslab doctor --json``) during the block. None: for this one.

    Yields the machine in words.
    """
    machine = None if path is None else feasibility.described(path)
    with planned_for(machine):
        yield None if machine is None else f"for the machine that {path} describes: {machine.words}"


def plan(study: Study) -> Plan:
    """Return the plan of a study, with the cells that ``run`` would refuse and the reasons."""
    if here().described and (study.kernel or study.modules):
        what = "a guest's kernel is a file of this machine, and the plan is for another one"
        raise UsageError(what, where="kernel, modules", hint="leave them out, or plan on that machine")
    made = make_plan(
        study, images=paths.images(), runtime=paths.runtime() / "CAMPAIGN", place=feasibility.all_resolved,
        fit=feasibility.fitting,
        memory_bytes=here().memory_bytes(),
    )  # fmt: skip
    impossible, refused = feasibility.foresee(made.cells, paths.images())
    impossible = {**made.impossible, **impossible}
    possible = [cell for cell in made.cells if cell.id not in impossible]
    return without(made, impossible, schedule.left_out(study, possible), refused)


def claims_lines(study: Study, made: Plan) -> list[str]:
    """Return what the budget means for the study's claims, in sentences, how quiet the machine is, and how near its
    publication's.

    Nothing if its trials are not run for claims, or none of them is possible here. Takes half a second.
    """
    about = schedule.claimed_cells(study, made.measured, here().memory_bytes())
    foreseen = claims_foreseen(study, made)
    can = [f"claims: {testable.words(foreseen)}"] if foreseen else []
    if not about:
        return can
    told = schedule.budget_words(about, study.limit_s)
    spread = None if here().described else loop_spread()
    known = [] if spread is None else [trials_sentence(spread, schedule.block_s(about))]
    near = claims.near_words(claims.planned(study, about))
    possible = len(made.cells) - len(made.impossible)
    beside = schedule.beside_claims(possible, len(made.left_out), len(about))
    return [*can, *beside, *(line for line in (told, near) if line), *known]


def claims_foreseen(study: Study, made: Plan) -> tuple[testable.Foreseen, ...]:
    """Return which of the study's claims the plan can test, and why not the others."""
    return testable.foresee(study.claims, made.cells, made.impossible, here().facts)


DIFFERENCE = 0.1  # the difference that the sentence refers to
_LAST = 30  # the progress of a campaign uses the last 30 trials
_FEWEST = 5


def trials_sentence(spread: float, block_s: float | None = None) -> str:
    """Return the sentence. ``block_s``: seconds for one trial of each cell; None: without a study."""
    trials = trials_to_detect(DIFFERENCE, spread)
    told = (
        f"the speed of a fixed loop varies by {spread * 100:.0f} % here: if trials vary as much, detecting a "
        f"difference of {DIFFERENCE * 100:.0f} % takes about {trials} trials of each cell"
    )
    return told if block_s is None else f"{told}, {format_duration(trials * block_s)} in total"


def loop_spread() -> float | None:
    """Return the current variation of the loop's speed. Takes half a second."""
    return cpu_speed.reference_spread(rounds=10)


class LoopRates:
    """The speed of the loop during the last trials of a campaign."""

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=_LAST)

    def enter(self, record: TrialRecord) -> None:
        measured = record.probes.get("reference_rate")
        if measured is not None and measured.value:
            self._rates.append(measured.value)

    def words(self) -> str | None:
        """Return the sentence; None while there are too few trials."""
        if len(self._rates) < _FEWEST:
            return None
        return trials_sentence(cpu_speed.spread_of_rates(list(self._rates)))
