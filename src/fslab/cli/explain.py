"""``fslab explain``: why the stacks of a campaign differ, and what changes when a mechanism is switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fslab.cli import consent
from fslab.cli.common import CampaignArgument, JsonOption, StoreOption, console, print_json
from fslab.cli.consent import AllowOption, WipeOption
from fslab.errors import UsageError, nearest

if TYPE_CHECKING:
    from fslab.cell import Cell
    from fslab.explain.ablation import Ablation
    from fslab.explain.attribution import Attribution
    from fslab.explain.evidence import Evidence
    from fslab.store.campaign import Campaign
    from fslab.store.store import Store

EPILOG = """\b
Examples:
  fslab explain                                 what the kernel counted, stack by stack
  fslab explain last random-write btrfs xfs     only these two
  fslab explain last random-write btrfs xfs --trace    run both again, traced
  fslab explain last random-write btrfs xfs --ablate   switch btrfs's mechanisms off, one by one and together
"""


def explain(
    campaign: CampaignArgument = "last",
    workload: Annotated[str | None, typer.Argument(help="Only this workload.")] = None,
    a: Annotated[str | None, typer.Argument(metavar="[A]", help="A stack: its name or file system.")] = None,
    b: Annotated[
        str | None, typer.Argument(metavar="[B]", help="The other one; default: the best of the others.")
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Run these cells once more, traced; never used for speed. Root.")
    ] = False,
    ablate: Annotated[
        bool,
        typer.Option("--ablate", help="Run the slower stack with its mechanisms off, interleaved with both."),
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="MECHANISM", help="With --ablate: only these. Repeatable.")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --ablate: trials of each cell, instead of the study's rule."),
    ] = None,
    wipe: WipeOption = None,
    allow_commands: AllowOption = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say why: which mechanisms apply to each stack, with the counters that speak for them.

    What is observed or coincides is no cause yet. --ablate shows causes: the same trials with one mechanism switched
    off, and the ratio of the two stacks shared out among them; what remains unexplained is always said.
    """
    from fslab.cli import causes
    from fslab.store.store import Store

    with Store.open(store, create=False) as opened:
        found = opened.campaign(campaign)
        if "ablation" in found.settings and not trace:
            _show_ablation(found, opened, as_json=as_json)
            return
        everything = _chosen(causes.evidence_of(found, opened), workload, a, b)
        if trace or ablate:
            _ask([seen.cell for seen in everything], allowed=allow_commands)
        if trace:
            _trace(found, everything, opened, frozenset(wipe or []))
            everything = _chosen(causes.evidence_of(found, opened), workload, a, b)
        if ablate:
            _ablate(found, everything, opened, only or [], trials, frozenset(wipe or []), as_json=as_json)
        elif as_json:
            print_json({"campaign": found.id, "statements": causes.as_document(everything)})
        else:
            causes.show(everything)


def _ask(cells: list[Cell], *, allowed: bool) -> None:
    """Print what a stored campaign would write to, and ask for what it would run."""
    for line in consent.places(cells):
        console(stderr=True).print(line, markup=False, soft_wrap=True)
    consent.check(cells, allowed=allowed)


def _chosen(everything: list[Evidence], workload: str | None, a: str | None, b: str | None) -> list[Evidence]:
    """The cells that are meant; UsageError where there is none."""
    if workload is not None:
        names = {seen.workload for seen in everything}
        if workload not in names:
            raise UsageError(f"no workload '{workload}' with a usable trial", hint=nearest(workload, names))
        everything = [seen for seen in everything if seen.workload == workload]
    if a is None:
        return everything
    one = _stack(everything, a)
    if b is not None:
        return [one, _stack(everything, b)]
    others = [seen for seen in everything if seen is not one]
    return [one, *others]


def _stack(everything: list[Evidence], wanted: str) -> Evidence:
    exact = [seen for seen in everything if wanted in {seen.stack, seen.cell.stack.name, seen.cell.id}]
    own = [seen for seen in everything if wanted == seen.filesystem or wanted in seen.stack.split()]
    found = exact or own
    if len(found) != 1:
        what = f"{len(found)} stacks are called '{wanted}'" if found else f"no stack '{wanted}'"
        raise UsageError(what, hint=f"the stacks are: {', '.join(seen.stack for seen in everything)}")
    return found[0]


def _trace(campaign: Campaign, everything: list[Evidence], store: Store, wipe: frozenset[str]) -> None:
    from fslab.campaign.traced import trace
    from fslab.cli.progress import Lines

    screen = console(stderr=True)
    shown = Lines(screen)
    for record in trace(
        campaign, [seen.cell for seen in everything], store, shown, wipe=wipe, note=shown.note
    ):
        what = f"{record.cell.workload.name} on {record.cell.stack.name}"
        screen.print(f"traced {what}" if record.error is None else f"{what}: {record.error}", markup=False)


def _ablate(
    campaign: Campaign,
    pair: list[Evidence],
    store: Store,
    only: list[str],
    trials: int | None,
    wipe: frozenset[str],
    *,
    as_json: bool,
) -> None:
    """Screen the mechanisms one by one where there are many, then measure together those that matter."""
    from fslab.cli import ablate

    slow, fast, metric = ablate.ordered(pair)
    names = only
    while True:
        made = ablate.make(campaign, slow, fast, metric, names, trials)
        ablate.run(made, store, wipe)
        ablation, found = ablate.read(store.campaign(made.id), store)
        _print(ablation, found, as_json=as_json)
        if found is None or found.complete:
            return
        names = ablate.strongest(found)
        if not names:
            return


def _show_ablation(campaign: Campaign, store: Store, *, as_json: bool) -> None:
    from fslab.cli import ablate

    ablation, found = ablate.read(campaign, store)
    _print(ablation, found, as_json=as_json)


def _print(ablation: Ablation, found: Attribution | None, *, as_json: bool) -> None:
    from fslab.explain.ablation import as_document, in_words

    if as_json:
        document: dict[str, Any] = as_document(ablation, found)
        print_json(document)
        return
    screen = console()
    for line in in_words(ablation, found) if found else ["too few usable trials to attribute anything"]:
        screen.print(line, markup=False)
