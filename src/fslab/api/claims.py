"""Claims of a study, evaluated by its published figures and by the trials of a campaign, beside the conditions of its
publication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from fslab.analysis.campaign_comparison import circumstances_of
from fslab.analysis.table_rows import looks_of
from fslab.analysis.usable_trials import is_impossible, is_usable
from fslab.api.study_campaigns import is_study, naming
from fslab.cell import Cell, MachineSpec
from fslab.claims import build, testable
from fslab.claims.campaign_estimates import Trials
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import Agreement, Verdicts, agreement
from fslab.claims.publication_likeness import Condition, Situation, conditions_of, same_machine
from fslab.claims.published import PublishedFigures
from fslab.claims.requirement_check import Setting
from fslab.claims.schema import Published
from fslab.claims.scope import HOST, Scope
from fslab.errors import StoreError, UsageError
from fslab.feasibility import why_not
from fslab.machine import facts
from fslab.machine.differences import Circumstances
from fslab.machine.planned_machine import here
from fslab.plan.expand import expand
from fslab.stopping_settings import Until
from fslab.storage.parsed_stack import parsed_stack
from fslab.store.campaign import Campaign
from fslab.store.database_errors import checked_contents
from fslab.store.store import Store
from fslab.study import load, shipped
from fslab.study.load import printed_figures
from fslab.study.model import Study
from fslab.trial_record import TrialRecord
from fslab.units import counted, format_size, parse_size
from fslab.workloads import parsed_if_known

OTHER_CAMPAIGNS = 9  # ten campaigns show well enough what changes between them, and are read in seconds


def verdicts(target: str, url: str | None = None, *, published_only: bool = False) -> Verdicts:
    """Evaluate the claims of a campaign, or of a study by its last campaign in the store at ``url`` and its other ones
    (``campaigns_like``).

    ``published_only``: use only the study's published figures. This needs no campaign.
    """
    if is_study(target):
        study = load.load(target)
        if published_only:
            return _judge(study, target, None, None)
        with Store.open(url, create=False) as opened:
            campaigns = opened.campaigns(study.id)
            if not campaigns:
                hint = f"run it: fslab run {target}; or check only published figures: fslab claims {target} --published"
                raise StoreError(f"no campaign of study '{study.id}'", where=opened.path, hint=hint)
            return _judge(study, target, campaigns[-1], opened, campaigns_like(campaigns[-1], opened))
    with naming(target), Store.open(url, create=False) as opened:
        campaign = opened.campaign(target)
        study = _of_campaign(campaign)
        return _judge(study, _place(campaign), None if published_only else campaign, opened)


def compared(a: str, b: str, url: str | None = None) -> tuple[Agreement, tuple[str, str]]:
    """Compare the verdicts of two campaigns of one study, and return their ids too. UsageError for two studies."""
    found = [verdicts(each, url) for each in (a, b)]
    studies, ids = {each.study for each in found}, [each.campaign or "" for each in found]
    if len(studies) > 1 or ids[0] == ids[1]:
        what = "two different campaigns of one study are needed"
        raise UsageError(what, where=" and ".join(ids), hint="fslab results --list")
    return agreement(*found), (ids[0], ids[1])


def of_campaign(campaign: Campaign, store: Store) -> Verdicts:
    """Evaluate the claims of a campaign's study by its published figures and by the campaign's trials."""
    return judged_study(campaign, store)[0]


def judged_study(campaign: Campaign, store: Store, others: Sequence[Campaign] = ()) -> tuple[Verdicts, Study]:
    """Like :func:`of_campaign`; return the study too. ``others``: further ones by which the claims are judged."""
    study = _of_campaign(campaign)
    return _judge(study, _place(campaign), campaign, store, others), study


def campaigns_like(campaign: Campaign, store: Store) -> list[Campaign]:
    """Return the other campaigns that measured the same cells where no decisive fact was another one, oldest first; at
    most the newest ``OTHER_CAMPAIGNS``."""
    cells = {cell.id for cell in campaign.cells}
    here = _circumstances(campaign, store)
    alike = (
        other
        for other in reversed(store.campaigns(campaign.study_id))
        if other.id != campaign.id
        and {cell.id for cell in other.cells} == cells
        and not any(
            each.decisive and each.known for each in facts.differing(here, _circumstances(other, store))
        )
    )
    return [*islice(alike, OTHER_CAMPAIGNS)][::-1]


def _circumstances(campaign: Campaign, store: Store) -> Circumstances:
    trials = store.trials(campaign.id)
    return circumstances_of(
        trials, campaign.cells, campaign.machine, lambda trial: trial.cell.id, devices=False
    )


def _place(campaign: Campaign) -> str:
    """Return the id of a shipped study, or the place of the user's study file when the campaign began."""
    directory = campaign.settings.directory
    if directory is None or campaign.study_id in shipped.ids():
        return campaign.study_id
    return str(Path(directory) / campaign.study_id)


