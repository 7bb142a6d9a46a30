"""Tests of the generated schema and document: they agree with what loading accepts; the pages in docs are current."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from ruamel.yaml import YAML

from fslab.errors import StudyError
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.study import reference_pages, shipped
from fslab.study.fields import keys_of
from fslab.study.load import load_text
from fslab.study.model import StudyFile, StudyStack
from fslab.study.model import StudyWorkload as WorkloadKeys
from fslab.study.schema import schema
from fslab.validity.campaign_warnings import REGISTRY as CAMPAIGN_RULES
from fslab.validity.trial_warnings import REGISTRY as TRIAL_RULES
from fslab.workloads import REGISTRY as WORKLOADS

DOCS = Path(__file__).parents[2] / "docs"

GOOD = """\
title: t
media: {m: {type: ram, size: [1g, 2g]}}
stacks:
  a: {medium: m, layout: single, filesystem: [ext4, xfs], mount_options: [defaults, noatime]}
  b: {medium: {type: loop}, layout: {type: single}, filesystem: ext4, mkfs_options: ""}
workloads:
  rw: {tool: fio, rw: randwrite, bs: [4k, 8192], size: 64m, direct: 1, cache: warm, thinktime: 5}
  rr: {extends: rw, rw: randread, time_limit: 90}
tuning: {vm.dirty_bytes: 65536}
budget: 10m
"""


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(schema())
    return Draft202012Validator(schema())


def plain(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


@pytest.mark.parametrize("study_id", shipped.ids())
def test_shipped_studies_are_valid(validator: Draft202012Validator, study_id: str) -> None:
    assert list(validator.iter_errors(plain(shipped.text(study_id)))) == []


def test_a_good_study_is_valid_and_loads(validator: Draft202012Validator) -> None:
    assert list(validator.iter_errors(plain(GOOD))) == []
    assert load_text(GOOD, "s.yaml").title == "t"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title: t", "titel: t"),
        ("title: t", "title: 5"),
        ("type: ram", "type: rum"),
        ("type: ram", "type: device"),
        ("size: [1g", "siez: [1g"),
        ("size: [1g, 2g]", "size: []"),
        ("[ext4, xfs]", "[ext4, xsf]"),
        ("[ext4, xfs]", "[]"),
        ("layout: single", "layout: double"),
        ("{type: single}", "{type: single, disks: 2}"),
        ("tool: fio", "tool: fia"),
        ("tool: fio, ", ""),
        ("rw: randwrite, ", ""),
        ("cache: warm", "cache: hot"),
        ("thinktime: 5", "thinktime: {a: 1}"),
        ("vm.dirty_bytes", "kernel.panic"),
        ("budget: 10m", "trials: 0"),
    ],
)
def test_what_loading_refuses_the_schema_refuses(validator: Draft202012Validator, old: str, new: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises(StudyError):
        load_text(text, "s.yaml")
    assert list(validator.iter_errors(plain(text)))


AGAIN = "make it again: python -m fslab.study.reference_pages docs"


def test_the_pages_are_current() -> None:
    pages = reference_pages.pages()
    assert {path.name for path in (DOCS / "tools").iterdir()} == {
        path.removeprefix("tools/") for path in pages if path.startswith("tools/")
    }, AGAIN
    for path, text in pages.items():
        assert (DOCS / path).read_text("utf-8") == text, AGAIN


def test_the_warnings_name_every_rule_with_its_condition() -> None:
    rules = [rule for registry in (TRIAL_RULES, CAMPAIGN_RULES) for _, rule in registry]
    page = reference_pages.warnings()
    for rule in rules:
        assert rule.when, f"{rule.name} needs its condition"
        assert f"| `{rule.kind}` |" in page


def test_the_document_has_every_key_with_a_description() -> None:
    models: list[type[BaseModel]] = [StudyFile, StudyStack, WorkloadKeys]
    models += [entry.Options for registry in (MEDIA, LAYOUTS) for _, entry in registry]
    models += [entry.Parameters for _, entry in WORKLOADS]
    text = reference_pages.markdown()
    for model in models:
        for key, info in keys_of(model).items():
            if key in {"options", "parameters", "files"} or key.endswith("_text"):
                continue  # contain the entry's own keys, or texts of files
            assert info.description, f"{model.__name__}.{key} needs a description"
            assert f"| `{key}`" in text
    for name in (*WORKLOADS.names(), *FILESYSTEMS.names()):
        assert f": {name}`" in text
    for name in (*MEDIA.names(), *LAYOUTS.names()):
        assert f"| **`{name}`** |" in text
