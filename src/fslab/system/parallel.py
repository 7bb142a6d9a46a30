"""Start several commands at the same moment and wait for all.

``python -m fslab.system.parallel REPORTS NAME DIRECTORY LINE [NAME DIRECTORY LINE …]``. Each command has its own
working directory and its own output files (``REPORTS/NAME/stdout`` and ``stderr``). All commands wait at a gate until
the last is ready. ``REPORTS/together.json`` contains the seconds that each ran. When one fails, the others are ended.
"""

import contextlib
import json
import os
import select
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from fslab.errors import FslabError
from fslab.system import proc, process_marks

RESULT = "together.json"
# All commands share one pipe as their stdin. Its other end is closed when all are ready.
_GATE = 'read -r _; exec "$@" </dev/null'


def main(argv: Sequence[str]) -> int:
    """Run the commands. Return the exit code of the first that failed, else 0."""
    reports, rest = Path(argv[0]), argv[1:]
    parts = list(zip(rest[::3], rest[1::3], rest[2::3], strict=True))
    signal.signal(signal.SIGTERM, _end)
    waiting, gate = os.pipe()
    children: dict[str, proc.Child] = {}
    try:
        for name, directory, line in parts:
            children[name] = _started(shlex.split(line), Path(directory), reports / name, waiting)
        began = time.monotonic()
        os.close(gate)
        seconds, failed = {}, None
        for name in _as_they_end(children):
            seconds[name] = time.monotonic() - began
            if children[name].exit_code():
                failed = name
                break
    except FslabError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        for child in children.values():
            child.end()
    if failed is not None:
        said = (reports / failed / "stderr").read_text("utf-8", "replace").strip()[-2000:]
        sys.stderr.write(f"part '{failed}' failed: {said}\n")
        return children[failed].exit_code() or 1
    (reports / RESULT).write_text(json.dumps(seconds), "utf-8")
    return 0


def _started(argv: Sequence[str], directory: Path, reports: Path, gate: int) -> proc.Child:
    both = (process_marks.MARK, process_marks.STAGE)
    mark = {name: os.environ[name] for name in both if name in os.environ}
    with contextlib.ExitStack() as files:
        out, err = (
            files.enter_context((reports / name).open("wb")).fileno() for name in ("stdout", "stderr")
        )
        gated = ("sh", "-c", _GATE, "fslab", *argv)
        return proc.start(gated, output=out, errors=err, stdin=gate, cwd=directory, env=mark)


def _as_they_end(children: dict[str, proc.Child]) -> Iterator[str]:
    """Yield the names in the order in which the commands end."""
    poller = select.poll()
    names = {}
    try:
        for name, child in children.items():
            descriptor = os.pidfd_open(child.pid)
            names[descriptor] = name
            poller.register(descriptor, select.POLLIN)
        while names:
            for descriptor, _ in poller.poll():
                poller.unregister(descriptor)
                os.close(descriptor)
                yield names.pop(descriptor)
    finally:
        for descriptor in names:
            os.close(descriptor)


def _end(signum: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
