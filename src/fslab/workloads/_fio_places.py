"""Which files a fio job uses, and their sizes. Pure.

fio names a file after its job, process and number, unless ``filename`` or ``filename_format`` is set. Jobs and
processes with the same file name share the file. A file ends at ``offset`` plus its share of ``size`` (setup_files in
fio's filesetup.c).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fslab.units import parse_size

_DIGITS = 9  # of a percentage

Options = Mapping[str, str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSet:
    """A group of files of one job: how many, and their size together."""

    count: int
    bytes: int


def all_files(jobs: Iterable[tuple[str, Options]]) -> FileSet:
    """Return the files of all jobs (name and options). Files that several jobs share count once, with their largest
    size. ValueError for a size that fslab cannot parse."""
    found: dict[tuple[str, ...], FileSet] = {}
    for name, options in jobs:
        for key, files in _files(name, options):
            known = found.get(key, files)
            found[key] = FileSet(count=max(known.count, files.count), bytes=max(known.bytes, files.bytes))
    return FileSet(
        count=sum(each.count for each in found.values()), bytes=sum(each.bytes for each in found.values())
    )


def _files(name: str, options: Options) -> Iterable[tuple[tuple[str, ...], FileSet]]:
    processes, names = number(options, "numjobs", 1), _names(options)
    count = _count(options)
    size = _size_of_one(options, count)
    size *= (
        2 if number(options, "file_append", 0) else 1
    )  # the layout makes the file, and the run appends to it
    offset, step = (size_in_bytes(options.get(key), size) for key in ("offset", "offset_increment"))
    if names:
        end = size + offset + step * (processes - 1)
        return [((each,), FileSet(count=1, bytes=end)) for each in names]
    own = _own(name, options.get("filename_format"))
    if own.shared:
        return [
            (
                (own.name, "shared"),
                FileSet(count=count, bytes=count * (size + offset + step * (processes - 1))),
            )
        ]
    steps = step * processes * (processes - 1) // 2
    total = count * (processes * (size + offset) + steps)
    return [((own.name, ""), FileSet(count=count * processes, bytes=total))]


def _names(options: Options) -> list[str]:
    written = options.get("filename")
    return written.split(":") if written else []


def _count(options: Options) -> int:
    """Return the number of files of one process."""
    return len(_names(options)) or max(number(options, "nrfiles", 1), 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Own:
    name: str
    shared: bool  # by all processes of a job


def _own(job: str, form: str | None) -> _Own:
    if form is None:
        return _Own(name=job, shared=False)
    return _Own(name=form.replace("$jobname", job), shared="$jobnum" not in form)


def _size_of_one(options: Options, files: int) -> int:
    """Return the size of one file: of a range of sizes the largest, else its share of ``size``."""
    each = options.get("filesize")
    if each is not None:
        return parse_size(each.rpartition("-")[2])
    return -(-parse_size(options.get("size") or "") // files)


def one_file(options: Options) -> int:
    """Return the size of one file of a job whose files share ``size``; of a range of sizes the largest."""
    written = options.get("filesize")
    return (
        parse_size(written.rpartition("-")[2])
        if written
        else size_in_bytes(options.get("size")) // _count(options)
    )


def one_pass(options: Options) -> int:
    """Return how much one process transfers in one pass over its files: ``size``, and at most all of them."""
    size, each = options.get("size"), options.get("filesize")
    files = _count(options) * _size_of_one(options, 1) if each else None
    return min(found for found in (files, parse_size(size) if size else None) if found is not None)


def file_names(name: str, options: Options) -> frozenset[str]:
    """Return the names of the files of a job, as far as it shares them with other jobs."""
    return frozenset("/".join(key) for key, _ in _files(name, {**options, "size": "1", "filesize": None}))


def number(options: Options, key: str, default: int) -> int:
    """Return the value of an option that is a whole number; 1 for an option without a value."""
    if key not in options:
        return default
    value = options[key] or "1"
    return int(value) if value.isdecimal() else default


def size_in_bytes(written: str | None, whole_bytes: int = 0) -> int:
    """Return a size, or the share of ``whole_bytes`` of a percentage; 0 if there is none, or fslab cannot parse it."""
    share = (written or "").removesuffix("%")
    if share != written and share.isdecimal():
        return whole_bytes * int(share[:_DIGITS]) // 100
    try:
        return parse_size(written or "0")
    except ValueError:
        return 0
