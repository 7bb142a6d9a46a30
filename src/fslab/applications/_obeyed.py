"""What programs would obey in data that they are given: data of a recording can come from another machine.

Only reads files. Links lead nowhere there (``FileSystem.copy_mount_options``).
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

_CONFIG_BYTES = 64 << 10
# What `git init` writes. Other keys of a repository's configuration can name programs that git runs.
_CONFIGURED = re.compile(
    r"\[(core|extensions)\]|\t(bare|filemode|ignorecase|logallrefupdates|objectformat|precomposeunicode|refstorage"
    r"|repositoryformatversion|symlinks) = \w+|"
)
_JOURNAL_END = struct.Struct(">II8s")  # of one that names another file: length of the name, checksum, magic
_MAGIC = bytes.fromhex("d9d505f920a163d7")  # sqlite.org/fileformat2.html, "The Rollback Journal"


def repository_problem(repository: Path) -> str | None:
    """Return what is wrong with a repository's configuration, or with the places where git looks for it."""
    config = repository / "config"
    if not repository.is_dir() or repository.is_symlink() or os.path.lexists(repository / "commondir"):
        return "there is no repository, or it names another one"
    if not os.path.lexists(config):
        return None
    if not config.is_file() or config.is_symlink():
        return "the configuration is not a file"
    with config.open(encoding="utf-8", errors="replace") as file:
        text = file.read(_CONFIG_BYTES)
    known = len(text) < _CONFIG_BYTES and all(_CONFIGURED.fullmatch(line) for line in text.split("\n"))
    return None if known else "the configuration has other contents than were written"


def names_another_file(journal: Path) -> bool:
    """Return whether a rollback journal names a super-journal (sqlite.org/atomiccommit.html, "Multi-file Commit").

    SQLite deletes that file when it has rolled back.
    """
    if not journal.is_file():
        return False
    with journal.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _JOURNAL_END.size))
        end = file.read()
    if len(end) < _JOURNAL_END.size:
        return False
    length, _, magic = _JOURNAL_END.unpack(end)
    return bool(magic == _MAGIC and length > 0)
