"""Tests crash states and faults of a directory on a virtual disk, and replays single crash states."""

import os
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from fslab import applications
from fslab.crash import bounded, examine, judge, kept, recording, recovery, report, states, trial
from fslab.crash.bounded import Alphabet
from fslab.crash.findings import Finding
from fslab.crash.operations import FORMS
from fslab.crash.runs import Runs
from fslab.crash.sequences import Sequences
from fslab.crash.sources import Source
from fslab.crash.states import Cuts
from fslab.crash.steps import Sequence, Sync
from fslab.errors import StoreError, UsageError
from fslab.faults import REGISTRY as FAULTS
from fslab.faults import ground
from fslab.faults import trial as fault_trial
from fslab.storage.filesystems import REGISTRY
from fslab.system import disk, mounts, path_owners, paths, tools
from fslab.units import parse_size

E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, kw_only=True, slots=True)
class CrashRequest:
    """The extent of a crash test. It tries ``sequences`` sequences of up to ``length`` operations each, and ``states``
    crash states of their recording, with the power cut where ``cuts`` says. ``alphabet``: which operations. ``skip``:
    do not choose at random, but take the sequences after the first ``skip``. For ``recoveries`` of these states, the
    mount is cut again; for ``repairs``, a full repair. ``sector``: bytes that the disk writes atomically. ``given``:
    use only these sequences, with their steps separated by semicolons.

    ``application``: instead of operations, do ``sequences`` runs of this application with ``settings``, each of
    ``transactions`` transactions. ``threads``: run so many sequences or runs of the application at a time.
    """

    length: int = 1
    sequences: int = 100
    states: int = 200
    cuts: Cuts = Cuts.ANYWHERE
    alphabet: Alphabet = Alphabet.ALL
    skip: int | None = None
    recoveries: int = 5
    repairs: int = 2
    sector: int = 4096
    seed: int = 0
    given: tuple[str, ...] = ()
    application: str | None = None
    settings: str = ""
    transactions: int = 20
    threads: int = 1


def crash_test(
    directory: Path, request: CrashRequest, scratch: Path | None = None, recordings: Path | None = None
) -> dict[str, Any]:
    """Test crash states and return the document of the trial (``fslab.crash.report``).

    If a promise is broken, the recording is kept below ``recordings``, by default where :func:`crash_state` looks for
    it. The file system is unmounted while states of it are mounted. Raises UnsupportedError if ``directory`` is not on
    one virtual disk with a log of its data.
    """
    if request.sector % 512:
        raise UsageError(
            f"{request.sector} is not a multiple of 512", where="--sector", hint="write 4096, or omit it"
        )
    if scratch is not None and not scratch.is_dir():
        raise UsageError("is not a directory", where="--scratch", hint="name one that exists, or omit it")
    if recordings is not None:
        path_owners.check_closed(recordings, "--recordings")
    source = _source(request)
    recording.server_of(directory)
    directory, mount = _ground(directory)
    with TemporaryDirectory(dir=paths.temporary(scratch), prefix="crash-") as place:
        recorded = recording.record(directory, source, Path(place), request.threads)
        tested = _tested(directory, mount, recorded.base)
        images = Path(place) / "images"
        images.mkdir()
        keep = recordings or paths.recordings()
        with recording.put_away(mount, tested), examine.private(images, trial.IMAGES, uses=keep):
            tally = trial.judged(
                recorded, tested, source, count=request.states, cuts=request.cuts,
                recoveries=request.recoveries, repairs=request.repairs, unit=request.sector, seed=request.seed,
                images=images,
            )  # fmt: skip
        broken = any(finding.broken for finding in tally.findings.values())
        identity = kept.keep(recorded, tested, source, keep) if broken else None
    return report.document(tally, source, kept=identity, filesystem=tested.driver.name)


def cuts_of(text: str) -> Cuts:
    """Return where the power is cut. UsageError for an unknown name."""
    return _one_of(Cuts, text, "--cuts")


