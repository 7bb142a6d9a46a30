"""``fslab fleet worker`` and ``scheduler``: the programs of a fleet that run until they are ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fslab.cli.common import option_value, say
from fslab.errors import InterruptedBySignal, UsageError
from fslab.units import parse_duration

WORKER_EPILOG = """\b
Example; with store = "postgresql+psycopg://..." in /etc/fslab/worker.toml:
  fslab fleet worker
"""


def serve(*, store: Annotated[str, typer.Option(envvar="FSLAB_STORE")], give_up_after: str = "1h") -> None:
    """Give up machines that are away, and start the runs of fslab fleet schedule, until interrupted.

    Run it as the owner of the database. Machines take their assignments without it. It can be stopped and restarted at
    any time: everything is in the database.

    Parameters:
        store URL: The fleet's PostgreSQL database; it may be empty.
        give_up_after TIME: After a machine has been offline for TIME, its assignment fails; with --spread it moves to
            another machine.
    """
    from fslab.fleet.scheduler import Scheduler

    give_up_s = option_value(parse_duration, give_up_after, "--give-up-after")
    _until_ended(Scheduler(url=store, give_up_s=give_up_s, tell=partial(say, err=True)).serve)


def worker(
    *, config: Path | None = None, store: Annotated[str | None, typer.Option(envvar="FSLAB_STORE")] = None
) -> None:
    """Make this machine a member of a fleet: run what the fleet assigns to it, until interrupted.

    Only FILE determines what studies may do here. Trials are stored here first ($XDG_DATA_HOME/fslab/fleet.sqlite),
    then sent: nothing is lost while the network is unavailable.

    Parameters:
        config FILE: What studies may do here, in TOML; default: /etc/fslab/worker.toml. Without the file: images in
            memory and in fslab's own directory, no device, no command, no tuning.
        store URL: The fleet's PostgreSQL database. Default: 'store' in FILE.
    """
    from fslab.fleet.agent import Agent
    from fslab.fleet.worker_settings import DEFAULT, WorkerSettings

    settings = WorkerSettings.load(config or DEFAULT, needed=config is not None)
    url = store or settings.store
    if url is None:
        raise UsageError("no URL of the fleet's database", where="--store", hint="or 'store' in worker.toml")
    _until_ended(Agent(settings=settings, store=url, tell=partial(say, err=True)).run)


def _until_ended(serve: Callable[[], object]) -> None:
    """Serve until a signal arrives. For a service, this is not an error."""
    try:
        serve()
    except InterruptedBySignal:
        say("stopped", err=True)
