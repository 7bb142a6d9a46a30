"""Estimates how many bytes a fio job transfers, and how long its options delay it. Pure; for plans."""

from collections.abc import Mapping

from fslab.units import LONGEST_S, parse_duration, parse_size

_BLOCK_BYTES = 4096
_DIGITS = 24  # more than any estimate needs, and few enough for int()

Options = Mapping[str, str | None]


def moved_bytes(options: Options, size_bytes: int) -> int:
    """Return the bytes that one job transfers with files of this size.

    This is the size, or ``io_size`` if it is set, times ``loops``; at most ``number_ios`` requests.
    """
    once = _number(options, "io_size") or size_bytes
    moved = once * (_number(options, "loops") or 1)
    requests = _number(options, "number_ios")
    return min(moved, requests * block_bytes(options)) if requests else moved


def block_bytes(options: Options) -> int:
    """Return the size of one request."""
    return _number(options, "bs") or _BLOCK_BYTES


def held_back_s(options: Options, size_bytes: int, read_share: float) -> float:
    """Return the minimum duration of one job in seconds that its rate limits and pauses cause. Of two limits, the first
    is that of reads, the second that of writes; a single one is of each."""
    moved = moved_bytes(options, size_bytes)
    requests = moved / block_bytes(options)
    pauses = requests / (_number(options, "thinktime_blocks") or 1)
    paces = [
        share * amount / limit
        for key, amount in (("rate", moved), ("rate_iops", requests))
        for share, limit in zip((read_share, 1 - read_share), _limits(options, key), strict=True)
        if limit
    ]
    return max([pauses * _seconds(options, "thinktime", unit="us"), *paces])


def delay_s(options: Options) -> float:
    """Return how long fio waits before it starts a job, in seconds."""
    return _seconds(options, "startdelay", unit="s")


def ramp_s(options: Options) -> float:
    """Return how long a job runs before fio measures, in seconds."""
    return _seconds(options, "ramp_time", unit="s")


def unreported(options: Options) -> bool:
    """Return whether fio leaves out some of the bytes that the job transfers: those of the ramp time."""
    return not {"ramp_time", "ramp_size"}.isdisjoint(options)


def _limits(options: Options, key: str) -> tuple[int | None, int | None]:
    """Return the limits of reads and of writes; None for one that is missing."""
    reads, comma, others = (options.get(key) or "").partition(",")
    return _parsed(reads), _parsed(others.partition(",")[0] if comma else reads)


def _number(options: Options, key: str) -> int | None:
    """Return the first of several values."""
    return _parsed((options.get(key) or "").partition(",")[0])


def _parsed(written: str) -> int | None:
    """Return a number or size; None if it is missing, or fslab cannot parse it (fio may accept it)."""
    try:
        return parse_size(written)
    except ValueError:
        return int(written[:_DIGITS]) if written.isdecimal() else None


def _seconds(options: Options, key: str, *, unit: str) -> float:
    """Return a time in seconds; of a range the start. Missing or not understood: 0. Too large: ``LONGEST_S``."""
    written = (options.get(key) or "").partition("-")[0].partition(",")[0]
    try:
        return parse_duration(written + unit if written.isdigit() else written)
    except ValueError:
        return LONGEST_S if written.isdigit() else 0.0
