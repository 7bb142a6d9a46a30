"""Plans a study: cells, exact commands, space and time. Changes nothing."""

import os

from fslab import feasibility
from fslab.api import machine_noise, situations
from fslab.campaign import launch, schedule
from fslab.plan.model import Plan
from fslab.plan.plan import make_plan
from fslab.study.model import Study
from fslab.system import paths


def plan(study: Study) -> Plan:
    """Return the plan of a study on this machine, with the cells that ``run`` would refuse and the reasons."""
    made = make_plan(
        study, images=paths.images(), runtime=paths.runtime() / "CAMPAIGN", place=feasibility.all_resolved,
        fit=feasibility.fitting,
        memory_bytes=memory_bytes(),
    )  # fmt: skip
    impossible, refused = feasibility.foresee(made.cells, paths.images())
    return made.model_copy(update={"impossible": {**made.impossible, **impossible}, "refused": refused})


def claims_lines(study: Study, made: Plan) -> list[str]:
    """Return what the budget means for the study's claims, in sentences, how quiet the machine is, and how near its
    publication's.

    Nothing if its trials are not run for claims, or none of them is possible here. Takes half a second.
    """
    possible = [cell for cell in made.cells if cell.id not in made.impossible]
    about = launch.claimed_cells(study, possible, memory_bytes())
    if not about:
        return []
    told = schedule.budget_words(about, study.limit_s)
    spread = machine_noise.now()
    known = [] if spread is None else [machine_noise.trials_sentence(spread, schedule.block_s(about))]
    near = situations.near_words(situations.planned(study, about))
    return [*(line for line in (told, near) if line), *known]


def memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
