"""crash: tests the states that a power cut may leave after short sequences of operations, or during transactions.

Builds the request of ``fslab crash test`` and parses its document; starts no process. Method: docs/crash.md.
"""

from typing import Any

from fslab import applications, scaling
from fslab.crash.trial_request import CrashExtent, CrashRequest
from fslab.filesystem_abilities import Ability, Needs
from fslab.system import paths
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Direction, Unit
from fslab.workloads import Commands, Job, Parameters, Reading, ToolOutput, Traits
from fslab.workloads._disk_tests import SEEDS, OneDiskTest

_BYTES_PER_SEQUENCE = 64 << 10
_GUESSED_PER_S = 10.0  # crash states; a guess for any file system
_GUESSED_SEQUENCES_PER_S = 20.0
_AGAIN = 8  # recording one recovery and testing its states takes as long as testing this many states
_LEAST_STATES, _LEAST_SEQUENCES = 10, 5
_OF_SEQUENCES = frozenset(
    {Ability.DIRECT_WRITES, Ability.HARD_LINKS, Ability.SYMLINKS, Ability.PERMISSIONS, Ability.XATTR}
)
_TIMES = ("recovery", "loss_window")
_SHARES = {"p50": 0.5, "p95": 0.95}
_COUNTS = {
    "promises_broken": Direction.LOWER,
    "promises_kept": Direction.NEITHER,  # as many as the sequences and the states happen to test
    "lost_operations": Direction.LOWER,
    "states_damaged": Direction.LOWER,
    "states": Direction.NEITHER,
}


class CrashParameters(CrashExtent, Parameters):
    """Each block of a campaign draws other sequences and states."""


class Crash(OneDiskTest[CrashParameters]):
    """Does not measure speed: the duration is that of the test program."""

    summary = "power cuts: promises broken, data lost, and the time to mount again"
    disk = "one virtual disk with a log of its data"
    disk_logs = ("data",)
    medium = "{type: virtual, profile: none, size: 320m, log: data}"
    Parameters = CrashParameters

    def metrics(self, parameters: CrashParameters) -> tuple[Metric, ...]:  # noqa: ARG002
        """Return counts of promises, losses and states, the time to mount a state, and the age of lost data."""
        counts = (Metric(name=name, unit=Unit.COUNT, better=better) for name, better in _COUNTS.items())
        times = (
            Metric(name=f"{what}_{name}", unit=Unit.NANOSECONDS, better=Direction.LOWER)
            for what in _TIMES
            for name in _SHARES
        )
        return (*counts, *times)

    def headline(self, parameters: CrashParameters) -> tuple[str, ...]:
        """Return what tells stacks apart. Where every transaction is promised, what is lost is a broken promise."""
        if parameters.application is None:
            return ("promises_broken", "lost_operations", "recovery_p50", "recovery_p95")
        application = applications.durable(parameters.application)
        settings = applications.parse_settings(application, parameters.settings)
        lost = () if application.keeps_all(settings) else ("lost_operations", "loss_window_p95")
        return ("promises_broken", *lost)

    def commands(self, parameters: CrashParameters, job: Job) -> Commands:
        request = CrashRequest(
            **dict(parameters), directory=job.directory, seed=job.seed % SEEDS, scratch=job.scratch,
            recordings=paths.recordings(),
        )  # fmt: skip
        return self.requested(request, job)

    def read(self, parameters: CrashParameters, output: ToolOutput) -> Reading:  # noqa: ARG002
        document = self.document(output)
        figures: dict[str, float | None] = {name: float(document[name]) for name in _COUNTS}
        for what in _TIMES:
            times = sorted(document[f"{what}_ns"])
            figures |= {f"{what}_{name}": _quantile(times, share) for name, share in _SHARES.items()}
        broken = tuple(_told(finding) for finding in document["findings"] if finding["broken"])
        return Reading(
            metrics=figures, measured_s=output.duration_s, mounts_damaged=True, promises_broken=broken,
            drops=int(document.get("cache_drops", 0)),
        )  # fmt: skip

    def needs(self, parameters: CrashParameters) -> Needs:
        found = super().needs(parameters)
        return Needs(abilities=found.abilities | (frozenset() if parameters.application else _OF_SEQUENCES))

    def scaled(self, parameters: CrashParameters, factor: float) -> scaling.Changes:
        found = {
            "sequences": scaling.count(parameters.runs, factor, least=_LEAST_SEQUENCES),
            "states": scaling.count(parameters.states, factor, least=_LEAST_STATES),
        }
        for name in ("recoveries", "repairs"):
            if count := getattr(parameters, name):
                found[name] = scaling.count(count, factor)
        return found

    def traits(self, parameters: CrashParameters) -> Traits:
        return Traits(reads=False, writes=True, direct=False, parallel=parameters.threads)

    def space_bytes(self, parameters: CrashParameters) -> int:
        """Return some blocks and inodes for each sequence or transaction, and what each run of an application needs."""
        application = parameters.application and applications.durable(parameters.application)
        each_run = application.laid_out_bytes if application else 0
        return self._steps(parameters) * _BYTES_PER_SEQUENCE + parameters.runs * each_run

    def expected_s(self, parameters: CrashParameters) -> float:
        each_s = 1 / _GUESSED_SEQUENCES_PER_S
        if parameters.application is not None:
            application = applications.durable(parameters.application)
            settings = applications.parse_settings(application, parameters.settings)
            each_s = application.transaction_s + application.pause_s(settings)
        return (
            self._steps(parameters) * each_s
            + (parameters.states + _AGAIN * (parameters.recoveries + parameters.repairs)) / _GUESSED_PER_S
        )

    def _steps(self, parameters: CrashParameters) -> int:
        return parameters.runs * (1 if parameters.application is None else parameters.transactions)

    def tools_of(self, parameters: CrashParameters) -> tuple[Tool, ...]:
        """Return the tools, including that of the application."""
        name = parameters.application
        return (*self.tools, *(applications.durable(name).tools if name else ()))


def _told(finding: dict[str, Any]) -> str:
    after = f" after {'; '.join(finding['sequence'])}" if finding["sequence"] else ""
    which = f" ({finding['id']})" if finding["id"] else ""
    return f"{finding['kind']}{which}{after}: {finding['detail']}; {finding['source']}"


def _quantile(values: list[int], share: float) -> float | None:
    """Return the element at index ``share`` × length of the sorted ``values``; None if there are none."""
    if not values:
        return None
    return float(values[min(len(values) - 1, int(share * len(values)))])
