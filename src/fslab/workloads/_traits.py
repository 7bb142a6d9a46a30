"""Traits of a workload, derived from its parameters, for code that does not depend on the tool. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fslab.cell import Scalar

MANY_FILES = 1000


class Switchable(StrEnum):
    """A property that other parameters of the same tool can give the workload."""

    DIRECT = "direct"
    SERIAL = "serial"
    IN_PLACE = "in place"


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """What a workload does. None or empty: the parameters do not determine it.

    ``reads`` and ``writes``: contents or names of files. ``direct``: bypasses the page cache. ``request_bytes``: the
    sizes of requests. ``reads_back``: reads files that the same run has written. ``parallel``: number of processes or
    threads that work at once. ``syncs_per_write``: calls of fsync and fdatasync per write request; ``syncs``: their
    total number, where it is fixed. ``switches``: for each property, the parameters that switch it on.
    """

    reads: bool | None = None
    writes: bool | None = None
    direct: bool | None = None
    reads_back: bool = False
    request_bytes: tuple[int, ...] = ()
    parallel: int | None = None
    working_set_bytes: int | None = None
    files: int | None = None
    directories: int | None = None
    syncs_per_write: float | None = None
    syncs: float | None = None
    switches: Mapping[Switchable, Mapping[str, Scalar]] = field(default_factory=dict)

    @property
    def many_files(self) -> bool:
        """Whether it works on many files rather than in a few."""
        return self.files is not None and self.files >= MANY_FILES

    @property
    def few_files(self) -> bool:
        """Whether it transfers contents within a few files."""
        return self.files is not None and self.files < MANY_FILES