def _of_campaign(campaign: Campaign) -> Study:
    """Return the study as it was run: one of a user can have the name of a shipped study, but not its claims."""
    return load.load_text(campaign.study_source, f"{campaign.study_id}.yaml", files=campaign.settings.files)


def _judge(
    study: Study, name: str, campaign: Campaign | None, store: Store | None, others: Sequence[Campaign] = ()
) -> Verdicts:
    published = study.published or Published()
    memory = parse_size(published.memory) if published.memory else None
    scope = Scope(cells=expand(study), memory_bytes=memory)
    figures = _figures(study, name, scope)
    ours, here, judge, setting = None, None, None, Setting()
    near: tuple[Condition, ...] = ()
    if campaign is not None and store is not None:
        here, judge = _here(campaign, store)
        judge = judge.over([_here(each, store)[1] for each in others])
        others = others if judge.spread else ()
        ours = None if figures is None else _figures(study, name, here)
        near = conditions_here(campaign, judge.trials.records, study)
        setting = Setting(printed=ours.by_cell() if ours else {}, same_machine=same_machine(near))
    return Verdicts(
        study=study.id,
        title=study.title,
        source=study.source,
        campaign=campaign.id if campaign else None,
        others=tuple(each.id for each in others),
        between=judge.between() if judge else None,
        conditions=_conditions(campaign, judge, others) if campaign and judge else None,
        claims=build.judged(
            study.claims,
            study=scope,
            printed=figures,
            campaign=here,
            judge=judge,
            setting=setting,
            stopping=campaign.stopping if campaign else None,
        ),
        nearness=near,
        tables=() if figures is None else build.tables(figures, published, judge, ours),
        known_limits=tuple(study.known_limits.values()),
    )


def _here(campaign: Campaign, store: Store) -> tuple[Scope, Evaluator]:
    """Return the cells of a campaign, and an evaluator that uses its trials. StoreError if a stack is not one."""
    records = store.trials(campaign.id)
    with checked_contents(store.path):
        for cell in campaign.cells:
            parsed_stack(cell.stack)
    known = [cell for cell in campaign.cells if parsed_if_known(cell.workload)]
    impossible = {cell.id: why for cell in known if (why := why_not(cell))}
    if campaign.stopping.until is Until.CLAIMS:
        possible = [cell for cell in known if cell.id not in impossible]

        def facts_of(machine: MachineSpec) -> Mapping[str, Any]:  # those of a guest are not stored
            return campaign.machine if machine.type == HOST else {}

        left_out = testable.excluded(campaign.settings.claims, possible, facts_of)
        tried = {record.cell.id for record in records}
        impossible |= {cell: why for cell, why in left_out.items() if cell not in tried}
    scope = Scope(cells=campaign.cells, memory_bytes=campaign.machine.get("memory_bytes"))
    trials = Trials(records=records, impossible=impossible)
    return scope, Evaluator(trials=trials, looks=looks_of(campaign.stopping))


def _figures(study: Study, name: str, scope: Scope) -> PublishedFigures | None:
    """Return the published figures; None if the study has no ``published`` section. UsageError without their file."""
    if study.published is None:
        return None
    file = study.published.figures
    if file is None:
        return PublishedFigures(printed=())
    found = printed_figures(study, scope)
    if found is None:
        hint = "'figures' of 'published' must name a file in the study's directory"
        where = str(Path(name).parent / file)
        raise UsageError("the file of published figures does not exist", where=where, hint=hint)
    return found


