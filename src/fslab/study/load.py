"""Loads a study: text → tree → overrides → model → scale → checks. One StudyError reports all mistakes.

Reads only the study's file and the files that it names. Opens no device, mounts nothing, starts no process.
"""

import errno
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from fslab import untrusted_text
from fslab.claims.published import Printed, PublishedFigures, read_figures
from fslab.claims.scope import Scope
from fslab.errors import FslabError, StudyError, UsageError, nearest
from fslab.names import study_id
from fslab.study import options, shipped
from fslab.study.check import check
from fslab.study.inputs import InputPlace, Inputs, input_place
from fslab.study.mistakes import Mistakes
from fslab.study.model import Study
from fslab.study.overrides import NAMED, apply
from fslab.study.read import read_study
from fslab.study.scale import scale
from fslab.study.source import parse
from fslab.units import format_size

STUDY_LIMIT_BYTES = 4 << 20


def load(
    study: str | Path, overrides: Sequence[str] = (), *, allow_paths: Sequence[str | Path] = ()
) -> Study:
    """Return the study at a path, or the shipped study with an id, changed by ``--set`` overrides.

    A name that contains a slash or ends in ``.yaml`` or ``.yml`` is a path. Any other name is an id, or the name of a
    file if no study has that id. ``allow_paths``: directories in which the files that the study names may lie, besides
    its own directory. Raises UsageError if neither exists, StudyError if the study has mistakes.
    """
    name, path = str(study), Path(study)
    looks_like_path = isinstance(study, Path) or "/" in name or path.suffix in {".yaml", ".yml"}
    if "://" in name:
        hint = "download it, read it, then name the file"
        raise UsageError("is an address, and fslab downloads nothing", where=name, hint=hint)
    if not looks_like_path and name in shipped.ids():
        place = input_place(Path(), allow_paths)
        return load_text(shipped.text(name), f"{name}.yaml", overrides, place=place)
    if not looks_like_path and not os.path.isfile(name):  # noqa: PTH113 - False also for what is too long for a name
        raise UsageError(f"no study '{name}'", hint=f"give a path, or an id: {nearest(name, shipped.ids())}")
    place = input_place(path.parent, allow_paths)
    # Read in the directory whose files are read later: its name can meanwhile lead to another one.
    found = load_text(_read(path, place.base / path.name), name, overrides, place=place)
    return _with_figures(found, place, name)


def load_text(
    text: str,
    name: str,
    overrides: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    *,
    place: InputPlace | None = None,
) -> Study:
    """Return the study of a text, changed by ``--set`` overrides. Raises StudyError if it has mistakes.

    ``name`` is shown with the lines of mistakes. Without its suffix it is the study's id. ``files`` holds the texts of
    files that the study names, by path. Others are read if they are in ``place``; without it, no file is read.
    """
    mistakes = Mistakes()
    root = parse(text, name, mistakes)
    if root is None:
        mistakes.raise_if_any(name)
        raise AssertionError("a text without a tree has a mistake")
    apply(root, overrides, mistakes)
    if not options.check_patterns(root, mistakes):
        mistakes.raise_if_any(name)
    inputs = Inputs(place=place, texts=dict(files or {}))
    draft = read_study(root, mistakes, inputs)
    changed = any(re.split(r"[.=]", override, maxsplit=1)[0].strip() in NAMED for override in overrides)
    written = None if changed else (dict(draft.stacks), dict(draft.media), dict(draft.workloads))
    scaled = scale(draft, root, mistakes)
    check(draft, written, root, mistakes)
    mistakes.raise_if_any(name)
    published = draft.values.get("published")
    requires = published.requires if published else ()
    draft.values["claims"] = tuple(
        claim.model_copy(update={"requires": claim.requires or requires})
        for claim in draft.values.get("claims", ())
    )
    values = {**draft.values, "media": draft.media, "stacks": draft.stacks, "workloads": draft.workloads}
    return Study(
        **values, files=inputs.texts, scaled=scaled, id=study_id(name), text=text, overrides=tuple(overrides)
    )


def _with_figures(study: Study, place: InputPlace, where: str) -> Study:
    """Return the study with the text of its published figures, so that its claims can be judged without the file.

    Leaves out a file that does not exist, such as that of a study that was copied without it: claims say so.
    StudyError if it exists and may not be read.
    """
    file = study.published.figures if study.published else None
    if file is None or not os.path.lexists(place.base / file):
        return study
    try:
        return study.model_copy(update={"files": {**study.files, file: place.text_of(file)}})
    except FslabError as error:
        raise StudyError(f"published.figures: {error.what}", where=where) from error


def _read(path: Path, real: Path) -> str:
    try:
        return untrusted_text.of_file(real, limit_bytes=STUDY_LIMIT_BYTES)
    except UnicodeDecodeError as error:
        hint = "a study is a text: save it as UTF-8"
        raise StudyError("is not UTF-8 text", where=str(path), hint=hint) from error
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UsageError(
                f"too large for a study: more than {format_size(STUDY_LIMIT_BYTES)}", where=str(path)
            ) from error
        hint = "see the shipped studies: fslab list studies"
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from error


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