def alphabet_of(text: str) -> Alphabet:
    """Return which operations sequences are made of. UsageError for an unknown name."""
    return _one_of(Alphabet, text, "--operations")


def _one_of(kind: type[E], text: str, where: str) -> E:
    if text not in list(kind):
        raise UsageError(f"invalid value '{text}'", where=where, hint=f"values: {', '.join(kind)}")
    return kind(text)


def load_of(*, files: int, size: str, unflushed: str, seed: int, check: bool) -> recovery.Load:
    """Return the load that :func:`crash_recovery` writes before the cut. Raises UsageError for an invalid ``size`` or
    ``unflushed``."""
    try:
        each = parse_size(size)
    except ValueError as error:
        raise UsageError(str(error), where="--size") from error
    fate = _one_of(disk.Unflushed, unflushed, "--unflushed")
    return recovery.Load(files=files, size=each, unflushed=fate, seed=seed, check=check)


def crash_recovery(directory: Path, load: recovery.Load) -> dict[str, Any]:
    """Cut the power of the virtual disk under ``directory``, and return the document (:mod:`fslab.crash.recovery`).

    Raises UnsupportedError if there is no virtual disk, or its file system does not declare its promises.
    """
    recording.disk_of(directory)
    directory, mount = _ground(directory)
    tested = _tested(directory, mount, Path(mount.source))
    return recovery.measure(directory, mount.source, tested, load)


def fault_test(directory: Path, name: str, seed: int, scratch: Path | None = None) -> dict[str, Any]:
    """Inject one fault into the virtual disk under ``directory``, and return the document (:mod:`fslab.faults.trial`).
    Copies of the disk are in ``scratch``.

    Raises UnsupportedError if there is no virtual disk with a log, or its file system has no known checker.
    """
    fault = FAULTS.get(name)
    server = recording.disk_of(directory)
    ground.check_log(server, directory)
    directory, mount = _ground(directory)
    tested = _tested(directory, mount, Path(mount.source))
    struck = ground.Ground(
        directory=directory,
        device=mount.source,
        server=server,
        tested=tested,
        seed=seed,
        scratch=scratch,
    )
    return fault_trial.measure(struck, fault)


def _ground(directory: Path) -> tuple[Path, mounts.Mount]:
    """Return the path of the directory, which is created if it does not exist, and its mount.

    Raises UsageError if this fails or the directory is not empty, UnsupportedError if the promises of its file system
    are not known.
    """
    path_owners.check_closed(directory, "DIRECTORY")
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot be made: {error.strerror}", where=str(directory)) from error
    if any(directory.iterdir()):
        raise UsageError("the directory is not empty", where=str(directory), hint="name a new or empty one")
    mount = mounts.containing(directory)
    examine.check_known(REGISTRY.get(mount.filesystem))
    return directory.resolve(), mount


def _tested(directory: Path, mount: mounts.Mount, image: Path) -> examine.Subject:
    root = str(directory.relative_to(mount.target))
    return examine.subject(REGISTRY.get(mount.filesystem), mount.options, root, image)


def crash_state(name: str, image: Path) -> dict[str, Any]:
    """Create the state ``RECORDING.STATE`` as a new file ``image``, and return the findings from a copy of it."""
    identity, _, text = name.partition(".")
    once, joint, twice = text.partition(states.REPAIR)
    if not joint:
        once, _, twice = text.partition(states.AGAIN)
    state, second = states.State.parse(once), states.State.parse(twice) if twice else None
    found = kept.load(identity, paths.recordings())
    if os.path.lexists(image):
        raise UsageError("the image exists already", where=str(image), hint="name a new file: --output FILE")
    if not image.parent.is_dir():
        raise UsageError(
            "is not a directory", where=str(image.parent), hint="name another file: --output FILE"
        )
    path_owners.check_closed(image.parent, "--output")
    with (
        TemporaryDirectory(dir=paths.temporary(), prefix="fslab-crash-") as place,
        # Before the builder starts, so that it sees the same mounts.
        examine.private(Path(place), trial.IMAGES, uses=image),
        states.builder(found.recording.log, found.recording.base) as builder,
    ):
        replayed = judge.judge_of(found.tested, found.recording, found.source, builder, Path(place))
        every = range(len(found.source.steps))
        if second is None:
            builder.make(state, image)
            findings = replayed.after(state, every).findings
        else:
            repair = joint == states.REPAIR
            findings = _state_again(replayed, state, second, image, every, repair=repair)
    told = [report.shown(finding, found.source, identity) for finding in findings]
    return {"image": str(image), "filesystem": found.tested.driver.name, "findings": told}


