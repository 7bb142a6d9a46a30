"""The figures of a study's publication, in the cells of the study or of a campaign."""

from collections.abc import Mapping

from fslab.claims.published import Printed, PublishedFigures, read_figures
from fslab.claims.scope import Scope
from fslab.errors import StudyError
from fslab.study import shipped
from fslab.study.load import load_text
from fslab.study.model import Study


def printed_figures(study: Study, scope: Scope) -> PublishedFigures | None:
    """Return the published figures; None if the study names no file of them, or was read without it."""
    file = study.published.figures if study.published else None
    text = file and (study.files.get(file) or shipped.figures(file))
    if study.published is None or not file or text is None:
        return None
    return read_figures(text, file, study.published, scope)


def stored_figures(text: str, name: str, files: Mapping[str, str], scope: Scope) -> Printed:
    """Return the published figures of a study that a campaign keeps as text, as ``load_text`` takes it.

    Empty if this version of fslab refuses the study: a campaign of another version is resumed, and its claims are
    judged by these figures at the end.
    """
    try:
        found = printed_figures(load_text(text, name, files=files), scope)
    except StudyError:
        return {}
    return found.by_cell() if found else {}
