"""Tests of running processes, with real ones: output, time limits, process groups, signals, resource usage."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests import leaks
from tests.limits import LIMIT_S, ran, wait_for

from fslab.errors import InterruptedBySignal, ToolFailedError, ToolMissingError, ToolTimeoutError
from fslab.system import path_owners, proc, process_marks, processes, signals, syscalls, users

PYTHON = sys.executable
ADD_KEY = {"x86_64": 248}  # else of the generic ABI


def test_streams_are_apart_and_stdin_is_closed() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); print(sys.stdin.read() == '')"
    done = proc.run([PYTHON, "-c", code])
    assert (done.stdout, done.stderr, done.returncode) == ("out\nTrue\n", "err\n", 0)


def test_megabytes_of_output_do_not_block() -> None:
    done = proc.run([PYTHON, "-c", "import sys; sys.stdout.write('x' * 5_000_000)"])
    assert len(done.stdout) == 5_000_000


def test_a_daemon_that_makes_the_output_longer_takes_no_memory_of_fslab(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After its length was checked for the last time: a hole of any size costs the daemon nothing."""
    monkeypatch.setattr(proc, "_check_length", lambda *_: None)
    monkeypatch.setattr(proc, "OUTPUT_LIMIT_BYTES", 4)
    assert proc.run(["sh", "-c", "printf 12345; truncate --size 1T /dev/stdout"]).stdout == "1234"


def test_no_shell_touches_the_arguments(tmp_path: Path) -> None:
    word = "$(touch hacked); `touch hacked` 'a b' *"
    done = proc.run([PYTHON, "-c", "import sys; print(sys.argv[1])", word], cwd=tmp_path)
    assert done.stdout == word + "\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/proc/self/autogroup").exists(), reason="needs root, and autogroups"
)
def test_an_urgent_command_runs_before_others_and_what_it_leaves_running_does_not() -> None:
    wait = "while grep -q 'nice 0' /proc/self/autogroup; do :; done; cat /proc/self/autogroup"
    done = proc.run(["sh", "-c", f"sleep 600 & echo $!; {wait}"], urgent=True, timeout_s=LIMIT_S)
    left, share = done.stdout.splitlines()
    try:
        assert share.endswith("nice -20")
        assert Path(f"/proc/{left}/autogroup").read_text().endswith("nice 0\n")
    finally:
        os.kill(int(left), signal.SIGKILL)
    assert proc.run(["cat", "/proc/self/autogroup"]).stdout.endswith("nice 0\n")


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/proc/keys").exists(), reason="needs root, and keyrings")
def test_no_command_possesses_the_keys_of_root_s_session() -> None:
    """A passphrase of a disk, for example. Keyrings are of a thread: the test's own stays as it is."""
    keys = ["cat", "/proc/keys"]
    secret = f"fslab-test-{os.getpid()}"

    def add_and_look() -> tuple[str, str]:
        syscalls.join_new_session_keyring()
        added = [b"user", secret.encode(), b"secret", 6, -3]  # to the session keyring
        syscalls.checked(
            ctypes.CDLL(None, use_errno=True).syscall(ADD_KEY.get(os.uname().machine, 217), *added)
        )
        return Path("/proc/keys").read_text(), proc.run(users.unprivileged(keys)).stdout

    with ThreadPoolExecutor(max_workers=1) as thread:
        own, seen = thread.submit(add_and_look).result()
    assert secret in own
    assert secret not in seen


def test_a_failure_carries_the_end_of_stderr() -> None:
    with pytest.raises(ToolFailedError, match="exited 3: why"):
        proc.run([PYTHON, "-c", "import sys; sys.exit(print('why', file=sys.stderr) or 3)"])
    assert proc.run([PYTHON, "-c", "raise SystemExit(3)"], check=False).returncode == 3


def test_of_a_long_word_an_error_has_the_beginning() -> None:
    with pytest.raises(ToolFailedError) as raised:
        proc.run(["sh", "-c", f"exit 3; {'x' * 1000}"])
    assert str(raised.value) == f"sh -c 'exit 3; {'x' * 92}…': sh exited 3"


