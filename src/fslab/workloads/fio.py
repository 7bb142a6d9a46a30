"""fio, the flexible I/O tester: one job by its own option names, or a job file as it is. Starts nothing."""

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
        """Options, or with ``file`` a job file, which leaves no room for others."""
        form = FioFileParameters if "file" in raw else FioParameters
        return form.model_validate(dict(raw))

    def with_runtime(self, raw: Mapping[str, Any], runtime: str) -> dict[str, Any]:
        """A job file says its own."""
        return dict(raw) if "file" in raw else super().with_runtime(raw, runtime)

    def metrics(self, parameters: Given) -> tuple[Metric, ...]:
        """Of the job, or of each job of the file."""
        return _form(parameters).metrics(parameters)

    def headline(self, parameters: Given) -> tuple[str, ...]:
        """Rates, and latency where requests come one at a time."""
        return _form(parameters).headline(parameters)

    def commands(self, parameters: Given, job: Job) -> Commands:
        """Files laid out before, then the job or jobs."""
        return _form(parameters).commands(parameters, job)

    def read(self, parameters: Given, output: ToolOutput) -> Reading:
        """Figures of fio's JSON document."""
        return _form(parameters).read(parameters, output)

    def needs(self, parameters: Given) -> Needs:
        """Direct I/O where it is asked for, and more of a single job."""
        return _form(parameters).needs(parameters)

    def scaled(self, parameters: Given, factor: float) -> scaling.Changes:
        """Files and run time of a single job; a job file stays as it is."""
        return _form(parameters).scaled(parameters, factor)

    def traits(self, parameters: Given) -> Traits:
        """Of the job, or of all jobs of the file."""
        return _form(parameters).traits(parameters)

    def space_bytes(self, parameters: Given) -> int:
        return _form(parameters).space_bytes(parameters)

    def memory_bytes(self, parameters: Given) -> int:
        return _form(parameters).memory_bytes(parameters)

    def expected_s(self, parameters: Given) -> float:
        """Layout, and the run time or a guess at it."""
        return _form(parameters).expected_s(parameters)


def _form(parameters: Given) -> Workload[Any]:
    return FioFile() if isinstance(parameters, FioFileParameters) else FioJob()
