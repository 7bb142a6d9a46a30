"""``fslab fleet changes``: show the change points of a study on all machines."""

from fslab.cli.common import CampaignsStudyArgument, JsonOption, StoreOption, print_json, say


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
    from fslab.api import histories
    from fslab.report.changes import changes, summary
    from fslab.store.store import Store

    with Store.open(store, create=False) as opened:
        found = histories.of_machines(opened, study)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
        return
    say(f"{found[0].study if found else study}: {summary(found)}")
    for each in changes(found):
        with_it = f"; changed at the same time: {each.facts}" if each.facts else ""
        say(f"{each.machine}, {each.figure}: {each.words} since {each.since}{with_it}")
        say(f"  fslab compare {each.before} {each.since}")
