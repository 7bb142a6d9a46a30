"""Tests that a long text of a study, a store or a job file takes no time out of proportion to its length."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from tests.unit.claimed import cell

from fslab.claims.claim_words import untested_words
from fslab.claims.model import ClaimAnswer, ClaimVerdict, PartFinding
from fslab.claims.scope import workload_is
from fslab.errors import ToolOutputError
from fslab.storage.filesystems import REGISTRY
from fslab.study.source import LONGEST_TEXT
from fslab.system.tools import Tool
from fslab.workloads import REGISTRY as TOOLS
from fslab.workloads import ToolOutput, iozone
from fslab.workloads._fio_file_reading import with_includes
from fslab.workloads._fio_refused_options import spelled

# Of CPU time. Milliseconds are needed; minutes, or it has no end, if each part of the text is tried again.
ENOUGH_S = 10


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError(f"not done after {ENOUGH_S} s")

    former = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, ENOUGH_S)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, former)


def test_a_claim_about_workloads_with_many_wildcards() -> None:
    assert not workload_is("*a" * 40 + "*b", cell("xfs", "a" * 100))
    assert workload_is("*a" * 40 + "*", cell("xfs", "a" * 100))


@pytest.mark.parametrize(
    ("pattern", "workload"),
    [("r*[bs=4k]", "rw[bs=4k]"), ("r?", "rw[bs=4k]"), ("rw", "rw[bs=4k]"), ("*", "rw"), ("[rw]*", "[rw]+")],
)
def test_wildcards_stand_for_characters_and_brackets_for_themselves(pattern: str, workload: str) -> None:
    assert workload_is(pattern, cell("xfs", workload))
    assert not workload_is(pattern.replace("*", ""), cell("xfs", "r"))


def test_a_number_of_many_digits() -> None:
    assert spelled("1" * LONGEST_TEXT) == "1" * LONGEST_TEXT
    assert spelled("4KiB/60:1.5MiB/40") == "4k/60:1536k/40"


def test_many_flags_in_a_word_of_mkfs() -> None:
    xfs = REGISTRY.get("xfs")
    assert xfs.made_with("-l" * (LONGEST_TEXT // 2)) == xfs.made
    assert xfs.made_with("-d agcount=4 -l su=4k,size=64m").most_zero_bytes == 64 << 20


def test_an_include_with_many_blanks() -> None:
    texts = {f"b{' ' * 100_000}c": "[job]"}
    assert "[job]" in with_includes("a.fio", f"include {next(iter(texts))}  ", texts.__getitem__)


def test_why_nothing_is_known_of_a_claim() -> None:
    part = PartFinding(what="", where="", bound="", verdict=ClaimVerdict.UNKNOWN, why=" on" * 400_000)
    answer = ClaimAnswer(verdict=ClaimVerdict.UNKNOWN, words="", parts=1, findings=(part,))
    assert untested_words([answer]) == f"1: {part.why}"


def test_what_a_tool_prints() -> None:
    dd = TOOLS.get("dd")
    raw = dd.parse_parameters({"op": "write", "count": 1})
    with pytest.raises(ToolOutputError):
        dd.read(raw, ToolOutput(stdout="", stderr="1 bytes (\n" * 100_000, duration_s=1.0))
    assert not iozone._CHILDREN.search(f"Children see throughput for 2 {' ' * LONGEST_TEXT}x")
    found = iozone._CHILDREN.search("Children see throughput for  2 initial writers \t=  123.45 kB/sec")
    assert found is not None
    assert found.groups() == ("2", "initial writers", "123.45")
    assert not re.search(Tool(program="x", package=None).version_pattern, "1" * LONGEST_TEXT)
