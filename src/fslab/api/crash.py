"""Tests crash states, recovery and faults of a directory on a virtual disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from pydantic import ValidationError

from fslab import applications, untrusted_text
from fslab.campaign.trial_loop import new_id
from fslab.campaign.undo_journal import CampaignJournal
from fslab.crash import bounded_sequences, examine, kept_recordings, recording, recovery, trial
from fslab.crash.application_runs import Runs
from fslab.crash.operations import FORMS
from fslab.crash.sequences import Sequences
from fslab.crash.sources import Source
from fslab.crash.steps import Sequence, Sync
from fslab.crash.trial_request import REQUESTS, Alphabet, CrashRequest, Cuts, FaultRequest, RecoveryRequest
from fslab.errors import MountError, NeedsRootError, UsageError
from fslab.faults import REGISTRY as FAULTS
from fslab.faults import struck_files
from fslab.faults import trial as fault_trial
from fslab.machine.planned_machine import here
from fslab.storage import user_mounts
from fslab.storage.filesystems import REGISTRY
from fslab.study.fields import describe
from fslab.system import disk_server, mountinfo, mounts, path_owners, paths, rights, tools
from fslab.system.mountinfo import Mount
from fslab.system.signals import Teardown
from fslab.system.temporary import TemporaryDirectory

_REQUEST_LIMIT_BYTES = 1 << 20
NOT_MOUNTED = "not_mounted"


def crash_test(request: CrashRequest) -> dict[str, Any]:
    """Test crash states and return the document of the trial (``fslab.crash.trial``).

    If a promise is broken, the recording is kept below ``recordings``, by default where :mod:`fslab.api.crash_states`
    looks for it. The file system is unmounted while states of it are mounted; ``NOT_MOUNTED``: why it could not be
    mounted again then, or None. Raises UnsupportedError if the directory is not on one virtual disk with a log of its
    data, or its file system also on other devices.
    """
    check_root()
    if request.scratch is not None and not request.scratch.is_dir():
        raise UsageError("is not a directory", where="--scratch", hint="name one that exists, or omit it")
    if request.recordings is not None:
        path_owners.check_closed(request.recordings, "--recordings")
    source = _source(request)
    recording.server_of(request.directory)
    directory, mount = _ground(request.directory)
    tested = _tested(directory, mount)
    with TemporaryDirectory("crash", request.scratch) as made:
        recorded = recording.record(directory, source, made.path, request.threads)
        keep, tally, refused = request.recordings or paths.recordings(), None, None
        with _journaled(mount):
            try:
                with Teardown() as undo:
                    recording.put_away(mount, tested, undo)
                    images = examine.private(made.path, trial.IMAGES, undo, uses=keep)
                    tally = trial.tally_of(recorded, tested, source, request, images)
            except MountError as error:
                if tally is None or not tested.refuses(error, mount.source, mount.target):
                    raise
                refused = str(error)
                tally.add_refused(refused)
        broken = any(finding.broken and finding.state for finding in tally.findings.values())
        identity = kept_recordings.keep(recorded, tested, source, keep) if broken else None
    document = trial.document(tally, source, kept=identity, filesystem=tested.driver.name)
    return {**document, NOT_MOUNTED: refused}


def crash_recovery(request: RecoveryRequest) -> dict[str, Any]:
    """Cut the power of the virtual disk under a directory, and return the document (:mod:`fslab.crash.recovery`).

    Raises UnsupportedError if there is no virtual disk, or its file system does not declare its promises.
    """
    check_root()
    server = recording.disk_of(request.directory)
    directory, mount = _ground(request.directory)
    tested = _tested(directory, mount)
    with _journaled(mount, server):
        return recovery.measure(directory, mount.source, tested, request)


def fault_test(request: FaultRequest) -> dict[str, Any]:
    """Inject one fault into the virtual disk under a directory, and return the document (:mod:`fslab.faults.trial`).
    Copies of the disk are in ``scratch``.

    Raises UnsupportedError if there is no virtual disk with a log, or its file system has no known checker.
    """
    check_root()
    fault = FAULTS.get(request.fault)
    server = recording.disk_of(request.directory)
    struck_files.check_log(server, request.directory)
    directory, mount = _ground(request.directory)
    tested = _tested(directory, mount)
    struck = struck_files.Ground(
        directory=directory,
        device=mount.source,
        server=server,
        tested=tested,
        seed=request.seed,
        scratch=request.scratch,
    )
    with _journaled(mount, server):
        return fault_trial.measure(struck, fault)


def run_request(path: Path) -> dict[str, Any]:
    """Do what a file asks for, as a trial wrote it, and return the document. UsageError if it holds no request."""
    try:
        request = REQUESTS.validate_json(untrusted_text.of_file(path, limit_bytes=_REQUEST_LIMIT_BYTES))
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UsageError("is not UTF-8 text", where=str(path), hint="save it as UTF-8") from error
    except ValidationError as error:
        told = "; ".join(": ".join(map(str, (*each["loc"], describe(each)))) for each in error.errors())
        raise UsageError(f"is not a request: {told}", where=str(path)) from error
    match request:
        case CrashRequest():
            return crash_test(request)
        case RecoveryRequest():
            return crash_recovery(request)
    return fault_test(request)


def _ground(directory: Path) -> tuple[Path, Mount]:
    """Return the path of the directory, which is created if it does not exist, and its mount.

    Raises UsageError if this fails or the directory is not empty, UnsafeError if its mount cannot be made again as it
    is, UnsupportedError if the promises of its file system are not known.
    """
    path_owners.check_closed(directory, "DIRECTORY")
    mount = mountinfo.containing(directory)
    if not _is_campaigns(mount):
        user_mounts.check_restorable(mount)
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot be made: {error.strerror}", where=str(directory)) from error
    path_owners.check_closed(directory, "DIRECTORY")  # below /tmp, another user can have made it first
    if any(directory.iterdir()):
        raise UsageError("the directory is not empty", where=str(directory), hint="name a new or empty one")
    examine.check_known(REGISTRY.get(mount.filesystem))
    return directory.resolve(), mount


@contextmanager
def _journaled(mount: Mount, server: Path | None = None) -> Iterator[None]:
    """Have the journal tell that a file system that is unmounted meanwhile was mounted: after SIGKILL, ``fslab clean``
    mounts it again, and sets back its disk, that of ``server``. One of a campaign is in the campaign's journal."""
    if _is_campaigns(mount):
        yield
        return
    with CampaignJournal(new_id()) as journal:
        target = user_mounts.target_of(mount)
        entry = journal.will_create(user_mounts.KIND, target, [mount.source])
        disk = journal.will_create(disk_server.OF_USER, str(server)) if server else None
        try:
            yield
        finally:
            if disk:
                journal.undone(disk)
            if mounts.at(mount.target) is not None:
                user_mounts.again(target, [Path(mount.source)])
                journal.undone(entry)


