"""``fslab explain``: why the stacks of a campaign differ, and what changes when a mechanism is switched off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli import consent
from fslab.cli.common import CampaignArgument, JsonOption, StoreOption, console, open_store, print_json, say
from fslab.cli.run_options import given, options_of
from fslab.errors import UsageError
from fslab.units import counted, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fslab.campaign.consent import Consent
    from fslab.explain.ablation import Attribution
    from fslab.explain.evidence import Evidence
    from fslab.store.campaign import Campaign
    from fslab.store.store import Store


@dataclass(frozen=True, kw_only=True)
class More:
    """Which further trials to run.

    Parameters:
        trace: Run one more trial of each chosen cell with kernel tracing, which slows it down; needs root.
        ablate: Run trials of the slower stack with its mechanisms off, interleaved with trials of both stacks. Needs a
            workload; A and B name the two stacks.
        only MECHANISM: With --ablate: only this mechanism (fslab list mechanisms). Repeatable.
        trials N: With --ablate: trials of each cell; default: as the study says.
    """

    trace: bool = False
    ablate: bool = False
    only: list[str] | None = None
    trials: Annotated[int | None, typer.Option(min=1, max=100000)] = None

    def check(self) -> None:
        """Raise UsageError for options of --ablate without it."""
        if not self.ablate and (unused := given(options_of(self, "trace", "ablate"))):
            raise UsageError("needs --ablate", where=", ".join(unused), hint="add --ablate, or omit it")


def explain(
    campaign: CampaignArgument = "last",
    workload: str | None = None,
    a: str | None = None,
    b: str | None = None,
    *,
    more: More,
    every: bool = False,
    allowed: consent.Allowed,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show why stacks differ: the mechanisms in whose evidence they differ most first; with --all or a workload,
    cell by cell.

    A mechanism that was observed, or that coincides with a difference, need not be its cause. --ablate shows causes:
    it runs trials with each mechanism switched off, and divides the ratio of the two stacks among the mechanisms. What
    they do not explain is shown too.

    Parameters:
        workload: Only this workload.
        a A: A stack: its name or file system; with --ablate, default: the slowest.
        b B: The stack to compare with; default: the best of the others.
        every --all: Show every cell with every explanation and its counters.

    Examples:
        fslab explain                                 the mechanisms in which the stacks differ most
        fslab explain --all                           what the kernel counted, cell by cell
        fslab explain last random-write btrfs xfs     only these two
        fslab explain last random-write btrfs xfs --trace    run both again, traced
        fslab explain last random-write btrfs xfs --ablate   switch btrfs's mechanisms off, one by one and together
    """
    from fslab.api import explanations
    from fslab.api.explanations import chosen, evidence_of
    from fslab.explain import ranking, settings

    more.check()
    with open_store(store) as opened:
        found = opened.campaign(campaign)
        shown = found.settings.ablation
        if shown is not None and more.ablate:
            raise UsageError(
                f"{found.id} is an ablation already",
                where="--ablate",
                hint="to see its result, omit --ablate; to run another one, name the campaign that it explains: "
                f"{shown.of}",
            )
        if shown is not None and not more.trace:
            _print_ablation(found, opened, as_json=as_json)
            return
        everything = chosen(evidence_of(found, opened), workload, a, b)
        if more.trace or more.ablate:
            agreed = consent.of_user(allowed=allowed.allow_commands)
            again = _Again(found, opened, allowed.devices, agreed)
            again.check(everything)
            if more.trace:
                again.trace(everything)
                everything = chosen(evidence_of(found, opened), workload, a, b)
            if more.ablate:
                again.ablate(everything, more, first=a is not None, as_json=as_json)
                return
        cells = [seen.cell for seen in everything]
        if as_json:
            print_json(
                {
                    "campaign": found.id,
                    **ranking.as_document(everything),
                    "statements": explanations.as_document(everything),
                    "traces_not_used": explanations.traces_not_used(everything),
                    "differing_settings": settings.differing(cells),
                }
            )
            return
        if every or workload is not None:
            show(everything)
        else:
            show_ranked(everything, opened.in_commands(found.id))
        if told := settings.in_words(cells):
            print_wrapped(told)


