"""One job of fio, a single one or one of a file, by its options. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from fslab.filesystem_abilities import Ability
from fslab.units import parse_duration, parse_size
from fslab.workloads import _fio_time
from fslab.workloads._fio_option_conflicts import NAME
from fslab.workloads._fio_options import directions, read_share, writes_through, writes_zeros
from fslab.workloads._fio_phases import Start, start_of
from fslab.workloads._fio_places import file_names, number, one_pass
from fslab.workloads._fio_requests import DEFAULT_REQUEST_BYTES, LARGEST_OF, largest_request


@dataclass(frozen=True, kw_only=True, slots=True)
class OneJob:
    """One job with all options that apply to it, by fio's names. None: an option without a value.

    ``section``: its name in the job file, after which fio names its files. ``label``: prefix of its metrics, empty for
    the only job.
    """

    section: str
    label: str = ""
    options: Mapping[str, str | None]

    def number(self, key: str, default: int) -> int:
        """Return the value of an option that is a whole number; 1 for an option without a value."""
        return number(self.options, key, default)

    @property
    def lines(self) -> tuple[str, ...]:
        """Its section in a job file."""
        options = (key if value is None else f"{key}={value}" for key, value in self.options.items())
        return (f"[{self.section}]", "new_group", *options)

    @property
    def name(self) -> str:
        """What other jobs and fio's report call it."""
        return self.options.get(NAME) or self.section

    @property
    def start(self) -> Start:
        return start_of(self.name, self.options)

    @property
    def mode(self) -> str:
        """``rw`` without its offset modifier."""
        return (self.options.get("rw") or "read").partition(":")[0]

    @property
    def read_share(self) -> float:
        """The share of reads, from 0 to 1."""
        return read_share(self.mode, self.options)

    @property
    def directions(self) -> tuple[str, ...]:
        """``read``, ``write`` or both."""
        return directions(self.mode, self.options)

    @property
    def random(self) -> bool:
        """Whether offsets are drawn at random."""
        return self.mode.startswith("rand")

    @property
    def syncs(self) -> bool:
        """Whether fsync or fdatasync follows writes during the run."""
        return bool(self.number("fsync", 0) or self.number("fdatasync", 0))

    @property
    def flushed(self) -> bool:
        """Whether written data reaches the device within the run time. mmap ignores ``sync``."""
        through = writes_through(self.options.get("sync"), self.options.get("ioengine"))
        return self.syncs or bool(self.number("end_fsync", 0)) or through

    @property
    def direct(self) -> bool:
        return bool(self.number("direct", 0))

    @property
    def abilities(self) -> frozenset[Ability]:
        """What its direct I/O needs."""
        of = {"read": Ability.DIRECT_READS, "write": Ability.DIRECT_WRITES}
        return frozenset(of[direction] for direction in self.directions if self.direct)

    @property
    def iodepth(self) -> int:
        return self.number("iodepth", 1)

    @property
    def engine(self) -> str:
        """Its I/O engine; psync is fio's default."""
        return self.options.get("ioengine") or "psync"

    @property
    def zeros(self) -> bool:
        return "write" in self.directions and writes_zeros(self.options)

    @property
    def request_bytes(self) -> tuple[int, ...]:
        """Sizes of reads and of writes. An empty one, as in ``,8k``, is fio's default. A third is for trims."""
        sizes = (self.options.get("bs") or "").split(",")[:2]
        return tuple(parse_size(size) if size else DEFAULT_REQUEST_BYTES for size in sizes)

    @property
    def timed(self) -> bool:
        return self.runtime_s is not None and self.options.get("time_based", "0") != "0"

    @property
    def ends_early(self) -> bool:
        """Whether fio may end it before its run time is over."""
        return not self.options.keys().isdisjoint({"steadystate", "exitall"})

    @property
    def runtime_s(self) -> float | None:
        """Time limit in seconds; None for a fixed amount of work."""
        written = self.options.get("runtime")
        return parse_duration(written) if written else None

    @property
    def file_names(self) -> frozenset[str]:
        return file_names(self.section, self.options)

    @property
    def bytes(self) -> int:
        """How much its processes transfer in one pass over their files."""
        return one_pass(self.options) * self.number("numjobs", 1)

    @property
    def memory_bytes(self) -> int:
        """One buffer of the largest request for each request in flight."""
        largest = largest_request(self.options.get(key) for key in ("bs", *LARGEST_OF))
        return largest * self.iodepth * self.number("numjobs", 1)

    def work_s(self, bytes_per_s: float) -> float:
        """Return about how long it runs, at this rate of all its processes."""
        jobs = self.number("numjobs", 1)
        if self.timed and self.runtime_s is not None:
            run_s = self.runtime_s
        else:
            moving_s = jobs * _fio_time.moved_bytes(self.options, self.bytes // jobs) / bytes_per_s
            run_s = max(moving_s, _fio_time.held_back_s(self.options, self.bytes // jobs, self.read_share))
            run_s = run_s if self.runtime_s is None else min(run_s, self.runtime_s)
        return run_s + _fio_time.ramp_s(self.options)
