"""Replications: the page of a study with its claims beside what a campaign found, and the table of all studies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fslab import safe_output
from fslab.api import explanations
from fslab.api.claims import campaigns_like, judged_study
from fslab.claims import replication, replication_table
from fslab.claims.claim_words import level_words, summary
from fslab.claims.model import Verdicts
from fslab.claims.replication import ReplicationPage
from fslab.claims.replication_table import StudyResult
from fslab.errors import StoreError, UsageError
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.study import shipped


class Replication(NamedTuple):
    """The verdicts of a campaign's study, their page, and its row in the table of all studies."""

    verdicts: Verdicts
    page: ReplicationPage
    result: StudyResult


def last_campaigns(store: Store) -> list[Campaign]:
    """Return the last campaign of each shipped study with claims, in the order of the studies.

    Raises StoreError if the store has none.
    """
    campaigns = {campaign.study_id: campaign for campaign in store.campaigns()}
    found = [campaigns[study] for study in shipped.with_claims() if study in campaigns]
    if not found:
        raise StoreError("no campaign of a study with claims", where=store.path, hint="run them first: --run")
    return found


def replication_of(campaign: Campaign, store: Store, *, alone: bool = False) -> Replication:
    """Evaluate the claims of a campaign's study and return their page. ``alone``: without the other ones of its study.

    Raises UsageError if it has no claims.
    """
    verdicts, study = judged_study(campaign, store, () if alone else campaigns_like(campaign, store))
    if not verdicts.claims:
        raise UsageError(
            f"the study '{study.id}' has no claims", where=campaign.id, hint="name a study with claims"
        )
    trials = [store.trials(each) for each in (*verdicts.others, campaign.id)]
    result = replication_table.result_of(verdicts, trials)
    page = ReplicationPage(
        study=study.id, title=study.title, source=study.source, campaign=campaign.id,
        measured=verdicts.conditions or "", rows=replication.rows_of(verdicts),
        conditions=verdicts.nearness, effort=replication_table.effort_words(result),
        level=level_words(verdicts), known_limits=verdicts.known_limits, summary=summary(verdicts.claims),
        reasons=explanations.of_claims(verdicts, explanations.evidence_of(campaign, store)),
    )  # fmt: skip
    return Replication(verdicts, page, result)


def write(made: Sequence[Replication], directory: Path) -> None:
    """Write STUDY.md of each study, and README.md with the table of all; other studies keep their lines.

    Raises UsageError if a file cannot be read or written.
    """
    safe_output.make_directory(directory)
    for _, page, _ in made:
        text = "\n".join(replication.lines(page))
        safe_output.replace(directory / f"{page.study}.md", f"{text}\n")
    readme = directory / "README.md"
    try:
        before = readme.read_text("utf-8", "replace") if readme.is_file() else ""
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(readme)) from error
    index = "\n".join(replication_table.index([each.result for each in made], before))
    safe_output.replace(readme, f"{index}\n")
