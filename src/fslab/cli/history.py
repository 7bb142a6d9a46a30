"""``fslab history``: show a study over time on one machine, with its change points."""

from fslab.cli.common import (
    CampaignsStudyArgument,
    JsonOption,
    OnlyWorkloadsOption,
    ShownMetricsOption,
    StoreOption,
    console,
    open_store,
    print_json,
)

EPILOG = """\b
Examples:
  fslab history                                   the study of the last campaign
  fslab history quick --workload synced-write     one workload, campaign by campaign
  fslab history quick --metric write_clat_p99     another figure than the headline ones
  fslab history quick --json                      every point and change, for a program

\b
Exit codes:
   0  shown, with or without changes
   2  no such workload, stack or metric
   7  the store has no campaign of that study
"""


def history(
    study: CampaignsStudyArgument = None,
    *,
    stack: list[str] | None = None,
    workload: OnlyWorkloadsOption = None,
    metric: ShownMetricsOption = None,
    machine: str | None = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a study over time: each campaign is a point, and changes of level are marked.

    A change of level can be detected from about ten campaigns on. Its size is shown, and which facts of the machine
    changed at the same campaign (kernel, settings, tools, device). A single deviating campaign is not a change.
    Campaigns of other machines are left out, and so are cells that the last campaign no longer has.

    Parameters:
        stack NAME: Only this stack or file system. Repeatable.
        machine HOST: Host name of a machine. Default: that of the last campaign.
    """
    from fslab.api import comparisons

    with open_store(store) as opened:
        found = comparisons.history_of(opened, study, stack or [], workload or [], metric or [], machine)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    from fslab.report import history_terminal

    history_terminal.show(found, console())
