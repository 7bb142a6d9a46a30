"""The studies that come with fslab, found by id: the file's name without ``.yaml``.

What a publication claims of its study, and where its figures are, stands in a second file beside the recipe,
``<id>.claims.yaml``; both together are the study.
"""

from importlib.resources import files

SUFFIX = ".yaml"
CLAIMS = ".claims"


def ids() -> tuple[str, ...]:
    names = (item.name for item in files("fslab").joinpath("studies").iterdir())
    stems = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    return tuple(sorted(stem for stem in stems if not stem.endswith(CLAIMS)))


def text(study_id: str) -> str:
    """The text of a shipped study with its claims; KeyError if there is none of this id."""
    if study_id not in ids():
        raise KeyError(study_id)
    parts = (_read(study_id + SUFFIX), _read(study_id + CLAIMS + SUFFIX))
    return "\n".join(part for part in parts if part is not None)


def figures(name: str) -> str | None:
    """The text of a file of published figures that comes with fslab, None if there is none of this name."""
    return _read(name) if "/" not in name and name.endswith(".csv") else None


def _read(name: str) -> str | None:
    file = files("fslab").joinpath("studies", name)
    return file.read_text("utf-8") if file.is_file() else None