def _state_again(
    replayed: judge.Judge,
    first: states.State,
    second: states.State,
    image: Path,
    runs: range,
    *,
    repair: bool,
) -> list[Finding]:
    """Return the findings of a second cut during the recovery from the first, which is recorded again."""
    with replayed.recovery(first, repair=repair) as recording:
        if recording is None:
            raise UsageError("the state cannot be mounted or repaired: no recovery to cut", where=str(first))
        with states.builder(recording.log, recording.base) as builder:
            builder.make(second, image)
            if repair:
                return replayed.after_cut_repair(first, second, builder).findings
            return replayed.after_both(first, second, builder, runs).findings


def crash_recordings() -> list[dict[str, Any]]:
    """Return the kept recordings: id, file system, number of runs, and the steps of the first run. All but the id are
    None for a damaged recording."""
    return [_recording(name) for name in sorted(kept.identities(paths.recordings()))]


def _recording(name: str) -> dict[str, Any]:
    try:
        found = kept.load(name, paths.recordings())
    except StoreError:
        return {"id": name, "filesystem": None, "runs": None, "first": None}
    return {
        "id": name, "filesystem": found.tested.driver.name, "runs": len(found.source.steps),
        "first": found.source.words(0) if found.source.steps else [],
    }  # fmt: skip


def _source(request: CrashRequest) -> Source[Any]:
    """Return the sequences or application runs of the test. Raises UsageError for an unknown application or setting."""
    if request.application is None:
        if request.settings:
            raise UsageError(
                "needs --application", where="--settings", hint="add --application NAME, or omit --settings"
            )
        return Sequences(chosen=_given(request.given)) if request.given else _chosen(request)
    if request.given:
        raise UsageError(
            "cannot be combined with --application", where="--sequence", hint="give only one of them"
        )
    application = applications.REGISTRY.get(request.application)
    settings = applications.parse_settings(application, request.settings)
    if application.tool is not None:
        tools.require(application.tool)
    return Runs(
        application=application, settings=settings, runs=request.sequences, transactions=request.transactions,
        seed=request.seed,
    )  # fmt: skip


def _chosen(request: CrashRequest) -> Sequences:
    promising = request.cuts is Cuts.ENDS
    if request.skip is None and request.alphabet is not Alphabet.PUBLISHED:
        random = Random(request.seed)  # noqa: S311 - to be repeated
        sample = bounded.sampled(
            request.length, request.sequences, random, request.alphabet, promising=promising
        )
        return Sequences(chosen=sample.sequences, lengths=sample.lengths)
    skip = request.skip or 0
    every = bounded.enumerated(request.length, request.alphabet, promising=promising)
    found = tuple(islice(every, skip, skip + request.sequences))
    if not found:
        raise UsageError(f"there are no more than {skip} sequences", where="--skip")
    return Sequences(chosen=found)


def _given(texts: tuple[str, ...]) -> tuple[Sequence, ...]:
    try:
        return tuple(bounded.parse([step.strip() for step in text.split(";")]) for text in texts)
    except ValueError as error:
        known = ", ".join([*FORMS, *(f"{sync}{' NAME' * sync.named}" for sync in Sync)])
        raise UsageError(
            str(error), where="--sequence", hint=f"steps (NAME: a letter, or letters with '/'): {known}"
        ) from error