@dataclass(frozen=True, slots=True)
class _Again:
    """Runs cells of a stored campaign again. ``wipe``: devices that may be overwritten."""

    campaign: Campaign
    store: Store
    wipe: frozenset[str]
    agreed: Consent

    def check(self, everything: list[Evidence]) -> None:
        """Check that they can run. Print what they would write to; ask before commands run."""
        from fslab.campaign import launch
        from fslab.campaign.consent import places

        launch.check_stored(self.campaign, self.store)
        cells = [seen.cell for seen in everything]
        for line in places(cells):
            say(line, err=True)
        self.agreed.check_stored(cells, self.store)
        self.agreed.require(cells)

    def trace(self, everything: list[Evidence]) -> None:
        from fslab.campaign.traced import trace
        from fslab.cli.progress import Lines

        screen = console(stderr=True)
        shown = Lines(screen)
        cells = [seen.cell for seen in everything]
        for record in trace(
            self.campaign, cells, self.store, shown, wipe=self.wipe, consent=self.agreed, note=shown.note
        ):
            what = f"{record.cell.workload.name} on {record.cell.stack.name}"
            told = f"traced: {what}" if record.error is None else f"tracing failed: {what}: {record.error}"
            screen.print(told, markup=False)

    def ablate(self, everything: list[Evidence], more: More, *, first: bool, as_json: bool) -> None:
        """Run the ablation. If there are many mechanisms, test each alone first, then the effective ones together."""
        from fslab.api import ablations
        from fslab.cli import progress

        slow, fast, metric = ablations.slower_and_faster(everything, first=first)

        def measured(names: list[str]) -> tuple[Campaign, Attribution | None]:
            made = ablations.ablation_of(self.campaign, slow, fast, metric, names, more.trials)
            with progress.shown(console(stderr=True), quiet=False, silent=False) as shown:
                return ablations.run_ablation(made, self.store, shown, self.wipe, self.agreed)

        made, found = measured(more.only or [])
        together = [] if found is None or found.complete else ablations.effective(made, found)
        if together:
            if not as_json:  # JSON is one document: that of the last round
                _print_ablation(made, self.store, as_json=False)
            made, _ = measured(together)
        _print_ablation(made, self.store, as_json=as_json)


def _print_ablation(campaign: Campaign, store: Store, *, as_json: bool) -> None:
    """Print what the ablation of a campaign shows."""
    from fslab.api.ablations import read_ablation
    from fslab.explain import settings
    from fslab.explain.ablation import as_document, in_words

    ablation, found = read_ablation(campaign, store)
    both = [cell for cell in campaign.cells if cell.id in {ablation.slow_cell, ablation.fast_cell}]
    if as_json:
        print_json({**as_document(ablation, found), "differing_settings": settings.differing(both)})
        return
    lines = in_words(ablation, found) if found else ["too few usable trials: nothing can be attributed"]
    for line in filter(None, [*lines, settings.in_words(both)]):
        print_wrapped(line)


SHOWN = 5


def show(everything: Sequence[Evidence]) -> None:
    """Print all explanations, cell by cell, those in which the stacks differ most first, each with its counters below
    it."""
    from rich.text import Text

    from fslab.api.explanations import withdrawn
    from fslab.explain.ranking import in_order

    screen = console()
    for seen, found in in_order(everything):
        about = Text(f"{seen.workload}, {seen.stack}", style="bold")
        screen.print(about if found else about.append(": no mechanism found", style="not bold"))
        for statement, why_not in found:
            also = f"; {why_not}" if why_not else ""
            print_wrapped(f"  {statement.text} ({statement.certainty}{also})")
            for figure in statement.figures:
                print_wrapped(f"      {figure}", style="dim")
            if statement.refuted_by:
                print_wrapped(f"      falsified if: {statement.refuted_by}", style="dim")
        for why in withdrawn(seen):
            print_wrapped(f"  trace not used: {why}")
    _print_unexplained(everything)


def show_ranked(everything: Sequence[Evidence], in_commands: str) -> None:
    """Print the mechanisms, those in which the stacks differ most first, each with its strongest explanation.

    ``in_commands``: how commands name the campaign.
    """
    from fslab.explain.ranking import ranking

    ranked = ranking(everything)
    if not ranked:
        print_wrapped(f"no mechanism found in {counted(len(everything), 'cell')}")
        return
    for each in ranked[:SHOWN]:
        print_wrapped(f"{each.mechanism}: {each.summary}", style="bold")
        more = len(each.cells) - 1
        also = f", and in {counted(more, 'other cell')}" if more else ""
        also += f"; {each.why_not}" if each.why_not else ""
        strongest = each.strongest
        print_wrapped(f"  {strongest.text}")
        about = f"{strongest.workload} on {strongest.stack}{also}"
        print_wrapped(f"  {strongest.certainty}: {about}", style="dim")
        if strongest.refuted_by:
            print_wrapped(f"  falsified if: {strongest.refuted_by}", style="dim")
    _print_unexplained(everything)
    hidden = len(ranked) - SHOWN
    rest = f"{counted(hidden, 'more mechanism')}, " if hidden > 0 else ""
    print_wrapped(f"{rest}every cell and counter: fslab explain {in_commands} --all")
    print_wrapped("an observed mechanism need not be a cause; to show causes: --ablate", style="dim")


def _print_unexplained(everything: Sequence[Evidence]) -> None:
    from fslab.explain.ranking import unexplained

    if found := unexplained(everything):
        print_wrapped(f"no mechanism found that can explain a difference between the stacks: {listed(found)}")


def print_wrapped(text: str, style: str = "") -> None:
    """Print a text whose lines after the first are indented as the first one."""
    from fslab.report.terminal_width import wrapped

    screen = console()
    indent = len(text) - len(text.lstrip(" "))
    screen.print(wrapped(text, screen.width, style=style, hang=indent), soft_wrap=True)
