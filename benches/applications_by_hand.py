"""Compares applications measured by fslab with the same work by hand, on the same mount, in pairs.

Each pair has a new file system. In it, one run is that of a trial (``Workspace.run`` with probes around it). The other
one is a script of SQLite statements without fslab, a loop of appends, of messages or of qemu-io's commands, PostgreSQL
started by pg_ctl with the same settings and pgbench, db_bench, smbd and smbclient, or the commands of each step in a
shell. Their order is random, and each begins with the same prepared files. Prints the median ratio of the rates, or of
the times of each step, with its 90 % interval. Goal: 0.98–1.02. Needs root. Redis is not there: redis-benchmark is
another client, with another rate.

    python benches/applications_by_hand.py [--pairs 12] [--filesystem ext4] [--medium virtual] [--runtime 2s]
        [--only untar]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches import pairs

from fslab.applications import REGISTRY as APPLICATIONS
from fslab.applications import DriveRequest, SteppedApplication
from fslab.storage.mounted_stack import Stack
from fslab.system import proc
from fslab.workloads import REGISTRY, Job, ToolOutput

SMALL_SERVER = {"scale": 2, "clients": 2, "shared_buffers": "32m", "max_wal_size": "64m"}
LOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "insert": ("sqlite", {}),
    "insert-wal": ("sqlite", {"journal_mode": "wal"}),
    "etcd-log": ("log-file", {"sync": "fdatasync", "segment": "64m", "size": "2k"}),
    "overwrite": ("rocksdb", {"operation": "overwrite", "keys": 20_000, "sync": "yes"}),
    "deliver": ("maildir", {}),
    "raw-image": ("vm-image", {"image": "64m"}),
    "qcow2-image": ("vm-image", {"image": "64m", "format": "qcow2"}),
    "tpcb": ("postgresql", SMALL_SERVER),
    "select-only": ("postgresql", {"test": "select-only", **SMALL_SERVER}),
    "oltp": ("mariadb", {"rows": 10_000, "clients": 2}),
    "upload": ("samba", {}),
    "synced-upload": ("samba", {"sync_always": "yes"}),
    "untar": ("untar", {"files": 5000}),
    "walk": ("untar", {"files": 5000, "steps": "walk"}),
    "rsync": ("rsync", {"files": 5000}),
    "compile": ("compile", {"files": 100, "jobs": 2}),
    "containers": ("containers", {"files": 5000, "layers": 3, "steps": "load,start,prune"}),
}
OVERLAY = """
mount -t overlay -o lowerdir=layers/03:layers/02:layers/01:layers/00,upperdir=container/upper,workdir=container/work,\
index=off,metacopy=off overlay merged && grep -rlF fslab-marked merged | cat >/dev/null
"""
# The commands of each step, as one would type them.
STEPS = {
    "untar": {
        "unpack": "tar xf archive.tar",
        # With /dev/null as its output itself, grep ends at the first match.
        "walk": "grep -rlF fslab-marked tree | cat >/dev/null",
        "remove": "rm -r tree",
    },
    "rsync": dict.fromkeys(("first", "unchanged", "changed"), "rsync -a --delete source/ copy/"),
    "compile": {
        "build": "make -j2 >/dev/null",
        "rebuild": "make -j2 >/dev/null",
        "clean": "make clean >/dev/null",
    },
    "containers": {
        "load": "for i in 00 01 02 03; do mkdir -p layers/$i; tar xf archives/$i.tar -C layers/$i || exit; done",
        "start": f"mkdir -p container/upper container/work merged; unshare --mount sh -c '{OVERLAY}'",
        "prune": "rm -r container layers",
    },
}
APPENDS = """
import os, sys, time
size, seconds = int(sys.argv[2]), float(sys.argv[3])
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.posix_fallocate(file, 0, 64 << 20)
record, number, began = os.urandom(size), 0, time.monotonic()
while time.monotonic() < began + seconds and (number + 1) * size < 64 << 20:
    os.write(file, record)
    os.fdatasync(file)
    number += 1
