"""Whether this machine can measure something, and what is missing: the same answer for plan, run, doctor and guests.

Changes nothing; only ``check_mounted`` creates files, to try operations. ``check`` raises what a run is refused for.
``foresee`` returns the same, as far as it is known without root. ``all_resolved`` finds the machines for stacks.
``everything`` and ``matrix`` are for doctor.
"""

from fslab.feasibility._campaign import RefusingJournal as RefusingJournal
from fslab.feasibility._campaign import check as check
from fslab.feasibility._campaign import check_named as check_named
from fslab.feasibility._campaign import fitting as fitting
from fslab.feasibility._campaign import foresee as foresee
from fslab.feasibility._cells import Reasons as Reasons
from fslab.feasibility._cells import by_cause as by_cause
from fslab.feasibility._cells import check_cell as check_cell
from fslab.feasibility._cells import check_mounted as check_mounted
from fslab.feasibility._cells import check_stack as check_stack
from fslab.feasibility._cells import why_not as why_not
from fslab.feasibility._machines import all_resolved as all_resolved
from fslab.feasibility._machines import lacking as lacking
from fslab.feasibility._machines import resolved as resolved
from fslab.feasibility._overview import Capability as Capability
from fslab.feasibility._overview import Lack as Lack
from fslab.feasibility._overview import MatrixEntry as MatrixEntry
from fslab.feasibility._overview import describe as describe
from fslab.feasibility._overview import described as described
from fslab.feasibility._overview import everything as everything
from fslab.feasibility._overview import matrix as matrix
from fslab.feasibility._overview import programs as programs
from fslab.feasibility._programs import check_plugins as check_plugins
from fslab.feasibility._programs import missing_programs as missing_programs
from fslab.feasibility._programs import packages_missing as packages_missing
from fslab.feasibility._programs import plugins_of as plugins_of
from fslab.feasibility._programs import programs_around as programs_around
from fslab.feasibility._programs import programs_of as programs_of
from fslab.feasibility._programs import remedies_for as remedies_for
from fslab.feasibility._programs import with_stack_plugins as with_stack_plugins
from fslab.feasibility._programs import with_workload_plugins as with_workload_plugins
from fslab.feasibility._room import media_of as media_of
from fslab.feasibility._room import medium_plan as medium_plan
from fslab.feasibility._room import space_of as space_of
