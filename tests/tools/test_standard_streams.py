"""Tests of programs started with closed standard streams: they never print into a file that they opened themselves."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.disk_server import BINARY
from tests.limits import LIMIT_S, ran

from fslab.errors import NoSpaceError, UsageError
from fslab.store.store import Store

FSLAB = BINARY.with_name("fslab")
CLOSED = [(0,), (1,), (0, 2), (0, 1, 2)]
# Writes to the descriptor in argv[1] where descriptors 0 to 2 point when main() runs, and what using them gives.
LOOK = """
import os, sys
from unittest import mock
from fslab import __main__

def app():
    told = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
    os.write(int(sys.argv[1]), "\\n".join([*told, str(sys.stdin.read()), str(sys.stdout.write("x"))]).encode())

with mock.patch("fslab.cli.app", app):
    __main__.main()
"""


@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_closed_ones_are_dev_null(closed: tuple[int, ...], tmp_path: Path) -> None:
    script = tmp_path / "look.py"
    script.write_text(LOOK)
    told = tmp_path / "told"
    shell = f'exec 9> "$2"; exec "$1" "$3" 9 {" ".join(f"{number}>&-" for number in closed)}'
    python = BINARY.with_name("python")
    done = subprocess.run(
        ["sh", "-c", shell, "sh", python, told, script], check=False, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *links, read, written = told.read_text().split("\n")
    assert (read, written) == ("", "1")
    for number, link in enumerate(links):
        if number in closed:
            assert link == "/dev/null"
        else:
            assert (link == "/dev/null") == (number == 0), link


@pytest.mark.parametrize(
    ("words", "closed"), [("schema", ">&-"), ("list filesystems --json", "<&- >&- 2>&-")]
)
def test_every_way_to_print(words: str, closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$1" {words} {closed}', "sh", FSLAB], check=False, timeout=LIMIT_S
    )
    assert done.returncode == 0


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_output_that_does_not_fit_is_an_error(unbuffered: str, tmp_path: Path) -> None:
    """The limit of the file size (``ulimit -f``) makes a write incomplete, as a disk does that becomes full."""
    file = tmp_path / "schema.json"
    with file.open("wb") as target:
        done = subprocess.run(
            ["prlimit", "--fsize=65536", FSLAB, "schema"], check=False, timeout=LIMIT_S, stdout=target,
            stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert file.stat().st_size == 65536
    assert (done.returncode, done.stderr) == (
        NoSpaceError.exit_code,
        "fslab: cannot write standard output: File too large\n",
    )


def test_a_reader_that_has_ended_is_no_error_of_its_own() -> None:
    done = ran(["sh", "-c", f"({FSLAB} schema; echo $? >&2) | true"])
    assert done.stderr == f"{128 + signal.SIGPIPE}\n"


# Ends as Click does, with text that standard output or standard error has not taken.
ENDED = """
import sys
from unittest import mock
from fslab import __main__

def app():
    try:
        print("told", file=getattr(sys, sys.argv[1]))
    except BrokenPipeError:  # as logging does
        pass
    sys.exit(0)

with mock.patch("fslab.cli.app", app):
    __main__.main()
"""


def test_messages_that_nobody_reads_do_not_change_the_exit_status() -> None:
    """Python exits with 120 if it cannot flush standard error at exit."""
    read, write = os.pipe()
    os.close(read)
    argv = [str(BINARY.with_name("python")), "-c", ENDED, "stderr"]
    done = subprocess.run(argv, check=False, stderr=write, timeout=LIMIT_S)
    os.close(write)
    assert done.returncode == 0


def test_a_result_that_was_not_written_when_a_command_ends_is_an_error() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [BINARY.with_name("python"), "-c", ENDED, "stdout"], check=False, stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=LIMIT_S,
        )  # fmt: skip
    told = "fslab: cannot write standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (NoSpaceError.exit_code, told)


# Prints results although it was interrupted, as fslab run does.
INTERRUPTED = """
import os, signal, sys
from unittest import mock
from fslab import __main__

def clean():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        print("results", flush=True)
        raise

with mock.patch("fslab.clean", clean):
    sys.argv = ["fslab", "clean"]
    __main__.main()
