"""Options of sysbench fileio, by sysbench's names and with its defaults. Runs nothing."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fslab.units import SomeSize, parse_size, shown_size
from fslab.workloads import MOST_AT_ONCE, Parameters, check_sectors, flags

OnOff = Literal["on", "off"]


class SysbenchParameters(Parameters):
    """Options of ``sysbench fileio``, by sysbench's names and with its defaults.

    With ``rand-type: special``, 75 % of the requests of random modes go to 1 % of the data. With ``rate``, the mean
    latency is the first figure: the rate is what it asks for, also on a slower disk.
    """

    file_test_mode: Literal["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"] = Field(
        alias="file-test-mode", description="the test"
    )
    file_total_size: SomeSize = Field("2G", alias="file-total-size", description="size of all files together")
    file_num: int = Field(128, alias="file-num", ge=1, description="number of files")
    file_block_size: SomeSize = Field("16K", alias="file-block-size", description="size of a request")
    file_io_mode: Literal["sync", "async", "mmap"] = Field(
        "sync",
        alias="file-io-mode",
        description="how requests are made; async: up to 128 at once per thread, of which no latency is known",
    )
    file_extra_flags: Annotated[str, flags("sync", "dsync", "direct")] = Field(
        "", alias="file-extra-flags", description="comma-separated: sync, dsync; or direct alone"
    )
    file_fsync_freq: int = Field(
        100, alias="file-fsync-freq", ge=0, description="fsync all files after this many requests; 0: never"
    )
    file_fsync_all: OnOff = Field("off", alias="file-fsync-all", description="fsync after each write")
    file_fsync_end: OnOff = Field(
        "on", alias="file-fsync-end", description="fsync at the end, inside the measured time"
    )
    file_fsync_mode: Literal["fsync", "fdatasync"] = Field(
        "fsync", alias="file-fsync-mode", description="the call that syncs"
    )
    file_rw_ratio: float = Field(1.5, alias="file-rw-ratio", gt=0, description="reads per write in rndrw")
    rand_type: Literal["uniform", "gaussian", "special", "pareto"] = Field(
        "special", alias="rand-type", description="distribution of random offsets"
    )
    threads: int = Field(1, ge=1, le=MOST_AT_ONCE, description="threads that work at once")
    time: int | None = Field(
        None, ge=0, description="time limit in seconds; 0: none; default: 10, or none if events is given"
    )
    events: int = Field(0, ge=0, description="number of requests; 0: until time is over")
    rate: int = Field(0, ge=0, description="requests per second; 0: as fast as possible")

    @property
    def reads(self) -> bool:
        return self.file_test_mode in {"seqrd", "rndrd", "rndrw"}

    @property
    def writes(self) -> bool:
        return self.file_test_mode not in {"seqrd", "rndrd"}

    @property
    def directions(self) -> tuple[str, ...]:
        return ("read",) * self.reads + ("write",) * self.writes

    @property
    def direct(self) -> bool:
        return "direct" in self.file_extra_flags.split(",")

    @property
    def write_share(self) -> float:
        """Share of the requests that write."""
        return 1 / (1 + self.file_rw_ratio) if self.file_test_mode == "rndrw" else float(self.writes)

    @property
    def time_s(self) -> int:
        """Time limit in seconds; 0: none."""
        return self.time if self.time is not None else (0 if self.events else 10)

    @property
    def total_bytes(self) -> int:
        return parse_size(self.file_total_size)

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if not self.time_s and not self.events:
            raise ValueError("'time: 0' needs 'events': the run would not end")
        return self

    @model_validator(mode="after")
    def _whole_requests(self) -> Self:
        """With direct I/O, the kernel rejects requests that are not whole sectors: those at the end of each file."""
        block, files = parse_size(self.file_block_size), self.file_num
        if self.direct:
            if self.file_extra_flags != "direct":
                raise ValueError("sysbench accepts no other 'file-extra-flags' beside direct")
            if self.file_io_mode == "mmap":
                raise ValueError("direct has no effect with 'file-io-mode: mmap', which is in the page cache")
            check_sectors("file-block-size", block)
            if self.total_bytes % (files * block):
                nearest = shown_size(max(round(self.total_bytes / (files * block)), 1) * files * block)
                raise ValueError(
                    f"'file-total-size' must be a multiple of {files} files × {self.file_block_size} with direct I/O, "
                    f"such as {nearest}: sysbench fails at the end of each file otherwise"
                )
        return self
