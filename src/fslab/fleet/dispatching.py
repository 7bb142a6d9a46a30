"""The scheduler of a fleet: dask.distributed's, and what dispatches queued assignments to it. ``python -m
fslab.fleet.dispatching``.

The store says what is to be done, Dask who is there: when this process starts anew, it goes on from the store. It never
reads what a task returns. Runs without privileges, in the directory that ``fslab fleet scheduler`` made for it.
"""

import asyncio
import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fslab.cell import Frozen
from fslab.errors import StoreError
from fslab.fleet import dask_settings, link, starting
from fslab.store.fleet import FleetStore, open_store
from fslab.store.store import Store
from fslab.system import syscalls

LOOK_S = 2.0
# By assignment: what Dask knows it by, and the address of the link that it is for.
_Submitted = dict[str, tuple[Any, str]]


class DispatchSettings(Frozen):
    """``parent``: process id of ``fslab fleet scheduler``; ``give_up_s``: how long a machine may be away before what it
    was to run has failed."""

    host: str
    port: int
    store: str
    parent: int
    give_up_s: float


async def serve(settings: DispatchSettings) -> None:
    """Schedule and dispatch until the process is ended."""
    import dask  # noqa: PLC0415 - takes a second
    from distributed import Client, Scheduler  # noqa: PLC0415

    with dask.config.set(dask_settings.SETTINGS):
        security = dask_settings.security()
        options = {"host": settings.host, "port": settings.port, "protocol": "tls", "security": security}
        async with Scheduler(
            **options, dashboard=False, dashboard_address=dask_settings.NO_PAGES
        ) as scheduler:
            print(f"listening at {scheduler.address}", flush=True)
            to_itself = Client(scheduler.address, security=security, asynchronous=True)  # type: ignore[no-untyped-call]
            async with to_itself as client:
                await _dispatch(settings, scheduler, client)


async def _dispatch(settings: DispatchSettings, scheduler: Any, client: Any) -> None:
    submitted: _Submitted = {}
    queue = _Queue(settings)
    while True:
        wanted = await asyncio.to_thread(queue.pending)
        if wanted is not None:
            there = {worker.name: worker.address for worker in scheduler.workers.values()}
            _submit(client, wanted, there, submitted)
        await asyncio.sleep(LOOK_S)


def _submit(client: Any, wanted: dict[str, str], there: dict[str, str], submitted: _Submitted) -> None:
    """Submit what is not submitted yet to machines that are there, and forget what is over.

    Submitted again is a task that ended although its assignment did not (the agent or its link was killed), and one for
    a link that is gone: Dask would wait for its address for ever.
    """
    for name, (future, address) in list(submitted.items()):
        if name not in wanted or future.done() or there.get(wanted[name]) != address:
            del submitted[name]
            future.release()
    for name, machine in wanted.items():
        if name not in submitted and machine in there:
            future = client.submit(
                link.measure, name, key=f"assignment-{name}-{there[machine]}", pure=False, retries=0,
                workers=[there[machine]], allow_other_workers=False, resources={dask_settings.SLOT: 1},
            )  # fmt: skip
            submitted[name] = (future, there[machine])


@dataclass(slots=True)
class _Queue:
    """What the store says is to be done."""

    settings: DispatchSettings
    store: Store | None = None
    said: str = ""

    def pending(self) -> dict[str, str] | None:
        """The machines of what is queued or runs, by assignment; None while the store is away."""
        try:
            if self.store is None:
                self.store = open_store(self.settings.store)
            fleet = FleetStore(self.store)
            while fleet.start_due(partial(starting.started, fleet)):
                pass
            fleet.give_up(self.settings.give_up_s)
            found = fleet.open_assignments()
        except StoreError as error:
            if str(error) != self.said:
                print(error, file=sys.stderr, flush=True)
            self.said = str(error)
            return None
        self.said = ""
        return found


def main() -> None:
    """Read the settings of the current directory and serve."""
    settings = DispatchSettings.model_validate_json(Path("settings.json").read_bytes())
    syscalls.die_with(settings.parent, signal.SIGKILL)
    asyncio.run(serve(settings))


if __name__ == "__main__":
    main()
