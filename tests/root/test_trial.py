"""Tests of single real trials: a cell gives a record, also if the tool fails, hangs or fills the disk."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests import made
from tests.limits import LIMIT_S

from fslab.campaign.trial import run_trial
from fslab.cell import Cache, Cell, Fresh, MachineSpec, MediumSpec, TrialKey
from fslab.storage import Workspace, images
from fslab.system import cgroup, proc, warm_memory
from fslab.system.kernel_log import KernelMessages
from fslab.trial_record import Status, TrialRecord

FIO: dict[str, Any] = {"rw": "randwrite", "bs": "4k", "direct": True, "size": "8m", "io_size": "8m"}


def cell(
    tool: str = "fio", parameters: dict[str, Any] | None = None, filesystem: str = "ext4", **more: Any
) -> Cell:
    stack = made.spec(filesystem, options={"size": more.pop("size", "320m")}, **more.pop("stack", {}))
    return made.cell(stack, tool, FIO if parameters is None else parameters, **{"cache": Cache.WARM, **more})


def run(workspace: Workspace, wanted: Cell, block: int = 0) -> TrialRecord:
    key = TrialKey(campaign=workspace.campaign, block=block, seed=7)
    record = run_trial(wanted, key, workspace, machine={"kernel": "here"})
    assert TrialRecord.model_validate_json(record.model_dump_json()) == record, "the record has a JSON form"
    return record


# ext4's driver mounts these, too.
OLDER = [pytest.param(name, marks=pytest.mark.slow) for name in ("ext2", "ext3")]


def value(record: TrialRecord, name: str) -> float:
    figures = {**record.metrics, **record.probes}
    found = figures[name].value
    assert found is not None, name
    return found


@pytest.mark.parametrize("filesystem", [*OLDER, "ext4", "xfs", "btrfs"])
def test_device_bytes_are_what_fio_wrote_plus_what_the_file_system_adds(
    filesystem: str, workspace: Workspace
) -> None:
    record = run(workspace, cell(filesystem=filesystem))
    assert record.metrics, record.error
    assert value(record, "write_iops") > 0
    written = 8 << 20
    assert value(record, "device_written_bytes_flushed") >= written
    amplification = value(record, "write_amplification")
    assert amplification == pytest.approx(value(record, "device_written_bytes_flushed") / written)
    assert 1.0 <= amplification < 4.0


def test_provenance_has_the_exact_commands_in_order(workspace: Workspace) -> None:
    record = run(
        workspace, cell(filesystem="xfs", cache=Cache.COLD, stack={"mount_options": "noatime,logbufs=8"})
    )
    stages = [command.stage for command in record.provenance.commands]
    # Another device is taken if somebody takes the free one first.
    assert stages[:2] == ["attach", "attach"]
    assert [stage for stage in stages if stage != "attach"] == ["mkfs", "mount", "prepare", "mount", "run"]
    mount = next(command for command in record.provenance.commands if command.stage == "mount")
    assert "noatime,logbufs=8" in mount.argv
    assert record.provenance.tools["fio"] is not None
    assert record.provenance.tools["mkfs.xfs"] is not None
    assert record.provenance.device["logical_block_bytes"] == 512
    assert "crc=1" in record.provenance.device["features"]
    assert record.raw["fio.json"].startswith("{")


@pytest.mark.parametrize(
    ("filesystem", "options", "failure", "says"),
    [
        ("ext4", {"mount_options": "journal_async_commit,data=ordered"}, "mount",
         "can't mount with journal_async_commit in data=ordered mode"),
        ("xfs", {"mkfs_options": "-l size=2m"}, "mkfs", "log size 512 blocks too small, minimum size is"),
    ],
)  # fmt: skip
def test_a_failed_mkfs_or_mount_says_why(
    workspace: Workspace, filesystem: str, options: dict[str, str], failure: str, says: str
) -> None:
    record = run(workspace, cell(filesystem=filesystem, stack=options))
    assert record.status_text == f"failed:{failure}"
    assert record.error is not None
    assert says in record.error
    assert "dmesg" not in record.error
    logged = record.provenance.observed["kernel_log"]
    assert any(says in line for line in logged) == (failure == "mount"), logged


def test_memory_is_held_between_buffered_runs_where_free_memory_goes_to_a_host(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_memory, "is_reported", lambda: True)
    buffered = cell("dd", {"op": "write", "bs": "1m", "count": 16}, cache=Cache.COLD)
    record = run(workspace, buffered)
    assert record.provenance.memory_held_bytes >= 16 << 20
    assert workspace.warm_memory.held_bytes >= 16 << 20, "for the next run"
    direct = run(workspace, cell())
    assert direct.metrics, direct.error
    workspace.warm_memory.release()
    sparse = MediumSpec(name="m", type="ram", options={"size": "1g", "room": "96m"})
    for parameters, files in ((FIO, 1), (FIO | {"direct": False}, 2)):
        wanted = cell(parameters=parameters)
        wanted = wanted.model_copy(update={"stack": wanted.stack.model_copy(update={"medium": sparse})})
        held = run(workspace, wanted).provenance.memory_held_bytes
        assert files * (8 << 20) <= held < (files + 1) * (8 << 20), "for the image, and for the page cache"
        workspace.warm_memory.release()
    monkeypatch.setattr(warm_memory, "is_reported", lambda: False)
    workspace.warm_memory.release()
    assert run(workspace, buffered).provenance.memory_held_bytes == 0


@pytest.mark.parametrize("filesystem", [*OLDER, "ext4"])
def test_ext4_reads_no_bitmaps_in_the_background(filesystem: str, workspace: Workspace) -> None:
    record = run(workspace, cell(filesystem=filesystem))
    assert any(
        "no_prefetch_block_bitmaps" in options for options in record.provenance.observed["mount_options"]
    )


def test_warm_does_not_remount(workspace: Workspace) -> None:
    record = run(workspace, cell(cache=Cache.WARM))
    assert [command.stage for command in record.provenance.commands].count("mount") == 1


def test_a_cold_buffered_read_comes_from_the_device(workspace: Workspace) -> None:
    reading = {"rw": "read", "bs": "64k", "direct": False, "size": "64m"}
    cold = run(workspace, cell(parameters=reading, cache=Cache.COLD))
    warm = run(workspace, cell(parameters=reading, cache=Cache.WARM))
    assert value(cold, "device_read_bytes") >= 64 << 20
    assert value(warm, "device_read_bytes") < 8 << 20


def test_an_fsync_that_flushes_no_cache_is_warned_of(workspace: Workspace) -> None:
    synced = {"rw": "randwrite", "bs": "4k", "size": "1m", "fsync": 1}
    for options, warned in (("defaults", False), ("nobarrier", True)):
        record = run(workspace, cell(parameters=synced, stack={"mount_options": options}))
        assert any(each.kind == "sync_not_flushed" for each in record.validity) is warned


def test_reading_from_a_warm_cache_writes_no_access_times(workspace: Workspace) -> None:
    """The read that fills the cache changes them: they are flushed before the run, as what preparing left is."""
    files = {"operations": "read", "files": 1000, "size": "4k"}
    record = run(workspace, cell("engine", files))
    assert value(record, "read_rate") > 0
    assert value(record, "journal_bytes") == 0
    assert value(record, "device_written_bytes_flushed") < 64 << 10


def test_a_hanging_tool_is_ended_and_stored(workspace: Workspace) -> None:
    begun = time.monotonic()
    forever = {"rw": "randread", "bs": "4k", "size": "8m", "runtime": "1h"}
    record = run(workspace, cell(parameters=forever, time_limit_s=2.0))
    assert record.status_text == "failed:timed_out"
    assert "time_limit" in (record.error or "")
    assert time.monotonic() - begun < LIMIT_S, "not the hour that it was to take"


def test_a_trial_that_writes_more_than_the_room_of_its_image_is_ended(workspace: Workspace) -> None:
    sparse = MediumSpec(name="m", type="loop", options={"size": "1g", "room": "32m"})
    endless = cell(parameters={"rw": "write", "bs": "1m", "size": "512m", "runtime": "1h", "direct": True})
    record = run(
        workspace, endless.model_copy(update={"stack": endless.stack.model_copy(update={"medium": sparse})})
    )
    assert record.status_text == "failed:no_space"
    assert "has room for 32 MiB" in str(record.error)


def test_a_full_file_system_is_a_class_of_its_own(workspace: Workspace) -> None:
    record = run(workspace, cell(parameters={"rw": "write", "bs": "1m", "direct": True, "size": "1g"}))
    assert record.status_text == "failed:no_space"


def test_options_that_the_kernel_refuses_are_a_stored_failure(workspace: Workspace) -> None:
    record = run(workspace, cell(stack={"mount_options": "stripe=nonsense"}))
    assert record.status_text == "failed:mount"
    assert record.provenance.commands[-1].exit_code != 0
    assert run(workspace, cell(stack={"mkfs_options": "-O no_such_feature"})).status_text == "failed:mkfs"


def test_the_kernel_takes_the_options_that_fslab_takes_of_ext4(workspace: Workspace) -> None:
    asked = "nojournal_checksum,nouid32,warn_on_error,no_mbcache,inlinecrypt"
    record = run(workspace, cell(stack={"mount_options": asked}))
    assert record.status is Status.OK
    assert "options_not_in_effect" not in {warning.kind for warning in record.validity}


@pytest.mark.parametrize(
    ("filesystem", "mkfs", "mount", "reason"),
    [
        ("ext4", "-O ^has_journal", "max_batch_time=1", "without feature has_journal"),
        ("ext4", "", "max_batch_time=1,barrier=0", ""),
        ("xfs", "", "noalign", "with feature swidth=0"),
        ("xfs", "-d su=64k,sw=2", "noalign", ""),
        ("xfs", "", "inode32", "without feature 64-bit inode numbers"),
        ("ext4", "", "init_itable=2", "without mkfs option lazy_itable_init"),
        ("ext4", "-E lazy_itable_init=1", "init_itable=2", ""),
        ("ext4", "", "dax=inode", "without a disk with DAX"),
        ("btrfs", "", "degraded", "without a missing disk"),
        ("btrfs", "", "skip_balance", "without an interrupted balance or commands of the study"),
        ("xfs", "", "largeio", "without swidth or allocsize"),
        ("xfs", "", "largeio,allocsize=1m", ""),
    ],
)
def test_an_option_that_the_kernel_lists_and_that_lacks_what_it_needs(
    workspace: Workspace, filesystem: str, mkfs: str, mount: str, reason: str
) -> None:
    record = run(workspace, cell(filesystem=filesystem, stack={"mkfs_options": mkfs, "mount_options": mount}))
    texts = [warning.message for warning in record.validity if warning.kind == "options_not_in_effect"]
    assert texts == ([f"options: '{mount}' has no effect {reason}"] if reason else [])


def test_a_missing_tool_is_a_stored_failure(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/sbin:/sbin:/bin")
    from fslab.system import proc

    real = proc.run

    def without_fio(argv: Any, **more: Any) -> Any:
        return real(["there-is-no-such-program" if word == "fio" else word for word in argv], **more)

    monkeypatch.setattr(proc, "run", without_fio)
    assert run(workspace, cell()).status_text == "failed:tool_missing"


def test_small_files_by_the_engine(workspace: Workspace) -> None:
    parameters = {"operation": "small-files", "files": 500, "size": "4k", "operations": "create,delete"}
    record = run(workspace, cell("engine", parameters))
    assert record.status in {Status.OK, Status.INVALID}, record.error
    assert value(record, "create_rate") > 0
    assert value(record, "delete_rate") > 0


@pytest.mark.parametrize(
    "operation", ["meta", "analyze", "classify", "duplicates", "search", "sync-read", "sync-write", "delete"]
)
def test_every_operation_of_the_engine_gives_the_right_answer(operation: str, workspace: Workspace) -> None:
    tree: dict[str, Any] = {"classes": "small:300:8k,medium:10:256k", "scale": 1}
    parameters = {"operation": operation, "threads": 2, **({"files": 500} if operation == "meta" else tree)}
    record = run(workspace, cell("engine", parameters, filesystem="xfs"))
    assert record.metrics, record.error
    assert "wrong_answer" not in [warning.kind for warning in record.validity]
    if operation != "meta":
        assert value(record, f"{operation.replace('-', '_')}_rate") > 0
        assert '"files":' in record.raw["manifest.json"]


def test_dd_and_sysbench(workspace: Workspace) -> None:
    written = run(workspace, cell("dd", {"op": "write", "bs": "1m", "count": 64}))
    assert value(written, "write_bandwidth") > 0
    for mode in ("seqwr", "rndrw"):
        parameters = {"file-test-mode": mode, "file-total-size": "16m", "file-num": 4, "time": 1}
        record = run(workspace, cell("sysbench", parameters))
        assert record.metrics, record.error


def test_a_file_system_that_lives_for_the_cell_is_made_once(workspace: Workspace) -> None:
    wanted = cell(fresh=Fresh.CELL)
    first, second = run(workspace, wanted, 0), run(workspace, wanted, 1)
    assert "mkfs" in [command.stage for command in first.provenance.commands]
    assert "mkfs" not in [command.stage for command in second.provenance.commands]
    assert second.metrics, second.error
    assert not second.validity or all(w.kind != "filesystem_remade" for w in second.validity)


def test_a_file_system_that_lives_for_the_campaign_is_shared_by_its_cells(workspace: Workspace) -> None:
    first = run(workspace, cell(fresh=Fresh.CAMPAIGN))
    other = run(workspace, cell(parameters={**FIO, "rw": "randread"}, fresh=Fresh.CAMPAIGN))
    assert "mkfs" in [command.stage for command in first.provenance.commands]
    assert "mkfs" not in [command.stage for command in other.provenance.commands]


def test_a_file_system_remade_after_an_interruption_is_reported(workspace: Workspace) -> None:
    wanted = cell(fresh=Fresh.CELL)
    late = run(workspace, wanted, block=3)  # a cell can begin in any block
    assert "filesystem_remade" not in [warning.kind for warning in late.validity]
    workspace.made.discard(wanted.slot)
    workspace.lost.add(wanted.slot)
    record = run(workspace, wanted, block=4)
    assert "filesystem_remade" in [warning.kind for warning in record.validity]


@pytest.mark.alone  # settings apply to the whole machine
def test_tuning_is_set_and_put_back(workspace: Workspace) -> None:
    from pathlib import Path

    swappiness, dirty = Path("/proc/sys/vm/swappiness"), Path("/proc/sys/vm/dirty_ratio")
    before = swappiness.read_text(), dirty.read_text()
    tuned = {"vm.swappiness": "11", "vm.dirty_bytes": "67108864"}
    record = run(workspace, cell(tuning=tuned))
    assert record.metrics, record.error
    assert (swappiness.read_text(), dirty.read_text()) == before
    assert run(workspace, cell(tuning={"vm.no_such_thing": "1"})).status is Status.UNSUPPORTED


def test_a_file_larger_than_the_limit_of_memory_is_read_from_the_disk(workspace: Workspace) -> None:
    """Written and then read twice in one run: a smaller file is read from the page cache. The limit ends with the
    run."""
    if not cgroup.may_limit_memory():
        pytest.skip("no control group with a limit of memory may be made")
    read = {}
    for size in (64, 192):
        parameters = {"program": "engine", "tests": "0,1", "size": f"{size}m", "record": "1m", "rounds": 1}
        limited = cell("iozone", parameters, cache=Cache.COLD, stack={"machine": MachineSpec(memory="128m")})
        record = run(workspace, limited)
        assert record.metrics, record.error
        assert record.provenance.machine["memory_bytes"] == 128 << 20
        assert "memory_pressure" not in {warning.kind for warning in record.validity}
        read[size] = value(record, "device_read_bytes")
    assert read[64] < 8 << 20
    assert read[192] > 192 << 20
    with cgroup.memory_limited("fslab-test", 64 << 20) as within:
        groups = proc.run(["cat", "/proc/self/cgroup"], within=within).stdout
    assert groups != Path("/proc/self/cgroup").read_text()
    assert not list(Path("/sys/fs/cgroup").glob("**/fslab-test"))


def test_a_tool_that_the_kernel_kills_for_lack_of_memory_fails_with_the_kernels_reason(
    workspace: Workspace,
) -> None:
    if not cgroup.may_limit_memory() or KernelMessages().read() is None:
        pytest.skip(
            "no control group with a limit of memory may be made, or the kernel's log may not be read"
        )
    greedy = cell(
        "command",
        {"run": f"{sys.executable} -c 'bytearray(300 << 20)'"},
        stack={"machine": MachineSpec(memory="128m")},
    )
    record = run(workspace, greedy)
    assert record.status_text == "failed:crashed"
    assert "the kernel logged: Memory cgroup out of memory: Killed process" in str(record.error)
    assert "'guest_memory'" in str(record.error)


_ONE_FILE = "dd if=/dev/urandom of={directory}/x bs=1M count=80 conv=fsync"
_NO_ROOM_FOR_JOURNAL = (
    "sh -c 'dd if=/dev/urandom of={directory}/x bs=1M count=80; sync -f {directory}; mkdir {directory}/y'"
)


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
@pytest.mark.parametrize("written", [_ONE_FILE, _NO_ROOM_FOR_JOURNAL])
def test_a_medium_that_has_less_room_than_its_size_says_so_when_it_is_full(
    workspace: Workspace, filesystem: str, written: str
) -> None:
    """While a tool writes, also if the file system reports an I/O error or becomes read-only, because its journal finds
    no room; and while mkfs does: xfs has a journal of 64 MiB."""
    sparse = made.spec(filesystem, options={"size": "400m", "room": "60m"})
    record = run(workspace, made.cell(sparse, "command", {"run": written}, cache=Cache.WARM))
    assert record.status_text == "failed:no_space", record.error
    assert "more 'room'" in str(record.error)


def test_a_full_directory_of_a_sparse_image_fails_mkfs_for_lack_of_space(
    workspace: Workspace, small_disk: Path
) -> None:
    proc.run(["mount", "-o", "remount,size=100m", str(small_disk)])
    sparse = made.spec("ext4", "loop", {"size": "400m", "room": "60m", "path": str(small_disk)})
    written = made.cell(sparse, "command", {"run": "touch {directory}/x"}, cache=Cache.WARM)
    assert run(workspace, written).metrics
    images.empty(next(small_disk.glob("*.img")), workspace)  # as before each trial of a campaign
    (small_disk / "of another program").write_bytes(bytes(os.statvfs(small_disk).f_bavail * 4096))
    record = run(workspace, written, block=1)
    assert record.status_text == "failed:no_space", record.error
    assert "choose smaller sizes, or another 'path'" in str(record.error)
