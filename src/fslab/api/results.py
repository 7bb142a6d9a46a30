"""Results: a store of campaigns, and each campaign with its trials, tables, comparisons and reports.

``run`` and ``resume`` are ``fslab.run`` and ``fslab.resume``: the steps of ``campaign.launch`` in one call each. The
command takes the same steps, and asks the user between them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fslab import safe_output
from fslab.analysis import campaign_comparison
from fslab.analysis.campaign_comparison_lines import CampaignComparison
from fslab.analysis.workload_groups import all_metrics, headline_metrics
from fslab.api import claims, comparisons, explanations, pages, replications
from fslab.api.replications import Replication
from fslab.campaign import cleanup, launch
from fslab.campaign.consent import Consent
from fslab.campaign.launch import RunConditions
from fslab.campaign.liveness import as_it_is
from fslab.campaign.observer import Observer
from fslab.claims.model import Verdicts
from fslab.errors import ToolMissingError
from fslab.explain import mechanisms
from fslab.explain.evidence import Explanation
from fslab.machine.differences import ALL
from fslab.report.build import build
from fslab.report.conclusion import Conclusion, conclude
from fslab.report.model import Report
from fslab.store import export
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.study.load import load
from fslab.study.model import Study
from fslab.trial_record import TrialRecord, Value

if TYPE_CHECKING:
    import polars as pl

    from fslab.analysis.history import History


def headline_of(record: TrialRecord) -> dict[str, Value]:
    """Return the figures of a trial that a table shows for its workload, such as bandwidth or IOPS, by metric."""
    names = [metric.name for metric in headline_metrics(record.cell.workload)]
    return {name: record.metrics[name] for name in names if name in record.metrics}


class CampaignResults:
    """One campaign of a store. Its trials are read, and its study's claims judged, at the first access."""

    def __init__(self, campaign: Campaign, store: Store) -> None:
        self.campaign = as_it_is(campaign, store)
        self._store = store
        self._build = partial(build, self.campaign, in_commands=store.in_commands(campaign.id))

    def __repr__(self) -> str:
        return f"<CampaignResults {self.id}: {self.campaign.study_title!r}, {self.campaign.status}>"

    @property
    def id(self) -> str:
        return self.campaign.id

    @cached_property
    def trials(self) -> tuple[TrialRecord, ...]:
        """All trials in the order in which they were stored, without the output of the tools."""
        return tuple(self._store.trials(self.id))

    def frame(self) -> pl.DataFrame:
        """Return a table with a row per trial and figure: cell, stack, workload, block, status, name, value, unit."""
        return export.frame(self.trials)

    def pandas(self) -> Any:
        """Return the same table as a ``pandas.DataFrame``. Raises ToolMissingError if pandas is not installed."""
        try:
            import pandas as pd  # noqa: PLC0415 - not a dependency
        except ImportError as error:
            raise ToolMissingError("pandas is not installed", hint="pip install pandas") from error
        return pd.DataFrame(self.frame().to_dict(as_series=False))

    def report(self, *, baseline: str | None = None, everything: bool = False) -> Report:
        """Return the headline figures, or with ``everything`` all that were measured, with their comparisons: with the
        best of each row, or with the stack ``baseline``."""
        if baseline is None and not everything:
            return self._report
        known = all_metrics if everything else headline_metrics
        found = self._build(self.trials, baseline=baseline, known=known)
        named = {(row.workload, row.metric) for row in self._report.rows}
        rows = [
            row
            for row in found.rows
            if (row.workload, row.metric) in named or any(summary.values for summary in row.summaries)
        ]
        return found.model_copy(update={"rows": tuple(rows)})

    @cached_property
    def _report(self) -> Report:
        return self._build(self.trials)

    def conclusion(self) -> Conclusion:
        """Return for each workload the best stack or the tie, the difference and the confidence; the warnings; and how
        many of the study's claims have which verdict."""
        verdicts = self._shown_verdicts
        return conclude(self._report, verdicts.claims if verdicts else ())

    def explanations(self) -> list[Explanation]:
        """Return explanations from the kernel's counters, those with the most weight first."""
        found = mechanisms.all_statements(explanations.evidence_of(self.campaign, self._store))
        return sorted(found, key=lambda each: -each.weight)

    def claims(self) -> Verdicts:
        """Evaluate the claims of the study by its published figures and by these trials."""
        return self._verdicts

    @cached_property
    def _verdicts(self) -> Verdicts:
        return claims.of_campaign(self.campaign, self._store)

    @cached_property
    def _shown_verdicts(self) -> Verdicts | None:
        return pages.shown_verdicts(self.campaign, self.claims)

    def replication(self) -> Replication:
        """Return the claims beside what the publication printed, and the numbers of verdicts. Raises UsageError if the
        study has no claims."""
        return replications.replication_of(self.campaign, self._store, alone=True)

    def compare(
        self, other: CampaignResults, *, differing: Sequence[str] = (), force: bool = False
    ) -> CampaignComparison:
        """Compare this campaign with another, cell by cell: ratios are ``other`` ÷ this.

        Raises NotComparableError if facts differ that are not named in ``differing`` (``kernel``, ``machine``, …),
        unless ``force``.
        """
        allowed = [ALL] if force else list(differing)
        sides = [
            campaign_comparison.Results.of_campaign(each.campaign, list(each.trials))
            for each in (self, other)
        ]
        found = campaign_comparison.compare_results(*sides, allowed=allowed)
        comparisons.check_alike(found)
        return found

    def html(self) -> str:
        """Return the report as the text of one HTML file that needs neither server nor network."""
        return pages.html_of(pages.page_of([self.campaign], self._store, lambda *_: self._shown_verdicts))

    def write_report(self, path: str | Path) -> Path:
        """Write the report as one HTML file and return its absolute path. Raises UsageError if it cannot be written."""
        file = Path(path)
        safe_output.replace(file, self.html())
        return file.resolve()

    def document(self, *, baseline: str | None = None, everything: bool = False) -> dict[str, Any]:
        """Return the report as JSON values. Its conclusion is that of the headline figures, and always compares with
        the best, not with ``baseline``."""
        shown = self.report(baseline=baseline, everything=everything).model_dump(mode="json")
        return {**shown, "conclusion": self.conclusion().model_dump(mode="json")}


