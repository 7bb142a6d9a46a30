"""``fslab fleet init``, ``scheduler``, ``invite`` and ``worker``: create a fleet, and let machines join it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli.common import option_value, say
from fslab.errors import InterruptedBySignal, UnsupportedError, UsageError
from fslab.units import parse_duration

if TYPE_CHECKING:
    from fslab.fleet.certificates import Credentials
    from fslab.fleet.enrolment import Membership

DirectoryOption = Annotated[
    Path | None,
    typer.Option(
        "--directory",
        metavar="DIR",
        help="Directory of the fleet's certificates and settings; default: /etc/fslab/fleet, for other users than root "
        "~/.config/fslab/fleet.",
    ),
]

INIT_EPILOG = """\b
Example:
  fslab fleet init --address bench.example --store postgresql+psycopg://fslab@db.example/fslab
"""
WORKER_EPILOG = """\b
Examples:
  fslab fleet worker bench.example --token TOKEN     join the fleet, and serve
  fslab fleet worker                                 serve, as a member of the fleet
"""


def _home(directory: Path | None, name: str) -> Path:
    """Return the directory of the certificates. UnsafeError if another user could exchange what root reads there."""
    from fslab.fleet import certificates

    base = Path("/etc") if os.geteuid() == 0 else Path.home() / ".config"
    home = base / "fslab" / name if directory is None else directory.expanduser().absolute()
    certificates.check_directory(home)
    return home


def init(
    *,
    store: Annotated[str, typer.Option(envvar="FSLAB_STORE")],
    address: str | None = None,
    worker_store: str | None = None,
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8786,
    enrolment_port: Annotated[int, typer.Option(min=1, max=65535)] = 8785,
    directory: DirectoryOption = None,
) -> None:
    """Create a fleet on this machine: a certificate authority of its own, and the tables in the database.

    Nothing is started. The authority's private key stays in the directory: anyone who can read it can add machines.

    Parameters:
        store URL: The PostgreSQL database of the results; it may be empty.
        address HOST: How machines reach this one: a name or an IP address. Default: its host name.
        worker_store URL: The same database for the machines, such as with a role that cannot delete. Default: as
            --store.
        port PORT: Port of the scheduler.
        enrolment_port PORT: Port where machines with an invitation join.
    """
    _check_installed()
    from fslab.fleet import scheduler
    from fslab.store.fleet import FleetStore, open_store

    with open_store(store, create=True) as opened:
        FleetStore(opened)
    settings = scheduler.FleetSettings(
        address=address or socket.getfqdn(), port=port, enrolment_port=enrolment_port, store=store,
        worker_store=worker_store or store,
    )  # fmt: skip
    home = _home(directory, "fleet")
    scheduler.create(home, settings)
    say(f"fleet created in {home}; start its scheduler: fslab fleet scheduler")


def serve(
    *,
    directory: DirectoryOption = None,
    host: str = "0.0.0.0",  # noqa: S104 - machines of the fleet connect from elsewhere, and need a certificate
    user: str = "nobody",
    give_up_after: str = "1h",
) -> None:
    """Run the fleet's scheduler until it is interrupted: it lets machines join, and assigns studies to them.

    It can be stopped and restarted at any time, because all assignments are in the database.

    Parameters:
        host IP: The address to listen on; 0.0.0.0: all of this machine.
        user USER: User of the process that talks to the machines, if the scheduler runs as root. With 'root', whoever
            has a certificate of the fleet can run programs here as root.
        give_up_after TIME: After a machine has been offline for TIME, its assignment fails; with --spread it moves to
            another machine.
    """
    _check_installed()
    from fslab.fleet import scheduler

    home = _home(directory, "fleet")
    give_up_s = option_value(parse_duration, give_up_after, "--give-up-after")
    settings = scheduler.load(home)
    serving = partial(
        scheduler.serve,
        home,
        settings,
        user=user,
        give_up_s=give_up_s,
        host=host,
        tell=partial(say, err=True),
    )
    _until_ended(serving)


def invite(
    *,
    machines: Annotated[int, typer.Option(min=1)] = 1,
    valid: str = "1h",
    directory: DirectoryOption = None,
) -> None:
    """Print an invitation: a token with which a machine can join the fleet.

    The token also contains the fingerprint of the fleet's certificate, so that the machine can verify the server. Keep
    it as secret as a password until it has expired.

    Parameters:
        machines N: How many machines may use it.
        valid --for TIME: When it expires, such as 1h.
    """
    _check_installed()
    from fslab.fleet import invitations, scheduler

    home = _home(directory, "fleet")
    settings = scheduler.load(home)
    valid_s = option_value(parse_duration, valid, "--for")
    token = invitations.invite(home, valid_s=valid_s, machines=machines)
    where = settings.address + (f":{settings.enrolment_port}" if settings.enrolment_port != 8785 else "")
    typer.echo(token)
    say(f"on the machine, as root: fslab fleet worker {where} --token {token}", err=True)


def worker(
    address: str | None = None,
    *,
    token: Annotated[str | None, typer.Option(envvar="FSLAB_TOKEN")] = None,
    config: Path | None = None,
    directory: Path | None = None,
) -> None:
    """Make this machine a member of a fleet: run what the fleet assigns to it, until interrupted.

    With ADDRESS and --token it joins first; afterwards it is a member until its certificate expires, after two years.
    Only FILE determines what studies may do here. Trials are stored here first ($XDG_DATA_HOME/fslab/fleet.sqlite),
    then sent: nothing is lost while the network is unavailable.

    Parameters:
        address [ADDRESS]: HOST or HOST:PORT of the fleet to join; needs --token.
        token TOKEN: An invitation: fslab fleet invite.
        config FILE: What studies may do here, in TOML; default: /etc/fslab/worker.toml. Without the file: images in
            memory and in fslab's own directory, no device, no command, no tuning.
        directory DIR: Where this machine's certificate is; default: /etc/fslab/worker; for other users than root
            ~/.config/fslab/worker.
    """
    _check_installed()
    from fslab.fleet import enrolment, invitations
    from fslab.fleet.agent import Agent, only_one
    from fslab.fleet.certificates import Credentials, write
    from fslab.fleet.worker_settings import DEFAULT, WorkerSettings

    if (address is None) != (token is None):
        raise UsageError("ADDRESS and --token belong together", hint="fslab fleet invite prints both")
    settings = WorkerSettings.load(config or DEFAULT, needed=config is not None)
    home = _home(directory, "worker")
    credentials = Credentials(directory=home)
    with only_one(home):
        known = home / "membership.json"
        if address is not None and token is not None:
            where = _address(address, enrolment.PORT)
            joined = enrolment.join(where, invitations.Invitation.of(token), settings.name, home)
            write(known, joined.model_dump_json().encode(), 0o600)
        member = _membership(known, credentials)
        agent = Agent(
            settings=settings, credentials=credentials, scheduler=member.scheduler,
            store=settings.store or member.store, tell=partial(say, err=True),
        )  # fmt: skip
        _until_ended(agent.run)


def _membership(known: Path, credentials: Credentials) -> Membership:
    """Return the membership that a file has. UsageError if this machine is not a member."""
    from fslab.fleet.enrolment import Membership

    join = "fslab fleet worker ADDRESS --token TOKEN"
    if not credentials.complete or not known.is_file():
        raise UsageError(
            "this machine is not a member of a fleet", where=str(known.parent), hint=f"join one: {join}"
        )
    try:
        return Membership.model_validate_json(known.read_bytes())
    except ValueError as error:
        raise UsageError("is damaged", where=str(known), hint=f"join again: {join}") from error


def _until_ended(serve: Callable[[], object]) -> None:
    """Serve until a signal arrives. For a service, this is not an error."""
    try:
        serve()
    except InterruptedBySignal:
        say("stopped", err=True)


def _check_installed() -> None:
    """Raise UnsupportedError if the fleet's packages are missing. They are optional dependencies of fslab."""
    missing = [name for name in ("cryptography", "distributed", "psycopg") if find_spec(name) is None]
    if missing:
        raise UnsupportedError(
            f"the fleet's packages are not installed: {', '.join(missing)}", hint="pip install 'fslab[fleet]'"
        )


def _address(text: str, port: int) -> tuple[str, int]:
    host, colon, given = text.rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.startswith("[")):
        return text.strip("[]"), port
    if not given.isdigit() or not 0 < int(given) < 65536:
        raise UsageError(f"'{given}' is not a port", where="ADDRESS")
    return host.strip("[]"), int(given)
