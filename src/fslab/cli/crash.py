"""``fslab crash``: what a trial of the workload ``crash`` runs, and its states again."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from fslab.cli.common import JsonOption, console, print_json
from fslab.errors import NeedsRootError

app = typer.Typer(no_args_is_help=True, help="Crash states: make them, judge them, make one again.")


@app.command("test", short_help="Operations and crash states on a directory of a virtual disk.")
def try_states(
    directory: Annotated[
        Path, typer.Argument(help="A directory, new or empty, on a virtual disk with log: data.")
    ],
    length: Annotated[int, typer.Option(min=1, max=3, help="Most operations of a sequence.")] = 1,
    sequences: Annotated[int, typer.Option(min=1, max=5000, help="How many sequences, or runs.")] = 100,
    sequence: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP;…", help="Only this one, such as 'write n; fsync n'; can be given again."),
    ] = None,
    states: Annotated[int, typer.Option(min=1, max=100_000, help="How many crash states.")] = 200,
    sector: Annotated[
        int, typer.Option(min=512, max=1 << 20, help="Bytes that the disk writes whole.")
    ] = 4096,
    application: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Runs of this application instead: fslab list applications."),
    ] = None,
    settings: Annotated[
        str, typer.Option(metavar="NAME=VALUE,…", help="Of the application, such as journal_mode=wal.")
    ] = "",
    transactions: Annotated[
        int, typer.Option(min=1, max=10_000, help="Transactions of each run of the application.")
    ] = 20,
    seed: Annotated[int, typer.Option(help="Which sequences and states.")] = 0,
    scratch: Annotated[Path | None, typer.Option(help="Directory for the disk's first image.")] = None,
    recordings: Annotated[
        Path | None,
        typer.Option(help="Where recordings of broken promises are kept; default: where 'replay' looks."),
    ] = None,
) -> None:
    """Run short sequences of operations, cut power after them in many ways, and judge what is left; prints JSON.

    Recordings of broken promises are kept for: fslab crash replay.
    """
    from fslab.api import crash

    _check_root()
    wish = crash.Wish(
        length=length,
        sequences=sequences,
        states=states,
        sector=sector,
        seed=seed,
        given=tuple(sequence or ()),
        application=application,
        settings=settings,
        transactions=transactions,
    )
    print_json(crash.crash_test(directory, wish, scratch, recordings))


@app.command("recover", short_help="Cut the power of a virtual disk, and time what comes back.")
def recover(
    directory: Annotated[Path, typer.Argument(help="A directory, new or empty, on a virtual disk.")],
    files: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="New files when power is cut; one more is synced.")
    ] = 10_000,
    size: Annotated[str, typer.Option(help="Of each, such as 4k.")] = "4k",
    unflushed: Annotated[
        str, typer.Option(help="What becomes of writes in the disk's cache: random, lost or kept.")
    ] = "random",
    check: Annotated[bool, typer.Option(help="Time a full check afterwards.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Which unflushed writes survive.")] = 0,
) -> None:
    """Write files, sync the last, cut power, and time mount, the first read, the first write and a check; prints JSON.

    The file system is unmounted first and meanwhile: where somebody else uses it, nothing is done.
    """
    from fslab.api import crash

    _check_root()
    load = crash.load_of(files=files, size=size, unflushed=unflushed, seed=seed, check=check)
    print_json(crash.crash_recovery(directory, load))


@app.command("fault", short_help="Let a virtual disk fail, and see what its file system makes of it.")
def fault(
    directory: Annotated[
        Path, typer.Argument(help="A directory, new or empty, on a virtual disk with a log.")
    ],
    name: Annotated[str, typer.Argument(metavar="FAULT", help="What the disk does: fslab list faults.")],
    seed: Annotated[int, typer.Option(min=0, help="Which places and bits.")] = 0,
) -> None:
    """Read or write eight files while the disk fails, mount again, and count what was reported, silent or right; prints
    JSON.

    The file system is unmounted and mounted several times: where somebody else uses it, nothing is done.
    """
    from fslab.api import crash

    _check_root()
    print_json(crash.fault_test(directory, name, seed))


@app.command("replay", short_help="Make a crash state again, and leave its image.")
def replay(
    name: Annotated[str, typer.Argument(metavar="ID", help="As printed with a finding: RECORDING.STATE.")],
    output: Annotated[Path | None, typer.Option(help="New file for the image; default: ID.img here.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make the image of a crash state as it is before anybody mounts it, and say what is found in a copy."""
    from fslab.api import crash

    _check_root()
    told = crash.crash_state(name, (output or Path(f"{name}.img")).absolute())
    if as_json:
        print_json(told)
        return
    _print(f"{told['image']}: {told['filesystem']}")
    for finding in told["findings"]:
        _print(_paragraph(finding))


@app.command("list", short_help="Recordings that are kept.")
def listing() -> None:
    """The recordings of broken promises that are kept."""
    from fslab.api import crash

    for each in crash.crash_recordings():
        known = each["filesystem"] is not None
        text = f"{each['filesystem']}  runs: {each['runs']}, the first: {'; '.join(each['first'] or ())}"
        _print(f"{each['id']}  {text if known else 'damaged'}")


def _paragraph(finding: dict[str, Any]) -> str:
    verdict = "broken promise" if finding["broken"] else "loss allowed"
    steps = f" after: {'; '.join(finding['sequence'])}" if finding["sequence"] else ""
    return f"{finding['kind']} ({verdict}){steps}\n    {finding['detail']}\n    {finding['source']}"


def _print(text: str) -> None:
    console().print(text, soft_wrap=True, markup=False)


def _check_root() -> None:
    if os.geteuid() != 0:
        raise NeedsRootError("crash states are mounted, which needs root", hint="sudo fslab crash …")
