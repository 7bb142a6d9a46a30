"""Reads the text of a job file of fio: its sections, and everything in it that cannot run, each with its line. Pure.

Files that it includes are pasted into the text when the study is loaded, between two comments that keep their names and
lines: the text is stored with the study.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from posixpath import normpath

from fslab.errors import FslabError
from fslab.units import parse_duration, parse_size
from fslab.workloads._fio_one_job import OneJob
from fslab.workloads._fio_options import (
    ALIASES,
    DIRECTORY,
    EXIT_WHAT,
    FILLS,
    LEFT_OUT,
    NAME,
    ORDER,
)
from fslab.workloads._fio_refused_options import (
    COUNTS,
    conflicts,
    cut_off,
    objection,
    of_directories,
    of_exits,
    unsupported,
)

_MOST_NESTED = 10
_MOST_CHARACTERS = 1 << 20
_BEGIN, _END = ";; fslab: from ", ";; fslab: end"
_INCLUDE = re.compile(r"\s*include[ \t]+(\S(?:.*\S)?)\s*")

MOST_JOBS = 32
MOST_REFUSED = 500  # lines: to look for what was meant takes a part of a millisecond for each
_JOB_NAME = re.compile(r"[^\[\]/$`\\.][^\[\]/$`\\]*")
_SET_UP = re.compile(r"(?m)^.+: \(g=\d+\): rw=.*")
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
# To fio, unless ``kb_base`` is set, KiB are 1000 bytes and kB are 1024: fio(1), "Parameter types".
_DECIMAL_SIZE = re.compile(r"(?<![\w.])(\d+)([kmgtp])ib(?!\w)", re.IGNORECASE)
# The longest name of a file has 255 bytes: fio adds the numbers of a process and of a file to the job's name.
_LONGEST_NAME_BYTES = 240
_SIZES = frozenset({"size", "filesize"})
_AMOUNTS = frozenset(
    {
        "size", "io_size", "filesize", "bs", "bsrange", "bssplit", "offset", "offset_increment", "rate", "runtime",
        "ramp_time", "startdelay",
    }
)  # fmt: skip
# The keywords of ``filename_format`` that fio replaces.
_KEYWORDS = frozenset({"jobname", "jobnum", "filenum", "clientuid"})
_FILE_NAMES = frozenset({"filename", "filename_format"})
_FREE_TEXT = _FILE_NAMES | {"description", "wait_for", NAME}
_VALUED = _AMOUNTS | _FREE_TEXT | COUNTS | {"rw", "ioengine", "verify"}
_GLOBAL = "global"
_COMMAND = (
    "this is a command line: write [global], and below it each option in a line of its own, such as bs=4k "
    "instead of --bs=4k"
)
Options = dict[str, str | None]


def with_includes(name: str, text: str, read: Callable[[str], str], _nested: int = 0) -> str:
    """Return the text with the files that it includes in their places. ``read`` returns the text of a file by its path
    from the directory of the job file. Raises FslabError, with file and line, for a file that cannot be included."""
    lines: list[str] = []
    characters = 0
    for at, line in enumerate(text.split("\n"), start=1):
        found = _INCLUDE.fullmatch(re.split("[;#]", line, maxsplit=1)[0])
        new = [line] if found is None else _included(f"{name}:{at}", name, found[1], read, _nested)
        lines += new
        characters += sum(len(each) + 1 for each in new)
        if characters > _MOST_CHARACTERS:
            raise FslabError(f"{name}: with the files that it includes, it is longer than 1 MiB")
    return "\n".join(lines)


def _included(place: str, name: str, written: str, read: Callable[[str], str], nested: int) -> list[str]:
    if nested == _MOST_NESTED:
        raise FslabError(f"{place}: includes are nested more than {_MOST_NESTED} deep")
    path = str(PurePosixPath(name).parent / written)
    try:
        inner = read(path)
    except FslabError as error:
        what = f"include {written}: {error.what}; put the file there, or paste its lines"
        raise FslabError(f"{place}: {what}") from error
    return [f"{_BEGIN}{path}", with_includes(path, inner, read, nested + 1), _END]


def placed_lines(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield each line, without comments, with its place. A marker of an included file has no place."""
    within = [(name, 0)]
    for line in text.split("\n"):
        if line.startswith(_BEGIN):
            within.append((line.removeprefix(_BEGIN), 0))
            yield "", _BEGIN
            continue
        if line == _END and len(within) > 1:
            within.pop()
            within[-1] = (within[-1][0], within[-1][1] + 1)
            yield "", _END
            continue
        file, at = within[-1] = (within[-1][0], within[-1][1] + 1)
        kept = re.split("[;#]", line, maxsplit=1)[0].strip(" \t\r")
        if kept:
            yield f"{file}:{at}", kept


