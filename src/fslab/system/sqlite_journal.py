"""Rollback journals of SQLite: what SQLite would obey in one that comes from elsewhere. Only reads."""

import os
import struct
from pathlib import Path

_JOURNAL_END = struct.Struct(">II8s")  # of one that names another file: length of the name, checksum, magic
_MAGIC = bytes.fromhex("d9d505f920a163d7")  # sqlite.org/fileformat2.html, "The Rollback Journal"


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
