"""The modelled disks, with their figures and the sources of these, as ``fslab-disk list`` prints them. Pure."""

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
