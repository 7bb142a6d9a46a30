"""Makes and judges single crash states of kept recordings again, also in a guest, and lists these recordings."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fslab.api.crash import check_root
from fslab.campaign import cleanup, guest_recordings
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.campaign.trial_loop import new_id
from fslab.cell import Frozen
from fslab.crash import examine, judge, kept_recordings, states, trial
from fslab.crash.sources import Finding
from fslab.errors import GuestError, NoSpaceError, StoreError, UsageError
from fslab.names import Shown
from fslab.system import kernel as running_kernel
from fslab.system import path_owners, paths
from fslab.system.signals import Teardown
from fslab.system.temporary import TemporaryDirectory


@dataclass(frozen=True, kw_only=True, slots=True)
class _Named:
    """A state of a recording, by its name. ``second``: that of its recovery or, with ``repair``, of its repair."""

    recording: str
    first: states.State
    second: states.State | None
    repair: bool


class _ToldFinding(Frozen):
    """What a guest says of a finding: what ``trial.finding_document`` returns."""

    id: Shown | None
    kind: Shown
    broken: bool
    detail: Shown
    source: Shown
    state: Shown
    sequence: list[Shown] | None
    step: int | None
    steps_broken: list[int]
    lost_rows: list[int]


class _Told(Frozen):
    """The reply of ``crash_state_in_guest``, which root in the guest can forge."""

    image: str
    filesystem: Shown
    kernel: Shown
    findings: list[_ToldFinding]


def crash_state(
    name: str, image: Path, *, kernel: str | None = None, modules: str | None = None
) -> dict[str, Any]:
    """Create the state ``RECORDING.STATE`` as a new file ``image``, and return the findings from a copy of it.

    If a guest made the recording, one makes and judges the state: with ``kernel`` and ``modules``, as in a study.
    NeedsRootError if none made it, without root.
    """
    named = _parsed(name)
    found = kept_recordings.load(named.recording, paths.recordings())
    if found.machine is None:
        check_root()
    if os.path.lexists(image):
        raise UsageError("the image exists already", where=str(image), hint="name a new file: --output FILE")
    if not image.parent.is_dir():
        raise UsageError(
            "is not a directory", where=str(image.parent), hint="name another file: --output FILE"
        )
    path_owners.check_closed(image.parent, "--output")
    if found.machine is None:
        return _made(found, named, image)
    machine = found.machine.model_copy(update={"kernel": kernel, "modules": modules})
    with cleanup.opened_workspace(new_id(), frozenset()) as opened:
        machines = TrialMachines(workspace=opened)
        shared = machines.shared(machine)
        guest_recordings.bring(named.recording, shared)
        stack, asked = guest_recordings.stack(machine), guest_recordings.asked(name, shared)
        reply = machines.ask(stack, guest_recordings.SLOT, asked, timeout_s=guest_recordings.LIMIT_S, disks=0)
        try:
            told = _Told.model_validate(reply)
        except ValidationError as error:
            what = f"invalid reply from the guest: {error.errors(include_url=False)[0]['msg']}"
            raise GuestError(what, where=name) from error
        guest_recordings.take_image(shared, image)
    return {**told.model_dump(), "image": str(image), "recorded_kernel": found.kernel}


def crash_state_in_guest(name: str, shared: str) -> dict[str, Any]:
    """Do in a guest what ``crash_state`` does, with a recording in the directory that the host shares."""
    named = _parsed(name)
    guest_recordings.receive(named.recording, Path(shared))
    image = paths.temporary() / f"{guest_recordings.SLOT}.img"
    told = _made(kept_recordings.load(named.recording, paths.recordings()), named, image)
    guest_recordings.send_image(image, Path(shared))
    return {**told, "kernel": running_kernel.release()}


def _parsed(name: str) -> _Named:
    identity, _, text = name.partition(".")
    if not text:
        hint = "write RECORDING.STATE, such as 0a1b2c3d.412-random-7; recordings: fslab crash list"
        raise UsageError(f"'{name[:100]}' names no state of a recording", hint=hint)
    once, joint, twice = text.partition(states.REPAIR)
    if not joint:
        once, _, twice = text.partition(states.AGAIN)
    return _Named(
        recording=identity, first=states.State.parse(once),
        second=states.State.parse(twice) if twice else None, repair=joint == states.REPAIR,
    )  # fmt: skip


def _made(found: kept_recordings.KeptRecording, named: _Named, image: Path) -> dict[str, Any]:
    """Make the state, and judge a copy of it."""
    with TemporaryDirectory("crash") as made, Teardown() as undo:
        images = examine.private(made.path, trial.IMAGES, undo, uses=image)
        with states.builder(found.recording.log, found.recording.base) as builder:
            replayed = judge.judge_of(found.tested, found.recording, found.source, builder, images)
            if named.second is None:
                builder.make(named.first, image)
                findings = replayed.after(named.first, range(len(found.source.steps))).findings
            else:
                findings = _state_again(replayed, named, named.second, image, len(found.source.steps))
    told = [trial.finding_document(finding, found.source, named.recording) for finding in findings]
    return {"image": str(image), "filesystem": found.tested.driver.name, "findings": told}


def _state_again(
    replayed: judge.Judge, named: _Named, second: states.State, image: Path, runs: int
) -> list[Finding]:
    """Return the findings of a second cut during the recovery from the first, which is recorded again."""
    with replayed.recovery(named.first, repair=named.repair) as recording:
        if recording is None:
            raise UsageError(
                "the state cannot be mounted or repaired: no recovery to cut", where=str(named.first)
            )
        with states.builder(recording.log, recording.base) as builder:
            builder.make(second, image)
            if named.repair:
                return replayed.after_cut_repair(named.first, second, builder).findings
            return replayed.after_both(named.first, second, builder, range(runs)).findings


def crash_recordings() -> list[dict[str, Any]]:
    """Return the kept recordings: id, file system, number of runs, and the steps of the first run. All but the id are
    None for a damaged recording."""
    return [_recording(name) for name in sorted(kept_recordings.identities(paths.recordings()))]


def _recording(name: str) -> dict[str, Any]:
    try:
        found = kept_recordings.load(name, paths.recordings())
    except (StoreError, NoSpaceError):
        return {"id": name, "filesystem": None, "runs": None, "first": None}
    return {
        "id": name,
        "filesystem": found.tested.driver.name,
        "runs": len(found.source.steps),
        "first": found.source.words(0) if found.source.steps else [],
    }
