"""``fslab store``, ``name``, ``note`` and ``delete``: copy, check, prune, grant; name, annotate, delete."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli.common import (
    CampaignArgument,
    JsonOption,
    NeededCampaignArgument,
    StoreOption,
    YesOption,
    open_store,
    option_value,
    print_json,
    say,
)
from fslab.cli.option_groups import App
from fslab.errors import BusyError, StoreError, StoreLostError, UsageError
from fslab.units import counted, parse_duration

if TYPE_CHECKING:
    from fslab.store.campaign import CampaignEntry
    from fslab.store.store import Store


app = App(
    no_args_is_help=True,
    help="Copy campaigns between stores, check a store, delete old campaigns, grant rights.",
)


@app.command("copy", short_help="Copy campaigns to another store.")
def copy(source: str, target: str, campaigns: list[str] | None = None, *, json: JsonOption = False) -> None:
    """Copy campaigns with all their trials, the tools' output, traced trials, names and notes.

    Each trial is read back and compared with the original (SHA-256). Trials that TO has already are compared and not
    changed: run the same command again to finish an interrupted copy, or to add a campaign's new trials. A plan or a
    status that is further in TO is kept. A name that another campaign of TO has is left out. FROM is never changed.

    Parameters:
        source FROM: The store to read: a file, or a database URL such as postgresql+psycopg://host/name.
        target TO: The store to copy to; created if it does not exist.
        campaigns CAMPAIGN: Ids or names; default: all campaigns of FROM.

    Example, from a file to a server: fslab store copy ~/.local/share/fslab/store.sqlite
    postgresql+psycopg://fslab@db.example/fslab
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
            print_json({"from": reading.path, "to": writing.path, "campaigns": done})
        elif not done:
            say(f"{reading.path} has no campaign")


@app.command("check", short_help="Read a whole store and look for damage.")
def check(store: StoreOption = None, json: JsonOption = False) -> None:
    """Read every campaign, trial and tool output of a store, and report what is damaged or was altered.

    The file of an SQLite store is checked too. Changes nothing. Exit status 7 if there is any fault.
    """
    from fslab.store.maintenance import check_campaigns, database_faults

    with open_store(store) as opened:
        faults = database_faults(opened)
        checked = list(check_campaigns(opened))
        place = opened.path
    broken = [each for each in checked if each.fault is not None]
    if json:
        print_json({"store": place, "faults": faults, "campaigns": checked})
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


