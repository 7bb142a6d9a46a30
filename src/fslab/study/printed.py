"""The figures of a study's publication, in the cells of the study or of a campaign."""

from fslab.claims.published import PublishedFigures, read_figures
from fslab.claims.scope import Scope
from fslab.study import shipped
from fslab.study.model import Study


def printed_figures(study: Study, scope: Scope) -> PublishedFigures | None:
    """Return the published figures; None if the study names no file of them, or was read without it."""
    file = study.published.figures if study.published else None
    text = file and (study.files.get(file) or shipped.figures(file))
    if study.published is None or not file or text is None:
        return None
    return read_figures(text, file, study.published, scope)
