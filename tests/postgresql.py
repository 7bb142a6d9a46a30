"""A PostgreSQL server of the tests' own: in a temporary directory, on a socket there, run by an unprivileged user."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from tests.directories import SESSION
from tests.limits import LIMIT_S

UNPRIVILEGED = 65534  # the server refuses root
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
# Nothing here is to survive a power cut, and memory is short beside other tests. A server may be set to confirm what it
# has not written; a crash of it must lose no trial all the same.
SETTINGS = (
    "listen_addresses=",
    "fsync=off",
    "synchronous_commit=off",
    "shared_buffers=16MB",
    "max_connections=40",
)


def binaries() -> Path | None:
    """Where the server's programs are: of the newest version on Debian, else on PATH. None: not installed."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    found = debian[-1] if debian else shutil.which("initdb")
    return Path(found).parent if found else None


class Cluster:
    """One server, started and stopped at will. Databases are copied from one that has fslab's tables."""

    def __init__(self, programs: Path, directory: Path, network: int | None = None) -> None:
        """``network``: process whose network namespace it listens in, on all addresses; None: on its socket alone."""
        self.programs, self.directory, self.made, self.network = programs, directory, 0, network
        self.user = UNPRIVILEGED if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(directory, self.user, self.user)
        self._run(
            "initdb", "-D", str(directory / "data"), "-A", "trust", "-U", "fslab", "-E", "UTF8", "--no-sync"
        )

    @property
    def url(self) -> str:
        """A database that every server has."""
        return self.url_of("postgres")

    def url_of(self, name: str) -> str:
        return f"postgresql+psycopg://fslab@/{name}?host={self.directory}"

    def start(self) -> None:
        """Listening on a socket of its own directory alone."""
        settings: tuple[str, ...] = (*SETTINGS, f"unix_socket_directories={self.directory}")
        if self.network is not None:
            settings = (*settings, "listen_addresses=*")
            (self.directory / "data" / "pg_hba.conf").write_text(
                "local all all trust\nhost all all all trust\n"
            )
        options = " ".join(f"-c {setting}" for setting in settings)
        self._run("pg_ctl", "-D", str(self.directory / "data"), "-w", "-l", str(self.directory / "log"), "-o", options,
                  "start")  # fmt: skip

    def stop(self) -> None:
        """At once, as a crash would."""
        self._run("pg_ctl", "-D", str(self.directory / "data"), "-w", "-m", "immediate", "stop", check=False)

    def database(self, like: str = "template1") -> str:
        """The name of a new database, a copy of another one that nobody is connected to."""
        self.made += 1
        name = f"t{self.made}"
        self.execute(f'CREATE DATABASE {name} TEMPLATE "{like}"')
        return name

    def execute(self, statement: str) -> None:
        with psycopg.connect(
            host=str(self.directory), user="fslab", dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(statement)

    def _run(self, program: str, *words: str, check: bool = True) -> None:
        own = (
            ("nsenter", f"--net=/proc/{self.network}/ns/net", "setpriv", f"--reuid={self.user}", f"--regid={self.user}",
             "--clear-groups")
            if self.network is not None
            else ()
        )  # fmt: skip
        user = None if own else self.user
        done = subprocess.run(
            [*own, str(self.programs / program), *words], user=user, group=user,
            extra_groups=None if user is None else [], cwd=self.directory, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, timeout=LIMIT_S, env=ENVIRONMENT,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stderr


@contextmanager
def running(programs: Path, network: int | None = None) -> Iterator[Cluster]:
    """A started server, stopped and removed afterwards: by the next session, where this one was killed. Its directory
    has a short name: those of sockets have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix=f"{SESSION}{os.getpid()}-", dir="/dev/shm") as name:
        Path(name).chmod(0o711)  # the server runs as another user
        directory = Path(name) / "pg"
        directory.mkdir()
        cluster = Cluster(programs, directory, network)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