def _is_campaigns(mount: Mount) -> bool:
    return mount.target.is_relative_to(paths.runtime())


def _tested(directory: Path, mount: Mount) -> examine.Subject:
    root = str(directory.relative_to(mount.target))
    return examine.subject(REGISTRY.get(mount.filesystem), mount.options, root, Path(mount.source))


def check_root() -> None:
    """Raise NeedsRootError unless this process may mount crash states."""
    if missing := here().missing_for_mounts():
        raise NeedsRootError(f"mounting crash states needs {missing}", hint=rights.remedy(missing))


def _source(request: CrashRequest) -> Source[Any]:
    """Return the sequences or application runs of the test."""
    if request.application is None:
        return Sequences(chosen=_given(request.sequence)) if request.sequence else _chosen(request)
    application = applications.durable(request.application)
    settings = applications.parse_settings(application, request.settings)
    for tool in application.tools:
        tools.require(tool)
    return Runs(
        application=application, settings=settings, runs=request.runs, transactions=request.transactions,
        seed=request.seed,
    )  # fmt: skip


def _chosen(request: CrashRequest) -> Sequences:
    promising = request.cuts is Cuts.ENDS
    if request.skip is None and request.operations is not Alphabet.PUBLISHED:
        random = Random(request.seed)  # noqa: S311 - to be repeated
        sample = bounded_sequences.sampled(
            request.length, request.runs, random, request.operations, promising=promising
        )
        return Sequences(chosen=sample.sequences, lengths=sample.lengths)
    skip = request.skip or 0
    every = bounded_sequences.enumerated(request.length, request.operations, promising=promising)
    found = tuple(islice(every, skip, skip + request.runs))
    if not found:
        raise UsageError(f"there are no more than {skip} sequences", where="--skip")
    return Sequences(chosen=found)


def _given(texts: tuple[str, ...]) -> tuple[Sequence, ...]:
    try:
        return tuple(bounded_sequences.parse([step.strip() for step in text.split(";")]) for text in texts)
    except ValueError as error:
        known = ", ".join([*FORMS, *(f"{sync}{' NAME' * sync.named}" for sync in Sync)])
        hint = f"steps (NAME: a letter a-z, or up to three with '/'): {known}"
        raise UsageError(str(error), where="--sequence", hint=hint) from error