@dataclass(kw_only=True, slots=True)
class JobFile:
    """What a job file contains.

    ``refused``: what cannot run, each with file, line, reason and remedy. ``left_out``: the options that fslab does not
    pass on, because it sets the places of files and reads the results itself. ``replaced``: names of files with
    directories, and the names used instead. ``sizes``: those in KiB, MiB and so on, and their bytes. ``places``: of the
    options, as fio gets them.
    """

    sections: list[OneJob] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    left_out: dict[str, None] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def place_of(self, told: str) -> str | None:
        """Return the file and line of what fio refuses: of an option that it names, else of the first job after those
        that it describes as set up (``name: (g=0): rw=…``)."""
        why, done = _SET_UP.subn("", told)
        if named := [option for option in self.places if option in why]:
            return self.places[max(named, key=len)]
        known = len(self.sections) == 1 or 0 < done < len(self.sections)
        return self.sections[done % len(self.sections)].place if known else None


def read_jobs(name: str, text: str, *, given: frozenset[str], variables: Mapping[str, str]) -> JobFile:
    """Return what the file contains. Options that are ``given`` beside the file are not read from it."""
    reader = _Reader(given=given, variables=variables)
    found = reader.found
    for place, line in placed_lines(name, text):
        reader.read(place, line)
        if len(found.refused) >= MOST_REFUSED:
            return found
    if not found.sections and not found.refused:
        found.refused.append(f"{name}: has no job: add a section, such as [job]")
    if len(found.sections) > MOST_JOBS:
        found.refused.append(
            f"{name}: has {len(found.sections)} jobs, at most {MOST_JOBS} are possible: split it"
        )
        return found
    for index, job in enumerate(found.sections):
        found.refused += (f"{job.place}: {why}" for why in _refused(job, found.sections[:index], given))
    found.refused += of_directories(found.sections, given)
    if "new_group" in found.left_out and EXIT_WHAT not in given:
        found.refused += of_exits(found.sections)
    for section in found.sections:
        section.options.pop(DIRECTORY, None)
    found.refused.sort(key=_by_line)
    return found


def _refused(job: OneJob, before: Sequence[OneJob], given: frozenset[str]) -> Iterator[str]:
    """Yield what cannot run in a job. ``before``: the jobs before it. ``given``: the options beside the file."""
    # To fio, 0 is the size that a file has.
    if not _SIZES & given and not any((job.options.get(key) or "").strip("0") for key in _SIZES):
        yield f"job '{job.name}' has no size: give 'size' beside 'file' in the study, such as 1g"
    for key, deciding, why in conflicts(job, before):
        remark = " (to fio, 4KiB is 4000 bytes)" if key == "bs" else ""
        remedy = f"; or give '{key}' beside 'file'" if deciding else ""
        if given.isdisjoint(deciding):
            yield f"job '{job.name}': {key}: {why}{remark}{remedy}"


def _by_line(refused: str) -> tuple[str, int]:
    place = re.match(r"(.*?):(\d+): ", refused)
    return (place[1], int(place[2])) if place else ("", 0)


