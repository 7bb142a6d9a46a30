"""What trials show besides their headline: latency percentiles, rates over time, CPU, bytes written. Pure.

Computes only medians and means. The workload's own parser reads the stored output again, so that nothing is stored
twice.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from fslab.analysis import disk_request_map
from fslab.analysis.disk_request_map import RequestMap
from fslab.analysis.usable_trials import has_warnings, is_usable
from fslab.errors import FslabError
from fslab.report.figures.costs import KINDS
from fslab.report.figures.over_time import RateSeries
from fslab.trial_record import TrialRecord
from fslab.workloads import Reading, ToolOutput, parsed

STREAMS = ("stdout", "stderr")


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedFigures:
    """Values of the usable trials of a stack.

    ``latencies``: operation → percent → ns. ``courses``: name of the rate → one course per trial.
    """

    latencies: Mapping[str, Mapping[float, float]]
    courses: Mapping[str, tuple[RateSeries, ...]]


def read_again(trial: TrialRecord) -> Reading | None:
    """Parse the stored output of a trial.

    None if the trial is not usable, has no output, or this version cannot parse it any more.
    """
    if not trial.raw or not is_usable(trial):
        return None
    files = {name: text for name, text in trial.raw.items() if name not in STREAMS}
    output = ToolOutput(
        stdout=trial.raw.get("stdout", ""),
        stderr=trial.raw.get("stderr", ""),
        files=files,
        duration_s=trial.duration_s,
        figures={name: figure.value for name, figure in trial.metrics.items()},
    )
    try:
        return parsed(trial.cell.workload).read(output)
    except (FslabError, ValidationError, ValueError, LookupError, TypeError):
        return None


def seen(label: str, trials: Sequence[TrialRecord]) -> ObservedFigures:
    """Return the values of the trials of one stack. ``label``: the label of the stack."""
    readings = [(trial, reading) for trial in trials if (reading := read_again(trial)) is not None]
    operations = dict.fromkeys(name for _, reading in readings for name in reading.latencies)
    latencies = {
        name: _middle([reading.latencies[name] for _, reading in readings if name in reading.latencies])
        for name in operations
    }
    courses: dict[str, list[RateSeries]] = {}
    for trial, reading in readings:
        for rate in reading.rates:
            course = RateSeries(
                stack=label, trial=trial.key.block, interval_s=rate.interval_s, values=rate.values
            )
            courses.setdefault(rate.what, []).append(course)
    return ObservedFigures(latencies=latencies, courses={what: tuple(each) for what, each in courses.items()})


def requests(trials: Iterable[TrialRecord]) -> tuple[RequestMap, ...]:
    """Return the requests of the first usable trial whose disks kept a log, one map per disk; empty without one."""
    logged = (trial.raw.get(disk_request_map.NAME) for trial in trials if is_usable(trial))
    return next((maps for text in logged if text and (maps := disk_request_map.read(text))), ())


def amplification(trials: Sequence[TrialRecord]) -> tuple[float, float] | None:
    """Return the median write amplification of file system and device; None if one is unknown."""
    parts = [figures(trials, name) for name in ("write_amplification", "device_write_amplification")]
    return (statistics.median(parts[0]), statistics.median(parts[1])) if all(parts) else None


def cpu_shares(trials: Iterable[TrialRecord]) -> dict[str, float]:
    """Return kind → mean percent of all CPUs; empty if it was not measured."""
    measured = {kind: figures(trials, f"machine_cpu_{kind}") for kind in KINDS}
    return {kind: statistics.fmean(values) for kind, values in measured.items() if values}


def figures(trials: Iterable[TrialRecord], name: str) -> list[float]:
    """Return the known values of a metric, or of a probe's counter, in the usable trials."""
    known = ((trial.metrics.get(name) or trial.probes.get(name)) for trial in trials if is_usable(trial))
    return [figure.value for figure in known if figure is not None and figure.value is not None]


def kind_of(trial: TrialRecord) -> str:
    """Return the kind of point that a figure draws for a trial: ``usable``, ``warning`` or ``invalid``."""
    return "invalid" if not is_usable(trial) else "warning" if has_warnings(trial) else "usable"


def _middle(curves: Sequence[Mapping[float, float]]) -> dict[float, float]:
    """Return the median at each percentile that all trials report."""
    common = set(curves[0]).intersection(*curves[1:])
    return {percent: statistics.median(curve[percent] for curve in curves) for percent in sorted(common)}
