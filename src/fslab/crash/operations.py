"""Operations on a sequence's directory, by their text, and those that sequences are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from fslab.crash import file_operations as files
from fslab.crash import name_operations as names
from fslab.crash.steps import Operation
from fslab.system import page_cache as caches

EVICT = "evict inodes"
_NAME = r"([a-z](?:/[a-z]){0,2})"


def _evict(text: str) -> Operation:
    return Operation(name=text, run=lambda *_: caches.drop_inodes(), effect=lambda tree, _: tree)


_FORMS: tuple[tuple[str, Callable[..., Operation]], ...] = (
    (f"create {_NAME}", names.create),
    (f"write {_NAME}", files.write),
    (f"append (half a block to )?{_NAME}()", files.append),
    (f"append (){_NAME}( with O_DIRECT)", files.append),
    (f"overwrite (half a block of )?{_NAME}()", files.overwrite),
    (f"overwrite (){_NAME}( with O_SYNC| with O_DIRECT)", files.overwrite),
    (f"store to {_NAME} with mmap( and msync)?", files.store),
    (f"truncate {_NAME} to ([0-9]|half a) blocks?", files.truncate),
    (f"fallocate {_NAME} to ([1-9]) blocks?", files.allocate),
    (f"fallocate {_NAME} beyond its end", files.allocate_beyond),
    (f"punch a hole into (half a block of |the last block of )?{_NAME}", files.punch),
    (f"zero a range of {_NAME}", files.zero),
    (f"collapse a range of {_NAME}", files.collapse),
    (f"insert a range into {_NAME}", files.insert),
    (f"setxattr {_NAME}", files.set_attribute),
    (f"removexattr {_NAME}", files.remove_attribute),
    (f"chmod {_NAME}", files.chmod),
    (f"link {_NAME} {_NAME}", names.link),
    (f"link a temporary file as {_NAME}", names.link_unnamed),
    ("fsync a temporary file", names.sync_unnamed),
    (f"symlink {_NAME} {_NAME}", names.symlink),
    (f"rename {_NAME} (over )?{_NAME}", names.rename),
    (f"exchange {_NAME} {_NAME}", names.exchange),
    (f"unlink {_NAME}", names.unlink),
    (f"unlink {_NAME} and fsync it", names.unlink_synced),
    (f"mkdir {_NAME}", names.mkdir),
    (f"rmdir {_NAME}", names.rmdir),
    (f"mkfifo {_NAME}", names.mkfifo),
    (EVICT, _evict),
)

# The forms for people: "half a block of " in "overwrite (half a block of )?NAME()" becomes "[half a block of ]".
FORMS = tuple(
    re.sub(r"\(([^()|]+)\)\?", r"[\1]", form.replace(_NAME, "NAME")).replace("()", "") for form, _ in _FORMS
)

# What sequences are made of.
METADATA = (
    "create n", "truncate a to 1 block", "truncate a to 0 blocks", "truncate a to 5 blocks", "setxattr a",
    "removexattr a", "link a l", "symlink a s", "rename a r", "rename s t", "rename a d/r", "rename b over a",
    "rename n over a", "unlink a", "unlink a and fsync it", "mkdir m",
)  # fmt: skip
_NAMES = (
    "create a", "create d/n", "chmod a", "chmod d", "link a d/l", "link a temporary file as n", "rename r a",
    "rename b a", "rename d/f e/f", "rename d g", "rename e d/e", "exchange a b", "exchange a d/f", "exchange d e",
    "unlink l", "unlink b", "unlink d/f", "mkdir e/m", "rmdir e", "mkfifo p",
)  # fmt: skip
_CONTENTS = (
    "write n", "append a", "append a with O_DIRECT", "append half a block to a", "overwrite a",
    "overwrite half a block of a", "overwrite a with O_SYNC", "overwrite a with O_DIRECT", "store to a with mmap",
    "store to a with mmap and msync", "fallocate a to 5 blocks", "fallocate a beyond its end", "punch a hole into a",
    "punch a hole into half a block of a", "zero a range of a", "collapse a range of a", "insert a range into a",
    "truncate a to half a block",
)  # fmt: skip
ALL = (*METADATA, *_NAMES, *_CONTENTS)
SYNCS = frozenset({"fsync a temporary file"})  # operations whose text begins like a sync
NEAR = frozenset(
    {*METADATA, *_NAMES, *(text for text in _CONTENTS if text.startswith(("punch", "truncate")))}
)


@cache
def operation(text: str) -> Operation:
    """Return the operation that this text describes. ValueError if it describes none."""
    for form, make in _FORMS:
        if match := re.fullmatch(form, text, re.ASCII):
            return make(text, *(group or "" for group in match.groups()))
    raise ValueError(f"invalid step '{text}'")
