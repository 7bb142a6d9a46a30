"""Tests of traced trials on real devices: bytes match the block device's counters, metadata is separated from data, and
nothing is left behind.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests import made

from fslab.campaign import cleanup
from fslab.campaign.trial import run_trial
from fslab.campaign.trial_loop import new_id
from fslab.campaign.undo_journal import CampaignJournal
from fslab.cell import Cache, Cell, MediumSpec, TrialKey
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import statements_of
from fslab.probes import REGISTRY, Target
from fslab.storage import Workspace
from fslab.system import mountinfo, namespaces
from fslab.tracing import figures, tracer
from fslab.tracing.ebpf import DeviceSplit
from fslab.tracing.tracer import Tracer
from fslab.trial_record import Status, TrialRecord

RING = f"fslab-test-{os.getpid()}"
SYNCED: dict[str, Any] = {"rw": "randwrite", "bs": "4k", "fsync": 1, "size": "64m", "io_size": "2m"}
# Whether fsync has anything to commit depends on a change of mtime, and so on the kernel's timer tick. fdatasync does
# not commit times.
WITHOUT_TIMES = {key: value for key, value in SYNCED.items() if key != "fsync"} | {"fdatasync": 1}
DIRECT: dict[str, Any] = {
    "rw": "randwrite",
    "bs": "4k",
    "direct": True,
    "iodepth": 8,
    "size": "32m",
    "io_size": "32m",
}


def cell(filesystem: str, mount: str, parameters: dict[str, Any], medium: str = "ram") -> Cell:
    stack = made.spec(filesystem, medium, {"size": "400m"}, name=f"{filesystem} {mount}", mount_options=mount)
    return made.cell(stack, parameters=parameters, cache=Cache.WARM)


def run(workspace: Workspace, of: Cell, *, traced: bool) -> TrialRecord:
    key = TrialKey(campaign=workspace.campaign, block=0, seed=7)
    record = run_trial(of, key, workspace, machine={}, traced=traced)
    assert record.error is None, record.error
    return record


def value(record: TrialRecord, name: str) -> float:
    found = record.probes[name].value
    assert found is not None, name
    return found


def test_clean_removes_a_ring_that_a_killed_campaign_left_recording(
    loop: Callable[[], Path], tmp_path: Path
) -> None:
    campaign = f"test-{os.getpid()}"
    left = Tracer(devices=(loop().name,), volume=None, ring=f"fslab-{campaign}-trace")
    with CampaignJournal(campaign, tmp_path) as journal:
        journal.will_create("trace", left.ring)
        left.start()
        assert instances() == {left.ring}
        assert [entry.kind for entry in cleanup.undo_pending(journal)] == ["trace"]
        assert instances() == set()


def instances() -> set[str]:
    """Return the names of the trace instances of this process. Other tests trace at the same time."""
    every = (path.name for path in (namespaces.tracefs() / "instances").iterdir())
    return {name for name in every if name.startswith("fslab-") and f"-{os.getpid()}" in name}


@pytest.mark.parametrize(
    ("filesystem", "mount", "least", "most"),
    # Shares of metadata on Linux 6.18: 0.97, 0.02, 0.02. The bounds allow for other kernels.
    [("btrfs", "defaults", 0.8, 1.0), ("xfs", "defaults", 0.0, 0.2), ("ext4", "data=ordered", 0.0, 0.2)],
)
@pytest.mark.parametrize("medium", ["ram", pytest.param("loop", marks=pytest.mark.slow)])
def test_metadata_of_synced_writes(
    filesystem: str, mount: str, least: float, most: float, medium: str, workspace: Workspace
) -> None:
    if medium == "loop" and filesystem != "xfs":
        pytest.skip("one file system on the other medium is enough")
    record = run(workspace, cell(filesystem, mount, WITHOUT_TIMES, medium), traced=True)
    assert record.status is Status.TRACED
    ring = f"fslab-{workspace.campaign}-trace"
    assert not (namespaces.tracefs() / "instances" / ring).exists(), "no ring is left behind"
    assert isinstance(workspace.journal, CampaignJournal)
    assert ("trace", ring) in [(each.kind, each.target) for each in workspace.journal.pending()]
    assert record.provenance.observed["trace_method"], record.provenance.observed
    assert value(record, "traced_off") <= 0.005
    written = value(record, "traced_written_bytes")
    assert least <= value(record, "traced_metadata_bytes") / written <= most
    assert written == pytest.approx(value(record, "device_written_bytes_flushed"), rel=0.005)
    assert value(record, "traced_data_written_bytes") == pytest.approx(2 << 20, rel=0.1)


def test_reads_after_commits_are_not_counted_as_metadata(
    loop: Callable[[], Path], tmp_path: Path, shell: Callable[..., Any]
) -> None:
    device, mounted = loop(), tmp_path / "mounted"
    shell("mkfs.ext4", "-q", device)
    mounted.mkdir()
    shell("mount", device, mounted)
    try:
        major, minor = os.major(device.stat().st_rdev), os.minor(device.stat().st_rdev)
        try:
            counted = DeviceSplit(namespaces.tracefs(), major << 20 | minor)
        except OSError as error:
            pytest.skip(f"eBPF: {error}")
        descriptor = os.open(mounted / "data", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        try:
            page = mmap.mmap(-1, 4096)
            for index in range(20):
                os.pwrite(descriptor, page, index * 4096)
                os.fsync(descriptor)  # a commit; its blocks are marked as metadata
                for _ in range(20):
                    os.preadv(descriptor, [page], index * 4096)
            split = counted.read()
        finally:
            counted.close()
            os.close(descriptor)
    finally:
        shell("umount", mounted)
    assert split["R"].requests >= 400, split
    assert split["WM"].requests >= 20, split


def test_the_journal_of_ext4_is_located(workspace: Workspace) -> None:
    record = run(workspace, cell("ext4", "data=journal", SYNCED), traced=True)
    journal = value(record, "traced_journal_written_bytes")
    # jbd2's averages are rounded down, by less than one block per commit. Within that and 1 MiB, their sum equals the
    # bytes that were written to the journal's place on the device.
    assert journal == pytest.approx(
        value(record, "journal_bytes"), abs=value(record, "journal_bytes_error") + (1 << 20)
    )
    assert journal > 2 << 20, "each byte went through the journal"
    assert value(record, "traced_journal_commits") == pytest.approx(value(record, "journal_commits"), abs=2)


@pytest.mark.parametrize(
    ("filesystem", "mount", "honoured"),
    [("ext4", "data=journal", False), ("ext4", "data=ordered", True), ("xfs", "defaults", True),
     ("btrfs", "nodatacow", True)],
)  # fmt: skip
def test_it_is_noticed_unprompted_whether_direct_was_direct(
    filesystem: str, mount: str, honoured: bool, workspace: Workspace
) -> None:
    of = cell(filesystem, mount, DIRECT)
    record = run(workspace, of, traced=False)
    assert record.status in {Status.OK, Status.INVALID}
    # Remove warnings about a busy machine: they are not tested here.
    untraced = record.model_copy(update={"status": Status.OK, "validity": ()})
    statements = statements_of(Evidence(cell=of, workload="w", stack="s", trials=[untraced]))
    noticed = "direct-not-honoured" in {statement.mechanism for statement in statements}
    assert noticed is not honoured, record.probes.get("volume_dirtied_bytes")


def test_a_device_that_does_not_count_has_no_figures_and_no_trace(
    uncounted: Path, shell: Callable[..., Any]
) -> None:
    device = uncounted
    target = Target(devices=(device.name,), filesystem=None, directory=Path("/"), volume=device.name)
    with pytest.raises(ValueError, match="does not count"):
        REGISTRY.get("block-device").snapshot(target)
    tracer = Tracer(devices=(device.name,), volume=device.name, ring=RING)
    try:
        tracer.start()
        shell("dd", "if=/dev/zero", f"of={device}", "bs=4k", "count=256", "oflag=direct")
        trace = tracer.stop()
    finally:
        tracer.close()
    assert trace.split["W"].bytes == 1 << 20, "the trace itself does not need the counters"
    assert "iostats is 0" in figures.withdrawn(trace)[0]


def test_a_trial_on_it_says_less_and_nothing_wrong(uncounted: Path, stable: Callable[[Path], str]) -> None:
    path = stable(uncounted)
    medium = MediumSpec(name="m", type="device", options={"path": path})
    of = cell("ext4", "data=ordered", {**SYNCED, "size": "8m", "io_size": "512k"})
    of = of.model_copy(update={"stack": of.stack.model_copy(update={"medium": medium})})
    with cleanup.opened_workspace(new_id(), frozenset({path})) as workspace:
        timed, traced = run(workspace, of, traced=False), run(workspace, of, traced=True)
    assert not [name for name in timed.probes if name.startswith("device_")]
    assert any("iostats is 0" in why for why in traced.provenance.observed["trace_withdrawn"])
    for record in (timed, traced):
        warnings = [each for each in record.validity if "does not count" in each.message]
        assert warnings, record.validity
    untraced = timed.model_copy(update={"status": Status.OK, "validity": ()})
    statements = statements_of(Evidence(cell=of, workload="w", stack="s", trials=[untraced], traced=traced))
    evidence = " ".join(figure.evidence for each in statements for figure in each.figures)
    assert "device_" not in evidence
    assert "amplification" not in evidence
    assert "traced_" not in evidence


def test_without_tracefs_the_counters_still_speak(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If tracefs cannot be mounted, as with kernel lockdown, the statements that need only counters are still made."""

    def refused() -> Path:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(namespaces, "tracefs", refused)
    of = cell("btrfs", "defaults", {**SYNCED, "io_size": "256k"})
    record = run(workspace, of, traced=True)
    assert record.status is Status.TRACED
    assert record.provenance.observed["trace_absent"] == ("trace: no tracefs (Operation not permitted)",)
    assert [name for name in record.probes if name.startswith("traced_")] == ["traced_idle_bytes"]
    untraced = record.model_copy(update={"status": Status.OK, "validity": ()})
    statements = statements_of(Evidence(cell=of, workload="w", stack="s", trials=[untraced], traced=record))
    assert "metadata-traffic" not in {each.mechanism for each in statements}
    assert statements, "what was counted is said"
    found = {source.name: source for source in tracer.sources()}
    for name in ("tracefs", "ebpf", "ring"):
        assert found[name].missing == "Operation not permitted"
    assert found["debugfs"].missing is None