def _conditions(campaign: Campaign, judge: Evaluator, others: Sequence[Campaign]) -> str:
    trials = [judge.trials, *(each.trials for each in judge.others)]
    records = [record for each in trials for record in each.records if not is_impossible(record)]
    usable = sum(is_usable(record) for record in records)
    cells = {record.cell.id for record in records}
    kernel = ", ".join(judge.trials.kernels) or campaign.machine.get("kernel") or "unknown"
    days = sorted({f"{each.created:%Y-%m-%d}" for each in (campaign, *others)})
    names = ", ".join(each.id for each in (*others, campaign))
    return (
        f"here: campaign{'s' * bool(others)} {names}, {', '.join(days)}, kernel {kernel}, "
        f"{usable} usable of {counted(len(records), 'trial')} of {counted(len(cells), 'cell')}"
    )


def conditions_here(
    campaign: Campaign, records: Sequence[TrialRecord], study: Study
) -> tuple[Condition, ...]:
    """Return the conditions of the publication beside those of the machine and the stacks of the trials.

    The machine is that of a usable trial: one that cannot run here has the host's facts, even if it is for a guest.
    """
    ran = next(filter(is_usable, records), None) or next(iter(records), None)
    facts = {**campaign.machine, **(ran.provenance.machine if ran else {})}
    return _beside_publication(study, campaign.cells, facts, _amounts(campaign.settings.scale, study))


def planned(study: Study, cells: Sequence[Cell]) -> tuple[Condition, ...]:
    """Return the conditions of the publication beside those in which these cells would be measured."""
    if study.published is None or not study.published.conditions or not cells:
        return ()
    facts = here().facts(cells[0].stack.machine)
    return _beside_publication(study, cells, facts, "scaled" if study.scaled else None)


def near_words(conditions: Sequence[Condition]) -> str | None:
    """Return the conditions in one sentence: ``beside the publication: processors 1 (4, not near), …``."""
    told = [f"{one.name} {one.here} (there {one.theirs}: {one.near_word})" for one in conditions]
    return f"beside the publication: {'; '.join(told)}" if told else None


def _beside_publication(
    study: Study, cells: Sequence[Cell], facts: Mapping[str, Any], amounts: str | None
) -> tuple[Condition, ...]:
    media = list(dict.fromkeys(map(_medium, cells)))
    cpus, memory_bytes, kernel = (facts.get(name) for name in ("cpus", "memory_bytes", "kernel"))
    texts = {
        "kernel": kernel,
        "distribution": facts.get("distribution"),
        "processors": None if cpus is None else str(cpus),
        "memory": None if memory_bytes is None else format_size(memory_bytes),
        "medium": ", ".join(sorted(media)),
        "machine": ", ".join(sorted({cell.stack.machine.type for cell in cells})),
        "amounts": amounts or "all",
    }
    here = Situation(
        texts={name: text for name, text in texts.items() if text}, cpus=cpus, memory_bytes=memory_bytes, kernel=kernel,
        media=media, slowed=any(_speed(cell) != 1 for cell in cells), scaled=amounts is not None,
    )  # fmt: skip
    return conditions_of(study.published.conditions if study.published else {}, here)


def _medium(cell: Cell) -> str:
    """Return a medium in words: its type, what it models, its size, and its speed if that is not the model's."""
    parsed = parsed_stack(cell.stack)
    profile, size = parsed.medium.profile(parsed.medium_options), cell.stack.medium.options.get("size")
    speed = _speed(cell)
    server = "striped by its server (md and LVM themselves are not tested)" if cell.stack.served else None
    told = None if speed == 1 else f"at {speed:g} of its speed"
    return " ".join(str(word) for word in (cell.stack.medium.type, profile, size, told, server) if word)


def _speed(cell: Cell) -> float:
    parsed = parsed_stack(cell.stack)
    return parsed.medium.speed(parsed.medium_options)


def _amounts(scale: float, study: Study) -> str | None:
    """Return how to list the amounts; None if they are the publication's. One factor would not describe them all."""
    given = scale != study.scale
    scaled = scale != 1 if given else bool(study.scaled)
    if not scaled:
        return None
    return f"scaled; fslab plan {shipped.word(study.id)}{f' --scale {scale:g}' if given else ''} lists each amount"
