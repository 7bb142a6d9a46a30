"""Counters of a virtual disk: service times, lateness of its replies, write amplification of an SSD.

Asks the servers of virtual disks (``fslab-disk``) on their control sockets; takes some 0.3 ms per disk.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fslab.errors import FslabError
from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.system import disk_server, sysfs
from fslab.trial_record import Value
from fslab.units import Unit

YEAR_S = 31_557_600.0
Statistics = Sequence[dict[str, Any]]
OPERATIONS = ("read", "write", "flush", "discard")


class VirtualDisk(Probe):
    """Counters of all virtual disks under the file system, summed. Without virtual disks there are no figures.

    ``disk_late_mean`` is the mean time from the deadline of a reply until it was ready, ``disk_service_mean`` the mean
    service time of the model, ``disk_read_mean`` that of reads, all in real time. ``device_write_amplification``: bytes
    that an SSD wrote to flash, divided by bytes that the host wrote; with an SLC cache, which is emptied to other
    flash, at least 2 in the end. ``flash_erases_per_block``: 0 if it collected no garbage.
    """

    summary = "virtual disks: service times, lateness, seek distances; write amplification and wear of SSDs"
    moments = (SnapshotMoment.BEFORE, SnapshotMoment.END, SnapshotMoment.FLUSHED)

    def snapshot(self, target: Target) -> Snapshot:
        """Return the statistics by device. ValueError if a server does not answer."""
        found = {name: _directory(target.sys / "class/block" / name) for name in target.devices}
        return {name: _statistics(directory) for name, directory in found.items() if directory is not None}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        before, end, flushed = (taken[moment] for moment in self.moments)
        if not before or not before.keys() == end.keys() == flushed.keys():
            return ProbeFinding(values={})
        return ProbeFinding(
            values=figures(*([each[name] for name in before] for each in (before, end, flushed)))
        )


def figures(before: Statistics, end: Statistics, flushed: Statistics) -> dict[str, Value]:
    """Compute the probe's figures from the statistics of each server before and after the run, and after the flush."""
    pairs = list(zip(before, end, flushed, strict=True))
    values = {**_times(end), **_heads(pairs), **_flash(pairs)}
    return {name: Value(value=value, unit=unit) for name, (value, unit) in values.items()}


Figures = dict[str, tuple[float | None, Unit]]
Pair = tuple[dict[str, Any], dict[str, Any]]


def _directory(block: Path) -> Path | None:
    """Return where the virtual disk under a loop device is mounted; None if the loop device is on something else."""
    backing = sysfs.text(block / "loop/backing_file")
    directory = Path(backing).parent if backing else None
    return directory if directory and disk_server.control_of(directory).is_socket() else None


def _statistics(directory: Path) -> dict[str, Any]:
    try:
        return disk_server.ask(directory, "statistics")
    except FslabError as error:
        raise ValueError(str(error)) from error


def _times(ends: Statistics) -> Figures:
    """Compute requests and times until the tool ended; these counters restart when the run starts."""
    late = [each["late_ns"] for each in ends if each["late_ns"]]
    services = {name: _service(ends, name) for name in OPERATIONS}
    count, total = (sum(each) for each in zip(*services.values(), strict=True))
    lateness = sum(each["count"] * each["mean"] for each in late)
    requests = sum(each["operations"][name]["requests"] for each in ends for name in OPERATIONS)
    return {
        "disk_requests": (requests, Unit.COUNT),
        "disk_service_mean": (total / count if count else None, Unit.NANOSECONDS),
        **{f"disk_{name}_mean": (total / n, Unit.NANOSECONDS) for name, (n, total) in services.items() if n},
        "disk_late_mean": (lateness / count if count else None, Unit.NANOSECONDS),
        "disk_late_max": (max((each["max"] for each in late), default=None), Unit.NANOSECONDS),
    }


def _service(ends: Statistics, operation: str) -> tuple[int, float]:
    """Return how many requests had a service time, and the sum of these in real time."""
    known = [(found, each["rate"]) for each in ends if (found := each["operations"][operation]["service_ns"])]
    return sum(each["count"] for each, _ in known), sum(
        each["count"] * each["mean"] / rate for each, rate in known
    )


def _heads(pairs: Sequence[tuple[dict[str, Any], ...]]) -> Figures:
    """Compute the figures of hard disks until the tool ended."""
    disks = _models(((first, last) for first, last, _ in pairs), "hdd")
    if not disks:
        return {}
    moves = sum(_more(pair, "media_reads") + _more(pair, "media_writes") for pair in disks)
    distance = sum(_more(pair, "seek_cylinders") for pair in disks)
    return {
        "disk_movements": (moves, Unit.COUNT),
        "disk_cache_hits": (sum(_more(pair, "cache_hits") for pair in disks), Unit.COUNT),
        "disk_seek_cylinders": (distance / moves if moves else None, Unit.COUNT),
    }


def _flash(pairs: Sequence[tuple[dict[str, Any], ...]]) -> Figures:
    """Compute the figures of SSDs: what was written until all dirty data had reached them, in the time of the run."""
    ssds = [each for each in pairs if _models([(each[0], each[2])], "ssd")]
    if not ssds:
        return {}
    models = _models(((first, last) for first, _, last in ssds), "ssd")
    host, flash = (sum(_more(pair, name) for pair in models) for name in ("host_bytes", "flash_bytes"))
    seconds = max(end["time_ns"] - first["time_ns"] for first, end, _ in ssds) / 1e9
    rated = sum(last["rated_bytes"] for _, last in models)
    return {
        "flash_written_bytes": (flash, Unit.BYTES),
        "device_write_amplification": (flash / host if host else None, Unit.RATIO),
        "flash_erases_per_block": (sum(map(_erases, models)) / len(models), Unit.RATIO),
        "ssd_years_at_this_rate": (rated / host * seconds / YEAR_S if host else None, Unit.COUNT),
    }


def _erases(pair: Pair) -> float:
    first, last = (float(model["erases_per_block"]["mean"]) for model in pair)
    return last - first


def _models(pairs: Iterable[Pair], kind: str) -> list[Pair]:
    """Return the models of this kind at both times: of an array, those of its disks."""
    each = [pair for first, last in pairs for pair in zip(_parts(first), _parts(last), strict=True)]
    return [pair for pair in each if pair[1]["kind"] == kind]


def _parts(statistics: dict[str, Any]) -> list[dict[str, Any]]:
    model: dict[str, Any] = statistics["model"]
    return list(model.get("members", [model]))


def _more(pair: Pair, name: str) -> float:
    first, last = pair
    more: float = last[name] - first[name]
    return more
