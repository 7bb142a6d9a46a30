"""The page of a fleet: its machines, schedules and last runs. Only reads the store."""

from itertools import groupby

from fslab.report.page import render
from fslab.store.fleet import FleetStore

RUNS = 20


def page(fleet: FleetStore) -> str:
    """Return the page with the current contents of the store."""
    machines, schedules, parts = fleet.machines(), fleet.schedules(), fleet.summaries(RUNS)
    online = sum(each.is_online for each in machines)
    busy = sum(each.is_online and each.running is not None for each in machines)
    late = sum(each.message is not None for each in schedules)
    summary = f"Machines online: {online} of {len(machines)}; running a study: {busy}."
    if late:
        summary += f" {late} schedule{'s' * (late != 1)} could not be started."
    runs = [list(own) for _, own in groupby(parts, key=lambda each: each.run)]
    return render.fleet(summary, machines, schedules, runs)
