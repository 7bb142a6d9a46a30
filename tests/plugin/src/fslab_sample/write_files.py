"""Writes N files of one size with dd, each flushed."""

from __future__ import annotations

from pydantic import Field

from fslab.errors import ToolOutputError
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Size, Unit, parse_size
from fslab.workloads import Commands, Job, Parameters, Reading, ToolOutput, Workload

LOOP = 'i=0; while [ $i -lt "$1" ]; do dd if=/dev/zero of=f$i bs="$2" count=1 conv=fsync status=none; i=$((i+1)); done'


class WriteFilesParameters(Parameters):
    """How many files, and how large."""

    files: int = Field(16, ge=1, le=100_000, description="how many files")
    size: Size = Field("4k", description="bytes of each file")


class WriteFiles(Workload[WriteFilesParameters]):
    """One dd for each file."""

    summary = "one dd with conv=fsync for each file"
    tools = (Tool(program="dd", package="coreutils"),)
    Parameters = WriteFilesParameters

    def metrics(self, parameters: WriteFilesParameters) -> tuple[Metric, ...]:
        return (Metric(name="write_files_rate", unit=Unit.FILES_PER_SECOND),)

    def headline(self, parameters: WriteFilesParameters) -> tuple[str, ...]:
        return ("write_files_rate",)

    def commands(self, parameters: WriteFilesParameters, job: Job) -> Commands:
        size = str(parse_size(parameters.size))
        return Commands(run=("sh", "-c", f"set -e; {LOOP}; echo done", "sh", str(parameters.files), size))

    def read(self, parameters: WriteFilesParameters, output: ToolOutput) -> Reading:
        if output.stdout.strip() != "done":
            raise ToolOutputError(f"the loop did not complete: {output.stderr.strip()[-200:]}")
        return Reading(
            metrics={"write_files_rate": parameters.files / output.duration_s},
            read_bytes=0,
            written_bytes=self.space_bytes(parameters),
        )

    def space_bytes(self, parameters: WriteFilesParameters) -> int:
        return parameters.files * parse_size(parameters.size)

    def expected_s(self, parameters: WriteFilesParameters) -> float:
        return parameters.files / 200
