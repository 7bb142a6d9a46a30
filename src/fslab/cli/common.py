"""Options that several commands share, and functions that print."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fslab import names
from fslab.errors import UsageError
from fslab.names import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from fslab.store.store import Store
    from fslab.study.model import Study


T = TypeVar("T")

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="FSLAB_STORE",
        help="Store of the results: a file, or a database URL such as postgresql+psycopg://host/name. "
        "Default: $XDG_DATA_HOME/fslab/store.sqlite, usually below ~/.local/share, of the user who runs fslab: with "
        "sudo, root's.",
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

KernelOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="The guest's kernel image; default: an installed one.")
]

ModulesOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIRECTORY", help="The directory of that kernel's modules; default: found next to it."
    ),
]

MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory of a guest, or on the host of the tool and its page cache. Default: 'guest_memory' of the study; "
        "without it 1g for a guest, no limit on the host.",
    ),
]

_CAMPAIGN = "A campaign: its id, a unique beginning of it, its name, 'last' or 'last~1'."
NeededCampaignArgument = Annotated[str, typer.Argument(metavar="CAMPAIGN", help=_CAMPAIGN)]
CampaignArgument = Annotated[str, typer.Argument(metavar="CAMPAIGN", help=_CAMPAIGN)]

CampaignsStudyArgument = Annotated[
    str | None,
    typer.Argument(metavar="STUDY", help="Id of a study, or its file. Default: that of the last campaign."),
]

OnlyWorkloadsOption = Annotated[
    list[str] | None, typer.Option("--workload", metavar="NAME", help="Only this workload. Repeatable.")
]

ShownMetricsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", metavar="NAME", help="Show this figure instead of the headline ones. Repeatable."
    ),
]


class SafeConsole(Console):
    """A console that writes no control characters except its own, for colours and for the live table."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the segments to print, with blanks for control characters."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text.isprintable() or (safe := shown(text)) == text:
                yield segment
            else:
                yield Segment(safe, segment.style)


@dataclass(frozen=True, kw_only=True)
class StudyChanges:
    """The options that change a study when it is read.

    Parameters:
        set KEY=VALUE: Set one value of the study, such as trials=3 or media.fast.size=2g. Repeatable.
        on MACHINE: Where trials run: 'host'; 'uml' or 'qemu' (guests with their own kernel, no root needed); or 'auto':
            the first of these that can build the stack; or 'best': one for all stacks, the nearest to the hardware that
            can build most of them. Default: 'on' of the study, or 'host'.
        scale FACTOR: Multiply the study's sizes, counts and run times by FACTOR, such as 0.05; 1 is full size. Default:
            'scale' of the study, or 1. Values set by --set are not scaled.
        on_path DIRECTORY: Measure the disk that DIRECTORY is on, on the host: images there, of the same sizes, replace
            the study's RAM disks, virtual disks and images. The file system of DIRECTORY is in all figures.
        allow_path DIRECTORY: Let the study read its files (job files, scripts, published figures) in DIRECTORY and
            below too. Default: only in the study's own directory and below. Repeatable.
    """

    set: list[str] | None = None
    on: str | None = None
    kernel: KernelOption = None
    modules: ModulesOption = None
    guest_memory: MemoryOption = None
    scale: float | None = None
    on_path: str | None = None
    allow_path: list[str] | None = None

    def settings(self, *more: str) -> list[str]:
        """Return them as settings of a study: KEY=VALUE. ``more``: other settings."""
        files = {"kernel": self.kernel, "modules": self.modules, "on_path": self.on_path}
        whole = {
            key: str(Path(path).expanduser().absolute()) for key, path in files.items() if path is not None
        }
        given = {"scale": self.scale, "on": self.on, **whole, "guest_memory": self.guest_memory}
        own = (f"{key}={json.dumps(value)}" for key, value in given.items() if value is not None)
        return [*(self.set or ()), *more, *own]

    def load(self, study: str, *more: str) -> Study:
        """Return the study with these changes. Raises StudyError."""
        from fslab import load

        return load(study, self.settings(*more), allow_paths=self.allow_path or ())


def words_of(options: Mapping[str, object]) -> list[str]:
    """Return options by their fields as they were given, for a command that is shown."""
    found: list[str] = []
    for name, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            if each is not None and each is not False:
                found += [f"--{name.replace('_', '-')}", *([] if each is True else [str(each)])]
    return found


def open_store(url: str | None, *, create: bool = False) -> Store:
    """Open the store of the results. StoreError if it does not exist, unless ``create``."""
    from fslab.store.store import Store

    return Store.open(url, create=create)


def option_value(parse: Callable[[str], T], text: str, option: str) -> T:
    """Return the value of an option's text. UsageError if ``parse`` raises ValueError."""
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(str(error), where=option) from error


def print_json(value: Any) -> None:
    """Print JSON, also of models and dataclasses. Escapes all control characters, also those that JSON permits."""
    from pydantic_core import to_jsonable_python

    # Not all of it by pydantic, which refuses names of files that are not UTF-8.
    document = json.dumps(value, indent=2, ensure_ascii=False, default=to_jsonable_python)
    sys.stdout.write(names.escaped(document) + "\n")


def say(text: object, *, err: bool = False) -> None:
    """Print a line. Control characters become spaces."""
    typer.echo(names.shown(str(text)), err=err)


def console(*, stderr: bool = False, markup: bool = False) -> Console:
    """Return a console to print to; plain text if the output is not a terminal.

    With ``markup``, brackets are Rich's markup: the caller must escape all text that is not its own.
    """

    return SafeConsole(stderr=stderr, highlight=False, emoji=False, markup=markup)
