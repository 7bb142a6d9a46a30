"""io-errors: how a file system reacts to disk faults, which a virtual disk injects.

Builds the request of ``fslab crash fault`` and parses its document; starts no process. Method: docs/io-errors.md.
"""

from pydantic import Field, field_validator

from fslab import faults
from fslab.crash.trial_request import FaultRequest
from fslab.trial_record import Metric
from fslab.units import Direction, Unit
from fslab.workloads import Commands, Job, Parameters, Reading, ToolOutput, Traits
from fslab.workloads._disk_tests import SEEDS, OneDiskTest

_GUESSED_S = 3.0
_COUNTS = {
    "silent": Direction.LOWER,
    "reported": Direction.NEITHER,
    "unharmed": Direction.HIGHER,
    "reported_once": Direction.LOWER,
    "lost": Direction.LOWER,
    "writes_stopped": Direction.NEITHER,
    "needs_repair": Direction.LOWER,
    "hit": Direction.NEITHER,
}
_OF_HITS = ("silent", "reported", "unharmed", "reported_once")


class IoErrorsParameters(Parameters):
    """The places of the fault differ from block to block."""

    fault: str = Field("read-error-data", description="the fault; 'fslab list faults' shows all")

    @field_validator("fault")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in (known := faults.REGISTRY.names()):
            raise ValueError(f"unknown fault '{value}'; known: {', '.join(known)}")
        return value


class IoErrors(OneDiskTest[IoErrorsParameters]):
    """Counts operations on eight files. Does not measure speed."""

    summary = "io-errors: disk faults that a file system reports, corrects, or silently passes on"
    disk = "one virtual disk with a log"
    disk_logs = ("requests", "data")
    medium = "{type: virtual, profile: none, size: 320m, log: requests}"
    Parameters = IoErrorsParameters

    def metrics(self, parameters: IoErrorsParameters) -> tuple[Metric, ...]:  # noqa: ARG002
        """Return counts of operations, and metrics of the file system that are 1 or 0."""
        return tuple(
            Metric(name=name, unit=Unit.COUNT, better=direction) for name, direction in _COUNTS.items()
        )

    def headline(self, parameters: IoErrorsParameters) -> tuple[str, ...]:  # noqa: ARG002
        return ("silent", "reported", "unharmed")

    def commands(self, parameters: IoErrorsParameters, job: Job) -> Commands:
        request = FaultRequest(
            directory=job.directory / "work",
            fault=parameters.fault,
            seed=job.seed % SEEDS,
            scratch=job.scratch,
        )
        return self.requested(request, job)

    def read(self, parameters: IoErrorsParameters, output: ToolOutput) -> Reading:  # noqa: ARG002
        document = self.document(output)
        figures: dict[str, float | None] = {name: float(document[name]) for name in _COUNTS}
        if not document["hit"]:  # if no operation met the fault, these counts have no meaning
            figures |= dict.fromkeys(_OF_HITS)
        return Reading(metrics=figures, measured_s=output.duration_s, disk_fails=True)

    def traits(self, parameters: IoErrorsParameters) -> Traits:  # noqa: ARG002
        return Traits(reads=True, writes=True, direct=False, parallel=1, files=faults.FILES)

    def space_bytes(self, parameters: IoErrorsParameters) -> int:  # noqa: ARG002
        return 16 << 20

    def expected_s(self, parameters: IoErrorsParameters) -> float:  # noqa: ARG002
        return _GUESSED_S
