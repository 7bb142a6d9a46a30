"""io-errors: how a file system reacts to disk faults, which a virtual disk injects.

Builds the request of ``fslab crash fault`` and parses its document; starts no process. Method: docs/io-errors.md.
"""

from typing import Any, ClassVar

from pydantic import Field, field_validator

from fslab import faults, texts
from fslab.abilities import Ability, Needs
from fslab.crash.request import FaultRequest
from fslab.errors import UnsupportedError
from fslab.record import Metric
from fslab.system.tools import Tool
from fslab.units import Direction, Unit
from fslab.workloads import Commands, Job, Parameters, Reading, ToolOutput, Workload
from fslab.workloads._traits import Traits

REQUEST = "fault.json"
_SEEDS = 1 << 31
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
    """Which fault the virtual disk injects. The places of the fault differ from block to block."""

    fault: str = Field("read-error-data", description="the fault; 'fslab list faults' shows all")

    @field_validator("fault")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in (known := faults.REGISTRY.names()):
            raise ValueError(f"unknown fault '{value}'; known: {', '.join(known)}")
        return value


class IoErrors(Workload[IoErrorsParameters]):
    """Counts operations on eight files. Does not measure speed."""

    summary = "io-errors: disk faults that a file system reports, corrects, or silently passes on"
    tools: ClassVar[tuple[Tool, ...]] = (
        Tool(program="fslab", package=None),
        Tool(program="fslab-disk", package=None),
    )
    Parameters = IoErrorsParameters
    drives_disk = True

    def metrics(self, parameters: IoErrorsParameters) -> tuple[Metric, ...]:  # noqa: ARG002
        """Return counts of operations, and metrics of the file system that are 1 or 0."""
        return tuple(
            Metric(name=name, unit=Unit.COUNT, better=direction) for name, direction in _COUNTS.items()
        )

    def headline(self, parameters: IoErrorsParameters) -> tuple[str, ...]:  # noqa: ARG002
        return ("silent", "reported", "unharmed")

    def commands(self, parameters: IoErrorsParameters, job: Job) -> Commands:
        """Return the command that tests a fault in a directory of its own, and its request."""
        request = FaultRequest(
            directory=job.directory / "work", fault=parameters.fault, seed=job.seed % _SEEDS, scratch=job.scratch
        )  # fmt: skip
        return Commands(
            run=("fslab", "crash", "run", str(job.scratch / REQUEST)),
            inputs={REQUEST: request.model_dump_json(indent=2)},
        )

    def read(self, parameters: IoErrorsParameters, output: ToolOutput) -> Reading:  # noqa: ARG002
        """Parse the counts of the document. UnsupportedError if the medium is not one virtual disk with a log."""
        if "virtual disk" in output.stderr:
            raise UnsupportedError(
                "io-errors needs a medium that is one virtual disk with a log",
                where="medium",
                hint="media: {disk: {type: virtual, profile: none, size: 320m, log: requests}}",
            )
        document: dict[str, Any] = texts.json_of(output.stdout)
        figures: dict[str, float | None] = {name: float(document[name]) for name in _COUNTS}
        if not document["hit"]:  # if no operation met the fault, these counts have no meaning
            figures |= dict.fromkeys(_OF_HITS)
        return Reading(metrics=figures, measured_s=output.duration_s, disk_fails=True)

    def needs(self, parameters: IoErrorsParameters) -> Needs:  # noqa: ARG002
        return Needs(abilities=frozenset({Ability.PROMISES}))

    def traits(self, parameters: IoErrorsParameters) -> Traits:  # noqa: ARG002
        """Return the traits of one process that writes, syncs and reads small files."""
        return Traits(reads=True, writes=True, direct=False, parallel=1, files=faults.FILES)

    def space_bytes(self, parameters: IoErrorsParameters) -> int:  # noqa: ARG002
        return 16 << 20

    def expected_s(self, parameters: IoErrorsParameters) -> float:  # noqa: ARG002
        return _GUESSED_S
