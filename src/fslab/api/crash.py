"""Crash states of a directory on a virtual disk, and each of them again."""

import os
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from fslab.crash import examine, kept, operations, recording, report, states, trial
from fslab.crash.operations import OPERATIONS, Sequence
from fslab.crash.progress import Progress
from fslab.errors import StoreError, UsageError
from fslab.storage.filesystems import REGISTRY
from fslab.system import mounts, paths


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """How much to try: sequences of up to ``length`` operations, ``states`` of what they recorded. ``sector``: bytes
    that the disk writes whole. ``given``: only these sequences, their steps separated by semicolons."""

    length: int = 1
    sequences: int = 100
    states: int = 200
    sector: int = 4096
    seed: int = 0
    given: tuple[str, ...] = ()


def crash_test(
    directory: Path, wish: Wish, scratch: Path | None = None, recordings: Path | None = None
) -> dict[str, Any]:
    """The document of a trial (``fslab.crash.report``). The recording of a broken promise is kept below ``recordings``,
    by default where :func:`crash_state` looks for it.

    This process has a mount namespace of its own from then on. UnsupportedError where ``directory`` is not on one
    virtual disk with a log of its data.
    """
    if wish.sector % 512:
        raise UsageError(f"{wish.sector} is not a multiple of 512", where="--sector")
    random = Random(wish.seed)  # noqa: S311 - to be repeated
    chosen = _given(wish.given) or tuple(operations.sampled(wish.length, wish.sequences, random))
    mount = mounts.containing(directory)
    with TemporaryDirectory(dir=scratch, prefix="crash-") as place:
        recorded = recording.record(directory, chosen, Path(place))
        root = str(directory.resolve().relative_to(mount.target))
        tested = examine.subject(REGISTRY.get(mount.filesystem), mount.options, root, recorded.base)
        images = Path(place) / "images"
        images.mkdir()
        keep = recordings or paths.recordings()
        with examine.private(images, trial.IMAGES, uses=keep):
            tally = trial.judged(
                recorded, tested, chosen, count=wish.states, unit=wish.sector, seed=wish.seed, images=images
            )
        broken = any(finding.broken for finding in tally.findings.values())
        identity = kept.keep(recorded, tested, chosen, keep) if broken else None
    return report.document(tally, chosen, kept=identity, filesystem=tested.driver.name)


def crash_state(name: str, image: Path) -> dict[str, Any]:
    """Make the state ``RECORDING.STATE`` again as a new ``image``, and say what is found in a copy of it."""
    identity, _, text = name.partition(".")
    state = states.State.parse(text)
    found = kept.load(identity, paths.recordings())
    if os.path.lexists(image):
        raise UsageError("the image exists", where=str(image), hint="name another one: --output FILE")
    with (
        TemporaryDirectory(prefix="fslab-crash-") as place,
        examine.private(
            Path(place), trial.IMAGES, uses=image
        ),  # before the builder, which is to see the same mounts
        states.builder(found.recording.log, found.recording.base) as builder,
    ):
        builder.make(state, image)
        progress = Progress.of(found.recording.table(), found.sequences)
        judge = trial.judge_of(found.tested, progress, builder, Path(place))
        _, findings = judge.judge(state, trial.Tally(), range(len(found.sequences)))
    told = [report.shown(finding, found.sequences, identity) for finding in findings]
    return {"image": str(image), "filesystem": found.tested.driver.name, "findings": told}


def crash_recordings() -> list[dict[str, Any]]:
    """What is kept: id, file system, number of sequences; None for those of a recording that is damaged."""
    return [_recording(name) for name in sorted(kept.identities(paths.recordings()))]


def _recording(name: str) -> dict[str, Any]:
    try:
        found = kept.load(name, paths.recordings())
    except StoreError:
        return {"id": name, "filesystem": None, "sequences": None}
    return {"id": name, "filesystem": found.tested.driver.name, "sequences": len(found.sequences)}


def _given(texts: tuple[str, ...]) -> tuple[Sequence, ...]:
    try:
        return tuple(operations.parse([step.strip() for step in text.split(";")]) for text in texts)
    except ValueError as error:
        known = ", ".join(operation.name for operation in OPERATIONS)
        raise UsageError(
            str(error), where="--sequence", hint=f"known steps: {known}; sync, fsync NAME, …"
        ) from error
