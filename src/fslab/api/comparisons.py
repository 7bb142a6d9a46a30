"""Compares two sets of results (campaigns, exported files, kernels or stacks), a study over time, and over machines."""

import logging
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from fslab.analysis import campaign_comparison, fleet
from fslab.analysis import history as histories
from fslab.analysis.campaign_comparison import Results, refused
from fslab.analysis.campaign_comparison_lines import CampaignComparison
from fslab.analysis.fleet import Fleet
from fslab.analysis.history import History
from fslab.analysis.matching_cells import MatchedBy, chosen
from fslab.analysis.table_rows import looks_of
from fslab.api.study_campaigns import campaigns_of, check_choice, check_metrics, check_names
from fslab.errors import NoSpaceError, NotComparableError, StoreError, StoreLostError, UsageError
from fslab.machine import facts
from fslab.machine.differences import ALL
from fslab.names import shown
from fslab.store import export
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.study import shipped
from fslab.trial_record import TrialRecord
from fslab.units import first_of

log = logging.getLogger("fslab.api")


def compare(
    a: str | None = None, b: str | None = None, *, stacks: Sequence[str] = (), kernels: Sequence[str] = (),
    metrics: Sequence[str] = (), differing: Sequence[str] = (), force: bool = False, margin: float | None = None,
    store: str | None = None,
) -> CampaignComparison:  # fmt: skip
    """Compare two sets of results: campaigns in ``store`` (ids, ``last``, several with commas) or exported files.

    Two ``stacks`` or two ``kernels`` are compared with each other. ``differing``: names of facts that may differ. If
    other facts differ, the result lists them (``refused``) and compares nothing (``lines`` and ``means`` are empty),
    unless ``force``. ``margin``: smallest difference of interest, as a share. UsageError if nothing matches.
    """
    facts.check_names(differing)
    within = len(stacks) == 2 or len(kernels) == 2
    _check(b, stacks, kernels)
    names = (a or "last", b or a or "last") if within else (a or "last~1", b or "last")
    try:
        left, right = _load(*names, store)
    except StoreError as error:
        if a is not None or within:
            raise
        hint = "run a study twice, or compare two stacks of one campaign: --stack ext4 --stack xfs"
        raise StoreError(error.what, where=error.where, hint=hint) from error
    same = left is right
    of_a, of_b = ({trial.key.campaign for trial in side.trials} for side in (left, right))
    if not within and (same or of_a & of_b):  # an export of it, too: a run that did not start is not "last"
        both = "are the same campaign" if of_a == of_b else f"both contain campaign {min(of_a & of_b)}"
        what = f"'{names[0]}' and '{names[1]}' {both}"
        raise UsageError(what, hint="name another one, or compare two of its stacks: --stack A --stack B")
    left = _of_kernel(_narrowed(left, stacks[:1]), kernels[:1])
    right = _of_kernel(_narrowed(right, stacks[-1:]), kernels[-1:])
    by = MatchedBy.MACHINE if len(kernels) == 2 else MatchedBy.STACK
    by = MatchedBy.WORKLOAD if len(stacks) == 2 else by
    check_metrics(metrics, (*left.trials, *right.trials))
    # Within one campaign, facts may differ: they are part of the comparison.
    allowed = [ALL] if force or same else [*differing, *(["kernel"] if len(kernels) == 2 else [])]
    found = campaign_comparison.compare_results(
        left, right, by=by, allowed=allowed, metrics=metrics, margin=margin
    )
    if not found.lines:
        alone = (("A", found.only_a), ("B", found.only_b))
        hint = "; ".join(f"only in {side}: {first_of(cells, 3, ';') or 'nothing'}" for side, cells in alone)
        raise UsageError("no matching results", where="fslab compare", hint=hint)
    # As the command does: figures without a warning would be taken for a comparison.
    return found.model_copy(update={"lines": (), "means": ()}) if refused(found) else found


def check_alike(found: CampaignComparison) -> None:
    """Raise NotComparableError, with all facts that differ, if one of them prevents a comparison."""
    if unlike := refused(found):
        groups = list(dict.fromkeys(each.group.value for each in unlike))
        allow = " ".join(f"--differing {group}" for group in groups)
        what = "not compared, because conditions differ\n  " + "\n  ".join(map(str, unlike))
        hint = f"to compare them nevertheless: {allow}, or --force; in Python: differing={groups}"
        raise NotComparableError(what, where=f"{found.a.name} and {found.b.name}", hint=hint)


def _check(b: str | None, stacks: Sequence[str], kernels: Sequence[str]) -> None:
    for option, values in (("--stack", stacks), ("--kernel", kernels)):
        if len(values) > 2:
            raise UsageError("can be given at most twice", where=option)
        if len(set(values)) < len(values) and b is None:
            raise UsageError(f"'{values[0]}' is compared with itself", where=option)
    if len(kernels) == 1:
        raise UsageError(
            "needs two kernels", where="--kernel", hint="give it twice: --kernel 6.1 --kernel 6.12"
        )


def _load(a: str, b: str, store: str | None) -> tuple[Results, Results]:
    """Return both sides; the same object twice if both are the same campaign."""
    loaded = {name: _results(name, store) for name in dict.fromkeys((a, b))}
    left, right = loaded[a], loaded[b]
    return (left, left) if left.name == right.name else (left, right)


