"""IOzone's tests by fslab's engine: builds the ``fslab-engine iozone`` commands, parses their JSON. Runs nothing."""

from collections.abc import Iterator

from fslab.errors import ToolOutputError
from fslab.workloads import Commands, Job, ToolOutput
from fslab.workloads import _engine_document as documents
from fslab.workloads._iozone_parameters import KIB, IozoneParameters, Point, label

CACHE_BYTES = 1024 * KIB  # what IOzone purges without -S

Told = tuple[Point, str, float | None]


def commands(parameters: IozoneParameters, job: Job) -> Commands:
    """Return one command for all tests.

    If it does not write the files that it reads, another one writes them before.
    """
    directory = str(job.directory)
    cleanup = (("rm", "-rf", f"{directory}/fslab-iozone"),)
    sizes = _list("size", (size for size, _ in parameters.points))
    records = _list("record", (record for _, record in parameters.points))
    made = (
        sizes,
        records,
        f"--threads={parameters.threads}",
        "--latency=off",
        f"--seed={job.seed}",
        "--json",
    )
    engine = ("fslab-engine", "iozone", directory)
    layout = (*engine, "--tests=0", "--no-retest", "--flush", "--close", "--keep", *made)
    run = (*engine, *_options(parameters), *made)
    return Commands(
        prepare=() if 0 in parameters.groups else (layout,),
        # Keep the files: removing one before its pages reach the device would hide the cost of writing it.
        run=run if parameters.sweep else (*run, "--keep"),
        cleanup=cleanup,
    )


def reading_of(parameters: IozoneParameters, output: ToolOutput) -> tuple[Told, ...]:
    """Return point, test and bytes per second of each test. ToolOutputError for a point that was not requested."""
    document = documents.document_of(output)
    points = set(parameters.points)
    found = []
    for test in document["answer"]["tests"]:
        point = test["size_bytes"], test["record_bytes"]
        if point not in points:
            raise ToolOutputError(
                f"fslab-engine reports {label(point[0])} in records of {label(point[1])}, which was not requested"
            )
        found.append((point, test["name"].replace("-", "_"), test["bandwidth_bytes_per_second"]))
    return tuple(found)


def _options(parameters: IozoneParameters) -> Iterator[str]:
    yield f"--tests={','.join(str(group) for group in parameters.groups)}"
    switches = {
        "--flush": parameters.flush, "--close": parameters.close, "--direct": parameters.direct,
        "--sync": parameters.sync, "--no-retest": not parameters.retest,
    }  # fmt: skip
    yield from (switch for switch, is_on in switches.items() if is_on)
    if parameters.purge:
        yield f"--purge={parameters.cache_size * KIB if parameters.cache_size else CACHE_BYTES}"


def _list(name: str, values: Iterator[int]) -> str:
    return f"--{name}={','.join(str(value) for value in dict.fromkeys(values))}"
