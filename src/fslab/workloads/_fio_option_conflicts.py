"""What cannot run in a job of fio because of its other options, or of the jobs before it. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from posixpath import normpath

from fslab.workloads import MOST_AT_ONCE, SECTOR_BYTES
from fslab.workloads._fio_options import ZONES, directions, only_verifies
from fslab.workloads._fio_places import file_names, number, one_file, size_in_bytes
from fslab.workloads._fio_requests import LARGEST_OF, request_of

DIRECTORY, NAME = "directory", "name"
EXITALL, EXIT_WHAT, GROUP = "exitall", "exit_what", "group"
_AMOUNTS = frozenset({"size", "filesize"})
_SIZES = _AMOUNTS | {"nrfiles", "filename", "rw", "bs"}  # with LARGEST_OF

Options = dict[str, str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSection:
    """A job: the name of its section, where it begins, and all options that apply to it, by fio's names. None: without
    a value. ``common``: those of all jobs at its beginning."""

    section: str
    place: str
    options: Options
    common: Options

    @property
    def name(self) -> str:
        """What other jobs and results call it. Its files are named after the section (add_job in fio's init.c)."""
        return self.options.get(NAME) or self.section


def refusals_of(section: JobSection, before: Sequence[JobSection], given: frozenset[str]) -> Iterator[str]:
    """Yield what cannot run in a job, with its place. ``before``: the jobs before it. ``given``: the options that are
    given beside the file."""
    # To fio, 0 is the size that a file has.
    if not _AMOUNTS & given and not any((section.options.get(key) or "").strip("0") for key in _AMOUNTS):
        yield f"{section.place}: job '{section.name}' has no size: give 'size' beside 'file' in the study, such as 1g"
    if number(section.options, "direct", 0) and not {"bs", "direct"} & given:
        sizes = [each for each in (section.options.get("bs") or "").split(",") if each]
        if any(size_in_bytes(size) % SECTOR_BYTES for size in sizes):
            what = (
                f"bs must be a multiple of {SECTOR_BYTES} bytes with direct I/O (to fio, 4KiB is 4000 bytes)"
            )
            what += ": give 'bs' beside 'file'"
            yield f"{section.place}: job '{section.name}': {what}"
    yield from (f"{section.place}: {why}" for why in _of_other_jobs(section, before, given))
    yield from (f"{section.place}: {why}" for why in _of_requests(section, given))


def _of_requests(section: JobSection, given: frozenset[str]) -> Iterator[str]:
    """Return what is wrong with the sizes and places of a job's requests."""
    options, job = section.options, f"job '{section.name}'"
    used = _directions(options)
    found = sorted(ZONES & options.keys() - given)
    if found and {**options, **dict.fromkeys(given)}.get("zonemode", "none") == "none":
        yield f"{', '.join(found)}: add zonemode=strided to {job}, or delete it"
    if "read" in used and number(options, "create_on_open", 0) and not {"rw", "create_on_open"} & given:
        yield f"create_on_open: with it, fio cannot read: delete the line from {job}"
    if {*LARGEST_OF, *_SIZES} & given or {"filesize", *LARGEST_OF} & options.keys():
        return
    if 0 < (size := one_file(options)) < (request := request_of(options.get("bs"), used)):
        what = (
            f"a file of {size} bytes is smaller than a request of {request} bytes, and fio transfers nothing"
        )
        yield f"{job}: {what}: give 'size' beside 'file'"


def _of_other_jobs(section: JobSection, before: Sequence[JobSection], given: frozenset[str]) -> Iterator[str]:
    """Return what is wrong with a job because of the jobs before it."""
    awaited, names = section.options.get("wait_for"), [other.name for other in before]
    if awaited is not None and awaited not in names:
        yield f"wait_for: no job '{awaited}' before '{section.name}': correct the name"
    elif awaited is not None and [*names, section.name].count(awaited) > 1:
        yield f"wait_for: several jobs are named '{awaited}': rename all but one of them"
    if {"verify", "verify_only", "rw", "filename"} & given:
        return
    files = file_names(section.section, section.options)
    written = (
        file_names(each.section, each.options) for each in before if "write" in _directions(each.options)
    )
    if only_verifies(section.options, _directions(section.options)) and files.isdisjoint(chain(*written)):
        what = f"verify: no job before '{section.name}' writes the files that it checks"
        yield f"{what}: add one with the same 'filename' and 'verify', or delete the line"


def of_exits(sections: Sequence[JobSection]) -> Iterator[str]:
    """Yield the jobs that would end those of their group, in a file with groups of its own."""
    for section in sections:
        if EXITALL in section.options and (section.options.get(EXIT_WHAT) or GROUP) == GROUP:
            what = "exitall: new_group limits which jobs it ends, and here each job is a group"
            yield f"{section.place}: {what}: add exit_what=stonewall (all that run) or exit_what=all"


def of_directories(sections: Sequence[JobSection], given: frozenset[str]) -> Iterator[str]:
    """Yield the files of fio that would be one file here, where all directories are one, with their places.

    Of several directories, each process of a job uses the next one (set_name_idx in fio's filesetup.c). Files of all
    jobs are in the directory of all jobs.
    """
    known: dict[str, str] = {}
    for section in sections if "filename" not in given else ():
        processes = MOST_AT_ONCE if "numjobs" in given else number(section.options, "numjobs", 1)
        common = _names(section.common)
        own = _names(section.options)[len(common) :]
        for name in sorted(file_names(section.section, section.options)):
            most = 1 if name.endswith("/") else processes
            used = _directories_of(section.common)[:most] if name in common else []
            used += _directories_of(section.options)[:most] if name in own or name not in common else []
            other = next((each for each in used if known.setdefault(name, each) != each), None)
            if other is not None:
                what = f"{name.partition('/')[0]} in {known[name]} and in {other} would be one file"
                yield f"{section.place}: {what}: rename one of them, or delete 'filename'"
                break


def _names(options: Options) -> list[str]:
    written = options.get("filename")
    return written.split(":") if written else []


def _directories_of(options: Options) -> list[str]:
    return [normpath(each) for each in re.split(r"(?<!\\):", options.get(DIRECTORY) or ".")]


def _directions(options: Options) -> tuple[str, ...]:
    return directions((options.get("rw") or "read").partition(":")[0], options)
