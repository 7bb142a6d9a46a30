"""``fslab fleet``: one study on many machines."""

from typing import Annotated

import typer

from fslab.cli.common import JsonOption, StoreOption, console, print_json

app = typer.Typer(no_args_is_help=True, help="One study on many machines: what they have in common.")

RESULTS_EPILOG = """\b
Examples:
  fslab store copy lab7.sqlite all.sqlite            once for each machine
  fslab fleet results quick --store all.sqlite       each stack against the first of the study
  fslab fleet results quick --against xfs --each     against XFS, with the ratio on each machine
  fslab fleet results quick --json                   for a program

\b
Exit codes:
   0  shown, whatever was found
   2  no such workload, stack or metric, or nothing to compare
   7  the store has no campaign of that study
"""


@app.command(
    "results",
    short_help="Ratios of stacks, combined over machines, and for another one.",
    epilog=RESULTS_EPILOG,
)
def results(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY]", help="Id of a study, or its file. Default: that of the last campaign."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="STACK", help="What all others are compared with: a stack or file system."),
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this workload. Repeatable.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Show this figure instead of the headline ones. Repeatable."),
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="Show the ratio on each machine as well.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a study says over several machines, and what to expect on another one.

    Figures of unlike machines are never put together. On each machine two stacks are compared block by block; their
    ratios are combined over machines by a random-effects model. Shown are the ratio on average with its 95 % interval,
    the interval in which the ratio of another machine lies that is like these (prediction), and how much machines
    differ. Fewer than five machines are listed, not combined.

    The campaigns of a study in one store are used, those of one machine together; fslab store copy brings them there.
    If ratios on machines with one kernel, CPU or setting differ from those with another, that is said. It is a
    coincidence that may have another cause.
    """
    from fslab.api import fleets
    from fslab.api.stores import Store

    with Store.open(store, create=False) as opened:
        found = fleets.of_study(
            opened, study, against=against, workloads=workload or [], metrics=metric or []
        )
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    from fslab.report import fleet_terminal

    fleet_terminal.show(found, console(), each=each)
