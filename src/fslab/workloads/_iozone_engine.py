"""IOzone's tests by fslab's engine: builds the ``fslab-engine iozone`` commands, parses their JSON. Runs nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fslab.errors import ToolOutputError
from fslab.workloads import Commands, Job, Reading, ToolOutput
from fslab.workloads import _engine_document as documents
from fslab.workloads._iozone_parameters import ENOUGH_S, KIB, IozoneParameters, label

CACHE_BYTES = 1024 * KIB  # what IOzone purges without -S


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundsTotal:
    """What one test did in all rounds: bytes per second (None if it took no time), and the number of rounds.

    ``window``: when it ran, in seconds of CLOCK_MONOTONIC; None if there were several rounds.
    """

    size_bytes: int
    test: str
    rate: float | None
    rounds: int
    window: tuple[float, float] | None

    @property
    def seconds(self) -> float:
        """The time of all rounds, for a single thread."""
        return self.rounds * self.size_bytes / self.rate if self.rate else 0.0


def commands(parameters: IozoneParameters, job: Job) -> Commands:
    """Return one command for all tests.

    If it does not write the files that it reads, another one writes them before.
    """
    directory = str(job.directory)
    cleanup = (("rm", "-rf", f"{directory}/fslab-iozone"),)
    made = (
        f"--size={parameters.size_bytes}",
        f"--record={parameters.record_bytes}",
        f"--threads={parameters.threads}",
        "--latency=off",
        f"--seed={job.seed}",
        "--json",
    )
    rounds = () if parameters.most_rounds == 1 else (f"--rounds={parameters.most_rounds}",)
    until = rounds and (*rounds, f"--enough={ENOUGH_S}")
    engine = ("fslab-engine", "iozone", directory)
    layout = (
        *engine, "--tests=0", "--no-retest", "--flush", "--close", "--keep", *_purge(parameters), *made, *rounds,
    )  # fmt: skip
    run = (*engine, *_options(parameters), *made, *until)
    return Commands(
        prepare=() if 0 in parameters.groups else (layout,),
        # Keep the files: removing one before its pages reach the device would hide the cost of writing it.
        run=(*run, "--keep"),
        cleanup=cleanup,
    )


def reading_of(parameters: IozoneParameters, output: ToolOutput) -> tuple[RoundsTotal, ...]:
    """Return each test. ToolOutputError for other output, and for other sizes than were requested."""
    document = documents.document_of(output)
    tests, operations = document["answer"]["tests"], document["operations"]
    windows = map(documents.window, operations) if len(operations) == len(tests) else [None] * len(tests)
    for test in tests:
        if not 1 <= test["rounds"] <= parameters.most_rounds:
            raise ToolOutputError(
                f"fslab-engine reports {test['rounds']} rounds, not up to {parameters.most_rounds}"
            )
        size, record = int(test["size_bytes"]), int(test["record_bytes"])
        if (size, record) != (parameters.size_bytes, parameters.record_bytes):
            raise ToolOutputError(
                f"fslab-engine reports {label(size)} in records of {label(record)}, which was not requested"
            )
    return tuple(map(_total, tests, windows))


def with_rounds(reading: Reading, output: ToolOutput) -> Reading:
    """Return the reading with the times and the CPU time of each test in each round."""
    windows: dict[str, tuple[tuple[float, float], ...]] = {}
    cpu_s: dict[str, float] = {}
    for entry in documents.document_of(output)["operations"]:
        name = entry["name"].replace("-", "_")
        windows[name] = (*windows.get(name, ()), documents.window(entry))
        cpu_s[name] = cpu_s.get(name, 0.0) + documents.cpu_s(entry)
    return replace(reading, part_rounds=windows, part_cpu_s=cpu_s)


def _total(test: Mapping[str, Any], window: tuple[float, float] | None) -> RoundsTotal:
    rate = test["bandwidth_bytes_per_second"]
    return RoundsTotal(
        size_bytes=int(test["size_bytes"]),
        test=test["name"].replace("-", "_"),
        rate=None if rate is None else float(rate),
        rounds=int(test["rounds"]),
        window=window,
    )


def _purge(parameters: IozoneParameters) -> tuple[str, ...]:
    size_bytes = parameters.cache_size * KIB if parameters.cache_size else CACHE_BYTES
    return (f"--purge={size_bytes}",) if parameters.purge else ()


def _options(parameters: IozoneParameters) -> Iterator[str]:
    yield f"--tests={','.join(str(group) for group in parameters.groups)}"
    switches = {
        "--flush": parameters.flush, "--close": parameters.close, "--direct": parameters.direct,
        "--sync": parameters.sync, "--no-retest": not parameters.retest,
    }  # fmt: skip
    yield from (switch for switch, is_on in switches.items() if is_on)
    yield from _purge(parameters)
