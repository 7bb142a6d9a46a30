"""The disks that are modelled, with their figures and where those come from: what ``fslab-disk list`` prints. Pure."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

NONE = "none"


def _read() -> dict[str, dict[str, Any]]:
    kinds = json.loads(files(__package__).joinpath("profiles.json").read_text("utf-8"))
    return {profile["name"]: {"kind": kind, **profile} for kind, all_ in kinds.items() for profile in all_}


PROFILES: Mapping[str, dict[str, Any]] = _read()
NAMES = (NONE, *PROFILES)
