"""fio, the flexible I/O tester: one job by fio's own option names, or an unchanged job file. Starts no process."""

from collections.abc import Mapping
from typing import Any, ClassVar

from fslab import scaling
from fslab.abilities import Needs
from fslab.record import Metric
from fslab.system.tools import Tool
from fslab.workloads import Commands, Job, Reading, ToolOutput, Workload
from fslab.workloads._fio_file import FioFile
from fslab.workloads._fio_file_parameters import FioFileParameters
from fslab.workloads._fio_job import FIO, FioJob
from fslab.workloads._fio_parameters import FioParameters
from fslab.workloads._traits import Traits

Given = FioParameters | FioFileParameters


class Fio(Workload[Any]):
    """Passes every call to the class for the form of its parameters: options, or a job file."""

    summary = FioJob.summary
    tools: ClassVar[tuple[Tool, ...]] = (FIO,)
    Parameters = FioParameters

    def parse_parameters(self, raw: Mapping[str, Any]) -> Given:
        """Return the options or, with ``file``, the job file. ``file`` allows no other key."""
        form = FioFileParameters if "file" in raw else FioParameters
        return form.model_validate(dict(raw))

    def with_runtime(self, raw: Mapping[str, Any], runtime: str) -> dict[str, Any]:
        """Return the parameters; a job file sets its own run time."""
        return dict(raw) if "file" in raw else super().with_runtime(raw, runtime)

    def metrics(self, parameters: Given) -> tuple[Metric, ...]:
        """Return the metrics of the job, or of each job of the file."""
        return _form(parameters).metrics(parameters)

    def headline(self, parameters: Given) -> tuple[str, ...]:
        """Return rates, and the latency if requests are sent one at a time."""
        return _form(parameters).headline(parameters)

    def commands(self, parameters: Given, job: Job) -> Commands:
        """Return the command that lays out files, then the job or jobs."""
        return _form(parameters).commands(parameters, job)

    def read(self, parameters: Given, output: ToolOutput) -> Reading:
        """Parse the figures of fio's JSON document."""
        return _form(parameters).read(parameters, output)

    def needs(self, parameters: Given) -> Needs:
        """Return the need for direct I/O, if it is used; for a single job also fallocate and the largest file."""
        return _form(parameters).needs(parameters)

    def scaled(self, parameters: Given, factor: float) -> scaling.Changes:
        """Scale the files and the run time of a single job. A job file is not scaled."""
        return _form(parameters).scaled(parameters, factor)

    def traits(self, parameters: Given) -> Traits:
        """Return the traits of the job, or of all jobs of the file."""
        return _form(parameters).traits(parameters)

    def space_bytes(self, parameters: Given) -> int:
        return _form(parameters).space_bytes(parameters)

    def memory_bytes(self, parameters: Given) -> int:
        return _form(parameters).memory_bytes(parameters)

    def expected_s(self, parameters: Given) -> float:
        """Return the duration of the layout, plus the run time or an estimate of it."""
        return _form(parameters).expected_s(parameters)


def _form(parameters: Given) -> Workload[Any]:
    return FioFile() if isinstance(parameters, FioFileParameters) else FioJob()
