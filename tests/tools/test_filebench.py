"""Tests of the workload ``filebench`` with the real engine, on plain files."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.limits import ran
from tests.made import cell

from fslab.feasibility._campaign import refused_by_tools
from fslab.units import parse_size
from fslab.workloads import REGISTRY, Job, Reading, ToolOutput
from fslab.workloads.filebench import COUNTED, PERSONALITIES

ENGINE = Path(sys.executable).parent / "fslab-engine"
FILEBENCH = REGISTRY.get("filebench")


def run(argv: tuple[str, ...]) -> str:
    done = ran([str(ENGINE), *argv[1:]], check=True)
    return done.stdout


def trial(directory: Path, **raw: Any) -> Reading:
    """Prepare and run the workload as a trial does. Return what is read from its output."""
    parameters = FILEBENCH.parse_parameters(raw)
    scratch = directory.parent / f"{directory.name}-scratch"
    scratch.mkdir()
    commands = FILEBENCH.commands(parameters, Job(directory=directory, scratch=scratch, seed=3))
    for name, text in commands.inputs.items():
        (scratch / name).write_text(text)
    for argv in commands.prepare:
        run(argv)
    return FILEBENCH.read(parameters, ToolOutput(stdout=run(commands.run), stderr="", duration_s=1.0))


def test_the_engine_has_the_personalities_that_a_study_may_name() -> None:
    listed = json.loads(run(("fslab-engine", "wml", "--list", "--json")))["answer"]["workloads"]
    assert {entry["name"] for entry in listed} == set(PERSONALITIES)
    for entry in listed:
        variables = entry["variables"]
        if "meanfilesize" in variables and entry["name"] not in {"copyfiles", "mongo", "webserver"}:
            files, size = PERSONALITIES[entry["name"]]
            assert (files, size) == (int(variables["nfiles"]), files * parse_size(variables["meanfilesize"]))
        counted = COUNTED.get(entry["name"], {})
        assert {name: int(variables[name]) for name in counted} == counted


def test_what_the_engine_refuses_is_known_before_anything_is_made() -> None:
    typo = "define process name=p { thread name=t { flowop raed name=r } }\nrun 1\n"
    refused: dict[str, dict[str, Any]] = {
        "no variable \\$nthreads": {"personality": "oltp", "nthreads": 4},
        "workload.f:1.*unknown flowop 'raed'": {"file": "x.f", "file_text": typo},
        "unknown flowop 'raed'": {"script": typo},
    }
    accepted = [cell("ext4", "filebench", {"personality": name}) for name in PERSONALITIES]
    wrong = [cell("ext4", "filebench", raw) for raw in refused.values()]
    found = [error.what for error in refused_by_tools([*accepted, *wrong])]
    assert len(found) == len(refused)
    for what, told in zip(found, refused, strict=True):
        assert re.search(f"^fslab-engine refuses it: .*{told}", what)


@pytest.mark.parametrize("personality", ["varmail", "fileserver", "webserver", "copyfiles"])
def test_a_personality(tmp_path: Path, personality: str) -> None:
    found = trial(
        tmp_path, personality=personality, runtime="300ms", nfiles=60, meanfilesize="4k", nthreads=2
    )
    rate, read = found.metrics["ops_rate"], found.read_bytes
    assert rate is not None
    assert rate > 0
    assert read is not None
    assert read > 0
    assert (found.asked_s is None) == (personality == "copyfiles")


def test_a_file_whose_files_were_made_before(tmp_path: Path) -> None:
    script = (
        "set $dir=/tmp\nset $n=20\n"
        "define fileset name=a,path=$dir,entries=$n,size=3k,dirwidth=5,prealloc=50\n"
        "define process name=p { thread name=t { flowop statfile name=s,filesetname=a\n"
        "flowop finishoncount name=e,value=100 } }\nrun 60\n"
    )
    work = tmp_path / "work"
    work.mkdir()
    found = trial(work, file="mine.f", file_text=script, set="n=40")
    assert len(list(work.glob("fslab-wml/a/**/0000*"))) > 20
    assert (found.working_set_bytes, found.read_bytes, found.asked_s) == (20 * 3072, 0, None)
