"""Whether this machine can measure something, and what is missing: the same answer for plan, run, doctor and guests.

Changes nothing; only ``check_mounted`` creates files, to try operations. ``check`` raises what a run is refused for.
``foresee`` returns the same, as far as it is known without root. ``all_resolved`` finds the machines for stacks.
``everything`` and ``matrix`` are for doctor.
"""

from fslab.feasibility._campaign import RefusingJournal, check, check_named, fitting, foresee
from fslab.feasibility._cells import Reasons, by_cause, check_cell, check_stack, why_not
from fslab.feasibility._described import KEY, describe, described
from fslab.feasibility._machines import all_resolved, lacking, missing_filesystem, missing_layout, resolved
from fslab.feasibility._mounted import check_mounted
from fslab.feasibility._overview import Capability, Lack, MatrixEntry, everything, matrix, programs
from fslab.feasibility._programs import (
    check_plugins,
    missing_programs,
    packages_missing,
    plugins_of,
    programs_around,
    programs_of,
    remedies_for,
    with_stack_plugins,
    with_workload_plugins,
)
from fslab.feasibility._room import check_room, media_of, medium_plan, space_of

__all__ = [
    "KEY",
    "Capability",
    "Lack",
    "MatrixEntry",
    "Reasons",
    "RefusingJournal",
    "all_resolved",
    "by_cause",
    "check",
    "check_cell",
    "check_mounted",
    "check_named",
    "check_plugins",
    "check_room",
    "check_stack",
    "describe",
    "described",
    "everything",
    "fitting",
    "foresee",
    "lacking",
    "matrix",
    "media_of",
    "medium_plan",
    "missing_filesystem",
    "missing_layout",
    "missing_programs",
    "packages_missing",
    "plugins_of",
    "programs",
    "programs_around",
    "programs_of",
    "remedies_for",
    "resolved",
    "space_of",
    "why_not",
    "with_stack_plugins",
    "with_workload_plugins",
]
