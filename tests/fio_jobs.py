"""The corpus of fio job files: the shapes in which people publish them, with what a study gives beside each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fslab.cell import WorkloadSpec
from fslab.study.inputs import input_place
from fslab.study.load import load_text
from fslab.study.matrix import workload_specs
from fslab.study.model import Study
from fslab.workloads import ParsedWorkload, parsed

DIRECTORY = Path(__file__).parent / "golden" / "fio-jobs"
FILES = sorted(DIRECTORY.glob("*.fio"))


@dataclass(frozen=True)
class Shape:
    """A job file, the study with it, and the numbers of its lines that fslab refuses."""

    file: Path
    study: str
    refused: list[str]


def shape(file: Path) -> Shape:
    """Return the shape that a file describes in its first lines: ``; keys: size=1g`` and ``; refused: 3 7``."""
    head = dict(re.findall(r"^; (keys|refused): (.*)$", file.read_text(), re.MULTILINE))
    keys = "".join(f", {key.replace('=', ': ', 1)}" for key in head.get("keys", "").split())
    study = (
        "title: t\nmedia: {m: {type: ram, size: 64g}}\nstacks: {s: {medium: m, filesystem: ext4}}\n"
        f"workloads: {{w: {{tool: fio, file: {file.name}{keys}}}}}\n"
    )
    return Shape(file=file, study=study, refused=head.get("refused", "").split())


def loaded(study: str) -> Study:
    return load_text(study, "s.yaml", place=input_place(DIRECTORY))


def workload(file: Path, **beside: Any) -> ParsedWorkload[Any]:
    """Return the workload of a file, with further keys beside it."""
    (spec,) = workload_specs("w", loaded(shape(file).study).workloads["w"])
    return parsed(WorkloadSpec(name="w", tool="fio", parameters={**spec.parameters, **beside}))