print("rate", number / (time.monotonic() - began))
"""
SQL = """
import os, sqlite3, sys, time
path, mode, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
database = sqlite3.connect(path, isolation_level=None)
database.execute(f"PRAGMA journal_mode={mode}")
database.execute("PRAGMA synchronous=full")
row, number, began = os.urandom(1024), 0, time.monotonic()
while time.monotonic() < began + seconds:
    number += 1
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO transactions VALUES (?, ?)", (number, row))
    database.execute("UPDATE counter SET last = ?", (number,))
    database.execute("COMMIT")
print("rate", number / (time.monotonic() - began))
"""
DELIVERIES = """
import base64, mailbox, os, sys, time
box = mailbox.Maildir(sys.argv[1], create=False)
body = os.urandom(int(sys.argv[2]))
number, began = 0, time.monotonic()
while time.monotonic() < began + float(sys.argv[3]):
    number += 1
    box.add(b"Subject: %d\\n\\n%s\\n" % (number, base64.b64encode(body)))
print("rate", number / (time.monotonic() - began))
"""
# qemu-io reads the next line after its prompt.
WRITES = """
import os, random, subprocess, sys, time
directory, form, size, slots, seconds = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
size, data = int(size), os.memfd_create("data", 0)
argv = ["qemu-io", "-f", form, "-t", "writeback", "image"]
qemu = subprocess.Popen(
    argv, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[data], bufsize=0
)
def say(line):
    qemu.stdin.write(line)
    while not os.read(qemu.stdout.fileno(), 4096).endswith(b"qemu-io> "):
        pass
say(b"")
block, number, began = os.urandom(size), 0, time.monotonic()
while time.monotonic() < began + seconds:
    number += 1
    os.pwrite(data, block, 0)
    say(b"write -q -s /proc/self/fd/%d %d %d\\n" % (data, random.randrange(int(slots)) * size, size))
    say(b"flush\\n")
print("rate", number / (time.monotonic() - began))
qemu.stdin.close()
qemu.wait()
"""
SHARE = """
[global]
server role = standalone
map to guest = bad user
guest account = nobody
disable netbios = yes
load printers = no
interfaces = 127.0.0.1
bind interfaces only = yes
smb ports = {port}
log file = {state}/log
{places}
[share]
guest ok = yes
read only = no
path = {directory}
{options}
"""
AS_NOBODY = (
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search",
)  # fmt: skip


def main() -> int:
    """Run the pairs and print the table. Return 1 if a median ratio is outside 0.98–1.02, otherwise 0."""
    parser = pairs.parser(__doc__, pairs=12)
    parser.add_argument("--only", choices=LOADS)
    arguments = parser.parse_args()
    good = True
    loads = {
        name: load_of(tool, keys, arguments.runtime)
        for name, (tool, keys) in LOADS.items()
        if arguments.only in {None, name}
    }
    needed_bytes = 2 * max(REGISTRY.get(tool).space_bytes(load) for tool, load in loads.values())
    with pairs.opened(arguments, needed_bytes) as bench:
        for name, (tool, load) in loads.items():
            good = pairs.compare(name, arguments.pairs, bench, runner(bench, tool, load), most=0.02) and good
    return 0 if good else 1


def load_of(tool: str, keys: dict[str, Any], runtime: str) -> tuple[str, Any]:
    """Return a tool and its parsed parameters. Steps have no run time."""
    given = keys if tool in STEPS else {**keys, "runtime": runtime}
    return tool, REGISTRY.get(tool).parse_parameters(given)


def runner(
    bench: pairs.Bench, tool: str, parameters: Any
) -> Callable[[Stack, str, int], Mapping[str, float]]:
    """Return a function that does the work of a pair one way, from prepared files, and returns its figures."""
    workload = REGISTRY.get(tool)

    def run(up: Stack, way: str, pair: int) -> Mapping[str, float]:
        job = Job(directory=up.work, scratch=bench.scratch, seed=1000 + pair)
        commands = workload.commands(parameters, job)
        directory = Path(json.loads(commands.prepare[0][-1])["directory"])
        for argv in commands.prepare:
            up.workspace.run("prepare", argv, cwd=up.work)
        up.flush()
        with bench.real_time():
            if way == "hand" and tool in STEPS:
                found = by_steps(tool, directory, parameters, job.seed)
            elif way == "hand":
                found = {"transaction_rate": BY_HAND[tool](directory, parameters)}
            else:
                done = pairs.probed(up, commands.run)
                output = ToolOutput(stdout=done.stdout, stderr=done.stderr, duration_s=done.duration_s)
                read = workload.read(parameters, output).metrics
                found = {name: value or 0.0 for name, value in read.items()}
        for argv in commands.cleanup:
            up.workspace.run("cleanup", argv, cwd=up.work)
        return found

    return run


def by_steps(tool: str, directory: Path, parameters: Any, seed: int) -> dict[str, float]:
    """Return how long each step's command takes in a shell, with a sync of the file system."""
    application = APPLICATIONS.get(tool)
    assert isinstance(application, SteppedApplication)
    drive = DriveRequest(directory=directory, scratch=directory, load=parameters, run_s=None, seed=seed)
    found = {}
    for step in parameters.chosen:
        application.before(drive, step)
        subprocess.run(["sync", "-f", "."], check=True, cwd=directory)
        began = time.monotonic()
        command = f"{STEPS[tool][step]} && sync -f ."
        subprocess.run(["sh", "-c", command], check=True, cwd=directory, env=proc.environment())
        found[f"{step}_time"] = time.monotonic() - began
    return found


