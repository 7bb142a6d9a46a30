"""Tests of workload traits: each workload describes itself; other modules do not depend on tools or parameters."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from fslab.applications import REGISTRY as APPLICATIONS
from fslab.cell import WorkloadSpec
from fslab.workloads import REGISTRY, Traits, traits_of

SOURCE = Path(__file__).parents[2] / "src" / "fslab"


def traits(tool: str, **parameters: Any) -> Traits:
    found = traits_of(WorkloadSpec(name="w", tool=tool, parameters=parameters))
    assert found != Traits()
    return found


@pytest.mark.parametrize(
    ("tool", "parameters", "reads", "writes"),
    [
        ("fio", {"rw": "randread", "size": "1m"}, True, False),
        ("fio", {"rw": "rw", "size": "1m"}, True, True),
        ("sysbench", {"file-test-mode": "rndrd"}, True, False),
        ("sysbench", {"file-test-mode": "seqwr"}, False, True),
        ("iozone", {"tests": "1", "size": "1m"}, True, False),
        ("iozone", {"tests": "0", "size": "1m"}, False, True),
        ("dd", {"op": "read", "count": 1}, True, False),
        ("engine", {"operations": "stat,read"}, True, False),
        ("engine", {"operation": "sync-read"}, True, False),
        ("engine", {"operation": "delete"}, False, True),
        ("shell", {"operation": "cat"}, True, False),
        ("bonnie", {"size": "64m"}, True, True),
        ("bonnie", {"files": 1024}, True, True),
        ("bonnie", {"files": 1024, "max-size": "4k"}, True, True),
        ("mixed", {"parts.a.tool": "dd", "parts.a.op": "read", "parts.a.count": 1,
                   "parts.b.tool": "dd", "parts.b.op": "write", "parts.b.count": 1}, True, True),
    ],
)  # fmt: skip
def test_reads_and_writes(tool: str, parameters: dict[str, Any], reads: bool, writes: bool) -> None:
    found = traits(tool, **parameters)
    assert (found.reads, found.writes) == (reads, writes)


def test_requests_syncs_and_parallelism() -> None:
    assert traits("fio", rw="rw", size="1m", bs="4k,64k").request_bytes == (4096, 65536)
    assert traits("fio", rw="write", size="1m", fdatasync=4, numjobs=3).syncs_per_write == 0.25
    assert traits("fio", rw="write", size="1m", numjobs=3).parallel == 3
    assert traits("sysbench", **{"file-test-mode": "rndwr", "file-num": 16}).syncs_per_write == 0.16
    mixed = {"file-test-mode": "rndrw", "file-num": 4}
    # 1 of 2.5 requests is a write; sysbench 1.0.20 reports 1716.26 fsyncs/s and 17102.78 writes/s.
    assert traits("sysbench", **mixed).syncs_per_write == pytest.approx(1716.26 / 17102.78, rel=0.01)
    # There is at least one write between two rounds of fsyncs, each with one fsync per file.
    assert traits("sysbench", **mixed, **{"file-fsync-freq": 1}).syncs_per_write == 4
    assert traits("sysbench", **mixed, **{"file-fsync-all": True}).syncs_per_write == 1
    assert traits("sysbench", **mixed, **{"file-fsync-freq": 0}).syncs_per_write is None
    assert traits("engine", files=2000, fsync=True).syncs == 2000
    assert traits("engine", files=2000, fsync=True, operations="read").syncs is None
    assert traits("iozone", size="1m", record="64k", direct=True).direct is True


def test_what_is_not_known_is_not_guessed() -> None:
    for tool, parameters in (("command", {"run": "x"}), ("filebench", {"script": "x"}), ("gone", {})):
        found = traits_of(WorkloadSpec(name="w", tool=tool, parameters=parameters))
        assert (found.reads, found.writes, found.direct, found.request_bytes) == (None, None, None, ())


def test_no_tool_is_named_outside_the_workloads() -> None:
    names = (
        set(REGISTRY.names())
        - set(APPLICATIONS.names())
        - {
            "command",
            "crash",
            "mixed",
            "recovery",
        }
    )  # these words also have other meanings
    quoted = re.compile(rf"""['"}}]({"|".join(names)})['"{{]""")
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "workloads"):
            continue
        text = path.read_text()
        assert not re.search(r"workload\.parameters(\.get\(|\[)", text), (
            f"{path} guesses at a tool's parameters"
        )
        if not quoted.search(text):
            continue  # to parse all files takes a second
        nodes = list(ast.walk(ast.parse(text)))
        # An application can run the same program.
        programs = {
            id(node.value)
            for node in nodes
            if isinstance(node, ast.keyword) and node.arg in {"program", "package"}
        }
        named = {
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and node.value in names and id(node) not in programs
        }
        assert not named, f"{path.relative_to(SOURCE)} names {named}"
