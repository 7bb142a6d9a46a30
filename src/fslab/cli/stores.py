"""``fslab store``: copy campaigns to another store, check a store, delete old campaigns, grant rights."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from fslab.cli.common import JsonOption, StoreOption, YesOption, open_store, option_value, print_json, say
from fslab.cli.option_groups import App
from fslab.errors import StoreError, UsageError
from fslab.units import counted, parse_duration

app = App(
    no_args_is_help=True,
    help="Copy campaigns between stores, check a store, delete old campaigns, grant rights.",
)

COPY_EPILOG = (
    "Example, from a file to a server: fslab store copy ~/.local/share/fslab/store.sqlite "
    "postgresql+psycopg://fslab@db.example/fslab"
)
_PLACE = "a file, or a database URL such as postgresql+psycopg://host/name"


@app.command("copy", short_help="Copy campaigns to another store.", epilog=COPY_EPILOG)
def copy(source: str, target: str, campaigns: list[str] | None = None, *, json: JsonOption = False) -> None:
    """Copy campaigns with all their trials, the tools' output, traced trials, names and notes.

    Each trial is read back and compared with the original (SHA-256). Trials that TO has already are compared and not
    changed: run the same command again to finish an interrupted copy, or to add a campaign's new trials. A plan or a
    status that is further in TO is kept. A name that another campaign of TO has is left out. FROM is never changed.

    Parameters:
        source FROM: The store to read: a file, or a database URL such as postgresql+psycopg://host/name.
        target TO: The store to copy to; created if it does not exist.
        campaigns [CAMPAIGN]...: Ids or names; default: all campaigns of FROM.
    """
    from fslab.store.transfer import copy_campaign

    with open_store(source) as reading, open_store(target, create=True) as writing:
        if reading.path == writing.path:
            raise UsageError(
                "FROM and TO are the same store", where=reading.path, hint="name two different stores"
            )
        wanted = [reading.campaign(each) for each in campaigns] if campaigns else reading.campaigns()
        done = []
        for campaign in wanted:
            copied = copy_campaign(reading, writing, campaign)
            done.append(copied)
            if not json:
                say(f"{copied.id}: {counted(copied.new, 'trial')} copied, {copied.present} already there")
            if copied.name_taken is not None:
                taken = f"another campaign of {writing.path} has it"
                say(f"{copied.id}: copied without its name '{copied.name_taken}': {taken}", err=True)
        if json:
            print_json(
                {"from": reading.path, "to": writing.path, "campaigns": [asdict(each) for each in done]}
            )
        elif not done:
            say(f"{reading.path} has no campaign")


@app.command("check", short_help="Read a whole store and look for damage.")
def check(store: StoreOption = None, json: JsonOption = False) -> None:
    """Read every campaign, trial and tool output of a store, and report what is damaged or was altered.

    The file of an SQLite store is checked too. Changes nothing. Exit status 7 if there is any fault.
    """
    from fslab.store.integrity import check_campaigns, database_faults

    with open_store(store) as opened:
        faults = database_faults(opened)
        checked = list(check_campaigns(opened))
        place = opened.path
    broken = [each for each in checked if each.fault is not None]
    if json:
        print_json({"store": place, "faults": faults, "campaigns": [asdict(each) for each in checked]})
    else:
        for line in faults:
            say(f"{place}: {line}")
        for each in broken:
            say(f"{each.id}: {each.fault}")
        trials = sum(each.trials for each in checked)
        what = f"{counted(len(checked), 'campaign')} with {counted(trials, 'trial')}"
        say(f"{what}: {_verdict(len(broken), len(faults))}")
    if faults or broken:
        raise typer.Exit(StoreError.exit_code)


PRUNE_EPILOG = """\b
Examples:
  fslab store prune --older-than 90d --dry-run
  fslab store prune --older-than 90d --keep 10 --study nightly --yes     such as from cron
"""


@app.command("prune", short_help="Delete old campaigns.", epilog=PRUNE_EPILOG)
def prune(
    *,
    older_than: str,
    keep: Annotated[int, typer.Option(min=0)] = 1,
    study: list[str] | None = None,
    dry_run: bool = False,
    yes: YesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Delete old campaigns with all their trials. This cannot be undone; make a copy first: fslab store copy.

    Kept are campaigns with a name, and campaigns that may still be running.

    Parameters:
        older_than TIME: Delete campaigns that were started longer ago, such as 90d.
        keep N: Keep the N newest of each study on each machine, however old.
        study ID: Only campaigns of this study. Repeatable.
        dry_run: Show what would be deleted; delete nothing.
    """
    from fslab.api import retention

    age_s = option_value(parse_duration, older_than, "--older-than")
    with open_store(store) as opened:
        found = retention.outdated(opened, older_than_s=age_s, keep=keep, studies=study or ())
        counts = opened.counts()
        for campaign in found:
            trials = counted(counts.get(campaign.id, 0), "trial")
            say(f"{campaign.id}: {campaign.study_title}, {trials}", err=True)
        if (
            found
            and not dry_run
            and not yes
            and not (sys.stdin.isatty() and typer.confirm("Delete?", err=True))
        ):
            raise UsageError("nothing was deleted", hint="to delete without being asked: --yes")
        # Once more: during the question, one may have been resumed or named.
        ids = [each.id for each in found]
        still = {
            each.id for each in retention.outdated(opened, older_than_s=age_s, keep=keep, studies=study or ())
        }
        deleted = [] if dry_run else [each for each in ids if each in still]
        for campaign_id in deleted:
            opened.delete_campaign(campaign_id)
    if json:
        print_json({"outdated": ids, "deleted": deleted})
    elif dry_run:
        say(f"would delete {counted(len(ids), 'campaign')}")
    else:
        say(f"deleted {counted(len(deleted), 'campaign')}")


@app.command("grant", short_help="Give roles of a PostgreSQL server rights in a store.")
def grant(*, measuring: str | None = None, reading: str | None = None, store: StoreOption = None) -> None:
    """Give existing roles (CREATE ROLE name LOGIN PASSWORD …) rights in the store; replaces the rights that they have.

    Run it as the owner of the database, and again after an upgrade of fslab that changes the tables.

    Parameters:
        measuring ROLE: May store campaigns and run assignments; not delete, not assign studies.
        reading ROLE: May read everything, and write nothing.
    """
    from fslab.store import roles

    if measuring is None and reading is None:
        raise UsageError("no role given", hint="--measuring ROLE or --reading ROLE")
    with open_store(store, create=True) as opened:
        roles.grant(opened, measuring=measuring, reading=reading)
    for role, may in ((measuring, "measure"), (reading, "read")):
        if role is not None:
            say(f"{role} may {may}")


def _verdict(broken: int, faults: int) -> str:
    if not broken and not faults:
        return "no faults"
    found = f"{counted(broken, 'campaign')} with faults, {counted(faults, 'fault')} of the database"
    return f"{found}; restore a backup, or copy the undamaged campaigns to a new store: fslab store copy"
