"""Shell loops: one coreutils command for each of N files, as in many studies.

Builds the ``sh`` commands; starts no process. Such a loop mostly measures fork and exec of the command. The engine does
the same operations without them, so that the two can be compared. Scripts are constants. Numbers are passed to them as
arguments, never as text of the script.
"""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from fslab import scaling
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Size, Unit, parse_size
from fslab.workloads import (
    Commands,
    Job,
    Parameters,
    Reading,
    ToolOutput,
    Traits,
    Workload,
    other_output,
    stored_bytes,
)

DIRECTORY = "fslab.shell"
_GUESSED_PER_S = 1500.0
_LEAST_FILES = 100
# $1: number of files, $2: bytes of a file, $3: the directory, $4: 1 to flush at the end. Only the command is a separate
# process: test, arithmetic and echo are built into sh. The last line of the output is the number of iterations.
_LOOP = (
    'set -eu; cd "$3"; i=0; while [ "$i" -lt "$1" ]; do {body}; i=$((i+1)); done; '
    'if [ "$4" = 1 ]; then sync -f .; fi; echo "$i"'
)
_CREATE = 'head -c "$2" /dev/zero >"file.$i"'
_BODY = {
    "create": _CREATE,
    "read": 'cat "file.$i" >/dev/null',
    "delete": 'rm "file.$i"',
    "mkdir": 'mkdir "dir.$i"',
    "rmdir": 'rmdir "dir.$i"',
    "touch": 'touch "file.$i"',
    "echo": 'echo "line $i" >"file.$i"',
    "cat": 'cat "file.$i" >/dev/null',
    "dd": 'dd if=/dev/zero of="file.$i" bs="$2" count=1 status=none',
    "rm": 'rm "file.$i"',
}
_BEFORE = {"read": "create", "cat": "create", "delete": "create", "rm": "create", "rmdir": "mkdir"}
_SIZED = frozenset({"create", "dd", *_BEFORE} - {"rmdir"})
_WRITES = frozenset({"create", "dd"})
_READS = frozenset({"read", "cat"})


class ShellParameters(Parameters):
    operation: Literal["create", "read", "delete", "mkdir", "rmdir", "touch", "echo", "cat", "dd", "rm"] = (
        Field(
            description="the command for each file: create (head -c), read (cat), delete (rm), echo (a line), or the "
            "command of that name"
        )
    )
    files: int = Field(
        10000, ge=1, le=10_000_000, description="number of files or directories, all in one directory"
    )
    size: Size = Field("4k", description="size of each file; not for mkdir, rmdir, touch and echo")
    sync: bool = Field(False, description="run `sync -f` at the end, in the measured time")

    @property
    def size_bytes(self) -> int:
        """Bytes of one file; 0 for operations whose files have no size."""
        return parse_size(self.size) if self.operation in _SIZED else 0

    @model_validator(mode="after")
    def _sized(self) -> Self:
        if self.operation not in _SIZED and "size" in self.model_fields_set:
            raise ValueError(f"'size' is not supported by operation: {self.operation}")
        if self.operation == "dd" and not parse_size(self.size):
            raise ValueError("operation 'dd' needs a 'size' of at least one byte")
        return self


class Shell(Workload[ShellParameters]):
    """The measured time is that of the whole loop, with the start of ``sh`` (about 1 ms).

    Measuring inside the loop would add two processes. Another loop makes the files that the measured loop needs.
    """

    summary = "shell loops of coreutils commands: they measure mostly fork and exec; compare with 'engine'"
    tools: ClassVar[tuple[Tool, ...]] = (
        Tool(program="sh", package="dash", version_argv=("-c", ":")),
        *(
            Tool(program=name, package="coreutils")
            for name in ("cat", "dd", "head", "mkdir", "rm", "rmdir", "sync", "touch")
        ),
    )
    Parameters = ShellParameters

    def metrics(self, parameters: ShellParameters) -> tuple[Metric, ...]:
        return (Metric(name=f"{parameters.operation}_rate", unit=Unit.FILES_PER_SECOND),)

    def headline(self, parameters: ShellParameters) -> tuple[str, ...]:
        return (f"{parameters.operation}_rate",)

    def commands(self, parameters: ShellParameters, job: Job) -> Commands:
        directory = str(job.directory / DIRECTORY)
        before = _BEFORE.get(parameters.operation)
        return Commands(
            prepare=(
                ("mkdir", directory),
                *((_loop(before, parameters, directory, sync=False),) if before else ()),
            ),
            run=_loop(parameters.operation, parameters, directory, sync=parameters.sync),
            cleanup=(("rm", "-r", "-f", directory),),
        )

    def read(self, parameters: ShellParameters, output: ToolOutput) -> Reading:
        """Parse the number of iterations. ToolOutputError if it is not the number of files."""
        if output.stdout.strip() != str(parameters.files):
            raise other_output("the shell loop ended early", output.stderr, output.stdout)
        moved = parameters.files * parameters.size_bytes
        changes = parameters.operation not in _READS
        return Reading(
            metrics={f"{parameters.operation}_rate": parameters.files / output.duration_s},
            read_bytes=moved if parameters.operation in _READS else 0,
            written_bytes=_written(parameters),
            measured_s=output.duration_s,
            whole_run=True,
            working_set_bytes=moved or None,
            flushed=parameters.sync if changes else None,
            zeros=parameters.operation in _WRITES,
        )

    def why_whole(self, parameters: ShellParameters) -> None:
        """Return None: the rate is that of the whole run."""

    def scaled(self, parameters: ShellParameters, factor: float) -> scaling.Changes:
        return {"files": scaling.count(parameters.files, factor, least=_LEAST_FILES)}

    def traits(self, parameters: ShellParameters) -> Traits:
        return Traits(
            reads=parameters.operation in _READS,
            writes=parameters.operation not in _READS,
            direct=False,
            parallel=1,
            working_set_bytes=parameters.files * parameters.size_bytes or None,
            files=parameters.files,
            directories=1,
        )

    def space_bytes(self, parameters: ShellParameters) -> int:
        """Return the size of all files in whole blocks with inodes. A directory and a line of echo take a block."""
        return stored_bytes(parameters.files, max(1, parameters.size_bytes))

    def expected_s(self, parameters: ShellParameters) -> float:
        loops = 2 if parameters.operation in _BEFORE else 1
        return loops * parameters.files / _GUESSED_PER_S


def _loop(operation: str, parameters: ShellParameters, directory: str, *, sync: bool) -> tuple[str, ...]:
    script = _LOOP.replace("{body}", _BODY[operation])
    # The word after the script becomes $0, which sh prints in its messages.
    return (
        "sh",
        "-c",
        script,
        "fslab",
        str(parameters.files),
        str(parameters.size_bytes),
        directory,
        str(int(sync)),
    )


def _written(parameters: ShellParameters) -> int:
    if parameters.operation == "echo":
        return sum(len(f"line {number}\n") for number in range(parameters.files))
    return parameters.files * parameters.size_bytes if parameters.operation in _WRITES else 0
