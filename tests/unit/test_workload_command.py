"""Tests of the workload ``command``: its words, placeholders and metrics; commands need the user's consent."""

from __future__ import annotations

import signal
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.read import read

from fslab import workloads
from fslab.campaign import tool_output
from fslab.campaign.consent import executed
from fslab.cell import Cell, WorkloadSpec
from fslab.cli import consent
from fslab.errors import NoSpaceError, StudyError, ToolFailedError, ToolOutputError, UsageError
from fslab.plan.expand import expand
from fslab.study.load import load_text
from fslab.system import proc
from fslab.units import Direction, Unit
from fslab.workloads import REGISTRY, Job, Parameters, ToolOutput
from fslab.workloads.command import split

COMMAND = REGISTRY.get("command")
JOB = Job(directory=Path("/mnt/work"), scratch=Path("/run/s"), seed=7)
STUDY = """\
title: t
media: {m: {type: ram, size: 2g}}
stacks: {s: {medium: m, filesystem: ext4}}
workloads: {w: {tool: command, %s}}
"""


def parsed(**raw: Any) -> Parameters:
    found: Parameters = COMMAND.parse_parameters(raw)
    return found


def written(keys: str) -> dict[str, Any]:
    (cell,) = expand(load_text(STUDY % keys, "s.yaml"))
    return cell.workload.parameters


@pytest.mark.parametrize(
    ("keys", "run"),
    [
        ("run: \"cp -r 'a b' {directory}/c\"", ("cp", "-r", "a b", "/mnt/work/c")),
        ("run: [cp, -r, a b, '{directory}/c']", ("cp", "-r", "a b", "/mnt/work/c")),
        ("run: [sh, -c, 'echo $HOME; echo {seed}']", ("sh", "-c", "echo $HOME; echo 7")),
        ("run: echo a; rm -rf b", ("echo", "a;", "rm", "-rf", "b")),
        ("run: [awk, '{print}']", ("awk", "{print}")),
    ],
)
def test_a_command_is_words_and_never_a_shell(keys: str, run: tuple[str, ...]) -> None:
    assert COMMAND.commands(parsed(**written(keys)), JOB).run == run


def test_several_commands_before_and_after() -> None:
    raw = written("run: [true], prepare: [[mkdir, a], [touch, 'a/b c']], cleanup: \"rm -r a\\nsync\"")
    commands = COMMAND.commands(parsed(**raw), JOB)
    assert commands.prepare == (("mkdir", "a"), ("touch", "a/b c"))
    assert commands.cleanup == (("rm", "-r", "a"), ("sync",))


@pytest.mark.parametrize("text", ["a '" + "\n" * 60_000, 'a "' + "\n" * 60_000, 'a "\\"\n' * 12_001])
def test_an_open_quote_over_many_lines_is_found_soon(text: str) -> None:
    began_s = time.process_time()
    with pytest.raises(ValueError, match="not closed"):
        split(text)
    assert time.process_time() - began_s < 5  # one line at a time, it took minutes


def test_a_flush_is_within_the_time_and_no_text_reaches_the_shell() -> None:
    run = COMMAND.commands(parsed(run="cp 'a;b' c", sync=True), JOB).run
    assert run == ("sh", "-c", '"$@" && sync -f .', "fslab", "cp", "a;b", "c")


def test_metrics_are_read_from_what_it_prints() -> None:
    raw = written(
        'run: x, metrics: {rate: {pattern: "rate: ([0-9.,]+)", unit: B/s, factor: 1000}, '
        'wait: {pattern: "wait ([0-9.]+)", unit: s, better: lower}}'
    )
    parameters = parsed(**raw)
    declared = {metric.name: (metric.unit, metric.better) for metric in COMMAND.metrics(parameters)}
    assert declared == {
        "time": (Unit.SECONDS, Direction.NEITHER),
        "rate": (Unit.BYTES_PER_SECOND, Direction.HIGHER),
        "wait": (Unit.SECONDS, Direction.LOWER),
    }
    output = ToolOutput(stdout="rate: 1\nrate: 1,234.5\n", stderr="wait 0.25", duration_s=3.5)
    assert COMMAND.read(parameters, output).metrics == {"time": 3.5, "rate": 1_234_500, "wait": 0.25}
    with pytest.raises(ToolOutputError, match="metric 'rate'"):
        COMMAND.read(parameters, ToolOutput(stdout="nothing", stderr="", duration_s=1))
    with pytest.raises(NoSpaceError):
        COMMAND.read(parameters, ToolOutput(stdout="", stderr="cp: No space left on device", duration_s=1))


