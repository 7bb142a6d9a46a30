"""Plans a study: cells, exact commands, space and time. Changes nothing."""

import os

from fslab import feasibility
from fslab.plan.model import Plan
from fslab.plan.plan import make_plan
from fslab.study.model import Study
from fslab.system import paths


def plan(study: Study) -> Plan:
    """Return the plan of a study on this machine, with the cells that ``run`` would refuse and the reasons."""
    made = make_plan(
        study, images=paths.images(), runtime=paths.runtime() / "CAMPAIGN", place=feasibility.resolved,
        fit=feasibility.fitting,
        memory_bytes=memory_bytes(),
    )  # fmt: skip
    impossible, refused = feasibility.foresee(made.cells, paths.images())
    return made.model_copy(update={"impossible": {**made.impossible, **impossible}, "refused": refused})


def memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