def test_a_missing_program() -> None:
    with pytest.raises(ToolMissingError):
        proc.run(["there-is-no-such-program"])


@pytest.mark.parametrize(("mode", "why"), [(0o600, "Permission denied"), (0o700, "Exec format error")])
def test_a_program_that_cannot_be_started(tmp_path: Path, mode: int, why: str) -> None:
    """A study's own script may lack the permission to run or its interpreter line: an error of the tool, no bug."""
    script = tmp_path / "script"
    script.write_text("echo 1")
    script.chmod(mode)
    with pytest.raises(ToolFailedError, match=f"cannot be run: {why}"):
        proc.run([str(script)], cwd=tmp_path)
    with pytest.raises(ToolFailedError, match=f"cannot be run: {why}"):
        proc.start([str(script)], output=2)


def test_a_missing_working_directory_is_no_missing_program(tmp_path: Path) -> None:
    for cwd in (tmp_path / "gone", Path("gone")):
        with pytest.raises(ToolFailedError, match=f"cannot be run in {cwd}: No such file"):
            proc.run(["true"], cwd=cwd)
        with pytest.raises(ToolFailedError, match=f"^true: cannot be run in {cwd}: No such file"):
            proc.run(["true"], cwd=cwd, accounted=True)
        with pytest.raises(ToolFailedError, match=f"cannot be run in {cwd}: No such file"):
            proc.start(["true"], output=2, cwd=cwd)
    with pytest.raises(ToolMissingError):
        proc.run(["there-is-no-such-program"], cwd=tmp_path)


def test_an_argument_with_a_nul_character() -> None:
    with pytest.raises(ToolFailedError, match="cannot be run: embedded null"):
        proc.run(["echo", "a\0b"])
    with pytest.raises(ToolFailedError, match="cannot be run: embedded null"):
        proc.start(["echo", "a\0b"], output=2)


def test_a_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"child = os.fork(); open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "time.sleep(1000)\n"
    )
    # On a busy machine, both processes may need more than a second to start.
    for limit_s in (1.0, 10.0, 100.0):
        with pytest.raises(ToolTimeoutError, match="time_limit"):
            proc.run([PYTHON, "-c", code], timeout_s=limit_s)
        found = pids.read_text().split() if pids.exists() else []
        if len(found) >= 2:
            break
    assert len(found) >= 2
    wait_for(lambda: not any(_alive(int(pid)) for pid in found))


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_an_exception_while_waiting_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    import select

    class Interrupted:
        def register(self, *_: object) -> None:
            pass

        def poll(self, *_: object) -> None:
            raise InterruptedBySignal(2)

    monkeypatch.setattr(select, "poll", Interrupted)
    with pytest.raises(InterruptedBySignal):
        proc.run(
            [PYTHON, "-c", "import time; time.sleep(60)"], env={process_marks.MARK: f"test-{os.getpid()}"}
        )
    assert process_marks.marked_processes(f"test-{os.getpid()}") == []


