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
_QCOW2 = struct.Struct(
    ">4sIQIIQIIQQIIQQQQ"
)  # qemu, docs/interop/qcow2.txt: the header, to compatible_features
_DIRTY_OR_CORRUPT = 3  # the incompatible features that name nothing else

_REDIS_BYTES = 64 << 20
_REDIS_FILES = re.compile(r"socket fslab\.sock|file appendonly\.aof\.(manifest|\d+\.(base|incr)\.aof)")
_REDIS_MANIFEST = re.compile(r"(file appendonly\.aof\.\d+\.(base|incr)\.aof seq \d+ type [bi])?")
_SELECT = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
_SET_BEGIN = b"*3\r\n$3\r\nSET\r\n$"
_SET = re.compile(re.escape(_SET_BEGIN) + rb"(\d{1,2})\r\n(\d{1,20})\r\n\$(\d{1,9})\r\n")
_SET_CUT = re.compile(re.escape(_SET_BEGIN) + rb"\d{0,2}(\r|\r\n\d{0,20}(\r|\r\n(\$\d{0,9}\r?)?)?)?")


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


def image_problem(path: Path, disk_format: str) -> str | None:
    """Return what is wrong with an image that QEMU is to open: of qcow2, whether it names other files, or servers."""
    if path.is_symlink() or not path.is_file():
        return "the image is not a file"
    if disk_format == "raw":
        return None
    with path.open("rb") as file:
        header = file.read(_QCOW2.size)
    if len(header) < _QCOW2.size or not header.startswith(b"QFI\xfb"):
        return "the image has no header of qcow2"
    _, version, backing, backing_length, *_, incompatible, _, _ = _QCOW2.unpack(header)
    plain = version == 3 and not backing and not backing_length and not incompatible & ~_DIRTY_OR_CORRUPT
    return None if plain else "the image names another file, or has another header than was written"


def redis_problem(directory: Path) -> str | None:
    """Return what is wrong with the files of a Redis server that has only set keys.

    When it starts, a server executes each command of its log, also those that load a library, connect it to another
    server or write other files.
    """
    logs = directory / "appendonlydir"
    manifest = logs / "appendonly.aof.manifest"
    for path in (*directory.glob("*"), *logs.glob("*")):
        kind = "socket" if path.is_socket() else "file" if path.is_file() else "directory"
        known = path == logs or _REDIS_FILES.fullmatch(f"{kind} {path.name}")
        if path.is_symlink() or not known:
            return f"there is another file than Redis writes: {path.name}"
    if not manifest.is_file():
        return "the manifest of the append-only file is missing"
    lines = manifest.read_text("utf-8", "replace").split("\n")
    if not all(_REDIS_MANIFEST.fullmatch(line) for line in lines):
        return "the manifest of the append-only file has other contents than Redis writes"
    for path in logs.glob("*.aof"):
        if path.stat().st_size > _REDIS_BYTES or not _only_sets(path.read_bytes()):
            return f"{path.name} has other contents than commands that set keys"
    return None


def _only_sets(log: bytes) -> bool:
    """Return whether a log has only commands that set keys. The last one can be cut off: a server ignores it."""
    at = 0
    while at < len(log):
        if log.startswith(_SELECT, at):
            at += len(_SELECT)
        elif (head := _SET.match(log, at)) and int(head[1]) == len(head[2]):
            at = head.end() + int(head[3]) + 2
            if not b"\r\n".startswith(log[at - 2 : at]):
                return False
        else:
            rest = log[at:]
            return _SELECT.startswith(rest) or _SET_BEGIN.startswith(rest) or bool(_SET_CUT.fullmatch(rest))
    return True
