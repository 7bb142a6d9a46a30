"""``fslab explain``: why the stacks of a campaign differ, and what changes when a mechanism is switched off."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli import consent
from fslab.cli.common import CampaignArgument, JsonOption, StoreOption, console, print_json, say
from fslab.cli.consent import AllowOption, WipeOption
from fslab.cli.run_options import given
from fslab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fslab.campaign.consent import Consent
    from fslab.explain.attribution import Attribution
    from fslab.explain.evidence import Evidence
    from fslab.store.campaign import Campaign
    from fslab.store.store import Store

EPILOG = """\b
Examples:
  fslab explain                                 the mechanisms in which the stacks differ most
  fslab explain --all                           what the kernel counted, cell by cell
  fslab explain last random-write btrfs xfs     only these two
  fslab explain last random-write btrfs xfs --trace    run both again, traced
  fslab explain last random-write btrfs xfs --ablate   switch btrfs's mechanisms off, one by one and together
"""


def explain(
    campaign: CampaignArgument = "last",
    workload: Annotated[str | None, typer.Argument(help="Only this workload.")] = None,
    a: Annotated[
        str | None,
        typer.Argument(
            metavar="[A]", help="A stack: its name or file system; with --ablate, default: the slowest."
        ),
    ] = None,
    b: Annotated[
        str | None,
        typer.Argument(metavar="[B]", help="The stack to compare with; default: the best of the others."),
    ] = None,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace",
            help="Run one more trial of each chosen cell with kernel tracing, which slows it down; needs root.",
        ),
    ] = False,
    ablate: Annotated[
        bool,
        typer.Option(
            "--ablate",
            help="Run trials of the slower stack with its mechanisms off, interleaved with trials of both stacks. "
            "Needs a workload; A and B name the two stacks.",
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MECHANISM",
            help="With --ablate: only this mechanism (fslab list mechanisms). Repeatable.",
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=100_000,
            help="With --ablate: trials of each cell; default: as the study says.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every cell with every explanation and its counters.")
    ] = False,
    wipe: WipeOption = None,
    allow_commands: AllowOption = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show why stacks differ: the mechanisms in whose evidence they differ most first; with --all or a workload,
    cell by cell.

    A mechanism that was observed, or that coincides with a difference, need not be its cause. --ablate shows causes:
    it runs trials with each mechanism switched off, and divides the ratio of the two stacks among the mechanisms. What
    they do not explain is shown too.
    """
    from fslab.api import explanations
    from fslab.cli import causes
    from fslab.store.store import Store

    if not ablate and (unused := given({"--only": only, "--trials": trials})):
        raise UsageError("needs --ablate", where=", ".join(unused), hint="add --ablate, or omit it")
    with Store.open(store, create=False) as opened:
        found = opened.campaign(campaign)
        shown = found.settings.ablation
        if shown is not None and ablate:
            raise UsageError(
                f"{found.id} is an ablation already", where="--ablate",
                hint="to see its result, omit --ablate; to run another one, name the campaign that it explains: "
                f"{shown.of}",
            )  # fmt: skip
        if shown is not None and not trace:
            _print(found, opened, as_json=as_json)
            return
        everything = explanations.chosen(explanations.evidence_of(found, opened), workload, a, b)
        agreed = consent.of_user(allowed=allow_commands)
        if trace or ablate:
            _check(found, everything, opened, agreed)
        if trace:
            _trace(found, everything, opened, frozenset(wipe or []), agreed)
            everything = explanations.chosen(explanations.evidence_of(found, opened), workload, a, b)
        if ablate:
            run = partial(_measured, opened, frozenset(wipe or []), agreed)
            _ablate(found, everything, opened, only or [], trials, run, first=a is not None, as_json=as_json)
        elif as_json:
            print_json(
                {
                    "campaign": found.id,
                    "statements": explanations.as_document(everything),
                    "traces_not_used": explanations.traces_not_used(everything),
                }
            )
        elif every or workload is not None:
            causes.show(everything)
        else:
            causes.show_ranked(everything, found.id)


def _check(campaign: Campaign, everything: list[Evidence], store: Store, agreed: Consent) -> None:
    """Check a stored campaign whose trials shall run again. Print what it would write to; ask before commands run."""
    from fslab.campaign import launch
    from fslab.campaign.consent import places

    launch.check_stored(campaign, store)
    cells = [seen.cell for seen in everything]
    for line in places(cells):
        say(line, err=True)
    agreed.require(cells)


def _trace(
    campaign: Campaign, everything: list[Evidence], store: Store, wipe: frozenset[str], agreed: Consent
) -> None:
    from fslab.campaign.traced import trace
    from fslab.cli.progress import Lines

    screen = console(stderr=True)
    shown = Lines(screen)
    for record in trace(
        campaign, [seen.cell for seen in everything], store, shown, wipe=wipe, consent=agreed, note=shown.note
    ):
        what = f"{record.cell.workload.name} on {record.cell.stack.name}"
        told = f"traced: {what}" if record.error is None else f"tracing failed: {what}: {record.error}"
        screen.print(told, markup=False)


def _ablate(
    campaign: Campaign,
    everything: list[Evidence],
    store: Store,
    only: list[str],
    trials: int | None,
    run: Callable[[Campaign], tuple[Campaign, Attribution | None]],
    *,
    first: bool,
    as_json: bool,
) -> None:
    """Run the ablation. If there are many mechanisms, test each alone first, then the effective ones together, once."""
    from fslab.api import ablation as ablate

    slow, fast, metric = ablate.ordered(everything, first=first)

    def measured(names: list[str]) -> tuple[Campaign, Attribution | None]:
        return run(ablate.make(campaign, slow, fast, metric, names, trials))

    made, found = measured(only)
    together = [] if found is None or found.complete else ablate.strongest(found)
    if together:
        if not as_json:  # JSON is one document: that of the last round
            _print(made, store, as_json=False)
        made, _ = measured(together)
    _print(made, store, as_json=as_json)


def _measured(
    store: Store, wipe: frozenset[str], agreed: Consent, made: Campaign
) -> tuple[Campaign, Attribution | None]:
    """Run the campaign of an ablation. Return it, and the attribution of its trials."""
    from fslab.api import ablation as ablate
    from fslab.cli import live

    with live.shown(console(stderr=True), quiet=False, silent=False) as shown:
        ablate.run(made, store, shown, wipe, agreed)
    return store.campaign(made.id), ablate.read(store.campaign(made.id), store)[1]


def _print(campaign: Campaign, store: Store, *, as_json: bool) -> None:
    """Print what the ablation of a campaign shows."""
    from fslab.api.ablation import read
    from fslab.explain.ablation import as_document, in_words

    ablation, found = read(campaign, store)
    if as_json:
        print_json(as_document(ablation, found))
        return
    screen = console()
    lines = in_words(ablation, found) if found else ["too few usable trials: nothing can be attributed"]
    for line in lines:
        screen.print(line, markup=False)
