"""dd: one process that writes or reads one file from start to end.

Builds the dd commands and parses the last line that dd prints; starts no process. Writes are zeros from /dev/zero, as
in the studies that use dd. A file system that compresses, or that stores zeros as holes, therefore writes almost
nothing. Use fio where that matters.
"""

import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from fslab import scaling
from fslab.errors import ToolOutputError
from fslab.filesystem_abilities import Ability, Needs
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import SomeSize, Unit, parse_size
from fslab.workloads import (
    DISK_BYTES_PER_S,
    Commands,
    Job,
    Parameters,
    Reading,
    Switchable,
    ToolOutput,
    Traits,
    Workload,
    check_sectors,
    flags,
    other_output,
)

FILE = "fslab.dd"
_PREPARE_BS = "bs=1M"
_GUESSED_REQUESTS_PER_S = 500e3
_LEAST_BYTES = 4 << 20
# coreutils 9.1: "1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.5 s, 2.1 MB/s"; no parentheses below 1 kB.
_SUMMARY = re.compile(r"^(\d+) bytes? (?:\([^)\n]*\) )?copied, ([\d.e+-]+) s,", re.MULTILINE)

_FLAGS = flags("direct", "dsync", "sync", "nocache", "noatime")


class DdParameters(Parameters):
    """Operands of dd by their own names, and ``op``, the direction.

    Without ``conv``, buffered writes measure how fast the page cache is filled.
    """

    op: Literal["write", "read"] = Field(
        description="write a new file, or read a file written before the run"
    )
    bs: SomeSize = Field(default="1M", description="bytes of each read(2) and write(2), such as 64k")
    count: int = Field(ge=1, description="number of blocks")
    oflag: Annotated[str, _FLAGS] = Field(
        default="", description="for writes, comma-separated: direct, dsync, sync, nocache, noatime"
    )
    iflag: Annotated[str, _FLAGS] = Field(
        default="", description="for reads, comma-separated: direct, dsync, sync, nocache, noatime"
    )
    conv: Literal["fsync", "fdatasync", "none"] = Field(default="fsync", description="for writes")

    @property
    def direct(self) -> bool:
        return "direct" in (self.oflag or self.iflag).split(",")

    @property
    def total_bytes(self) -> int:
        return parse_size(self.bs) * self.count

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Reject keys that have no effect with this ``op``."""
        useless = {"write": ("iflag",), "read": ("oflag", "conv")}[self.op]
        for name in useless:
            if name in self.model_fields_set:
                raise ValueError(f"'{name}' is not supported by op: {self.op}")
        if self.direct:
            check_sectors("bs", parse_size(self.bs))
        return self


class Dd(Workload[DdParameters]):
    """Before a read, dd itself writes and flushes the file."""

    summary = "dd: one sequential write or read of one file"
    tools: ClassVar[tuple[Tool, ...]] = (Tool(program="dd", package="coreutils"),)
    Parameters = DdParameters

    def metrics(self, parameters: DdParameters) -> tuple[Metric, ...]:
        """Return the bandwidth, the only value that dd reports."""
        return (Metric(name=f"{parameters.op}_bandwidth", unit=Unit.BYTES_PER_SECOND),)

    def headline(self, parameters: DdParameters) -> tuple[str, ...]:
        return (f"{parameters.op}_bandwidth",)

    def commands(self, parameters: DdParameters, job: Job) -> Commands:
        file = job.device or job.directory / FILE
        cleanup = () if job.device else (("rm", "-f", str(file)),)
        if parameters.op == "write":
            return Commands(run=_write(parameters, file, job), cleanup=cleanup)
        size = ("iflag=count_bytes", f"count={parameters.total_bytes}")
        layout = ("dd", "if=/dev/zero", f"of={file}", _PREPARE_BS, *size, "conv=fsync")
        flags = (f"iflag={parameters.iflag}",) if parameters.iflag else ()
        read = ("dd", f"if={file}", "of=/dev/null", *_blocks(parameters), *flags)
        return Commands(prepare=(layout,), run=read, cleanup=cleanup, prepared=())

    def read(self, parameters: DdParameters, output: ToolOutput) -> Reading:
        """Parse the bytes and seconds of the last line. The rate that dd prints has only two digits."""
        found = _SUMMARY.findall(output.stderr)
        if not found:
            raise other_output("dd printed no summary", output.stderr)
        copied_bytes, seconds = int(found[-1][0]), float(found[-1][1])
        if copied_bytes != parameters.total_bytes:
            raise ToolOutputError(f"dd copied {copied_bytes} bytes, not {parameters.total_bytes}")
        return Reading(
            metrics={f"{parameters.op}_bandwidth": copied_bytes / seconds if seconds else None},
            read_bytes=copied_bytes if parameters.op == "read" else 0,
            written_bytes=copied_bytes if parameters.op == "write" else 0,
            measured_s=seconds,
            direct=parameters.direct,
            working_set_bytes=parameters.total_bytes,
            flushed=_flushed(parameters),
            zeros=True,
        )

    def why_whole(self, parameters: DdParameters) -> None:
        """Return None: dd measures all that it does."""

    def why_files(self, parameters: DdParameters) -> None:
        """Return None: a device is a file to dd."""

    def needs(self, parameters: DdParameters) -> Needs:
        ability = Ability.DIRECT_WRITES if parameters.op == "write" else Ability.DIRECT_READS
        wanted = frozenset({ability} if parameters.direct else ())
        return Needs(abilities=wanted, largest_file_bytes=parameters.total_bytes)

    def scaled(self, parameters: DdParameters, factor: float) -> scaling.Changes:
        least = -(-_LEAST_BYTES // parse_size(parameters.bs))
        return {"count": scaling.count(parameters.count, factor, least=least)}

    def traits(self, parameters: DdParameters) -> Traits:
        switch = {"oflag" if parameters.op == "write" else "iflag": "direct"}
        return Traits(
            reads=parameters.op == "read",
            writes=parameters.op == "write",
            direct=parameters.direct,
            request_bytes=(parse_size(parameters.bs),),
            parallel=1,
            working_set_bytes=parameters.total_bytes,
            files=1,
            switches={} if parameters.oflag or parameters.iflag else {Switchable.DIRECT: switch},
        )

    def space_bytes(self, parameters: DdParameters) -> int:
        return parameters.total_bytes

    def expected_s(self, parameters: DdParameters) -> float:
        """Estimate the duration from the size. A file that is read is written first."""
        requests_s = _passes(parameters) * parameters.count / _GUESSED_REQUESTS_PER_S
        return max(self.moved_bytes(parameters) / DISK_BYTES_PER_S, requests_s)

    def moved_bytes(self, parameters: DdParameters) -> float:
        return _passes(parameters) * parameters.total_bytes


def _passes(parameters: DdParameters) -> int:
    return 2 if parameters.op == "read" else 1


def _blocks(parameters: DdParameters) -> tuple[str, str]:
    # dd requires upper-case M and G.
    return (f"bs={parameters.bs.upper()}", f"count={parameters.count}")


def _write(parameters: DdParameters, file: Path, job: Job) -> tuple[str, ...]:
    # A freeze ends a read of /dev/zero early, and dd would count the part as a block.
    whole = ("iflag=fullblock",) if job.turns > 1 else ()
    flags = (f"oflag={parameters.oflag}",) if parameters.oflag else ()
    conversion = () if parameters.conv == "none" else (f"conv={parameters.conv}",)
    return ("dd", "if=/dev/zero", f"of={file}", *_blocks(parameters), *whole, *flags, *conversion)


def _flushed(parameters: DdParameters) -> bool | None:
    """Return whether dd flushed the data within the time that it reports; None for a read."""
    if parameters.op == "read":
        return None
    return parameters.conv != "none" or bool({"sync", "dsync"} & set(parameters.oflag.split(",")))
