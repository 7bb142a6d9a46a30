"""Tests of the consent to what studies bring and fslab executes: nothing is missing in the list, no door is without
the gate, and the question shows everything."""

from __future__ import annotations

import ast
import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import ValidationError
from tests import made
from tests.unit import explained

from fslab import feasibility
from fslab.api import ablations, results
from fslab.api.results import ResultStore
from fslab.applications import REGISTRY as APPLICATIONS
from fslab.campaign import cleanup, launch, traced
from fslab.campaign.consent import Consent, Executed, Kind, executed
from fslab.campaign.observer import Observer
from fslab.campaign.trial_loop import run_campaign
from fslab.cell import Cell, Frozen, MachineSpec, MediumSpec, StackSpec, WorkloadSpec
from fslab.cli import consent
from fslab.cli.explain import _Again
from fslab.errors import UnsafeError, UsageError
from fslab.fleet import worker_settings
from fslab.fleet.worker_settings import Allowed
from fslab.machine import facts
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.workloads import REGISTRY as WORKLOADS
from fslab.workloads import Job, text_key

SOURCE = Path(__file__).parents[2] / "src/fslab"
EVIL = "/evil/program"


def cell(machine: MachineSpec | None = None, tool: str = "dd", **parameters: Any) -> Cell:
    given = parameters or {"op": "write", "count": 1}
    return made.cell(made.spec(options={"size": "24m"}, machine=machine or MachineSpec()), tool, given)


class TestNothingIsMissing:
    def test_of_the_name_of_the_study_s_directory(self, tmp_path: Path) -> None:
        """A shell of the study's can read it as a command."""
        (tmp_path / "a;id").mkdir()
        (tmp_path / "harmless").symlink_to(tmp_path / "a;id")
        medium = MediumSpec(name="m", type="directory", options={"path": str(tmp_path / "harmless")})
        work = WorkloadSpec(name="w", tool="command", parameters={"run": "sh -c 'ls {directory}'"})
        (found,) = executed([Cell(stack=StackSpec(name="s", medium=medium), workload=work)])
        assert found.what == f"sh -c 'ls {tmp_path}/a;id/DIRECTORY'"

    @pytest.mark.parametrize("name", [name for name, machine in MACHINES if machine.guest])
    def test_of_a_guest(self, name: str) -> None:
        """Modules of User-Mode Linux run in a process of the host, and QEMU shows all files to its guest's kernel."""
        found = executed([cell(MachineSpec(type=name, kernel="/k", modules="/m", memory="1g"))])
        assert {(each.kind, each.what) for each in found} == {(Kind.KERNEL, "/k"), (Kind.MODULES, "/m")}
        assert not executed([cell(MachineSpec(type=name, memory="1g"))])

    def test_of_a_new_key(self) -> None:
        """A key with a text that is added: if what it names is executed, ``consent.executed`` must show it."""
        known: dict[type[Frozen], set[str]] = {
            MachineSpec: {"type", "kernel", "modules", "memory"},
            StackSpec: {"name", "layout", "layout_options", "filesystem", "mkfs_options", "mount_options", "plugins",
                        "attributes", "fill", "after_mount", "tuning"},
            WorkloadSpec: {"name", "tool", "parameters", "plugins"},
            MediumSpec: {"name", "type", "options"},
            Cell: {"tuning", "known_limits"},
        }  # fmt: skip
        texts = {
            model: {name for name, field in model.model_fields.items() if "str" in str(field.annotation)}
            for model in known
        }
        assert texts == known

    def test_of_a_stack(self) -> None:
        plain = cell()
        stack = plain.stack.model_copy(update={"after_mount": f"{EVIL} {{directory}}"})
        (found,) = executed([plain.model_copy(update={"stack": stack})])
        assert found == Executed(kind=Kind.COMMAND, what=f"{EVIL} DIRECTORY")

    SAMPLES: dict[str, dict[str, Any]] = {
        "bonnie": {"size": "16m", "files": 1024}, "command": {"run": "true"}, "crash": {}, "io-errors": {},
        "git": {}, "log-file": {}, "maildir": {}, "postgresql": {}, "sqlite": {},
        "dd": {"op": "write", "count": 1}, "engine": {}, "filebench": {"personality": "varmail"},
        "fio": {"rw": "write", "size": "1m"}, "iozone": {"size": "1m"}, "recovery": {},
        "mixed": {"parts.a.tool": "command", "parts.a.run": "true", "parts.b.tool": "dd", "parts.b.op": "write",
                  "parts.b.count": 1},
        "shell": {"operation": "create"}, "sysbench": {"file-test-mode": "seqwr"},
        **{key: {} for key in APPLICATIONS.names()},
    }  # fmt: skip

    @pytest.mark.parametrize("name", WORKLOADS.names())
    def test_of_a_workload(self, name: str) -> None:
        """Each program is a declared tool, or is shown, whatever text the keys of the study hold."""
        tool = WORKLOADS.get(name)
        tried = 0
        for raw in self.with_texts(name):
            form = tool.of(raw)
            try:
                parameters = form.parse_parameters(raw)
            except (ValidationError, ValueError):
                continue
            tried += 1
            job = Job(directory=Path("/d"), scratch=Path("/s"), seed=1)
            commands, shown = form.commands(parameters, job), form.own_commands(parameters, job)
            declared = {each.program for each in form.tools_of(parameters)} | {
                sys.executable,
                *("sh", "mkdir", "rm", "env"),
            }
            for argv in (*commands.prepare, commands.run, *commands.cleanup):
                assert argv[0] in declared or argv in shown, (raw, argv)
                assert EVIL not in argv[:1] or argv in shown
        assert tried, f"no example of '{name}' is valid"

    def with_texts(self, name: str) -> Iterator[dict[str, Any]]:
        yield (sample := self.SAMPLES[name])
        for key in (*WORKLOADS.get(name).Parameters.model_fields, *sample):
            yield {**sample, key: EVIL}
            yield {**sample, key: EVIL, text_key(key): f"[a]\nrw=write\nsize=1m\nexec_prerun={EVIL}\n"}

    @pytest.mark.parametrize("inside", [False, True])
    def test_of_the_text_of_a_script(self, inside: bool) -> None:
        own: dict[str, Any] = {"run": "sh {file}", "file": "x.sh", "file_text": "rm -rf /\n"}
        mixed: dict[str, Any] = {"parts.a.tool": "command", **{f"parts.a.{key}": value for key, value in own.items()},
                 "parts.b.tool": "dd", "parts.b.op": "write", "parts.b.count": 1}  # fmt: skip
        found = executed([cell(tool="mixed", **mixed) if inside else cell(tool="command", **own)])
        assert Executed(kind=Kind.SCRIPT, what="x.sh", text="rm -rf /\n") in found


