"""What the options of a fio job say of amounts: numbers, sizes and times, its files and its requests. Pure.

A number that fslab cannot parse is left to fio, which accepts or rejects it. fio names a file after its job, process
and number, unless ``filename`` or ``filename_format`` is set. Jobs and processes with the same file name share the
file. A file ends at ``offset`` plus its share of ``size`` (setup_files in fio's filesetup.c).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fslab import scaling
from fslab.scaling import ScaledAmount
from fslab.units import LONGEST_S, parse_duration, parse_size

Options = Mapping[str, str | None]
DEFAULT_REQUEST_BYTES = 4096
LARGEST_OF = ("bsrange", "bssplit")
_SIZE_IN_LIST = re.compile(r"[^,:/-]+")
_DIGITS = 24  # more than any estimate needs, and few enough for int()
_LEAST_BYTES = 4 << 20
_LEAST_REQUESTS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSet:
    """A group of files of one job: how many, and their size together."""

    count: int
    bytes: int


def number(options: Options, key: str, default: int) -> int:
    """Return the value of an option that is a whole number; 1 for an option without a value."""
    if key not in options:
        return default
    value = options[key] or "1"
    return int(value) if value.isdecimal() else default


def size_or_none(written: str | None) -> int | None:
    """Return a size or a number; None if there is none, or fslab cannot parse it."""
    try:
        return parse_size(written or "")
    except ValueError:
        return int(written[:_DIGITS]) if written and written.isdecimal() else None


def first(options: Options, key: str) -> int | None:
    """Return the first of several sizes or numbers."""
    return size_or_none((options.get(key) or "").partition(",")[0])


def size_in_bytes(written: str | None, whole_bytes: int = 0) -> int:
    """Return a size, or the share of ``whole_bytes`` of a percentage; 0 if there is none, or fslab cannot parse it."""
    share = (written or "").removesuffix("%")
    if share != written and share.isdecimal():
        return whole_bytes * int(share[:_DIGITS]) // 100
    return size_or_none(written) or 0


def seconds(options: Options, key: str, *, unit: str = "s") -> float:
    """Return a time in seconds; of a range the start. Missing or not understood: 0. Too large: ``LONGEST_S``."""
    written = (options.get(key) or "").partition("-")[0].partition(",")[0]
    try:
        return parse_duration(written + unit if written.isdigit() else written)
    except ValueError:
        return LONGEST_S if written.isdigit() else 0.0


def files_of(name: str, options: Options) -> Iterator[tuple[str, FileSet]]:
    """Yield the files of a job, each group with the name by which jobs share it."""
    processes, names, count = number(options, "numjobs", 1), named_files(options), _count(options)
    size = _largest_file(options) or -(-size_in_bytes(options.get("size")) // count)
    if number(options, "file_append", 0):
        size *= 2  # the layout makes the file, and the run appends to it
    offset, step = (size_in_bytes(options.get(key), size) for key in ("offset", "offset_increment"))
    end = size + offset + step * (processes - 1)
    form = options.get("filename_format")
    own = name if form is None else form.replace("$jobname", name)
    if names:
        yield from ((each, FileSet(count=1, bytes=end)) for each in names)
    elif form is not None and "$jobnum" not in form:  # shared by all processes
        yield f"{own}/shared", FileSet(count=count, bytes=count * end)
    else:
        total = processes * (size + offset) + step * processes * (processes - 1) // 2
        yield f"{own}/", FileSet(count=count * processes, bytes=count * total)


def named_files(options: Options) -> list[str]:
    written = options.get("filename")
    return written.split(":") if written else []


def _count(options: Options) -> int:
    """Return the number of files of one process."""
    return len(named_files(options)) or max(number(options, "nrfiles", 1), 1)


def _largest_file(options: Options) -> int:
    return size_in_bytes((options.get("filesize") or "").rpartition("-")[2])


def one_file(options: Options) -> int:
    """Return the size of one file of a job whose files share ``size``; of a range of sizes the largest."""
    return _largest_file(options) or size_in_bytes(options.get("size")) // _count(options)


def one_pass(options: Options) -> int:
    """Return how much one process transfers in one pass over its files: ``size``, and at most all of them."""
    amounts = (size_in_bytes(options.get("size")), _count(options) * _largest_file(options))
    return min(filter(None, amounts), default=0)


def request_sizes(options: Options) -> tuple[int, ...]:
    """Return the sizes that ``bs`` sets for reads and for writes. An empty one, as in ``,8k``, is fio's default. A
    third is for trims."""
    sizes = (options.get("bs") or "").split(",")[:2]
    return tuple(size_in_bytes(size) if size else DEFAULT_REQUEST_BYTES for size in sizes)


def largest_request(options: Options) -> int:
    """Return the largest request that ``bs``, ``bsrange`` or ``bssplit`` allows; fio's default if none is given.

    Examples of values: ``4k,64k``, ``4k-1m``, ``4k/60:64k/40``.
    """
    written = (options.get(key) or "" for key in ("bs", *LARGEST_OF))
    sizes = (size_or_none(each) for text in written for each in _SIZE_IN_LIST.findall(text))
    return max(filter(None, sizes), default=DEFAULT_REQUEST_BYTES)


def scaled(options: Options, factor: float) -> dict[str, ScaledAmount]:
    """Return the options that change, with their new values: files of at least 16 full queues, run times of at least
    one second. A value that fslab cannot parse, such as a percentage, does not change."""
    block = largest_request(options)
    files = number(options, "nrfiles", 1)
    least = max(_LEAST_BYTES, _LEAST_REQUESTS * block * number(options, "iodepth", 1), files * block)

    def sized(least_bytes: int) -> Callable[[str], ScaledAmount]:
        return lambda text: scaling.size(text, factor, least_bytes=least_bytes, unit_bytes=block)

    def timed(least_s: float) -> Callable[[str], ScaledAmount]:
        return lambda text: scaling.duration(text, factor, least_s=least_s)

    rules: dict[str, Callable[[str], ScaledAmount]] = {
        **dict.fromkeys(("size", "io_size"), sized(least)),
        **dict.fromkeys(("offset", "offset_increment"), sized(1)),
        "filesize": lambda text: _range(text, [sized(block)(each) for each in text.split("-")]),
        "number_ios": lambda text: scaling.count(int(text), factor, least=_LEAST_REQUESTS),
        "runtime": timed(1.0),
        **dict.fromkeys(("ramp_time", "startdelay"), timed(0.1)),
    }
    found = {}
    for key, rule in rules.items():
        if (written := options.get(key)) is None:
            continue
        try:
            found[key] = rule(written)
        except (ValueError, ArithmeticError):
            continue
    return found


def _range(written: str, parts: Sequence[ScaledAmount]) -> ScaledAmount:
    value = "-".join(str(part.value) for part in parts)
    return ScaledAmount(written=written, value=value, share=parts[-1].share)
