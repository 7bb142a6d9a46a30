"""The studies that come with fslab, found by id: the file's name without ``.yaml``."""

from __future__ import annotations

from importlib.resources import files

SUFFIX = ".yaml"


def ids() -> tuple[str, ...]:
    """All ids, sorted."""
    names = (item.name for item in files("fslab").joinpath("studies").iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)))


def text(study_id: str) -> str:
    """The text of a shipped study; KeyError if there is none of this id."""
    if study_id not in ids():
        raise KeyError(study_id)
    return files("fslab").joinpath("studies", study_id + SUFFIX).read_text("utf-8")
