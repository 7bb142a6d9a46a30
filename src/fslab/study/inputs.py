"""Reads the files that a study names: job files, scripts, published figures. Later changes of a file have no effect,
because its text is part of the study.

``InputPlace.text_of`` is the only way to such a file. A study can come from anybody, and its inputs are stored and
published with its results. So it reads only what lies in the study's directory or below, or in directories that the
user named; only regular text files; and only up to a size limit.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fslab import untrusted_text
from fslab.errors import FslabError
from fslab.study.fields import note
from fslab.study.mistakes import Mistakes
from fslab.study.source import Node
from fslab.units import format_size
from fslab.workloads import Workload

MOST_BYTES = 1 << 20
MOST_CHARACTERS = 16 << 20  # of all files of a study


@dataclass(frozen=True, kw_only=True, slots=True)
class InputPlace:
    """The directories that inputs may lie in or below: ``base``, where relative paths start, and ``more``.

    All are absolute and without links, as ``input_place`` makes them.
    """

    base: Path
    more: tuple[Path, ...] = ()

    def text_of(self, written: str | Path) -> str:
        """Return the text of a file that a study names. FslabError, without any of the file's content, if it cannot
        be read or may not be read."""
        path = self.base / written
        try:
            path = self.base / Path(written).expanduser()
            return untrusted_text.of_file_below(path, (self.base, *self.more), limit_bytes=MOST_BYTES)
        except UnicodeDecodeError as error:
            raise FslabError(f"'{path}' is not UTF-8 text: save it as UTF-8") from error
        except OSError as error:
            raise FslabError(_why(path, error)) from error
        except (ValueError, RuntimeError) as error:  # a NUL character; no home directory
            raise FslabError(f"'{written}' is not the name of a file: {error}") from error


def input_place(directory: Path, more: Iterable[str | Path] = ()) -> InputPlace:
    """Return the place of the inputs of a study in ``directory``. ``more``: the directories that the user allowed."""
    return InputPlace(
        base=directory.resolve(), more=tuple(Path(each).expanduser().resolve() for each in more)
    )


@dataclass(kw_only=True, slots=True)
class Inputs:
    """The texts of input files, by path as written in the study.

    If ``place`` is None, no file is read and only the given ``texts`` are available.
    """

    place: InputPlace | None
    texts: dict[str, str] = field(default_factory=dict)

    def of(self, axes: Mapping[str, Node], tool: Workload[Any], mistakes: Mistakes, within: Node) -> Files:
        """Return the text of each file that keys of the tool name, with the files that it includes; note each file that
        cannot be read."""
        found: dict[str, dict[str, str]] = {}
        plain = {key: node.plain() for key, node in axes.items()}
        for key in tool.files_of(axes):
            reader = tool.reader_of(key, plain)
            for item in axes[key].items:
                written = str(item.plain())
                try:
                    text = reader.with_includes(written, self.text_of(written), self.text_of)
                    found.setdefault(key, {})[written] = text
                except FslabError as error:
                    note(mistakes, item, error.what, within)
        return found

    def text_of(self, written: str) -> str:
        """Return the text of a file as it was when the study was read. FslabError if it cannot be read."""
        if written not in self.texts:
            if self.place is None:
                raise FslabError(f"the text of '{written}' is not known")
            text = self.place.text_of(written)
            if sum(map(len, self.texts.values())) + len(text) > MOST_CHARACTERS:
                most = f"{MOST_CHARACTERS >> 20} Mi characters"
                raise FslabError(f"'{written}': with it, the study's files have more than {most}: name fewer")
            self.texts[written] = text
        return self.texts[written]


Files = Mapping[str, Mapping[str, str]]
"""Texts of files, by key and by path as written in the study."""


def _why(path: Path, error: OSError) -> str:
    """Return why a file was not read, in words."""
    if error.errno == errno.EXDEV:
        real = "" if error.filename == str(path) else f" (it leads to {error.filename})"
        return (
            f"'{path}' is not in the study's directory or below{real}: copy it there, or allow its directory with "
            "--allow-path DIR"
        )
    others = {
        errno.EFBIG: f"'{path}' is larger than {format_size(MOST_BYTES)}: its text is stored with the results",
        errno.ENOENT: f"there is no file '{path}'",
        errno.EINVAL: f"'{path}' is not a regular file",
    }
    return others.get(error.errno or 0, f"'{path}' cannot be read: {error.strerror}")
