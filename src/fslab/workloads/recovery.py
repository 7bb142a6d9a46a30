"""recovery: how long a file system takes to recover from a power cut with many new files, on a virtual disk.

Builds the request of ``fslab crash recover`` and parses its document; starts no process. Method: docs/crash.md.
"""

from pydantic import Field

from fslab import scaling
from fslab.crash.trial_request import RecoveryExtent, RecoveryRequest
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Direction, Unit, parse_size
from fslab.workloads import Commands, Job, Parameters, Reading, ToolOutput, Traits
from fslab.workloads._disk_tests import SEEDS, OneDiskTest

_BYTES_PER_FILE = 4 << 10  # an inode, a name, and the unused part of the last block
_FILES_PER_S = 5000.0  # a guess for any file system
_RECOVERY_S = 5.0
_TIMES = ("recovery", "first_read", "first_write", "check")
_BYTES = ("read", "written")


class RecoveryParameters(RecoveryExtent, Parameters):
    existing: int = Field(0, ge=0, le=1_000_000, description="files of 4 KiB that are on the disk before")


class Recovery(OneDiskTest[RecoveryParameters]):
    """Each trial measures each time once."""

    summary = "recovery: time to mount, read, write and check the file system after a power cut"
    tools = (*OneDiskTest.tools, Tool(program="fslab-engine", package=None))
    disk = "one virtual disk, whose power can be cut"
    medium = "{type: virtual, profile: hdd-7200}"
    Parameters = RecoveryParameters

    def metrics(self, parameters: RecoveryParameters) -> tuple[Metric, ...]:
        """Return times, bytes that the disk transferred during mount, and the number of unsynced files kept."""
        names = _TIMES if parameters.check else _TIMES[:-1]
        times = (Metric(name=name, unit=Unit.NANOSECONDS, better=Direction.LOWER) for name in names)
        transferred = (
            Metric(name=f"recovery_{name}_bytes", unit=Unit.BYTES, better=Direction.NEITHER)
            for name in _BYTES
        )
        kept = Metric(name="kept_files", unit=Unit.COUNT, better=Direction.NEITHER)
        return (*times, *transferred, kept)

    def headline(self, parameters: RecoveryParameters) -> tuple[str, ...]:
        return ("recovery", "check") if parameters.check else ("recovery", "first_read")

    def commands(self, parameters: RecoveryParameters, job: Job) -> Commands:
        there = ("fslab-engine", "populate", str(job.directory / "before"), "--seed", str(job.seed))
        prepare = (
            ((*there, "--class", f"files:{parameters.existing}:4k:fixed"),) if parameters.existing else ()
        )
        request = RecoveryRequest(
            **parameters.model_dump(exclude={"existing"}),
            directory=job.directory / "work",
            seed=job.seed % SEEDS,
        )
        return self.requested(request, job, *prepare, ("mkdir", str(request.directory)))

    def read(self, parameters: RecoveryParameters, output: ToolOutput) -> Reading:
        document = self.document(output)
        names = _TIMES if parameters.check else _TIMES[:-1]
        known = {name: document[f"{name}_ns"] for name in names}
        known |= {f"recovery_{name}_bytes": document[f"{name}_bytes"] for name in _BYTES}
        known["kept_files"] = document["kept_files"]
        figures = {name: None if value is None else float(value) for name, value in known.items()}
        broken = tuple(text for text in (document["lost"], document["damaged"]) if text is not None)
        measured = sum(document[f"{name}_ns"] or 0 for name in names) / 1e9
        return Reading(metrics=figures, measured_s=measured, disk_fails=True, promises_broken=broken)

    def scaled(self, parameters: RecoveryParameters, factor: float) -> scaling.Changes:
        return {
            name: scaling.count(count, factor, least=100)
            for name in ("files", "existing")
            if (count := getattr(parameters, name))
        }

    def traits(self, parameters: RecoveryParameters) -> Traits:
        return Traits(reads=False, writes=True, direct=False, parallel=1, files=parameters.files + 1)

    def space_bytes(self, parameters: RecoveryParameters) -> int:
        each = parse_size(parameters.size) + _BYTES_PER_FILE
        return parameters.files * each + parameters.existing * 2 * _BYTES_PER_FILE

    def expected_s(self, parameters: RecoveryParameters) -> float:
        return (parameters.files + parameters.existing) / _FILES_PER_S + _RECOVERY_S