@dataclass(kw_only=True, slots=True)
class _Reader:
    given: frozenset[str]
    variables: Mapping[str, str]
    found: JobFile = field(default_factory=JobFile)
    common: Options = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    options: Options | None = None
    outer: list[Options | None] = field(default_factory=list)

    def read(self, place: str, line: str) -> None:
        if not place:
            # After an included file, fio goes on in the section that was open before it.
            if line == _BEGIN:
                self.outer.append(self.options)
            else:
                self.options = self.outer.pop()
        elif not line.replace("\t", " ").isprintable():
            self._refuse(place, "control characters are not allowed: delete them")
        elif line.startswith("["):
            self._section(place, line)
        elif self.options is None:
            typed = line.startswith(("fio ", "--"))
            told = _COMMAND if typed else f"'{line}' comes before the first section: write [global] above it"
            self._refuse(place, told)
        else:
            self._option(place, line, self.options)

    def _refuse(self, place: str, what: str) -> None:
        self.found.refused.append(f"{place}: {what}")

    def _section(self, place: str, line: str) -> None:
        name = line[1:-1] if line.endswith("]") else ""
        self.options = self.common if name == _GLOBAL else dict(self.common)
        if why := _no_job_name(name, line):
            self._refuse(place, why)
        elif name != _GLOBAL:
            self.found.sections.append(
                OneJob(section=name, place=place, options=self.options, common=dict(self.common))
            )

    def _option(self, place: str, line: str, options: Options) -> None:
        if _INCLUDE.fullmatch(line):
            self._refuse(place, f"'{line}': the text of this file is missing: paste its lines")
            return
        key, equals, value = (part.strip(" \t") for part in line.partition("="))
        if not value and (equals or ALIASES.get(key, key) in _VALUED):
            self._refuse(place, f"{key}: has no value: write one, or delete the line")
            return
        if key == "buffered":
            key, equals, value = "direct", "=", {"0": "1", "": "0"}.get(value, "0")
        key = ALIASES.get(key, key)
        if key in self.given:
            return
        if self._is_left_out(key, options):
            self.found.left_out[key] = None
            if key == DIRECTORY:  # ``of_directories`` needs it; removed after that
                options[key] = value
            return
        value, why = self._value(key, value)
        why = why or (None if key in ORDER else refusal(key, value))
        if why is not None:
            self._refuse(place, f"{key}: {why}")
        if key == "filename" and options.get(key):
            value = f"{options[key]}:{value}"  # fio adds the files of each line
        options[key] = value if equals else None
        self.found.places.setdefault(f"{key}={value}" if equals else key, place)

    def _is_left_out(self, key: str, options: Options) -> bool:
        """Return whether fio does not get an option. In the section of a job, ``name`` is the name of the job."""
        if key == NAME:
            return options is self.common
        return key in LEFT_OUT or (key in FILLS and "size" in self.given)

    def _value(self, key: str, written: str) -> tuple[str, str | None]:
        """Return the value for fio, and why it cannot be used."""
        value, why = _filled_in(key, written, self.variables)
        if why is not None or key in _FREE_TEXT - _FILE_NAMES:
            return value, why or (_no_job_name(value, value) if key == NAME else None)
        return self._file_names(value) if key in _FILE_NAMES else (_DECIMAL_SIZE.sub(self._size, value), None)

    def _size(self, written: re.Match[str]) -> str:
        """Return the bytes of a size in KiB, MiB and so on."""
        found = self.found.sizes[written[0]] = str(
            int(written[1]) * 1000 ** ("kmgtp".index(written[2].lower()) + 1)
        )
        return found

    def _file_names(self, value: str) -> tuple[str, str | None]:
        """Return names of files without directories, and why they cannot be used: /dev/sdb becomes the file dev_sdb.
        Two files must not become one."""
        found = []
        for name in re.split(r"(?<!\\):", value):
            path = name.strip() and normpath(name.strip())
            used = re.sub(r"\\:|[/\\]+", "_", path.lstrip("/\\"))
            if (other := self.files.setdefault(used, path)) != path:
                return value, f"{path} and {other} would be one file, {used}: rename one of them"
            if name != used:
                self.found.replaced[name] = used
            found.append(used)
        return ":".join(found), None


def _no_job_name(name: str, written: str) -> str | None:
    """Return why this cannot be the name of a job, and what to do; None if it can."""
    if not _JOB_NAME.fullmatch(name):
        return f"'{written}' is not the name of a job: rename it, without / $ ` \\ [ ], and not with a dot in front"
    if len(name.encode()) > _LONGEST_NAME_BYTES:
        return f"the name of the job is longer than {_LONGEST_NAME_BYTES} bytes: shorten it"
    return None


def _filled_in(key: str, value: str, variables: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the value with its variables replaced, and why it cannot be used."""
    missing: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name in variables:
            return variables[name]
        if not (key == "filename_format" and match[2] in _KEYWORDS):
            missing.append(name)
        return match[0]

    found = _VARIABLE.sub(replaced, value)
    if missing:
        names = ", ".join(f"{name}: …" for name in dict.fromkeys(missing))
        return value, f"'{value}' is not set: write 'variables: {{{names}}}' beside 'file' in the study"
    bare = found if key != "filename_format" else _VARIABLE.sub("", found)
    if not found.isprintable() or re.search(r"[$`;#]" if key in _FILE_NAMES else r"[$`\\;#]", bare):
        return found, "$, ` and \\ are not allowed, because fio would expand them: write the value itself"
    return found, None


def refusal(key: str, value: str) -> str | None:
    """Return why an option cannot be passed to fio, and what to do; None if it can. Of the file and beside it."""
    if why := unsupported(key, value):
        return f"{why}; delete the job, or give '{key}' beside 'file'"
    return objection(key, value) or _unreadable(key, value)


def _unreadable(key: str, value: str) -> str | None:
    """Return why fio cannot read an amount, or fslab one that it has to know."""
    sizes = {"size": [value], "filesize": value.split("-"), "bs": [each for each in value.split(",") if each]}
    if why := cut_off(key, value):
        return why
    try:
        for size in sizes.get(key, ()):
            parse_size(size)
        if key == "runtime":
            parse_duration(value)
    except ValueError as error:
        if "%" in value:
            return f"{value} is a share of a device, and files have none: give '{key}' in bytes beside 'file'"
        return f"{error}: correct it, or give '{key}' beside 'file'"
    return None
