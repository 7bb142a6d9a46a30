"""Simulates the machines of a fleet: each has its own network namespace and host name, and is connected to one bridge.

The network of the host is not changed: the bridge is in another namespace, in which the database and the scheduler run.
The kernel removes everything when the processes that hold the namespaces end.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import postgresql
from tests.limits import LIMIT_S, RUN_LIMIT_S, wait_for
from tests.starter import Started, Starter

from fslab.store.fleet import FleetStore, open_store

FSLAB = str(Path(sys.executable).parent / "fslab")
HUB = "10.77.0.1"
WITH_US = ("setpriv", "--pdeathsig", "TERM")  # a command gets SIGTERM when its parent, the test process, ends


def namespace() -> subprocess.Popen[bytes]:
    """Start a process that holds a new network and UTS namespace.

    It has no mount namespace of its own, because that would keep the mounts of other tests busy.
    """
    holder = subprocess.Popen(["unshare", "--net", "--uts", *WITH_US, "sleep", "infinity"])
    wait_for(lambda: Path(f"/proc/{holder.pid}/comm").read_text() == "sleep\n")
    return holder


def inside(holder: int, *argv: object) -> list[str]:
    """Return the nsenter(1) command that runs ``argv`` in the network and UTS namespaces of a process."""
    return ["nsenter", f"--net=/proc/{holder}/ns/net", f"--uts=/proc/{holder}/ns/uts", *map(str, argv)]


def sh(*argv: object) -> None:
    subprocess.run([str(word) for word in argv], check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)


@dataclass
class Member:
    """One machine of the fleet.

    ``holder``: the process that holds its namespaces. ``home``: its directories. ``hub``: see ``Lab``. ``agent``: its
    ``fslab fleet worker``. ``turn``: descriptor of the lock that the test holds while the machine is paused. ``extra``:
    more variables of its environment.
    """

    name: str
    number: int
    holder: subprocess.Popen[bytes]
    home: Path
    hub: int
    agent: subprocess.Popen[bytes] | None = None
    turn: int | None = None
    extra: dict[str, str] = field(default_factory=dict)

    def pause(self) -> None:
        """Prevent new trials: take the lock that a campaign of this machine needs to run a trial."""
        directory = self.home / "fslab"
        directory.mkdir(mode=0o700, exist_ok=True)
        self.turn = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self.turn, fcntl.LOCK_EX)

    def go_on(self) -> None:
        """Release the lock, so that trials can start."""
        if self.turn is not None:
            os.close(self.turn)
        self.turn = None

    @property
    def environment(self) -> dict[str, str]:
        names = {"XDG_STATE_HOME": "state", "XDG_DATA_HOME": "data", "FSLAB_RUNTIME_DIR": ""}
        return {**os.environ, **{name: str(self.home / part) for name, part in names.items()}, **self.extra}

    @property
    def log(self) -> str:
        return (self.home / "log").read_text("utf-8", "replace")

    def start(self) -> None:
        """Start the agent."""
        with (self.home / "log").open("ab") as log:
            self.agent = subprocess.Popen(
                inside(self.holder.pid, *WITH_US, FSLAB, "fleet", "worker", "--config", self.home / "worker.toml"),
                stdout=log, stderr=log, env=self.environment, start_new_session=True,
            )  # fmt: skip

    def processes(self, *words: str) -> list[int]:
        """Return the ids of the machine's processes whose command lines contain all these words."""
        mark = f"{self.home}/".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                command = (process / "cmdline").read_bytes()
                if (
                    all(word.encode() in command for word in words)
                    and mark in (process / "environ").read_bytes()
                ):
                    found.append(int(process.name))
        return found

    def kill(self, *words: str) -> bool:
        """Send SIGKILL to one of these processes. Return whether there was one."""
        for process in self.processes(*words):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
                return True
        return False

    def link(self, state: str) -> None:
        """Disconnect the machine from the bridge (``down``), or connect it again (``up``)."""
        sh(*inside(self.hub, "ip", "link", "set", f"v{self.number}", state))

    def end(self) -> None:
        """End the agent with SIGTERM, as a service manager does."""
        if self.agent is not None and self.agent.poll() is None:
            self.agent.terminate()
            self.agent.wait(LIMIT_S)


