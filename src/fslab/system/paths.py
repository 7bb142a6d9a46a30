"""Where fslab keeps what: results in the user's data directory, its own state and mount points elsewhere.

XDG Base Directory Specification 0.8. Makes nothing; callers create what they use.
"""

import os
from pathlib import Path

RUNTIME = "FSLAB_RUNTIME_DIR"


def _xdg(variable: str, fallback: str) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else Path.home() / fallback


def environment() -> dict[str, str]:
    """The variables that choose these directories, for a child that is to find the same ones."""
    return {name: value for name, value in os.environ.items() if name.startswith("XDG_") or name == RUNTIME}


def data() -> Path:
    """Results: the default store lies here."""
    return _xdg("XDG_DATA_HOME", ".local/share") / "fslab"


def state() -> Path:
    """Journals of campaigns."""
    return _xdg("XDG_STATE_HOME", ".local/state") / "fslab"


def images() -> Path:
    """Image files of loop media, unless the study names another place."""
    return state() / "images"


def cache() -> Path:
    """What was found out about this machine and can be found out again."""
    return _xdg("XDG_CACHE_HOME", ".cache") / "fslab"


def runtime() -> Path:
    """Mount points and report files of running campaigns: FSLAB_RUNTIME_DIR, else /run/fslab for root.

    Campaigns that share this directory take turns, trial by trial; with another one they run side by side.
    """
    chosen = os.environ.get(RUNTIME, "")
    if chosen.startswith("/"):
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/run/fslab")
    return _xdg("XDG_RUNTIME_DIR", ".local/state/fslab/run") / "fslab"


def fleet() -> Path:
    """What the programs of a fleet need while they run; each has a directory of its own there."""
    return runtime().with_name(f"{runtime().name}-fleet")


def recordings() -> Path:
    """Where recordings of broken promises are kept, to make their crash states again."""
    return state() / "crash"
