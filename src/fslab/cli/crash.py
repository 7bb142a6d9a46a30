"""``fslab crash``: the commands that trials of crash workloads run, and the replay of crash states."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from fslab.cli.common import JsonOption, print_json, say
from fslab.errors import NeedsRootError

app = typer.Typer(
    no_args_is_help=True, help="Make, check and replay crash states: disk contents after a power cut."
)

ScratchOption = Annotated[
    Path | None, typer.Option("--scratch", help="Directory for temporary images; default: $TMPDIR.")
]


@app.command("test", short_help="Test crash consistency in a directory on a virtual disk.")
def check_states(
    directory: Annotated[
        Path, typer.Argument(help="A new or empty directory on a virtual disk with log: data.")
    ],
    length: Annotated[int, typer.Option(min=1, max=3, help="Maximum number of operations per sequence.")] = 1,
    sequences: Annotated[
        int, typer.Option(min=1, max=5000, help="Number of sequences; with --application, of runs.")
    ] = 100,
    sequence: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STEP;…", help="Test only this sequence, such as 'write n; fsync n'. Repeatable."
        ),
    ] = None,
    states: Annotated[int, typer.Option(min=1, max=100_000, help="Number of crash states to check.")] = 200,
    cuts: Annotated[
        str,
        typer.Option(help="Where the power is cut: anywhere, or ends (only directly after each sequence)."),
    ] = "anywhere",
    operations: Annotated[
        str,
        typer.Option(
            help="What to use: all, metadata (no contents; fsync only) or published (sequences of published bugs)."
        ),
    ] = "all",
    skip: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Skip the first N sequences and test the following ones in order, instead of a random choice.",
        ),
    ] = None,
    recoveries: Annotated[
        int,
        typer.Option(
            min=0,
            max=100_000,
            help="Number of crash states in which power is cut again during recovery (3 times each).",
        ),
    ] = 5,
    repairs: Annotated[
        int,
        typer.Option(
            min=0,
            max=100_000,
            help="Number of crash states in which power is cut during a full repair (3 times each).",
        ),
    ] = 2,
    sector: Annotated[
        int,
        typer.Option(min=512, max=1 << 20, help="Atomic write unit of the disk in bytes, a multiple of 512."),
    ] = 4096,
    application: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Test runs of this application instead (fslab list applications)."),
    ] = None,
    settings: Annotated[
        str,
        typer.Option(metavar="NAME=VALUE,…", help="Settings of the application, such as journal_mode=wal."),
    ] = "",
    transactions: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of transactions per run of the application.")
    ] = 20,
    threads: Annotated[
        int, typer.Option(min=1, max=16, help="Number of sequences, or of runs, at the same time.")
    ] = 1,
    seed: Annotated[int, typer.Option(help="Seed that chooses sequences and states.")] = 0,
    scratch: ScratchOption = None,
    recordings: Annotated[
        Path | None,
        typer.Option(
            help="Directory for recordings of broken promises; default: that of fslab crash replay."
        ),
    ] = None,
) -> None:
    """Run short sequences of operations, make states that a power cut could leave, and check each; prints JSON.

    A broken promise is a loss that POSIX or the file system's documentation rules out. Its recording is kept for:
    fslab crash replay. Needs root.
    """
    from fslab.api import crash

    _check_root()
    request = crash.CrashRequest(
        length=length,
        sequences=sequences,
        states=states,
        cuts=crash.cuts_of(cuts),
        alphabet=crash.alphabet_of(operations),
        skip=skip,
        recoveries=recoveries,
        repairs=repairs,
        sector=sector,
        threads=threads,
        seed=seed,
        given=tuple(sequence or ()),
        application=application,
        settings=settings,
        transactions=transactions,
    )
    print_json(crash.crash_test(directory, request, scratch, recordings))


@app.command("recover", short_help="Time the recovery after a power cut of a virtual disk.")
def recover(
    directory: Annotated[Path, typer.Argument(help="A new or empty directory on a virtual disk.")],
    files: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Number of new files that are not synced; one more is.")
    ] = 10_000,
    size: Annotated[str, typer.Option(help="Size of each, such as 4k.")] = "4k",
    unflushed: Annotated[
        str, typer.Option(help="Fate of the writes in the disk's volatile cache: random, lost or kept.")
    ] = "random",
    check: Annotated[bool, typer.Option(help="Also time a full check (fsck) afterwards.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed that chooses the writes that are kept.")] = 0,
) -> None:
    """Write files, sync the last, cut power, and time mount, the first read, the first write and a check; prints JSON.

    The file system is unmounted and mounted again several times. If another process uses it, the command fails
    before it writes a file. Needs root.
    """
    from fslab.api import crash

    _check_root()
    load = crash.load_of(files=files, size=size, unflushed=unflushed, seed=seed, check=check)
    print_json(crash.crash_recovery(directory, load))


@app.command("fault", short_help="Test a file system on a virtual disk that fails.")
def fault(
    directory: Annotated[Path, typer.Argument(help="A new or empty directory on a virtual disk with a log.")],
    name: Annotated[str, typer.Argument(metavar="FAULT", help="How the disk fails (fslab list faults).")],
    seed: Annotated[int, typer.Option(min=0, help="Seed that chooses places and bits.")] = 0,
    scratch: ScratchOption = None,
) -> None:
    """Read or write eight files while the disk fails, mount again, and count errors that were reported, data that was
    silently wrong, and data that was right; prints JSON.

    The file system is unmounted and mounted again several times. If another process uses it, the command fails
    before it writes a file. Needs root.
    """
    from fslab.api import crash

    _check_root()
    print_json(crash.fault_test(directory, name, seed, scratch))


@app.command("replay", short_help="Make the image of a crash state again.")
def replay(
    name: Annotated[str, typer.Argument(metavar="ID", help="RECORDING.STATE, as printed with a finding.")],
    output: Annotated[
        Path | None, typer.Option(help="New file for the image; default: ID.img in this directory.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make the image of a crash state, as it is before the first mount, and check a copy of it. Needs root."""
    from fslab.api import crash

    _check_root()
    told = crash.crash_state(name, (output or Path(f"{name}.img")).absolute())
    if as_json:
        print_json(told)
        return
    say(f"{told['image']}: {told['filesystem']}")
    for finding in told["findings"]:
        say(_paragraph(finding))


@app.command("list", short_help="List the stored recordings.")
def listing() -> None:
    """List the stored recordings of broken promises."""
    from fslab.api import crash

    for each in crash.crash_recordings():
        known = each["filesystem"] is not None
        text = f"{each['filesystem']}  runs: {each['runs']}, the first: {'; '.join(each['first'] or ())}"
        say(f"{each['id']}  {text if known else 'damaged'}")


def _paragraph(finding: dict[str, Any]) -> str:
    verdict = "broken promise" if finding["broken"] else "loss allowed"
    steps = f" after: {'; '.join(finding['sequence'])}" if finding["sequence"] else ""
    return f"{finding['kind']} ({verdict}){steps}\n    {finding['detail']}\n    {finding['source']}"


def _check_root() -> None:
    if os.geteuid() != 0:
        raise NeedsRootError("mounting crash states needs root", hint="run it with sudo")
