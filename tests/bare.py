"""A campaign with one cell and only the required fields, for tests of stores and names."""

from datetime import UTC, datetime

from fslab.cell import Cell, MediumSpec, StackSpec, WorkloadSpec
from fslab.store.campaign import Campaign

STARTED = datetime(2026, 11, 20, 21, 49, 7, tzinfo=UTC)
CELL = Cell(
    stack=StackSpec(name="xfs", medium=MediumSpec(name="memory", type="ram"), filesystem="xfs"),
    workload=WorkloadSpec(name="rand", tool="fio"),
)


def campaign(name: str) -> Campaign:
    return Campaign(
        id=name,
        study_id="s",
        study_title="S",
        study_source="",
        seed=1,
        cells=(CELL,),
        trials=5,
        created=STARTED,
    )
