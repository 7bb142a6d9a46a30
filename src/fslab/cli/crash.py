"""``fslab crash``: what a trial of the workload ``crash`` runs, and its states again."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli.common import JsonOption, console, print_json
from fslab.errors import NeedsRootError, UsageError

if TYPE_CHECKING:
    from fslab.crash.operations import Sequence

app = typer.Typer(no_args_is_help=True, help="Crash states: make them, judge them, make one again.")
ADVICE = "fslab run crash-quick"


@app.command("test", short_help="Operations and crash states on a directory of a virtual disk.")
def try_states(
    directory: Annotated[Path, typer.Argument(help="An empty directory on a virtual disk with log: data.")],
    length: Annotated[int, typer.Option(min=1, max=3, help="Most operations of a sequence.")] = 1,
    sequences: Annotated[int, typer.Option(min=1, help="How many sequences.")] = 100,
    sequence: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP;…", help="Only this one, such as 'write n; fsync n'; can be given again."),
    ] = None,
    states: Annotated[int, typer.Option(min=1, help="How many crash states.")] = 200,
    sector: Annotated[int, typer.Option(min=512, help="Bytes that the disk writes whole.")] = 4096,
    seed: Annotated[int, typer.Option(help="Which sequences and states.")] = 0,
    scratch: Annotated[Path | None, typer.Option(help="Directory for the disk's first image.")] = None,
) -> None:
    """Run short sequences of operations, cut power after them in many ways, and judge what is left; prints JSON.

    Recordings of broken promises are kept for: fslab crash replay.
    """
    from fslab.crash import examine, kept, operations, recording, report, trial
    from fslab.storage.filesystems import REGISTRY
    from fslab.system import mounts

    _check_root()
    random = Random(seed)  # noqa: S311 - to be repeated
    chosen = _given(sequence) or tuple(operations.sampled(length, sequences, random))
    mount = mounts.containing(directory)
    with TemporaryDirectory(dir=scratch, prefix="crash-") as place:
        recorded = recording.record(directory, chosen, Path(place))
        root = str(directory.resolve().relative_to(mount.target))
        tested = examine.subject(REGISTRY.get(mount.filesystem), mount.options, root, recorded.base)
        images = Path(place) / "images"
        images.mkdir()
        with examine.private(images, trial.IMAGES):
            tally = trial.judged(
                recorded, tested, chosen, count=states, unit=sector, seed=seed, images=images
            )
        broken = any(finding.broken for finding in tally.findings.values())
        identity = kept.keep(recorded, tested, chosen, kept.directory()) if broken else None
    print_json(report.document(tally, chosen, kept=identity, filesystem=tested.driver.name))


@app.command("replay", short_help="Make a crash state again, and leave its image.")
def replay(
    name: Annotated[str, typer.Argument(metavar="ID", help="As printed with a finding: RECORDING.STATE.")],
    output: Annotated[Path | None, typer.Option(help="New file for the image; default: ID.img here.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make the image of a crash state as it is before anybody mounts it, and say what is found in a copy."""
    from fslab.crash import examine, kept, report, states, trial
    from fslab.crash.progress import Progress

    _check_root()
    identity, _, text = name.partition(".")
    state = states.State.parse(text)
    found = kept.load(identity, kept.directory())
    image = (output or Path(f"{name}.img")).absolute()
    if image.exists():
        raise UsageError("the image exists", where=str(image), hint="name another one: --output FILE")
    with (
        states.builder(found.recording.log, found.recording.base) as builder,
        TemporaryDirectory(prefix="fslab-crash-") as place,
        examine.private(Path(place), trial.IMAGES),
    ):
        builder.make(state, image)
        log = found.recording.table()
        judge = trial.judge_of(found.tested, Progress.of(log, found.sequences), builder, Path(place))
        _, findings = judge.judge(state, trial.Tally())
    told = [report.shown(finding, found.sequences, identity) for finding in findings]
    if as_json:
        print_json({"image": str(image), "filesystem": found.tested.driver.name, "findings": told})
        return
    screen = console()
    screen.print(f"{image}: {found.tested.driver.name}, mount -o loop", soft_wrap=True, markup=False)
    for finding in told:
        screen.print(report.line(finding), soft_wrap=True, markup=False)


@app.command("list", short_help="Recordings that are kept.")
def listing() -> None:
    """The ids of all recordings that were kept, with their file systems."""
    from fslab.crash import kept

    home = kept.directory()
    for place in sorted(home.iterdir()) if home.is_dir() else ():
        found = kept.load(place.name, home)
        console().print(
            f"{place.name}  {found.tested.driver.name}  {len(found.sequences)} sequences", markup=False
        )


def _given(texts: list[str] | None) -> tuple[Sequence, ...]:
    from fslab.crash import operations

    try:
        return tuple(operations.parse([step.strip() for step in text.split(";")]) for text in texts or ())
    except ValueError as error:
        known = ", ".join(operation.name for operation in operations.OPERATIONS)
        raise UsageError(
            str(error), where="--sequence", hint=f"known steps: {known}; sync, fsync NAME, …"
        ) from error


def _check_root() -> None:
    if os.geteuid() != 0:
        raise NeedsRootError("crash states are mounted, which needs root", hint=f"sudo {ADVICE}")