@pytest.mark.parametrize(
    ("written", "number"),
    [("1,234", 1234), ("-1,234,567.5e3,", -1_234_567_500), ("12.5,", 12.5), ("0,75", None), ("1.234,5", None),
     ("1,2345", None), ("12,34,567", None)],
)  # fmt: skip
def test_a_comma_separates_thousands_and_never_decimals(written: str, number: float | None) -> None:
    """Without it, 0,75 of another locale would be 75."""
    parameters = parsed(run="x", **{"metrics.rate.pattern": "rate ([-0-9.,e]+)"})
    output = ToolOutput(stdout=f"rate {written} MB/s", stderr="", duration_s=1)
    if number is not None:
        assert COMMAND.read(parameters, output).metrics["rate"] == number
        return
    with pytest.raises(ToolOutputError, match="LC_ALL=C"):
        COMMAND.read(parameters, output)


ENDLESS = {"metrics.rate.pattern": "(?:a+)+b (.*)"}
LONG = ToolOutput(stdout="a" * 60, stderr="", duration_s=1)


def test_a_pattern_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_output, "READ_LIMIT_S", 0.1)
    done = proc.run(["true"])
    for failed in (done, replace(done, returncode=1)):
        own = workloads.parsed(WorkloadSpec(name="w", tool="command", parameters={"run": "x", **ENDLESS}))
        with pytest.raises((ToolOutputError, ToolFailedError)) as error:
            tool_output.reading(own, failed, LONG)
        told = error.value.__cause__ or error.value
        assert "not read within" in str(told)
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


@pytest.mark.parametrize("prefix", ["", "one_"])
def test_what_was_read_before_is_not_searched_for_again(prefix: str) -> None:
    """By a page, which a thread of the server makes, of a store that others wrote to."""
    parts = {"parts.one.tool": "command", "parts.two.tool": "command"}
    parts |= {f"parts.{part}.run": "x" for part in ("one", "two")}
    parts |= {f"parts.one.{key}": value for key, value in ENDLESS.items()}
    tool, raw = ("mixed", parts) if prefix else ("command", {"run": "x", **ENDLESS})
    files = {"one/stdout": LONG.stdout}
    output = replace(LONG, files=files, figures={f"{prefix}rate": 7.0, f"{prefix}time": 9.0})
    found = workloads.parsed(WorkloadSpec(name="w", tool=tool, parameters=raw)).read(output).metrics
    assert found[f"{prefix}rate"] == 7.0


def test_of_many_matches_only_the_last_one_is_kept() -> None:
    parameters = parsed(run="x", **{"metrics.rate.pattern": "(?s:.)([0-9])"})
    text = "a1" * (1 << 18)
    tracemalloc.start()
    read(COMMAND, parameters, ToolOutput(stdout=text, stderr="", duration_s=1))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 20


@pytest.mark.parametrize("said", ["nan", "-inf", "1e999", "-5"])
def test_what_is_negative_or_not_finite_is_no_figure(said: str) -> None:
    """A ratio or an export of it has no meaning."""
    parameters = parsed(run="x", **{"metrics.rate.pattern": "rate: (.*)"})
    with pytest.raises(ToolOutputError, match="no finite one: rate"):
        read(COMMAND, parameters, ToolOutput(stdout=f"rate: {said}\n", stderr="", duration_s=1))


@pytest.mark.parametrize(
    ("given", "better"),
    [({}, "higher"), ({"unit": "ops/s"}, "higher"), ({"unit": "s"}, "lower"), ({"unit": "ns"}, "lower"),
     ({"unit": "s", "better": "higher"}, "higher")],
)  # fmt: skip
def test_a_longer_time_is_not_better_unless_the_study_says_so(given: dict[str, str], better: str) -> None:
    raw = {"metrics.x.pattern": "([0-9.]+)", **{f"metrics.x.{key}": value for key, value in given.items()}}
    assert COMMAND.metrics(parsed(run="x", **raw))[0].better == better