def sqlite(directory: Path, parameters: Any) -> float:
    """Return the rate of a script of the same statements."""
    words = (str(directory / "database"), parameters.journal_mode, str(parameters.run_s))
    return float(printed(sys.executable, "-c", SQL, *words).split()[-1])


def postgresql(directory: Path, parameters: Any) -> float:
    """Return what pgbench prints on a server that pg_ctl starts."""
    programs = Path(printed("pg_config", "--bindir").strip())
    settings = {**parameters.options(), "listen_addresses": "''", "unix_socket_directories": "."}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    control = (
        *AS_NOBODY,
        str(programs / "pg_ctl"),
        "-D",
        str(directory),
        "-w",
        "-l",
        str(directory / "server.log"),
    )
    subprocess.run(
        [*control, "-o", options, "start"],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd="/",
        env={"PGHOST": str(directory), "PGUSER": "fslab", "PGDATABASE": "postgres", "PATH": "/usr/bin:/bin"},
    )
    try:
        clients = str(parameters.clients)
        words = ("-h", "/proc/self/cwd", "-U", "fslab", "-b", parameters.test, "-c", clients, "-j", clients)
        said = printed(
            str(programs / "pgbench"), *words, "-T", str(round(parameters.run_s)), "postgres", cwd=directory
        )
    finally:
        subprocess.run([*control, "-m", "fast", "stop"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    return float(re.findall(r"tps = ([0-9.]+)", said)[-1])


def log_file(directory: Path, parameters: Any) -> float:
    """Return the rate of a loop of appends and fdatasync(2)."""
    words = (str(directory / "log"), str(parameters.size_bytes), str(parameters.run_s))
    return float(printed(sys.executable, "-c", APPENDS, *words).split()[-1])


def rocksdb(directory: Path, parameters: Any) -> float:
    """Return what db_bench prints."""
    words = (
        "--benchmarks=overwrite", "--use_existing_db=1", "--sync=1", "--histogram=1", "--progress_reports=0",
        f"--db={directory / 'database'}", f"--num={parameters.keys}", f"--value_size={parameters.size_bytes}",
        f"--duration={round(parameters.run_s)}",
    )  # fmt: skip
    seconds, count = re.findall(r"([0-9.]+) seconds (\d+) operations", printed("db_bench", *words))[-1]
    return float(count) / float(seconds)


def mariadb(directory: Path, parameters: Any) -> float:
    """Return what sysbench prints on a server that is started with the same options."""
    subprocess.run(["chown", "-R", "nobody:", str(directory)], check=True)
    options = [f"--{name}={value}" for name, value in parameters.options().items()]
    words = ("--no-defaults", f"--datadir={directory}", "--socket=hand.sock", "--skip-networking")
    server = subprocess.Popen(
        [*AS_NOBODY, "mariadbd", *words, "--skip-grant-tables", *options], stderr=subprocess.DEVNULL
    )
    asked = ("sysbench", parameters.test, "--mysql-socket=hand.sock", "--mysql-user=root", "--mysql-db=fslab")
    amounts = (f"--table-size={parameters.rows}", f"--threads={parameters.clients}")
    try:
        client = ("mariadb", "--no-defaults", "--socket=hand.sock", "--execute=SELECT 1")
        while subprocess.run(client, check=False, capture_output=True, cwd=directory).returncode:
            time.sleep(0.1)
        said = printed(*asked, *amounts, f"--time={round(parameters.run_s)}", "run", cwd=directory)
    finally:
        server.terminate()
        server.wait()
    return float(re.findall(r"transactions: +\d+ +\(([0-9.]+) per sec", said)[-1])


def samba(directory: Path, parameters: Any) -> float:
    """Return the rate of uploads that smbclient is told one by one, to a server with the same settings."""
    port = 4450
    with tempfile.TemporaryDirectory(dir="/dev/shm") as state:
        shutil.chown(state, "nobody")
        places = (
            "private dir",
            "lock dir",
            "state directory",
            "cache directory",
            "pid directory",
            "ncalrpc dir",
        )
        words = {
            "port": port, "state": state, "directory": directory,
            "places": "\n".join(f"{name} = {state}" for name in places),
            "options": "\n".join(f"{name} = {value}" for name, value in parameters.options().items()),
        }  # fmt: skip
        conf, contents = Path(state, "smb.conf"), Path(state, "contents")
        conf.write_text(SHARE.format(**words))
        contents.write_bytes(os.urandom(parameters.size_bytes))
        asked = ("--no-process-group", "--foreground", "--configfile", str(conf))
        server = subprocess.Popen([*AS_NOBODY, "smbd", *asked], stderr=subprocess.DEVNULL)
        try:
            listing = ("smbclient", *asking(port), "-c", "ls")
            while subprocess.run(listing, check=False, capture_output=True).returncode:
                time.sleep(0.1)
            return uploads(port, contents, parameters.run_s)
        finally:
            server.terminate()
            server.wait()


def uploads(port: int, contents: Path, seconds: float) -> float:
    """Return how many files one smbclient uploads in a second."""
    number = 0
    with subprocess.Popen(
        ["smbclient", *asking(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            number += 1
            client.stdin.write(b"put %s %d\n" % (bytes(contents), number))
            while b"putting file" not in client.stdout.readline():
                pass
            if number == 1:  # it is connected
                began = time.monotonic()
        rate = (number - 1) / (time.monotonic() - began)
        client.stdin.close()
    return rate


def asking(port: int) -> tuple[str, ...]:
    return ("--no-pass", f"--port={port}", "--configfile=/dev/null", "//127.0.0.1/share")


def maildir(directory: Path, parameters: Any) -> float:
    """Return the rate of a loop that adds messages to a mailbox."""
    words = (str(directory / "box"), str(parameters.size_bytes), str(parameters.run_s))
    return float(printed(sys.executable, "-c", DELIVERIES, *words).split()[-1])


def vm_image(directory: Path, parameters: Any) -> float:
    """Return the rate of a loop that tells qemu-io to write and to flush."""
    words = (str(directory), parameters.format, str(parameters.size_bytes), str(parameters.slots))
    return float(printed(sys.executable, "-c", WRITES, *words, str(parameters.run_s)).split()[-1])


BY_HAND: dict[str, Callable[[Path, Any], float]] = {
    "sqlite": sqlite,
    "postgresql": postgresql,
    "log-file": log_file,
    "rocksdb": rocksdb,
    "mariadb": mariadb,
    "maildir": maildir,
    "samba": samba,
    "vm-image": vm_image,
}


def printed(*argv: str, cwd: Path | None = None) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, cwd=cwd).stdout


if __name__ == "__main__":
    sys.exit(main())