@pytest.mark.parametrize("begin", [proc.run, partial(proc.start, output=2)], ids=["run", "start"])
def test_a_signal_while_starting_ends_the_child(
    monkeypatch: pytest.MonkeyPatch, begin: Callable[..., object]
) -> None:
    """A signal that arrives before Popen has returned still ends the new process."""
    started: list[int] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            started.append(self.pid)
            signal.raise_signal(signal.SIGTERM)

    before = {signum: signal.getsignal(signum) for signum in signals.CAUGHT}
    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    monkeypatch.setattr(signals._SignalState, "left_at", None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signals.install()
    try:
        with pytest.raises(InterruptedBySignal):
            begin([PYTHON, "-c", "import time; time.sleep(60)"])
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    assert started
    assert not [pid for pid in started if _alive(pid)]


@pytest.fixture
def start() -> Iterator[Callable[..., proc.Child]]:
    children = []
    output = os.open(os.devnull, os.O_WRONLY)

    def start(*argv: str, **env: str) -> proc.Child:
        children.append(proc.start(argv, output=output, env=env))
        return children[-1]

    yield start
    for child in children:
        child.end()
    os.close(output)


def test_an_ended_process_keeps_its_number_until_its_group_is_ended(
    start: Callable[..., proc.Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the kill of the group could hit another session that got the number."""
    child = start("sh", "-c", "sleep 1000 & exit 3")
    assert child.wait(LIMIT_S) == 3
    assert Path(f"/proc/{child.pid}").exists()
    child.end()
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)
    assert child.exit_code() == 3
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("the number may be another's by now"))
    child.end()
    child.send(signal.SIGKILL)


def test_a_process_that_cannot_be_killed_is_not_waited_for(
    start: Callable[..., proc.Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start("sleep", "1000")
    with monkeypatch.context() as patched:
        patched.setattr(os, "killpg", lambda *_: None)
        patched.setattr(proc, "END_DEADLINE_S", 0.1)
        child.end()
    assert child.exit_code() is None


def test_only_marked_processes_are_killed_even_if_a_number_is_used_again(
    start: Callable[..., proc.Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"test-{os.getpid()}"
    ours, other = start("sleep", "1000", **{process_marks.MARK: mark}), start("sleep", "1000")
    monkeypatch.setattr(process_marks, "marked_processes", lambda _, *, name: [ours.pid, other.pid])
    assert process_marks.kill_marked(mark)
    assert ours.wait(LIMIT_S) == -signal.SIGKILL
    assert other.exit_code() is None


def test_a_process_that_has_its_environment_only_soon_is_marked(
    start: Callable[..., proc.Child], tmp_path: Path
) -> None:
    """In the middle of execve(2) the environment is empty, and the parent runs on already."""
    mark = f"test-{os.getpid()}"
    for number in range(50):
        child = start("sleep", "1000", **{process_marks.MARK: mark})
        only = tmp_path / str(number)  # listing all processes would take long enough to hide it
        only.mkdir()
        (only / str(child.pid)).symlink_to(f"/proc/{child.pid}")
        assert process_marks.marked_processes(mark, only) == [child.pid]
        child.end()


def test_a_home_that_others_can_change_later_is_no_longer_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    verdicts: list[bool] = [True]
    monkeypatch.setattr(path_owners, "is_closed", lambda *_, **__: verdicts[-1])
    assert "HOME" in proc.environment()
    verdicts.append(False)
    assert "HOME" in proc.environment(), "not judged again for each process"
    tmp_path.chmod(0o777)
    assert "HOME" not in proc.environment(), "it was opened itself"
    verdicts.append(True)
    assert "HOME" in proc.environment()
    verdicts.append(False)
    monkeypatch.setattr(proc, "JUDGED_S", 0.0)
    assert "HOME" not in proc.environment(), "a directory above it was opened, some time ago"


DEEP = """
import os, subprocess, sys
from fslab.system import process_marks
nested = "import os, time\\nwhile not os.fork() and (left := left - 1): pass\\nos.wait() if left else time.sleep(1000)"
mark = {process_marks.MARK: sys.argv[1]}
with subprocess.Popen([sys.executable, "-SE", "-c", f"left = 80\\n{nested}"], env=mark) as outermost:
    while len(process_marks.marked_processes(sys.argv[1])) < 80:
        pass
    sys.setrecursionlimit(60)
    process_marks.end_marked(sys.argv[1])
"""


def test_a_chain_of_processes_longer_than_python_s_stack_is_killed() -> None:
    """None of it was. Here the stack is shorter, and not the chain longer."""
    mark = f"test-{os.getpid()}"
    try:
        done = ran([PYTHON, "-c", DEEP, mark])
        assert (done.returncode, done.stderr) == (0, "")
        wait_for(lambda: not process_marks.marked_processes(mark))
    finally:
        for left in process_marks.marked_processes(mark):
            os.kill(left, signal.SIGKILL)


def test_more_marked_processes_than_descriptors_are_killed(
    start: Callable[..., proc.Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one for each, none was killed."""
    mark = f"test-{os.getpid()}"
    command = "for _ in $(seq 100); do sleep 1000 & done; wait"
    start("sh", "-c", command, **{process_marks.MARK: mark})
    wait_for(lambda: len(process_marks.marked_processes(mark)) == 101)
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 90, hard)
    )
    try:
        process_marks.end_marked(mark)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    wait_for(lambda: not process_marks.marked_processes(mark))


def test_what_a_marked_process_has_started_without_the_mark_is_killed_too(
    start: Callable[..., proc.Child], tmp_path: Path
) -> None:
    mark, said = f"test-{os.getpid()}", tmp_path / "pid"
    start("sh", "-c", f"env -i sleep 1000 & echo $! >{said}; wait", **{process_marks.MARK: mark})
    wait_for(lambda: said.exists() and said.read_text().endswith("\n"))
    assert process_marks.kill_marked(mark)
    wait_for(lambda: leaks.is_dead(Path("/proc") / said.read_text().strip()))


def test_what_it_has_started_is_killed_too_if_its_parents_are_killed_before(
    start: Callable[..., proc.Child], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more processes than are killed at once, those without the mark survived as orphans."""
    mark, said = f"test-{os.getpid()}", tmp_path / "pid"
    nested = f"sh -c 'sleep 1000 & echo $! >{said}; wait; true'"
    parent = start("sh", "-c", f"env -i {nested} & wait", **{process_marks.MARK: mark})
    wait_for(lambda: said.exists() and said.read_text().endswith("\n"))
    wait_for(lambda: len(list(processes.descendants(parent.pid))) == 2)

    def parents_first(pids: Iterable[int], listed: Callable[[], Collection[int]]) -> Iterator[int]:
        return together([parent.pid, *sorted({*pids} - {parent.pid})], listed)

    together = processes.killed
    monkeypatch.setattr(processes, "AT_ONCE", 1)
    monkeypatch.setattr(processes, "killed", parents_first)
    assert process_marks.kill_marked(mark)
    wait_for(lambda: leaks.is_dead(Path("/proc") / said.read_text().strip()))


def test_usage_is_that_of_the_process_and_its_memory_not_that_of_fslab() -> None:
    """This process is larger than what it starts: the kernel's ru_maxrss would be this process's."""
    ours = bytearray(b"x") * 200_000_000
    code = "x = bytearray(b'x') * 50_000_000; [i for i in range(2_000_000)]"
    done = proc.run([PYTHON, "-c", code], accounted=True)
    assert len(ours) == 200_000_000
    assert done.usage
    assert done.usage.user_s > 0.01
    assert done.usage.max_rss_bytes is not None
    assert 50_000_000 < done.usage.max_rss_bytes < 150_000_000
    assert done.duration_s >= 0.01
    small = proc.run(["true"], accounted=True).usage
    assert small
    assert small.max_rss_bytes is not None
    assert small.max_rss_bytes < 8_000_000
    other = proc.run(["true"]).usage
    assert other
    assert other.max_rss_bytes is None


@pytest.mark.parametrize(
    "shell",
    [
        'exec "$0" "$@"',
        '("$0" "$@" & echo $! >pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done',
    ],
)
def test_usage_that_the_kernel_does_not_count_is_unknown(tmp_path: Path, shell: str) -> None:
    """Of the children of a process that ignores SIGCHLD; as the program, and as its daemon."""
    code = (
        "import os, signal, subprocess; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        "subprocess.run(['sh', '-c', ':'])"
    )
    done = proc.run(["sh", "-c", shell, PYTHON, "-c", code], cwd=tmp_path, accounted=True, timeout_s=LIMIT_S)
    assert done.usage is None
    assert done.duration_s > 0


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.EMFILE, "ulimit -n"), (errno.EAGAIN, "ulimit -u"), (errno.ENOMEM, None)]
)
def test_a_limit_that_keeps_a_program_from_being_started_is_named(
    number: int, hint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(subprocess, "Popen", refused)
    with pytest.raises(ToolFailedError, match=r"^true: cannot be run") as caught:
        proc.run(["true"])
    assert str(hint) in str(caught.value.hint)


@pytest.mark.parametrize("accounted", [True, False])
def test_an_accounted_program_ends_and_fails_as_any_other(tmp_path: Path, accounted: bool) -> None:
    assert proc.run(["sh", "-c", "exit 3"], accounted=accounted, check=False).returncode == 3
    assert proc.run(["sh", "-c", "kill -9 $$"], accounted=accounted, check=False).returncode == -9
    with pytest.raises(ToolMissingError, match="'no-such-program' is not installed"):
        proc.run(["no-such-program"], accounted=accounted)
    with pytest.raises(ToolFailedError, match="cannot be run: Permission denied"):
        proc.run(["/etc/passwd"], accounted=accounted)
    script = "echo waits for a lock; trap 'echo ended > ended; exit' TERM; while :; do sleep 0.01; done"
    # The program gets SIGTERM, and the time to end by itself.
    with pytest.raises(ToolTimeoutError, match="ended; it printed: waits for a lock"):
        proc.run(["sh", "-c", script], cwd=tmp_path, accounted=accounted, timeout_s=0.3)
    assert (tmp_path / "ended").exists()


def test_our_own_handlers_are_not_installed_by_importing() -> None:
    code = "import signal, fslab.system.proc; print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"
    assert proc.run([PYTHON, "-c", code]).stdout == "True\n"
    assert signals.CAUGHT


def test_every_signal_that_ends_a_program_is_caught() -> None:
    """Signals that terminate a process by default (signal(7)) are caught.

    Exceptions: SIGKILL, signals of the program's own faults, and signals that Python ignores.
    """
    own = {
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGABRT,
        signal.SIGTRAP,
        signal.SIGSYS,
    }
    ignored = {signal.SIGPIPE, signal.SIGXFSZ}
    harmless = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
    stops = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
    rest = set(signal.Signals) - own - ignored - harmless - stops - {signal.SIGKILL}
    assert {each for each in rest if each < signal.SIGRTMIN} == set(signals.CAUGHT)


@pytest.mark.parametrize(("before", "after"), [("DFL", "_handle"), ("IGN", "1")])
def test_what_nohup_ignores_stays_ignored(before: str, after: str) -> None:
    code = (
        "import signal; from fslab.system import signals;"
        f"signal.signal(signal.SIGHUP, signal.SIG_{before}); signals.install();"
        "found = signal.getsignal(signal.SIGHUP); print(getattr(found, '__name__', found))"
    )
    assert proc.run([PYTHON, "-c", code]).stdout == f"{after}\n"


def test_signals_are_as_fslab_needs_them_whoever_started_it() -> None:
    """With SIGCHLD ignored, the kernel reaps children; blocked signals stay blocked in them."""
    code = (
        "import signal; from fslab.system import proc, signals;"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN); signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM});"
        "signals.install(); print(proc.run(['sh', '-c', 'kill $$'], check=False).returncode)"
    )
    assert proc.run([PYTHON, "-c", code]).stdout == f"{-signal.SIGTERM}\n"


def test_an_accounted_program_may_unmount_what_it_works_on(tmp_path: Path) -> None:
    """What waits for it leaves the directory."""
    code = "import os\nwhile os.readlink(f'/proc/{os.getppid()}/cwd') != '/': pass\nprint(os.getcwd())"
    done = proc.run([sys.executable, "-c", code], cwd=tmp_path, accounted=True, timeout_s=LIMIT_S)
    assert done.stdout.strip() == str(tmp_path)


def test_a_daemon_that_ends_during_an_accounted_run_is_waited_for_and_counted_by_it(tmp_path: Path) -> None:
    """Init waits for it otherwise, and its CPU time would be that of another program."""
    code = "import os, time\nwhile time.process_time() < 0.3: pass\nprint(os.getppid(), flush=True); os.remove('on')"
    shell = f'touch on; ({PYTHON} -c "{code}" &); while [ -e on ]; do sleep 0.05; done; sleep 0.1'
    done = proc.run(["sh", "-c", shell], cwd=tmp_path, accounted=True, timeout_s=LIMIT_S)
    assert int(done.stdout) not in {1, os.getpid(), os.getppid()}
    assert done.usage
    assert done.usage.user_s + done.usage.system_s >= 0.3