def test_what_is_written_at_rest_withdraws_the_trace(loop: Callable[[], Path]) -> None:
    device = loop()
    with ThreadPoolExecutor(1) as other:
        tracer = Tracer(devices=(device.name,), volume=device.name, ring=RING)
        try:
            started = Event()
            writing = other.submit(_write_until, started, device)
            try:
                tracer.start()
            finally:
                started.set()
            writing.result()
            assert any("nothing ran" in why for why in figures.withdrawn(tracer.stop()))
        finally:
            tracer.close()


def _write_until(over: Event, device: Path) -> None:
    with device.open("wb", buffering=0) as file:
        while not over.is_set():
            file.write(bytes(4096))
            os.fsync(file.fileno())
            file.seek(0)


def test_doctor_s_sources_are_tried_and_undone() -> None:
    found = {source.name: source.missing for source in tracer.sources()}
    assert found["tracefs"] is None
    assert instances() == set()


def test_nothing_is_mounted_by_looking_at_debugfs() -> None:
    def mounted() -> set[Path]:
        return {mount.target for mount in mountinfo.mounted() if mount.filesystem in {"debugfs", "tracefs"}}

    before = mounted()
    assert (namespaces.debugfs() / "bdi").is_dir()
    assert mounted() == before


def test_slow_operations_are_held_against_commits(workspace: Workspace) -> None:
    """Slow operations (measured by fio) and commits (traced) are compared on the same clock.

    With ``data=journal``, direct writes are journalled, so that some of them coincide with commits.
    """
    parameters = {**DIRECT, "iodepth": 1, "size": "64m", "io_size": "256m"}
    record = run(workspace, cell("ext4", "data=journal,commit=1", parameters), traced=True)
    assert value(record, "traced_operations") == 256 << 8
    slow = value(record, "traced_slow_operations")
    assert 30 <= slow <= 66, "0.1 % of 65 536; those that overlap count once"
    assert 0 < value(record, "traced_all_in_commits") < 100, (
        "the clocks agree, and commits are not all there is"
    )
    # Most requests write one block in place. The journal's requests are few, but so large that they determine the mean.
    assert value(record, "traced_write_p50") == 4096
    assert value(record, "traced_write_mean") > value(record, "traced_write_p90")
    assert not [name for name in record.raw if name.endswith("_lat.log")], "the log is not kept"