def _results(name: str, store: str | None) -> Results:
    if "," in name:
        parts = {part: _results(part, store) for part in filter(None, name.split(","))}
        if len({part.name for part in parts.values()}) < name.count(",") + 1:
            raise UsageError("a campaign is named twice, or a name is empty", where=name, hint="write a,b,c")
        return Results.of_several(name, list(parts.values()))
    if name.endswith(".json") or "/" in name:
        exported = export.read(Path(name))
        looks = looks_of(exported.stopping) if exported.stopping else None
        return Results.of_trials(name, exported.trials, looks)
    with Store.open(store, create=False) as opened:
        campaign = opened.campaign(name)
        return Results.of_campaign(campaign, opened.trials(campaign.id))


def _narrowed(results: Results, stacks: Sequence[str]) -> Results:
    if not stacks:
        return results
    return results.only(chosen(results.cells, stacks[0]), f"{results.name} {stacks[0]}")


def _of_kernel(results: Results, kernels: Sequence[str]) -> Results:
    if not kernels:
        return results
    kept = {
        trial.cell.id: trial.cell
        for trial in results.trials
        if _is_release(str(trial.provenance.machine.get("kernel", "")), kernels[0])
    }
    if not kept:
        known = sorted({str(trial.provenance.machine.get("kernel")) for trial in results.trials})
        hint = f"kernels with trials: {', '.join(known)}"
        raise UsageError(f"no trial ran on a kernel '{kernels[0]}'", where="--kernel", hint=hint)
    return results.only(list(kept.values()), f"{results.name} {kernels[0]}")


def _is_release(kernel: str, wanted: str) -> bool:
    """Return whether a kernel's release begins with what was asked for, as a whole number: 6.1 does not mean 6.12."""
    following = kernel[len(wanted) :][:1]
    return kernel.startswith(wanted) and not (wanted[-1:].isdecimal() and following.isdecimal())


def history_of(
    store: Store,
    study: str | None,
    stacks: Sequence[str] = (),
    workloads: Sequence[str] = (),
    metrics: Sequence[str] = (),
    machine: str | None = None,
) -> History:
    """Return the history of a study (id or file; None: that of the last campaign), campaign by campaign.

    ``machine``: a host name; None: that of the study's last campaign.
    """
    chosen = campaigns_of(store, study)
    if machine is not None:
        by_host = _by_host(chosen)
        check_names("--machine", [machine], set(by_host))
        chosen = by_host[machine]
    past = _measured(store, chosen)
    if not past:
        raise StoreError(
            "no campaign of this study can be read", where=store.path, hint="fslab results --list"
        )
    check_choice(
        chosen[-1], (each for _, trials in past for each in trials), stacks=("--stack", stacks),
        workloads=workloads, metrics=metrics,
    )  # fmt: skip
    return histories.history(past, stacks=stacks, workloads=workloads, metrics=metrics)


def histories_of_machines(store: Store, study: str | None) -> list[History]:
    """Return the history of a study on each machine that has campaigns of it, sorted by host name."""
    by_host = sorted(_by_host(campaigns_of(store, study)).items())
    found = (_measured(store, campaigns) for _, campaigns in by_host)
    return [histories.history(each) for each in found if each]


def _measured(store: Store, chosen: Iterable[Campaign]) -> list[tuple[Campaign, list[TrialRecord]]]:
    """Return campaigns with their trials. One that cannot be read, or was deleted meanwhile, is left out with a
    warning: one machine must not keep the others from being compared."""
    found = []
    for campaign in chosen:
        try:
            found.append((campaign, store.trials(campaign.id, known=campaign.cells)))
        except StoreLostError:
            raise
        except (StoreError, NoSpaceError) as error:
            machine = shown(str(campaign.machine.get("hostname", "?")))
            log.warning("left out: campaign %s of machine %s: %s", campaign.id, machine, error.what)
    return found


def _by_host(campaigns: Sequence[Campaign]) -> dict[str, list[Campaign]]:
    """Return the campaigns by the host names of their machines. Leaves out machines without a name."""
    found: dict[str, list[Campaign]] = {}
    for campaign in campaigns:
        if name := campaign.machine.get("hostname"):
            found.setdefault(str(name), []).append(campaign)
    return found


def fleet_of(
    store: Store,
    study: str | None = None,
    *,
    against: str | None = None,
    workloads: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> Fleet:
    """Compare each stack of a study (id or file; None: that of the last campaign) with one stack, across machines.

    ``against``: a stack or file system; default: the first of the plan. Raises UsageError for names that the study does
    not have, StoreError if the store has no campaign of it.
    """
    chosen = campaigns_of(store, study)
    wanted = chosen[-1].study_id
    measured = _measured(store, chosen)
    if not any(trials for _, trials in measured):
        hint = f"run it: fslab run {shipped.word(wanted)}"
        raise StoreError(f"no trial of study '{wanted}'", where=store.path, hint=hint)
    check_choice(
        chosen[-1], (each for _, trials in measured for each in trials),
        stacks=("--against", filter(None, [against])), workloads=workloads, metrics=metrics,
    )  # fmt: skip
    found = fleet.fleet(measured, against=against, workloads=workloads, metrics=metrics)
    if not found.rows and not found.partial:
        raise UsageError("nothing to compare", where=wanted, hint="choose a study with two stacks or more")
    return found


def fleet_of_campaigns(store: Store, wanted: Collection[str]) -> Fleet | None:
    """Compare the stacks of these campaigns of one study with the first stack; None if there is nothing to compare."""
    measured = _measured(store, (campaign for campaign in store.campaigns() if campaign.id in wanted))
    found = fleet.fleet(measured) if measured else None  # none of them can be read
    return found if found and (found.rows or found.partial) else None
