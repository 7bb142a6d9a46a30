"""The directories of fslab: results are in the user's data directory, its own state and mount points elsewhere.

XDG Base Directory Specification 0.8. Creates nothing; callers create the directories that they use. Root works in none
in which another user could exchange something: to ask for such a one raises UnsafeError.
"""

import os
import tempfile
from pathlib import Path

from fslab.system import path_owners

RUNTIME = "FSLAB_RUNTIME_DIR"
_NAME = "fslab"


def _xdg(variable: str, fallback: str) -> Path:
    """Return the directory of fslab in that of a variable. It is judged itself: below /tmp, anybody can make it."""
    value = os.environ.get(variable, "")
    if value.startswith("/"):
        return _closed(Path(value) / _NAME, variable)
    return _closed(Path.home() / fallback / _NAME, "HOME")


def _closed(place: Path, variable: str) -> Path:
    """Return a directory that root works in. UnsafeError if another user could exchange what lies in it."""
    path_owners.check_closed(place, variable)
    return place


def environment() -> dict[str, str]:
    """Return the variables that determine these directories, for a child that must use the same ones."""
    return {name: value for name, value in os.environ.items() if name.startswith("XDG_") or name == RUNTIME}


def data() -> Path:
    """Return the directory for results, with the default store."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def state() -> Path:
    """Return the directory for journals of campaigns."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def images() -> Path:
    """Return the directory for image files of loop media, unless the study names another one."""
    return state() / "images"


def cache() -> Path:
    """Return the directory for facts about this machine that can be determined again."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def runtime() -> Path:
    """Return the directory for mount points and report files of running campaigns: ``fslab`` in FSLAB_RUNTIME_DIR, else
    in /run for root.

    Its parent is resolved, as in the kernel's names of mounts and images. Campaigns that share this directory take
    turns, trial by trial. Campaigns with different ones run at the same time.
    """
    chosen = os.environ.get(RUNTIME, "")
    if chosen.startswith("/"):
        place = _closed(Path(chosen), RUNTIME)
    elif os.geteuid() == 0:
        place = Path("/run")
    else:
        place = _xdg("XDG_RUNTIME_DIR", ".local/state/fslab/run").parent
    return place.resolve() / _NAME


def temporary(given: Path | None = None) -> Path:
    """Return the directory for temporary files: the ``given`` one, else that of TMPDIR, else /tmp."""
    return _closed(Path(tempfile.gettempdir()), "TMPDIR") if given is None else _closed(given, "--scratch")


def fleet() -> Path:
    """Return the directory for files that the programs of a fleet need while they run; each has a subdirectory."""
    return runtime().with_name(f"{runtime().name}-fleet")


def recordings() -> Path:
    """Return the directory for recordings of broken promises, from which their crash states can be made again."""
    return state() / "crash"