@app.command("prune", short_help="Delete old campaigns.")
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

    Kept are campaigns with a name, campaigns that may still be running, and those that were measured with a clock that
    showed a year before 2026.

    Parameters:
        older_than TIME: Delete campaigns that were started longer ago, such as 90d.
        keep N: Keep the N newest of each study on each machine, however old.
        study ID: Only campaigns of this study. Repeatable.
        dry_run: Show what would be deleted; delete nothing.

    Examples:
        fslab store prune --older-than 90d --dry-run
        fslab store prune --older-than 90d --keep 10 --study nightly --yes     such as from cron
    """
    from fslab.api.study_campaigns import outdated

    age_s = option_value(parse_duration, older_than, "--older-than")
    with open_store(store) as opened:
        find = partial(outdated, opened, older_than_s=age_s, keep=keep, studies=study or ())
        found, counts = find(), opened.counts()
        for campaign in found:
            trials = counted(counts.get(campaign.id, 0), "trial")
            say(f"{campaign.id}: {campaign.study_title}, {trials}", err=True)
        if found and not dry_run:
            _confirm(yes=yes)
        # Once more: during the question, one may have been resumed or named.
        ids, still = [each.id for each in found], {each.id for each in find()}
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
    from fslab.store import maintenance

    if measuring is None and reading is None:
        raise UsageError("no role given", hint="--measuring ROLE or --reading ROLE")
    with open_store(store, create=True) as opened:
        maintenance.grant(opened, measuring=measuring, reading=reading)
    for role, may in ((measuring, "measure"), (reading, "read")):
        if role is not None:
            say(f"{role} may {may}")


def _verdict(broken: int, faults: int) -> str:
    if not broken and not faults:
        return "no faults"
    found = f"{counted(broken, 'campaign')} with faults, {counted(faults, 'fault')} of the database"
    return f"{found}; restore a backup, or copy the undamaged campaigns to a new store: fslab store copy"


def name(campaign: NeededCampaignArgument, name: str, *, store: StoreOption = None) -> None:
    """Give a campaign a name. Every command takes it instead of the id.

    Parameters:
        name: The new name; '' removes the name.
    """
    with open_store(store) as opened:
        found = opened.name_campaign(campaign, name or None)
    say(f"{found} is called '{name}'" if name else f"{found} has no name")


def note(campaign: CampaignArgument = "last", text: str | None = None, *, store: StoreOption = None) -> None:
    """Store a note with a campaign, or show it.

    Parameters:
        text: The new note; '' removes the note; default: show the note.
    """
    with open_store(store) as opened:
        if text is not None:
            opened.note_campaign(campaign, text or None)
        found = opened.campaign(campaign)
    say(found.note or f"{found.id} has no note")


def delete(
    campaigns: list[str],
    *,
    yes: YesOption = False,
    force: bool = False,
    store: StoreOption = None,
) -> None:
    """Delete campaigns with all their trials. This cannot be undone; make a copy first: fslab store copy.

    A campaign that runs is not deleted. Whether a machine of a fleet still runs one, or one was copied while it ran,
    cannot be checked: the store says so until it ends. --force deletes it; in a fleet it also ends the measurement.

    Parameters:
        campaigns CAMPAIGN: Complete ids or names; not 'last', and no beginnings of ids.
        force: Also those that run elsewhere according to the store.
    """
    with open_store(store) as opened:
        found = {}  # by id: two words may mean one campaign
        for wanted in campaigns:
            entry = opened.entry(wanted)  # not the campaign: one that cannot be read can be deleted, too
            if wanted not in {entry.id, entry.name}:
                raise UsageError(f"'{wanted}' is not a complete id or name", hint=f"fslab delete {entry.id}")
            _check_idle(entry, opened, force=force)
            found[entry.id] = entry
        for entry in found.values():
            what = f"{entry.id}{f' ({entry.name})' if entry.name else ''}: {entry.study_title}"
            say(f"{what}, {counted(opened.count(entry.id), 'trial')}", err=True)
        _confirm(yes=yes)
        for campaign_id in found:
            _check_idle(opened.entry(campaign_id), opened, force=force)  # resumed during the question?
            opened.delete_campaign(campaign_id)
    say(f"deleted {counted(len(found), 'campaign')}")


def _confirm(*, yes: bool) -> None:
    """Ask on a terminal, unless ``yes``. Raises UsageError unless the user agrees."""
    if not yes and not (sys.stdin.isatty() and typer.confirm("Delete?", err=True)):
        raise UsageError("nothing was deleted", hint="to delete without being asked: --yes")


def _check_idle(entry: CampaignEntry, store: Store, *, force: bool) -> None:
    """Raise BusyError if the campaign runs: here, or, without ``force``, perhaps elsewhere."""
    from fslab.campaign.liveness import is_running

    if is_running(entry.id, store):
        raise BusyError(f"campaign {entry.id} is running", hint="stop it first, with Ctrl-C")
    if not force and _may_run(entry, store):
        raise BusyError(
            f"campaign {entry.id} is running on another machine, or another user runs it",
            hint="if that is no longer so: --force; in a fleet it also ends the measurement",
        )


def _may_run(entry: CampaignEntry, store: Store) -> bool:
    """Return whether the campaign may run elsewhere. One that cannot be read does not say where it was started."""
    from fslab.campaign.liveness import as_it_is
    from fslab.store.campaign import CampaignStatus

    if entry.status != CampaignStatus.RUNNING:
        return False
    try:
        return as_it_is(store.campaign(entry.id), store).status is CampaignStatus.RUNNING
    except StoreLostError:
        raise
    except StoreError:
        return True
