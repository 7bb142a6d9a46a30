"""The studies that come with fslab. The id of a study is its file name without ``.yaml``.

A second file, ``<id>.claims.yaml``, contains the claims of the publication and the location of its figures. Both files
together are the study.
"""

from importlib.resources import files

SUFFIX = ".yaml"
CLAIMS = ".claims"
_TITLE = "title: "


def ids() -> tuple[str, ...]:
    return tuple(stem for stem in _stems() if not stem.endswith(CLAIMS))


def with_claims() -> tuple[str, ...]:
    """Return the ids of the studies that have claims."""
    return tuple(stem.removesuffix(CLAIMS) for stem in _stems() if stem.endswith(CLAIMS))


def _stems() -> list[str]:
    names = (item.name for item in files("fslab").joinpath("studies").iterdir())
    return sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))


def word(study_id: str) -> str:
    """Return the word of a command that means a study: its id, or STUDY if it is not shipped: it lies in some file."""
    return study_id if study_id in ids() else "STUDY"


def text(study_id: str) -> str:
    """Return the text of a shipped study with its claims. Raises KeyError for an unknown id."""
    if study_id not in ids():
        raise KeyError(study_id)
    parts = (_read(study_id + SUFFIX), _read(study_id + CLAIMS + SUFFIX))
    return "\n".join(part for part in parts if part is not None)


def title(study_id: str) -> str:
    """Return the title of a shipped study: a plain text in a line of its own. Loading all studies takes two seconds."""
    lines = text(study_id).splitlines()
    return next(line.removeprefix(_TITLE) for line in lines if line.startswith(_TITLE))


def figures(name: str) -> str | None:
    """Return the text of a shipped file of published figures; None if there is no such file."""
    return _read(name) if "/" not in name and name.endswith(".csv") else None


def _read(name: str) -> str | None:
    file = files("fslab").joinpath("studies", name)
    return file.read_text("utf-8") if file.is_file() else None