@dataclass
class Lab:
    """A fleet. ``hub``: process whose network namespace has the bridge, the database and the scheduler. ``starter``:
    of the operator's commands."""

    directory: Path
    starter: Starter
    hub: int
    cluster: postgresql.Cluster
    members: list[Member] = field(default_factory=list)
    scheduler: subprocess.Popen[bytes] | None = None

    def url(self, role: str, certificate: Path | None = None) -> str:
        """Return the URL of the fleet's store for a role of the server, which must have this certificate."""
        trusted = certificate or self.cluster.certificate
        return f"postgresql+psycopg://{role}@{HUB}/fleet?sslmode=verify-full&sslrootcert={trusted}"

    def fslab(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of the operator to its end."""
        started = self.begin(*words)
        out, err = started.communicate(timeout=RUN_LIMIT_S)
        assert not check or started.returncode == 0, err
        return subprocess.CompletedProcess([*map(str, words)], started.wait(), out, err)

    def json(self, *words: object) -> Any:
        return json.loads(self.fslab(*words, "--json").stdout)

    def begin(self, *words: object) -> Started:
        """Start a command of the operator in the background."""
        argv = [FSLAB, *map(str, words)]
        return self.starter.start(argv, cwd=self.directory, beside=self.hub, FSLAB_STORE=self.url("fslab"))

    def start_scheduler(self) -> None:
        with (self.directory / "scheduler.log").open("ab") as log:
            self.scheduler = subprocess.Popen(
                inside(self.hub, *WITH_US, FSLAB, "fleet", "scheduler"),
                stdout=log, stderr=log, env={**os.environ, "FSLAB_STORE": self.url("fslab")}, start_new_session=True,
            )  # fmt: skip

    def end_scheduler(self, signum: int = signal.SIGTERM) -> None:
        if self.scheduler is not None and self.scheduler.poll() is None:
            os.kill(self.scheduler.pid, signum)
            self.scheduler.wait(LIMIT_S)

    def has_joined(self) -> bool:
        """Return whether all machines are online. Fail if an agent has ended."""
        for member in self.members:
            assert member.agent is not None
            assert member.agent.poll() is None, member.log
        return len(self.online()) == len(self.members)

    def online(self) -> list[str]:
        """Return the names of the machines that are online. Not by a command: each would cost a second of CPU time."""
        with open_store(f"postgresql+psycopg://fslab@/fleet?host={self.cluster.directory}") as store:
            return [each.name for each in FleetStore(store).machines() if each.is_online]


def _member(lab: Lab, number: int, undo: ExitStack) -> Member:
    name = f"lab{number}"
    holder = namespace()
    undo.callback(holder.wait)
    undo.callback(holder.kill)
    home = lab.directory / name
    home.mkdir()
    toml = home / "worker.toml"
    toml.write_text(f'name = "{name}"\nstore = "{lab.url("measuring")}"\n')
    toml.chmod(0o644)
    member = Member(name=name, number=number, holder=holder, home=home, hub=lab.hub)
    sh(
        *inside(
            lab.hub,
            "ip",
            "link",
            "add",
            f"v{number}",
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            holder.pid,
        )
    )
    sh(*inside(lab.hub, "ip", "link", "set", f"v{number}", "master", "br0", "up"))
    for words in (
        f"ip addr add 10.77.0.{number + 1}/24 dev eth0", "ip link set eth0 up", "ip link set lo up", f"hostname {name}",
    ):  # fmt: skip
        sh(*inside(holder.pid, *words.split()))
    undo.callback(member.end)
    undo.callback(member.go_on)
    return member


@contextmanager
def lab(programs: Path, directory: Path, machines: int, starter: Starter) -> Iterator[Lab]:
    """Yield a running fleet: database, scheduler, and machines that are online."""
    with ExitStack() as undo:
        hub = namespace()
        undo.callback(hub.wait)
        undo.callback(hub.kill)
        # Without its own MAC address, a bridge uses that of a port, and is unreachable when this port is removed.
        for words in (
            "ip link set lo up",
            "ip link add br0 address 02:00:00:00:00:01 type bridge",
            f"ip addr add {HUB}/24 dev br0",
            "ip link set br0 up",
        ):
            sh(*inside(hub.pid, *words.split()))
        cluster = undo.enter_context(postgresql.running(programs, hub.pid))
        cluster.execute("CREATE DATABASE fleet")
        made = Lab(directory=directory, starter=starter, hub=hub.pid, cluster=cluster)
        cluster.execute("CREATE ROLE measuring LOGIN")
        made.fslab("store", "grant", "--measuring", "measuring")
        made.start_scheduler()
        undo.callback(made.end_scheduler)
        for number in range(1, machines + 1):
            made.members.append(_member(made, number, undo))
        for member in made.members:
            member.start()
        wait_for(made.has_joined)
        yield made
