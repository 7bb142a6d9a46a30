"""Build a program from many C sources with make(1) and gcc(1), build it again after a change, and clean up."""

from __future__ import annotations

import os
import re
from pathlib import Path
from random import Random

from pydantic import Field

from fslab import scaling
from fslab.applications import Amount, DriveRequest, StepLoad, SteppedApplication, run_program
from fslab.errors import ToolOutputError
from fslab.system.files import make_newer
from fslab.system.tools import Tool

_MAKE = Tool(program="make", package="make")
_GCC = Tool(program="gcc", package="gcc")
_PER_DIRECTORY = 16
_FUNCTIONS, _NUMBERS = 6, 1200
_PROGRAM = "program"
_SOURCE_BYTES, _BUILT_BYTES = (
    8 << 10,
    40 << 10,
)  # with their blocks and inodes; the latter: object, dependencies, program
_FILES_PER_S = 40.0
_LEAST_FILES = 20
_CHANGED = 100  # each hundredth: 1 %
_MARK = re.compile(rb"fslab-unit-(\d{6})-(\d)")
_MAKEFILE = """\
SOURCES := $(wildcard */*.c)
OBJECTS := $(SOURCES:.c=.o)
program: $(OBJECTS)
\t$(file >objects.list,$(OBJECTS))
\tgcc -o $@ @objects.list
%.o: %.c
\tgcc -pipe -MMD -I. -c -o $@ $<
clean:
\tfind . -name '*.[od]' -delete
\trm -f program objects.list
-include $(OBJECTS:.o=.d)
"""
_HEADER = "typedef unsigned long value;\n"
_FUNCTION = """\
value unit_{unit}_{function}(value a, value b) {{
    for (value i = a & {mask}; i < b; i += {step}) a = (a ^ (i * {factor}ul)) + (a >> {shift});
    return a < b ? a + {mask} : a - b;
}}
"""


class CompileLoad(StepLoad):
    """build: `make --jobs`, which runs gcc for each source and links a program; rebuild: the same after 1 % of the
    sources changed; clean: `make clean`. Afterwards the program must contain each source's last version."""

    known = ("build", "rebuild", "clean")
    writing = frozenset({"build", "rebuild", "clean"})
    reading = frozenset({"build", "rebuild"})
    laid_out = frozenset({"files", "steps"})
    parallel = "jobs"

    files: int = Field(1000, ge=10, le=100_000, description="C sources, 16 in each directory, 15 kB each")
    jobs: int | None = Field(
        None, ge=1, le=4096, description="compilers that run at once; default: the number of CPUs"
    )

    @property
    def prepare_s(self) -> float:
        return 1 + len(self.done_before) * self.files / _FILES_PER_S

    @property
    def work_s(self) -> float:
        return 1 + ("build" in self.chosen) * self.files / _FILES_PER_S

    @property
    def space_bytes(self) -> int:
        return self.files * (_SOURCE_BYTES + _BUILT_BYTES) + (1 << 20)

    def scaled(self, factor: float) -> scaling.Changes:
        return {"files": scaling.count(self.files, factor, least=_LEAST_FILES)}


class Compile(SteppedApplication):
    summary = "make and gcc: build a program from many sources, rebuild it after a change, clean up"
    tools = (_MAKE, _GCC)
    Load = CompileLoad
    removes = frozenset({"clean"})

    def lay_out(self, drive: DriveRequest) -> None:
        (drive.directory / "Makefile").write_text(_MAKEFILE)
        (drive.directory / "value.h").write_text(_HEADER)
        for unit in range(drive.load.files):
            path = _path(drive, unit)
            path.parent.mkdir(exist_ok=True)
            path.write_text(_source(drive, unit, 0))
        calls = range(drive.load.files)
        declared = "".join(f"value unit_{unit}_0(value, value);\n" for unit in calls)
        called = "".join(f"    a += unit_{unit}_0(a, 7);\n" for unit in calls)
        main = f'#include "value.h"\n{declared}int main(void) {{\n    value a = 1;\n{called}    return (int)a;\n}}\n'
        (drive.directory / "main").mkdir()
        (drive.directory / "main/main.c").write_text(main)

    def before(self, drive: DriveRequest, step: str) -> None:
        if step == "rebuild":
            built_ns = (drive.directory / _PROGRAM).stat().st_mtime_ns
            for unit in _changed(drive):
                path = _path(drive, unit)
                path.write_text(_source(drive, unit, 1))
                make_newer(path, built_ns)  # else make does not see the change

    def perform(self, drive: DriveRequest, step: str) -> None:
        if step == "clean":
            run_program(_MAKE, "clean", cwd=drive.directory)
            return
        jobs = drive.load.jobs or len(os.sched_getaffinity(0))
        done = run_program(_MAKE, f"--jobs={jobs}", _PROGRAM, cwd=drive.directory)
        compiled, wanted = done.stdout.count(" -c "), self.amount(drive, step).files
        if compiled != wanted:
            raise ToolOutputError(f"make compiled {compiled} sources instead of {wanted}")

    def amount(self, drive: DriveRequest, step: str) -> Amount:
        return Amount(files=len(_changed(drive)) if step == "rebuild" else drive.load.files + 1)

    def problem(self, drive: DriveRequest, step: str) -> str | None:
        """Look for each source in the program: the file system is mounted so that it cannot be executed."""
        program = drive.directory / _PROGRAM
        if step == "clean":
            left = [program] if program.exists() else [*drive.directory.rglob("*.o")]
            return f"{left[0].relative_to(drive.directory)} is still there" if left else None
        found = {int(unit): int(version) for unit, version in _MARK.findall(program.read_bytes())}
        later = _changed(drive) if step == "rebuild" else range(0)
        for unit in range(drive.load.files):
            if found.get(unit) != int(unit in later):
                return f"{_path(drive, unit).name} is not in the program as it was compiled"
        return None


def _changed(drive: DriveRequest) -> range:
    return range(0, drive.load.files, min(_CHANGED, drive.load.files))


def _path(drive: DriveRequest, unit: int) -> Path:
    return drive.directory / f"part_{unit // _PER_DIRECTORY:04d}" / f"unit_{unit:06d}.c"


def _source(drive: DriveRequest, unit: int, version: int) -> str:
    random = Random(drive.seed << 20 | unit)  # noqa: S311 - to be repeated
    mark = f'static const char mark[] __attribute__((used)) = "fslab-unit-{unit:06d}-{version}";\n'
    functions = (
        _FUNCTION.format(
            unit=unit, function=number, mask=random.randrange(1, 256), step=random.randrange(1, 64),
            factor=random.getrandbits(32), shift=random.randrange(1, 32),
        )
        for number in range(_FUNCTIONS)
    )  # fmt: skip
    table = ",\n".join(f"{random.getrandbits(32)}ul" for _ in range(_NUMBERS))
    return f'#include "value.h"\n{mark}value table_{unit}[] = {{\n{table}}};\n{"".join(functions)}'
