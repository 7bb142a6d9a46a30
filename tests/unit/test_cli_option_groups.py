"""Tests of the options that are made of docstrings, and of the docstrings of all commands."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from fslab import cli
from fslab.cli.option_groups import ENTRY, App, listed
from fslab.errors import UsageError


def documented() -> dict[str, Any]:
    """Return the functions and classes of all commands whose docstrings list parameters."""
    files = [importlib.import_module(f"fslab.cli.{each.name}") for each in pkgutil.iter_modules(cli.__path__)]
    return {
        f"{file.__name__}.{name}": value
        for file in files
        for name, value in vars(file).items()
        if (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == file.__name__
        and "Parameters:" in (value.__doc__ or "")
    }


def mistakes(about: Any) -> list[str]:
    """Return what is wrong with a list of parameters."""
    text, entries = listed(about)
    matches = [ENTRY.fullmatch(entry) for entry in entries]
    read = [match["name"] for match in matches if match]
    known = inspect.signature(about).parameters
    return [
        *(["the heading has no list below it"] if "Parameters:" in text else []),
        *(f"not an entry: {entry}" for entry, match in zip(entries, matches, strict=True) if not match),
        *(f"no parameter: {name}" for name in read if name not in known),
        *(f"twice: {name}" for name in sorted(set(read)) if read.count(name) > 1),
        *(
            f"an argument has no flag: {match['name']}"
            for match in matches
            if match
            and match["flags"]
            and not dataclasses.is_dataclass(about)
            and match["name"] in known
            and known[match["name"]].kind is not inspect.Parameter.KEYWORD_ONLY
        ),
    ]


def test_the_list_of_each_command_can_be_read() -> None:
    found = documented()
    assert {"fslab.cli.run.run", "fslab.cli.common.StudyChanges"} <= found.keys()
    assert {name: wrong for name, about in found.items() if (wrong := mistakes(about))} == {}


def broken(study: str, *, trials: int = 3, budget: str | None = None) -> None:
    """Measure.

    Parameters:
        study STUDY: A study:
            its id, or a file.
        trials -n --trials N: Trials of each cell.
        budget
        budget TIME:
        seed N: Of the order.
        trials N: Again.
        study --study S: By a flag.
    """
    print(study, trials, budget)


def test_each_kind_of_mistake_is_found() -> None:
    assert mistakes(broken) == [
        "not an entry: budget",
        "not an entry: budget TIME:",
        "no parameter: seed",
        "twice: study",
        "twice: trials",
        "an argument has no flag: study",
    ]


@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        ("trials N: How many.", ("trials", "", "N", "How many.")),
        ("on_path --on-path DIRECTORY: Where: here.", ("on_path", " --on-path", "DIRECTORY", "Where: here.")),
        ("yes -y --yes: Do not ask.", ("yes", " -y --yes", None, "Do not ask.")),
        ("study STUDY: Its id.", ("study", "", "STUDY", "Its id.")),
    ],
)
def test_an_entry_has_a_name_flags_a_metavar_and_help(entry: str, parts: tuple[str | None, ...]) -> None:
    match = ENTRY.fullmatch(entry)
    assert match is not None
    assert match.group("name", "flags", "metavar", "help") == parts


def every_help(command: Any, parent: Any = None) -> dict[str, str]:
    """Return the help of a command and of all below it."""
    context = command.make_context(command.name, [], parent, resilient_parsing=True)
    below = command.list_commands(context) if hasattr(command, "list_commands") else ()
    found = {context.command_path: command.get_help(context)}
    for name in below:
        found |= every_help(command.get_command(context, name), context)
    return found


def test_help_shows_arguments_and_values_as_man_pages_do() -> None:
    shown = every_help(get_command(cli.app))
    assert len(shown) > 30
    usage = {name: text.splitlines()[0] for name, text in shown.items()}
    assert usage["fslab plan"] == "Usage: fslab plan [OPTIONS] STUDY"
    assert usage["fslab report"] == "Usage: fslab report [OPTIONS] [CAMPAIGN]..."
    assert usage["fslab crash test"] == "Usage: fslab crash test [OPTIONS] DIRECTORY"
    strange = re.compile(r"<[a-z]|\[\[|\{|\blist\[")
    assert {name: found[0] for name, text in shown.items() if (found := strange.search(text))} == {}


def test_a_study_in_the_place_of_a_command_is_told() -> None:
    failed = CliRunner().invoke(cli.app, ["quick", "--trials", "5"]).exception
    assert isinstance(failed, UsageError)
    assert "fslab run quick" in str(failed)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["list", "xml"], "'xml' is not one of 'studies'"),
        (["serve", "--port", "99999"], "must be at most 65535, not '99999'"),
        (["fleet", "status", "--json=x"], "does not take a value"),
    ],
)
def test_a_refused_argument_is_told_in_plain_words(given: list[str], said: str) -> None:
    done = CliRunner().invoke(cli.app, given)
    assert done.exit_code == UsageError.exit_code
    assert said in done.output
    assert not re.search("Value error|Input should", done.output)


def test_a_mistake_in_a_list_stops_no_command() -> None:
    app = App()
    app.command()(broken)
    done = CliRunner().invoke(app, ["mine", "--trials", "5"])
    assert (done.exit_code, done.output) == (0, "mine 5 None\n")
    options = {each.name: each for each in get_command(app).params}
    assert options["budget"].opts == ["--budget"]