class ResultStore:
    """A store of campaigns; a context manager that closes it."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()

    def campaigns(self) -> list[CampaignResults]:
        """Return all campaigns, oldest first."""
        return [CampaignResults(each, self.store) for each in self.store.campaigns()]

    def campaign(self, wanted: str = "last") -> CampaignResults:
        """Return a campaign by id, beginning of an id, name, ``last`` or ``last~1``. Raises StoreError if there is
        none."""
        return CampaignResults(self.store.campaign(wanted), self.store)

    def history(self, study: str | None = None) -> History:
        """Return the history of a study (id or file; None: that of the last campaign), with change points."""
        return comparisons.history_of(self.store, study)


def open_store(url: str | Path | None = None, *, create: bool = True) -> ResultStore:
    """Open the store at a path or a database URL; None: the user's own store. Raises StoreError if it is not a store,
    or does not exist and ``create`` is False."""
    return ResultStore(Store.open(None if url is None else str(url), create=create))


def run(
    study: Study | str | Path,
    store: ResultStore,
    *,
    budget_s: float | None = None,
    name: str | None = None,
    note: str | None = None,
    wipe: Collection[str] = (),
    allow_commands: bool = False,
    observer: Observer | None = None,
) -> CampaignResults:
    """Run a study on this machine and return its results; blocks until the campaign ends. Most media need root.

    Each trial is stored in ``store`` immediately. ``budget_s``: start no trial after this number of seconds. ``wipe``:
    devices that may be overwritten although they contain data. ``allow_commands``: run the study's own commands,
    kernels and modules; without it, a study with such programs is refused. ``observer`` is called before and after
    each trial.
    """
    cleanup.clean_all()
    loaded = study if isinstance(study, Study) else load(study)
    conditions = RunConditions(consent=_consent(allow_commands), wipe=frozenset(wipe))
    path = f"{loaded.id}.yaml" if isinstance(study, Study) else str(study)
    made = launch.of_study(loaded, path, budget_s=budget_s, name=name, note=note)
    launch.create(made, store.store, conditions)
    launch.run(made, store.store, observer or Observer(), conditions, new=True)
    return store.campaign(made.id)


def resume(
    store: ResultStore,
    campaign: str | None = None,
    *,
    trials: int | None = None,
    max_trials: int | None = None,
    budget_s: float | None = None,
    wipe: Collection[str] = (),
    allow_commands: bool = False,
    observer: Observer | None = None,
) -> CampaignResults:
    """Run the remaining trials of a stored campaign and return its results.

    ``campaign``: an id, a study, or None: the last unfinished campaign of this machine.
    ``trials`` (with a precision, ``max_trials``) gives the campaign more trials of each cell, even if it is finished.
    ``budget_s`` None: the campaign's budget, once more. The other arguments are those of ``run``. Raises UsageError on
    another machine or kernel than before.
    """
    cleanup.clean_all()
    conditions = RunConditions(consent=_consent(allow_commands), wipe=frozenset(wipe))
    found = launch.resumable(store.store, campaign, conditions, trials=trials, max_trials=max_trials)
    launch.run(found, store.store, observer or Observer(), conditions, budget_s=budget_s, new=False)
    return store.campaign(found.id)


def _consent(allowed: bool) -> Consent:
    return Consent(ask=lambda _: None, unseen=True) if allowed else Consent()
