"""Runs a PostgreSQL server for tests: in a temporary directory, on a socket there, as an unprivileged user."""

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
from tests.limits import LIMIT_S, ran

UNPRIVILEGED = 65534  # the server refuses root
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
# The data need not survive a power failure, and other tests need memory too. A server can be configured to confirm
# commits that are not written yet (synchronous_commit); fslab must not lose trials even then. Among hundreds of
# databases, autovacuum would start a process several times a second.
SETTINGS = (
    "listen_addresses=",
    "fsync=off",
    "synchronous_commit=off",
    "shared_buffers=16MB",
    "max_connections=40",
    "autovacuum=off",
)


def binaries() -> Path | None:
    """Return the directory of the server's programs: Debian's newest version, or from PATH. None: not installed."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    found = debian[-1] if debian else shutil.which("initdb")
    return Path(found).parent if found else None


class Cluster:
    """One server, which can be started and stopped again and again."""

    def __init__(self, programs: Path, directory: Path, network: int | None = None) -> None:
        """Create the cluster with initdb in ``directory``.

        ``network``: process in whose network namespace the server listens, on all addresses and only with TLS; None:
        only on its socket.
        """
        self.programs, self.directory, self.made, self.network = programs, directory, 0, network
        self.user = UNPRIVILEGED if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(directory, self.user, self.user)
        self._run(
            "initdb", "-D", str(directory / "data"), "-A", "trust", "-U", "fslab", "-E", "UTF8", "--no-sync"
        )
        if network is not None:
            made = certificate(directory)
            for path in (made, made.with_suffix(".key")):
                os.chown(path, self.user or -1, -1)

    @property
    def certificate(self) -> Path:
        """The server's certificate, which it signed itself, if it has a ``network``."""
        return self.directory / "server.pem"

    @property
    def url(self) -> str:
        """The URL of ``postgres``, a database that every server has."""
        return self.url_of("postgres")

    def url_of(self, name: str) -> str:
        return f"postgresql+psycopg://fslab@/{name}?host={self.directory}"

    def start(self) -> None:
        """Start the server. It listens on a socket in its directory, and on TCP if it has a ``network``."""
        settings: tuple[str, ...] = (*SETTINGS, f"unix_socket_directories={self.directory}")
        if self.network is not None:
            files = {"cert": self.certificate, "key": self.certificate.with_suffix(".key")}
            settings = (*settings, "listen_addresses=*", "ssl=on")
            settings += tuple(f"ssl_{name}_file={path}" for name, path in files.items())
            (self.directory / "data" / "pg_hba.conf").write_text(
                "local all all trust\nhostssl all all all trust\n"
            )
        options = " ".join(f"-c {setting}" for setting in settings)
        self._run("pg_ctl", "-D", str(self.directory / "data"), "-w", "-l", str(self.directory / "log"), "-o", options,
                  "start")  # fmt: skip

    def stop(self) -> None:
        """Stop the server without a checkpoint (mode immediate), as a crash would."""
        self._run("pg_ctl", "-D", str(self.directory / "data"), "-w", "-m", "immediate", "stop", check=False)

    def database(self, like: str = "template1") -> str:
        """Create a database and return its name. It is a copy of ``like``, to which nobody may be connected."""
        self.made += 1
        name = f"t{self.made}"
        with self._connection() as connection:
            # Files, not pages through the transaction log: half of the CPU time. Only since PostgreSQL 15.
            copied = "STRATEGY FILE_COPY" if connection.info.server_version >= 150000 else ""
            connection.execute(f'CREATE DATABASE {name} TEMPLATE "{like}" {copied}')
        return name

    def execute(self, statement: str) -> None:
        with self._connection() as connection:
            connection.execute(statement)

    def _connection(self) -> psycopg.Connection:
        return psycopg.connect(host=str(self.directory), user="fslab", dbname="postgres", autocommit=True)

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


def certificate(directory: Path, address: str = "10.77.0.1") -> Path:
    """Make a certificate for a server at ``address``, ``server.pem``, and its key, ``server.key``."""
    made = directory / "server.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=lab"
    ran(
        ["openssl", *words.split(), "-addext", f"subjectAltName=IP:{address}", "-out", made, "-keyout",
         made.with_suffix(".key")],
        check=True,
    )  # fmt: skip
    return made


@contextmanager
def running(programs: Path, network: int | None = None) -> Iterator[Cluster]:
    """Yield a started server; stop and remove it afterwards. If this session is killed, the next one removes its files.

    The path of its directory is short, because the path of a socket is limited to 107 bytes.
    """
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
