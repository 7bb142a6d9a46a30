"""The page of a fleet: its machines, schedules and last runs, as texts. Reads the store and only formats its values."""

from itertools import groupby

from fslab.api.stores import AssignmentSummary, FleetSchedule, FleetStore, MemberMachine
from fslab.names import study_id
from fslab.report.page import render
from fslab.units import format_duration

RUNS = 20


def page(fleet: FleetStore) -> render.FleetPage:
    """Return the current contents of the page."""
    machines, schedules, parts = fleet.machines(), fleet.schedules(), fleet.summaries(RUNS)
    online = sum(each.is_online for each in machines)
    busy = sum(each.is_online and each.running is not None for each in machines)
    late = sum(each.message is not None for each in schedules)
    summary = f"Machines online: {online} of {len(machines)}; running a study: {busy}."
    if late:
        summary += f" {late} schedule{'s' * (late != 1)} could not be started."
    return render.FleetPage(
        summary=summary,
        machines=tuple(_machine(each) for each in machines),
        schedules=tuple(_schedule(each) for each in schedules),
        runs=tuple(_run(list(own)) for _, own in groupby(parts, key=lambda each: each.run)),
    )


def _machine(machine: MemberMachine) -> render.ListedMachine:
    facts = machine.facts
    return render.ListedMachine(
        name=machine.name,
        state="online" if machine.is_online else f"not seen for {format_duration(machine.unseen_s)}",
        runs=machine.running or "–",
        kernel=str(facts.get("kernel") or "–"),
        cpu=f"{facts.get('cpus') or '?'} × {facts.get('cpu') or 'unknown'}",
        labels=" ".join(f"{key}={value}" for key, value in machine.labels.items()),
    )


def _schedule(schedule: FleetSchedule) -> render.ListedSchedule:
    return render.ListedSchedule(
        name=schedule.name, study=schedule.study.file, due=f"{schedule.next_run:%Y-%m-%d %H:%M}",
        last=schedule.last_run or "–", problem=schedule.message or "",
    )  # fmt: skip


def _run(parts: list[AssignmentSummary]) -> render.ListedRun:
    first = parts[0]
    own = (
        render.ListedPart(
            machine=each.machine, campaign=each.campaign, status=each.status.value, trials=each.trials,
            message=each.message or "",
        )
        for each in parts
    )  # fmt: skip
    return render.ListedRun(
        id=first.run, study=first.file, study_id=study_id(first.file), parts=tuple(own),
        begun=f"{first.created:%Y-%m-%d %H:%M}",
        by=f"schedule {first.schedule}" if first.schedule else "started by hand",
    )  # fmt: skip
