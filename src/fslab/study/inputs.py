"""Reads the files that workloads name. Their text is part of the workload: later changes of a file have no effect.

Reads only regular text files up to a size limit, once, when the study is loaded. Relative paths start at the study's
directory.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fslab import texts
from fslab.errors import FslabError
from fslab.study.fields import note
from fslab.study.mistakes import Mistakes
from fslab.study.source import Node
from fslab.units import format_size

MOST_BYTES = 1 << 20


@dataclass(kw_only=True, slots=True)
class Inputs:
    """The texts of input files, by path as written in the study.

    ``base`` is the directory where relative paths start. If it is None, no file is read and only the given ``texts``
    are available.
    """

    base: Path | None
    texts: dict[str, str] = field(default_factory=dict)

    def of(self, axes: Mapping[str, Node], keys: tuple[str, ...], mistakes: Mistakes, within: Node) -> Files:
        """Return the text of each file that these keys name; note each file that cannot be read."""
        found: dict[str, dict[str, str]] = {}
        for key in keys:
            for item in axes[key].items:
                written = str(item.plain())
                try:
                    found.setdefault(key, {})[written] = self._text(written)
                except FslabError as error:
                    note(mistakes, item, error.what, within)
        return found

    def _text(self, written: str) -> str:
        if written not in self.texts:
            if self.base is None:
                raise FslabError(f"the text of '{written}' is not known")
            self.texts[written] = text_of(self.base / Path(written).expanduser())
        return self.texts[written]


Files = Mapping[str, Mapping[str, str]]
"""Texts of files, by key and by path as written in the study."""


def text_of(path: Path) -> str:
    """Return the text of a file. Raises FslabError with the reason if it cannot be read."""
    try:
        if not path.is_file():
            raise FslabError(
                f"there is no file '{path}'" if not path.exists() else f"'{path}' is not a regular file"
            )
        return texts.of_file(path, limit_bytes=MOST_BYTES)
    except UnicodeDecodeError as error:
        raise FslabError(f"'{path}' is not UTF-8 text") from error
    except OSError as error:
        if error.errno == errno.EFBIG:
            bound = format_size(MOST_BYTES)
            raise FslabError(
                f"'{path}' is larger than {bound}: its text is stored with the results"
            ) from error
        raise FslabError(f"'{path}' cannot be read: {error.strerror}") from error
