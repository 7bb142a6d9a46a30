"""Plans a study: cells, exact commands, space and time. Changes nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fslab import feasibility
from fslab.api import machine_noise, publication_conditions
from fslab.campaign import schedule
from fslab.claims import testable
from fslab.errors import UsageError
from fslab.machine.planned_machine import here, planned_for
from fslab.plan.model import Plan
from fslab.plan.plan import make_plan, without
from fslab.study.model import Study
from fslab.system import paths


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
        raise UsageError(
            "a guest's kernel is a file of this machine, and the plan is for another one",
            where="kernel, modules",
            hint="leave them out, or plan on that machine",
        )
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
    spread = None if here().described else machine_noise.now()
    known = [] if spread is None else [machine_noise.trials_sentence(spread, schedule.block_s(about))]
    near = publication_conditions.near_words(publication_conditions.planned(study, about))
    left_out = schedule.left_out_words(len(made.left_out), len(made.cells) - len(made.impossible))
    return [*can, *(line for line in (left_out, told, near) if line), *known]


def claims_foreseen(study: Study, made: Plan) -> tuple[testable.Foreseen, ...]:
    """Return which of the study's claims the plan can test, and why not the others."""
    return testable.foresee(study.claims, made.cells, made.impossible, here().facts)
