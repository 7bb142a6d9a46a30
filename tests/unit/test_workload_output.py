"""Tests of what holds for each tool: its headline comes first; output without figures is an error, with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.read import read

from fslab.crash.trial_request import IMAGES_FULL
from fslab.errors import NoSpaceError, ToolFailedError, ToolOutputError, UnsupportedError
from fslab.workloads import REGISTRY, ToolOutput

TESTS = Path(__file__).parents[1]


def golden(name: str) -> str:
    return (TESTS / "golden" / name).read_text()


def of_engine(name: str, **changes: Any) -> str:
    """Return a golden document of the engine, with ``changes`` of its keys."""
    return json.dumps({**json.loads((TESTS.parent / f"engine/golden/{name}.json").read_text()), **changes})


def fio_with_atomic(version: str) -> str:
    document = json.loads(golden("fio-versions/fio-3.41.json"))
    document["jobs"][0].setdefault("job options", {})["atomic"] = "1"
    return json.dumps({**document, "fio version": version})


FIO = {"rw": "write", "size": "3g"}
SYSBENCH = {"file-total-size": "64M", "file-num": 4, "time": 1}
CREATE = {"operation": "create", "files": 10}
VARMAIL = {"personality": "varmail"}
FULL = "head: error writing 'standard output': No space left on device\n"  # of coreutils 9.1
ERROR = {"kind": "no_space", "path": "/mnt/x", "message": "cannot write /mnt/x: No space left on device"}


@pytest.mark.parametrize(
    ("tool", "raw", "output", "error", "told"),
    [
        ("fio", FIO, {"report": golden("fio-3.33/enospc.json")}, NoSpaceError, "ENOSPC"),
        ("fio", FIO, {"report": golden("fio-3.33/enospc.json").replace('"error" : 28', '"error" : 5')},
         ToolFailedError, "EIO"),
        ("fio", FIO, {}, ToolOutputError, None),
        *(("fio", FIO, {"report": text}, ToolOutputError, None)
          for text in ("", "fio: bad option <x>\n", "{}", '{"jobs": []}', '{"jobs": [{"error": 0}]}')),
        ("fio", FIO, {"report": golden("fio-versions/fio-3.1.json").replace("fio-3.1", "fio-2.20").replace(
            "lat_ns", "lat")}, ToolOutputError, r"fio-2.20 .*needs fio 3"),
        # Its writes would count as atomic ones.
        *(("fio", {**FIO, "atomic": True}, {"report": fio_with_atomic(old)}, ToolFailedError,
           f"{old} ignores 'atomic'") for old in ("fio-3.1", "fio-3.33", "fio-3.37-44-gabc")),
        ("sysbench", {**SYSBENCH, "file-test-mode": "seqwr"},
         {"stdout": golden("sysbench-1.0.20/enospc.stdout")}, NoSpaceError, None),
        ("sysbench", {**SYSBENCH, "file-test-mode": "rndrd"},
         {"stdout": golden("sysbench-1.0.20/prepare-failed.stdout")}, ToolFailedError,
         r"957\.38MiB, but at least 2GiB is expected"),
        ("sysbench", {"file-test-mode": "seqrd"}, {"stdout": "sysbench 1.0.20\n"}, ToolOutputError, "reads/s"),
        ("dd", {"op": "write", "count": 2000}, {"stderr": golden("coreutils-9.1/enospc.stderr")}, NoSpaceError, None),
        ("dd", {"op": "write", "count": 1024}, {"stderr": golden("coreutils-9.1/write-1m.stderr")},
         ToolOutputError, "536870912 bytes, not 1073741824"),
        ("dd", {"op": "write", "count": 1}, {"stderr": "dd: failed to open 'x': Permission denied\n"},
         ToolOutputError, "no summary; it printed: dd: failed"),
        ("bonnie", {"size": "64m"}, {"stderr": golden("bonnie-2.00a/enospc.stderr")}, NoSpaceError, None),
        # bonnie++ does not report why small files could not be created.
        ("bonnie", {"size": "64m"}, {"stderr": golden("bonnie-2.00a/enospc-files.stderr")}, ToolOutputError,
         "Can't create file"),
        ("shell", CREATE, {"stderr": FULL}, NoSpaceError, None),
        *(("shell", CREATE, {"stdout": text}, ToolOutputError, "ended early")
          for text in ("", "9\n", "11\n", "a\n")),
        ("iozone", {"size": "64m"}, {"stderr": golden("iozone-3.489/enospc.stderr")}, NoSpaceError, None),
        ("engine", {}, {"stdout": golden("fslab-engine-0.1.0/no_space.json")}, NoSpaceError,
         "No space left on device"),
        ("engine", {}, {"stdout": of_engine("error")}, ToolFailedError, "^fslab-engine: cannot open /nonexistent"),
        ("engine", {}, {"stdout": of_engine("small-files", protocol=2)}, ToolOutputError,
         "(?s)uses protocol 2.*reinstall"),
        *(("engine", {}, {"stdout": text}, ToolOutputError, None)
          for text in ("", "Usage: fslab-engine", "[]", '{"protocol": 1}')),
        ("engine", {"operations": "create"}, {"stdout": golden("fslab-engine-0.1.0/stat-read.json")},
         ToolOutputError, "create"),
        ("filebench", VARMAIL, {"stdout": of_engine("error")}, ToolFailedError, "cannot open /nonexistent"),
        ("filebench", VARMAIL, {"stdout": json.dumps({"protocol": 1, "error": ERROR})}, NoSpaceError, None),
        *(("filebench", VARMAIL, {"stdout": text}, ToolOutputError, None)
          for text in ("", "[]", '{"protocol": 1}', of_engine("wml", operations=[]))),
        *((tool, {}, {"stdout": '{"version": 1}'}, ToolOutputError, "KeyError")
          for tool in ("crash", "recovery", "io-errors")),
        ("crash", {}, {"stderr": "fslab: this is not on one virtual disk with a log of its data"},
         UnsupportedError, "log of its data"),
        ("crash", {}, {"stderr": "fslab: /x: the memory for images of crash states is full"}, NoSpaceError,
         "choose a smaller medium"),
        ("crash", {}, {"stderr": f"fslab: {IMAGES_FULL}: No space left on device (os error 28)"}, NoSpaceError,
         "choose a smaller medium"),
        ("recovery", {}, {"stderr": "fslab: /x: this is not on one virtual disk"}, UnsupportedError,
         "whose power can be cut"),
        ("io-errors", {}, {"stderr": "fslab: /x: the virtual disk keeps no log"}, UnsupportedError,
         "one virtual disk with a log"),
        *((tool, {}, {"stderr": "OSError: [Errno 28] No space left on device"}, NoSpaceError, None)
          for tool in ("recovery", "io-errors")),
    ],
)  # fmt: skip
def test_output_without_figures_is_an_error(
    tool: str, raw: dict[str, Any], output: dict[str, str], error: type[Exception], told: str | None
) -> None:
    form, (stdout, stderr) = REGISTRY.get(tool), (output.get(name, "") for name in ("stdout", "stderr"))
    files = {"fio.json": output["report"]} if "report" in output else {}
    found = ToolOutput(stdout=stdout, stderr=stderr, files=files, duration_s=1.0)
    with pytest.raises(error, match=told):
        read(form, form.parse_parameters(raw), found)


@pytest.mark.parametrize(
    ("tool", "raw", "headline"),
    [
        ("fio", {"rw": "randread", "direct": 1, "iodepth": 32}, ("read_iops",)),
        ("fio", {"rw": "write"}, ("write_bandwidth",)),
        ("fio", {"rw": "randrw", "direct": 1, "iodepth": 32}, ("read_iops", "write_iops")),
        ("fio", {"rw": "rw"}, ("read_bandwidth", "write_bandwidth")),
        ("fio", {"rw": "randread", "direct": 1}, ("read_iops",)),
        ("fio", {"rw": "randwrite", "fsync": 1}, ("write_iops",)),
        ("fio", {"rw": "randwrite", "fsync": 64}, ("write_iops",)),
        ("iozone", {}, ("write_bandwidth", "read_bandwidth", "random_read_bandwidth")),
        ("iozone", {"tests": 1}, ("read_bandwidth", "reread_bandwidth")),
        ("iozone", {"tests": 0, "retest": False}, ("write_bandwidth",)),
        ("iozone", {"record": "64k", "tests": "0,1"}, ("write_bandwidth", "read_bandwidth")),
        ("sysbench", {"file-test-mode": "seqwr"}, ("write_bandwidth",)),
        ("sysbench", {"file-test-mode": "seqrd"}, ("read_bandwidth",)),
        ("sysbench", {"file-test-mode": "rndrw"}, ("read_iops", "write_iops")),
        ("bonnie", {"size": "1g"}, ("write_bandwidth", "read_bandwidth", "seek_rate")),
        ("bonnie", {"size": "1g", "seeks": 0}, ("write_bandwidth", "read_bandwidth")),
        ("bonnie", {"files": 1024}, ("seq_create_rate", "seq_stat_rate", "seq_delete_rate")),
        ("bonnie", {"size": "1g", "files": 1024}, ("write_bandwidth", "read_bandwidth", "seq_create_rate")),
        ("engine", {"operations": "create,stat,read,delete"}, ("create_rate", "delete_rate")),
        ("engine", {"operations": "create,delete"}, ("create_rate", "delete_rate")),
        ("engine", {"operations": "read"}, ("read_rate",)),
        ("engine", {"operations": "stat,read,delete"}, ("stat_rate", "read_rate", "delete_rate")),
        ("engine", {"operation": "meta"}, ("create_rate", "unlink_rate")),
    ],
)
def test_the_headline_comes_first(tool: str, raw: dict[str, Any], headline: tuple[str, ...]) -> None:
    form = REGISTRY.get(tool)
    parameters = form.parse_parameters({"size": "1m", **raw} if tool in {"fio", "iozone"} else raw)
    assert form.headline(parameters) == headline
    assert {metric.name for metric in form.metrics(parameters)[: len(headline)]} == set(headline)
