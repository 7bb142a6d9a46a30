"""What a workload does, as its parameters tell: for everybody who asks without knowing the tool. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fslab.cell import Scalar

MANY_FILES = 1000


class Switchable(StrEnum):
    """What other parameters of the same tool could have it do instead."""

    DIRECT = "direct"
    SERIAL = "serial"
    IN_PLACE = "in place"


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """None and empty: the parameters do not tell.

    ``reads`` and ``writes``: contents or names of files. ``direct``: past the page cache. ``request_bytes``: the sizes
    of requests. ``parallel``: how many work at once. ``syncs_per_write``: fsync and fdatasync for each write request;
    ``syncs``: how many there are in all, where that is set. ``switches``: the parameters that change one thing.
    """

    reads: bool | None = None
    writes: bool | None = None
    direct: bool | None = None
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
        """Whether it moves contents within a few files."""
        return self.files is not None and self.files < MANY_FILES
