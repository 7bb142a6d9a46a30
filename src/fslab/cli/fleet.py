"""``fslab fleet``: run a study on many machines, and combine their results."""

from fslab.cli import fleet_members, fleet_schedule, fleet_status
from fslab.cli.common import (
    CampaignsStudyArgument,
    JsonOption,
    OnlyWorkloadsOption,
    ShownMetricsOption,
    StoreOption,
    console,
    open_store,
    print_json,
    say,
)
from fslab.cli.option_groups import App

app = App(no_args_is_help=True, help="Run a study on many machines, and combine their results.")
app.command("scheduler", short_help="Give up lost machines, and start scheduled runs.")(fleet_members.serve)
app.command(
    "worker", short_help="Make this machine a member of a fleet.", epilog=fleet_members.WORKER_EPILOG
)(fleet_members.worker)
app.command("status", short_help="Show machines, and what they run.")(fleet_status.status)
app.command("schedule", short_help="Run a study on the fleet repeatedly.", epilog=fleet_schedule.EPILOG)(
    fleet_schedule.schedule
)
app.command("unschedule", short_help="Remove a schedule.")(fleet_schedule.unschedule)
app.command("cancel", short_help="End a run on all machines.")(fleet_status.cancel)
app.command("forget", short_help="Remove a machine that is gone.")(fleet_status.forget)

RESULTS_EPILOG = """\b
Examples:
  fslab store copy lab7.sqlite all.sqlite            once for each machine
  fslab fleet results quick --store all.sqlite       each stack against the first of the study
  fslab fleet results quick --against xfs --each     against XFS, with the ratio on each machine
  fslab fleet results quick --json                   for a program

\b
Exit codes:
   0  shown
   2  no such workload, stack or metric, or nothing to compare
   7  the store has no campaign of that study
"""


@app.command(
    "results",
    short_help="Show ratios of stacks, on average and for another machine.",
    epilog=RESULTS_EPILOG,
)
def results(
    study: CampaignsStudyArgument = None,
    *,
    against: str | None = None,
    workload: OnlyWorkloadsOption = None,
    metric: ShownMetricsOption = None,
    each: bool = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Combine a study's results from several machines, and predict those of another one.

    Only ratios are combined, never figures of different machines. On each machine two stacks are compared block by
    block; a random-effects model combines the ratios of the machines. Shown are the average ratio with its 95 % CI, the
    95 % prediction interval for another machine like these, and how much machines differ. Fewer than five machines are
    listed, not combined.

    All campaigns of the study in the store are used, those of one machine together; fslab store copy collects them in
    one store. If ratios differ between machines with one kernel, CPU or setting and those with another, this is shown
    as a coincidence: the cause may be something else.

    Parameters:
        against STACK: Compare all others with this stack or file system. Default: the first of the study.
        each: Show the ratio on each machine as well.
    """
    from fslab.api import comparisons

    with open_store(store) as opened:
        found = comparisons.fleet_of(
            opened, study, against=against, workloads=workload or [], metrics=metric or []
        )
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    from fslab.report import fleet_terminal

    fleet_terminal.show(found, console(), each=each)


@app.command(short_help="Show what changed over time, on all machines.")
def changes(
    study: CampaignsStudyArgument = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show changes of level of a study on all machines, the newest first.

    A change can be detected from about ten campaigns on. Shown are its size, the facts of the machine that changed at
    the same campaign, and the two campaigns, for fslab compare and fslab explain. fslab history --machine shows one
    machine with its curves.
    """
    from fslab.api import comparisons
    from fslab.report.fleet_changes import changes, summary

    with open_store(store) as opened:
        found = comparisons.histories_of_machines(opened, study)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
        return
    say(f"{found[0].study if found else study}: {summary(found)}")
    for each in changes(found):
        with_it = f"; changed at the same time: {each.facts}" if each.facts else ""
        say(f"{each.machine}, {each.figure}: {each.words} since {each.since}{with_it}")
        say(f"  fslab compare {each.before} {each.since}")