"""


@pytest.mark.parametrize("output", ["/dev/full", "pipe", "pipe with errors"])
def test_an_interrupted_run_exits_with_its_signal_whatever_becomes_of_its_output(output: str) -> None:
    """Ctrl-C ends what a terminal runs: in ``fslab run … 2>&1 | tee log``, tee too."""
    read, write = os.pipe() if "pipe" in output else (None, os.open(output, os.O_WRONLY))
    if read is not None:
        os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], check=False, stdout=write, text=True, timeout=LIMIT_S,
        stderr=write if output == "pipe with errors" else subprocess.PIPE,
    )  # fmt: skip
    os.close(write)
    assert done.returncode == 128 + signal.SIGINT
    if done.stderr is not None:
        assert done.stderr == "fslab: interrupted\n  → finish a campaign with: fslab run --resume\n"


def test_a_name_that_nothing_can_have_is_reported(tmp_path: Path) -> None:
    Store.open(str(tmp_path / "a.sqlite")).close()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("n" * 300, "loop"):
        done = ran([FSLAB, "store", "copy", "a.sqlite", name], cwd=tmp_path)
        assert "Traceback" not in done.stderr
        assert done.returncode != 0
        assert done.stderr.startswith("fslab: ")


def test_without_docstrings_no_command_runs() -> None:
    done = ran([BINARY.with_name("python"), "-OO", "-m", "fslab", "plan", "quick"])
    assert (done.returncode, done.stdout) == (UsageError.exit_code, "")
    assert done.stderr == "fslab: its options are in docstrings: run it without -OO and PYTHONOPTIMIZE\n"


def test_a_traceback_has_no_control_characters_of_what_it_quotes() -> None:
    script = (
        "from unittest import mock; from fslab import __main__; "
        "error = ValueError('\\x1b]0;taken\\x07\\x9b31m'); "
        "mock.patch('fslab.cli.app', side_effect=error).start(); __main__.main()"
    )
    done = ran([BINARY.with_name("python"), "-c", script])
    assert done.returncode == 1
    assert "ValueError:  ]0;taken" in done.stderr
    assert not {"\x1b", "\x07", "\x9b"} & set(done.stderr)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ((errno.EMFILE, "Too many open files"), "Too many open files: raise the limit (ulimit -n)"),
        ((errno.EACCES, "Permission denied", "/a/b"), "/a/b: Permission denied"),
        ((errno.ENOENT, "No usable temporary directory"), "No usable temporary directory"),
        (
            (errno.ENOENT, os.strerror(errno.ENOENT)),
            "the current directory was removed: change to another one",
        ),
        ((errno.ENOTCONN, "Not connected", "/a/b"), "/a/b: Not connected"),
        ((errno.EEXIST, "File exists", "/a/b"), "/a/b: File exists"),
        ((errno.EROFS, "Read-only file system", "/a/b"), "/a/b: Read-only file system"),
        ((errno.ENOSPC, "No space left on device", "/a/b"), "/a/b: No space left on device"),
    ],
)
def test_what_is_no_fault_of_fslab_is_no_traceback(error: tuple[object, ...], told: str) -> None:
    script = (
        f"from unittest import mock; from fslab import __main__; error = OSError(*{error!r}); "
        "mock.patch('fslab.cli.app', side_effect=error).start(); __main__.main()"
    )
    done = ran([BINARY.with_name("python"), "-c", script])
    code = NoSpaceError.exit_code if errno.ENOSPC in error else UsageError.exit_code
    assert (done.returncode, done.stderr) == (code, f"fslab: {told}\n")


def test_a_signal_while_the_program_loads_is_no_traceback() -> None:
    script = (
        "import os, signal, sys; from fslab import __main__\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'fslab.cli': os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.meta_path.insert(0, Finder()); __main__.main()"
    )
    done = ran([BINARY.with_name("python"), "-c", script])
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr.startswith("fslab: interrupted")


# As pydantic does while it makes a model.
ANSWERED = """
import os, signal
from unittest import mock
from fslab import __main__

def app():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except BaseException as error:
        raise ValueError("invalid schema") from error

with mock.patch("fslab.cli.app", app):
    __main__.main()
"""


def test_a_signal_that_a_library_answers_with_its_own_error_is_no_traceback() -> None:
    done = ran([sys.executable, "-c", ANSWERED])
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "")
    assert done.stderr == "fslab: interrupted\n  → finish a campaign with: fslab run --resume\n"
