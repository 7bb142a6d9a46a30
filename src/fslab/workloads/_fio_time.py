"""How much work the options of a fio job make of its size, and how long they hold it back. Pure; for estimates."""

from collections.abc import Mapping

from fslab.units import LONGEST_S, parse_duration, parse_size

_BLOCK_BYTES = 4096
_DIGITS = 24  # more than any estimate needs, and no work for int()

Options = Mapping[str, str | None]


def moved_bytes(options: Options, size_bytes: int) -> int:
    """What one job moves of files of this size: all, or ``io_size``, ``loops`` times; ``number_ios`` at most."""
    once = _number(options, "io_size") or size_bytes
    moved = once * (_number(options, "loops") or 1)
    requests = _number(options, "number_ios")
    return min(moved, requests * block_bytes(options)) if requests else moved


def block_bytes(options: Options) -> int:
    """Of one request."""
    return _number(options, "bs") or _BLOCK_BYTES


def held_back_s(options: Options, size_bytes: int) -> float:
    """What one job takes at least by the rate and the pauses that it is given."""
    moved = moved_bytes(options, size_bytes)
    requests = moved / block_bytes(options)
    rate, rate_iops = _number(options, "rate"), _number(options, "rate_iops")
    paces = (
        moved / rate if rate else 0.0,
        requests / rate_iops if rate_iops else 0.0,
        requests / (_number(options, "thinktime_blocks") or 1) * _seconds(options, "thinktime", unit="us"),
    )
    return _seconds(options, "startdelay", unit="s") + max(paces)


def _number(options: Options, key: str) -> int | None:
    """The first of several values; None for what fio may read and we do not."""
    written = (options.get(key) or "").partition(",")[0]
    try:
        return parse_size(written)
    except ValueError:
        return int(written[:_DIGITS]) if written.isdecimal() else None


def _seconds(options: Options, key: str, *, unit: str) -> float:
    """0 for what is not given or not understood; of a range its start."""
    written = (options.get(key) or "").partition("-")[0].partition(",")[0]
    try:
        return parse_duration(written + unit if written.isdigit() else written)
    except ValueError:
        return LONGEST_S if written.isdigit() else 0.0
