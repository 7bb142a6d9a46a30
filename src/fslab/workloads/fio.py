"""fio, the flexible I/O tester: one job by fio's own option names, or the jobs of a job file. Starts no process."""

from collections.abc import Callable, Mapping
from typing import Any

from fslab.workloads import Workload
from fslab.workloads._fio_file import FioFile
from fslab.workloads._fio_includes import with_includes
from fslab.workloads._fio_job import FioJob

_FILE = FioFile()


class Fio(FioJob):
    """A single job; with ``file``, the jobs of a file."""

    def of(self, raw: Mapping[str, Any]) -> Workload[Any]:
        return _FILE if "file" in raw else self

    def with_includes(self, name: str, text: str, read: Callable[[str], str]) -> str:
        return with_includes(name, text, read)