def test_the_time_ranks_only_where_it_is_the_answer() -> None:
    """pgbench -T 10 takes ten seconds on any stack."""
    declared = {"metrics.tps.pattern": "tps = ([0-9.]+)"}
    assert COMMAND.headline(parsed(run="x")) == ("time",)
    assert COMMAND.metrics(parsed(run="x"))[0].better is Direction.LOWER
    assert COMMAND.headline(parsed(run="x", **declared)) == ("tps",)
    asked = parsed(run="x", rank_time=True, **declared)
    assert COMMAND.headline(asked) == ("tps", "time")
    assert COMMAND.metrics(asked)[1].better is Direction.LOWER
    fixed = parsed(run="pgbench -T {runtime}", runtime="10s")
    assert COMMAND.headline(fixed) == ("time",)
    assert COMMAND.metrics(fixed)[0].better is Direction.NEITHER
    assert (
        COMMAND.metrics(parsed(run="x", prepare="age {runtime}", runtime="10s"))[0].better is Direction.LOWER
    )


def test_a_plan_and_the_question_show_the_user_and_the_limits() -> None:
    raw = written("run: initdb, user: postgres, limits: {nofile: 65536, memlock: unlimited}")
    spec = WorkloadSpec(name="w", tool="command", parameters=raw)
    (argv,) = workloads.parsed(spec).own_commands(JOB)
    limits = ("prlimit", "--nofile=65536", "--memlock=unlimited", "--")
    assert argv == (*limits, "runuser", "-u", "postgres", "--", "initdb")


def test_a_list_of_whole_commands_is_not_taken_for_words() -> None:
    with pytest.raises(StudyError, match="'mkdir a' is not a program"):
        written("run: x, prepare: [mkdir a, mkdir b]")


def shown(cells: Sequence[Cell]) -> list[str]:
    return [each.what for each in executed(cells)]


def test_a_study_with_commands_needs_consent(capsys: pytest.CaptureFixture[str]) -> None:
    cells = expand(load_text(STUDY % "run: [rm, -rf, '{directory}/x'], prepare: touch x", "s.yaml"))
    assert shown(cells) == ["touch x", "rm -rf DIRECTORY/x"]
    with pytest.raises(UsageError, match="not allowed"):
        consent.of_user().require(cells)
    assert "rm -rf DIRECTORY/x" in capsys.readouterr().err
    consent.of_user(allowed=True).require(cells)


def test_also_within_a_mix() -> None:
    parts = "{a: {tool: command, run: touch x}, b: {tool: fio, rw: read, size: 1m}}"
    cells = expand(
        load_text((STUDY % f"parts: {parts}").replace("tool: command, parts", "tool: mixed, parts"), "s")
    )
    assert shown(cells) == ["touch x"]
    quiet = expand(load_text(STUDY.replace("command, %s", "fio, rw: read, size: 1m"), "s"))
    consent.of_user().require(quiet)


def test_all_commands_are_shown_also_where_a_store_by_hand_gives_them_one_name() -> None:
    (harmless,) = expand(load_text(STUDY % "run: touch x", "s.yaml"))
    (other,) = expand(load_text(STUDY % "run: rm -rf /", "s.yaml"))
    assert harmless.workload.name == other.workload.name
    assert shown([other, harmless]) == ["rm -rf /", "touch x"]


def test_a_command_cannot_hide_itself_from_who_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    (harmless,) = expand(load_text(STUDY % "run: touch x", "s.yaml"))
    hidden = {
        **harmless.workload.parameters,
        "run": "rm x \x1b[2K\x1b[1A \u202e",
    }  # only a manipulated store can contain this
    cells = [
        harmless.model_copy(update={"workload": harmless.workload.model_copy(update={"parameters": hidden})})
    ]
    with pytest.raises(UsageError, match="not allowed"):
        consent.of_user().require(cells)
    said = capsys.readouterr().err
    assert "rm x" in said
    assert not {"\x1b", "\u202e"} & set(said)
