"""The sizes of a fio job's requests, by its options. Pure."""

import re
from collections.abc import Iterable

from fslab.units import parse_size

DEFAULT_REQUEST_BYTES = 4096
LARGEST_OF = ("bsrange", "bssplit")
_SIZE_IN_LIST = re.compile(r"[^,:/-]+")


def largest_request(written: Iterable[str | None]) -> int:
    """Return the largest request that ``bs``, ``bsrange`` or ``bssplit`` allows; fio's default if none is given.

    Examples of values: ``4k,64k``, ``4k-1m``, ``4k/60:64k/40``.
    """
    sizes = [_size_or_none(each) for text in written if text for each in _SIZE_IN_LIST.findall(text)]
    return max((size for size in sizes if size is not None), default=DEFAULT_REQUEST_BYTES)


def request_of(bs: str | None, used: Iterable[str]) -> int:
    """Return the largest size that ``bs`` sets for these directions; 0 for a size that fslab cannot parse."""
    sizes = [
        (_size_or_none(each) or 0) if each else DEFAULT_REQUEST_BYTES for each in (bs or "").split(",")[:2]
    ]
    return max(sizes[0] if direction == "read" else sizes[-1] for direction in used)


def _size_or_none(text: str) -> int | None:
    """Return the size; None if fslab cannot parse it. fio then accepts or rejects it."""
    try:
        return parse_size(text)
    except ValueError:
        return None
