"""Runs trials again with tracing, to explain differences. Traced trials are stored apart and never compared."""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence

from fslab import feasibility
from fslab.campaign import cleanup, machine_lock
from fslab.campaign.consent import Consent
from fslab.campaign.observer import Observer
from fslab.campaign.trial import run_trial
from fslab.cell import Cell, TrialKey
from fslab.errors import NeedsRootError, UnsupportedError
from fslab.machine import facts
from fslab.plan.expand import tool_seed
from fslab.storage import print_nothing
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.system import namespaces, signals
from fslab.trial_record import TrialRecord


def trace(
    campaign: Campaign,
    cells: Sequence[Cell],
    store: Store,
    observer: Observer,
    *,
    wipe: frozenset[str] = frozenset(),
    consent: Consent | None = None,
    note: Callable[[str], object] = print_nothing,
) -> Iterator[TrialRecord]:
    """Run each cell once with tracing and the seed of the first block; store each record, then yield it.

    UnsupportedError for a cell that is measured in a guest: only the host's kernel is traced. UnsupportedError or
    NeedsRootError if tracing is not possible: the trials would give no new information. ``consent``: to what the cells
    bring and is executed; None: to nothing. ``note`` gets a message when the store is unavailable.
    """
    (consent or Consent()).require(cells)
    _check_tracing()
    for cell in cells:
        if cell.stack.machine.type != "host":
            raise UnsupportedError(
                f"{cell.stack.name} is measured in a guest, whose kernel cannot be traced",
                where=campaign.id,
                hint="name stacks on the host, or run the study on the host",
            )
    name = f"{campaign.id}-why-{secrets.token_hex(2)}"
    feasibility.check_named(cells, wipe)
    feasibility.check(name, cells, wipe)
    with cleanup.opened_workspace(name, wipe) as workspace, store.patient(campaign.id, note):
        for cell in cells:
            key = TrialKey(campaign=campaign.id, block=0, seed=tool_seed(campaign.seed, 0))
            with signals.kept(), machine_lock.held(workspace, observer):
                record = run_trial(cell, key, workspace, machine=facts.gather(), traced=True)
            store.add_traced(record)
            yield record


def _check_tracing() -> None:
    try:
        namespaces.tracefs()
    except OSError as error:
        if os.geteuid():
            raise NeedsRootError(
                "tracing the kernel needs root", hint="run it with sudo, or omit --trace"
            ) from error
        raise UnsupportedError(
            f"this kernel cannot be traced: {error.strerror or error}",
            hint="omit --trace; fslab doctor lists what is missing",
        ) from error