MODULES = MachineSpec(type="uml", modules="/evil/modules")


def campaign(where: Path) -> Campaign:
    """Return a campaign as a manipulated store may contain it: guests load modules of its own."""
    return made.campaign(
        cells=(cell(MODULES),), trials=1, machine=facts.gather(), settings={"directory": str(where)}
    )


class TestEveryDoor:
    def test_trials_start_behind_the_gate_only(self) -> None:
        """Who calls what runs trials: only functions that require consent, and a guest's first process."""
        doors = {"run_trial", "TrialMachines", "boot"}
        callers = {
            (str(path.relative_to(SOURCE)), name)
            for path in SOURCE.rglob("*.py")
            if any(door in path.read_text() for door in doors)  # to parse all files takes a second
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call)
            and (name := getattr(node.func, "id", getattr(node.func, "attr", None))) in doors
        }
        assert callers == {
            ("campaign/trial_loop.py", "TrialMachines"), ("campaign/trial_dispatch.py", "run_trial"),
            ("campaign/traced.py", "run_trial"), ("campaign/guest_main.py", "run_trial"),
            ("campaign/trial_dispatch.py", "boot"), ("campaign/undo_journal.py", "boot"),  # the machine's boot id
            ("api/feature_tests.py", "TrialMachines"),  # what the user typed, and no study
            ("api/crash_states.py", "TrialMachines"),  # replays a state in a guest, and runs no trial
        }  # fmt: skip

    @pytest.fixture(autouse=True)
    def nothing_starts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def started(*_: object) -> None:
            raise AssertionError("a workspace was opened without consent")

        monkeypatch.setattr(cleanup, "opened_workspace", started)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with Store.open(str(tmp_path / "store.sqlite")) as opened:
            opened.create_campaign(campaign(tmp_path))
            yield opened

    def test_a_campaign_and_a_trace(self, store: Store) -> None:
        found = store.campaign("c1")
        with pytest.raises(UsageError, match="/evil/modules"):
            run_campaign(found, store, Observer(), budget_s=None)
        with pytest.raises(UsageError, match="/evil/modules"):
            list(traced.trace(found, found.cells, store, Observer()))

    def test_a_study_of_the_library(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(feasibility, "check", lambda *_: {})
        study = tmp_path / "s.yaml"
        study.write_text(
            "title: t\nmedia: {m: {type: ram, size: 24m}}\nstacks: {s: {medium: m, filesystem: ext4}}\n"
            "workloads: {w: {tool: dd, op: write, count: 1}}\non: uml\nmodules: /evil/modules\n"
        )
        with pytest.raises(UsageError, match="/evil/modules"):
            results.run(study, ResultStore(store))
        with pytest.raises(UsageError, match="/evil/modules"):
            results.resume(ResultStore(store), "c1")
        assert [known.id for known in store.campaigns()] == ["c1"]

    def test_an_ablation(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(feasibility, "check", lambda *_: {})
        found = store.campaign("c1").model_copy(update={"id": "c2"})
        with pytest.raises(UsageError, match="not allowed"):
            ablations.run_ablation(found, store, Observer(), frozenset(), consent.of_user())
        assert "/evil/modules" in capsys.readouterr().err
        assert not store.has("c2")

    def test_programs_on_a_server_are_not_allowed_unseen(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another user of it can have added them to a campaign of a study that has none."""
        monkeypatch.setattr(feasibility, "check", lambda *_: {})
        found = store.campaign("c1")
        terms = launch.RunConditions(consent=consent.of_user(allowed=True))
        launch.check_resumable(found, store, terms)
        monkeypatch.setattr(Store, "is_shared", True)
        with pytest.raises(UsageError, match="other users"):
            launch.check_resumable(found, store, terms)
        with pytest.raises(UsageError, match="other users"):
            results.resume(ResultStore(store), "c1", allow_commands=True)
        with pytest.raises(UsageError, match="other users"):
            _Again(found, store, frozenset(), terms.consent).check([explained.seen(found.cells[0], {})])

    def test_a_fleet(self) -> None:
        allowed = Allowed(guests=True, kernels=("/k",))
        with pytest.raises(UnsafeError, match="/evil/modules"):
            worker_settings.check(allowed, [cell(MODULES)])
        worker_settings.check(allowed, [cell(MachineSpec(type="uml", kernel="/k"))])
        for denied in (cell(MODULES), cell(tool="command", run="true")):
            with pytest.raises(UnsafeError, match="does not allow"):
                Consent(ask=lambda found: worker_settings.check_executed(allowed, found)).require([denied])

    def test_what_the_user_typed_is_not_asked_again(self) -> None:
        given = consent.of_user(kernel="/k", modules="/m")
        given.require([cell(MachineSpec(type="uml", kernel="/k", modules="/m"))])
        with pytest.raises(UsageError, match="not allowed"):
            given.require([cell(MachineSpec(type="uml", kernel="/k", modules="/other"))])


class TestQuestion:
    def lines(self, *found: Executed, columns: int = 60) -> list[str]:
        return list(consent.lines(found, columns))

    @pytest.mark.parametrize(
        ("written", "seen"),
        [
            ("a\nb\n\n", "a\\nb\\n\\n"), ("a\tb\rc", "a\\tb\\rc"), ("\x1b[2K\x9b1A", "\\x1b[2K\\x9b1A"),
            ("\u202egnp\u2069", "\\u202egnp\\u2069"), ("\u200b\u00ad\ufeff", "\\u200b\\xad\\ufeff"),
            ("a\u3164b\u2800", "a\\u3164b\\u2800"), ("e\u0301", "e\\u0301"), ("\U000e0041", "\\U000e0041"),
            ("mv \u05d0 \u0628 \u0661", "mv \\u05d0 \\u0628 \\u0661"), ("a\u1161\ud7b0", "a\\u1161\\ud7b0"),
            ("\U0001d159\ufffc\U0001f3fb", "\\U0001d159\\ufffc\\U0001f3fb"),
            ("true;" + " " * 500 + "rm x", "true; [500 blanks] rm x"), ("zürich → 漢", "zürich → 漢"),
        ],
    )  # fmt: skip
    def test_every_character_is_visible(self, written: str, seen: str) -> None:
        _, line, _ = self.lines(Executed(kind=Kind.COMMAND, what=written), columns=200)
        assert line == f"1/1 command: {seen}"

    @pytest.mark.parametrize("columns", [60, 19, 5])
    @pytest.mark.parametrize("wide", ["漢", "→"])  # the second one on some terminals
    def test_no_line_is_wider_than_the_screen(self, columns: int, wide: str) -> None:
        script = Executed(kind=Kind.SCRIPT, what="x.sh", text="y" * 100 + wide * 100)
        found = self.lines(Executed(kind=Kind.COMMAND, what="x" * 100 + wide * 100), script, columns=columns)
        assert max(len(line) + line.count(wide) for line in found) in {columns - 1, columns}
        said = "".join(line.strip() for line in found)
        assert "1/2command:" + "x" * 100 + wide * 100 in said.replace(" ", "")
        assert "1/1|" + "y" * 100 + wide * 100 in said.replace(" ", "")

    def test_the_text_of_a_script_is_shown_to_its_end(self) -> None:
        script = Executed(kind=Kind.SCRIPT, what="x.sh", text="true\n" * 50 + "rm -rf /")
        found = self.lines(Executed(kind=Kind.COMMAND, what="sh x.sh"), script)
        assert found[1:4] == ["1/2 command: sh x.sh", "2/2 script: x.sh", "     1/51 | true"]
        assert found[-2:] == ["    51/51 | rm -rf /", "end of the 2 programs"]

    def test_a_long_one_is_shown_page_by_page(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        said: list[str] = []
        answers = iter([True, False])

        def confirm(question: str, **_: object) -> bool:
            said.append(question)
            return next(answers)

        monkeypatch.setattr(typer, "confirm", confirm)
        assert not consent._paged([f"line {number}" for number in range(100)], os.terminal_size((80, 22)))
        assert said == [f"line {start} of 100: show the next lines?" for start in (20, 40)]
        assert capsys.readouterr().err.splitlines()[-1] == "line 39"

    @pytest.mark.parametrize(("columns", "rows"), [(20, 24), (40, 10), (200, 50), (80, 4)])
    def test_no_line_leaves_the_screen_before_it_is_asked(
        self, monkeypatch: pytest.MonkeyPatch, columns: int, rows: int
    ) -> None:
        """Whatever is said in the environment, and wherever standard output goes."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        monkeypatch.setenv("COLUMNS", "400")
        monkeypatch.setenv("LINES", "500")
        pages, page = [], list[str]()

        def confirm(question: str, **_: object) -> bool:
            pages.append([*page, f"{question} [y/N]: "])
            page.clear()
            return question != "Run them?"

        monkeypatch.setattr(typer, "confirm", confirm)
        monkeypatch.setattr(consent, "say", lambda line, **_: page.append(line))
        with os.fdopen(theirs, "w+b", buffering=0) as raw, TextIOWrapper(raw) as terminal:
            monkeypatch.setattr(sys, "stderr", terminal)
            monkeypatch.setattr(sys, "stdin", terminal)
            with pytest.raises(UsageError, match="not allowed"):
                consent.of_user().require([cell(tool="command", run="true " + "x" * 3000)])
            monkeypatch.undo()
        os.close(ours)
        assert pages[-1][-1].startswith("Run them?")
        assert max(sum(-(-len(line) // columns) for line in each) for each in pages) <= rows

    def test_it_is_shown_without_a_terminal(self, capsys: pytest.CaptureFixture[str]) -> None:
        found: Sequence[Cell] = [cell(tool="command", run="sh {file}", file="x", file_text="rm -rf /")]
        with pytest.raises(UsageError, match="--allow-commands"):
            consent.of_user().require(found)
        assert "| rm -rf /" in capsys.readouterr().err
