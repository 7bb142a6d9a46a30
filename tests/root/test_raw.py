"""Tests of ``filesystem: none``: fio and dd on a block device that is fslab's own, or may be overwritten."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.root.test_trial import FIO, cell, run, value

from fslab.campaign import cleanup
from fslab.campaign.trial_loop import new_id
from fslab.cell import Cache, Fresh, MediumSpec, StackSpec
from fslab.errors import UnsafeError
from fslab.storage import Workspace, stack
from fslab.system import loop_devices, proc

MIB = 1 << 20
RAW: dict[str, Any] = {"filesystem": "none", "size": "32m", "cache": Cache.COLD}


@pytest.mark.parametrize("cache", Cache)
@pytest.mark.parametrize("direct", [True, False])
def test_the_device_gets_what_fio_wrote_and_nothing_else(
    direct: bool, cache: Cache, workspace: Workspace
) -> None:
    record = run(workspace, cell(parameters=FIO | {"direct": direct}, **(RAW | {"cache": cache})))
    assert record.metrics, record.error
    assert value(record, "device_written_bytes_flushed") == 8 * MIB
    assert value(record, "write_amplification") == 1.0
    stages = [command.stage for command in record.provenance.commands if command.stage != "attach"]
    assert stages == ["prepare", "run"]
    assert record.provenance.device["filesystem"] == "none"
    assert not record.provenance.observed["mount_options"]
    assert not {
        name for name in record.probes if name.startswith(("space_", "file_", "ext4_", "xfs_", "btrfs_"))
    }
    assert not list(workspace.runtime.glob("mnt*")), "nothing is left"


@pytest.mark.parametrize(("direct", "cache"), [(True, Cache.COLD), (False, Cache.COLD), (False, Cache.WARM)])
def test_reads_come_from_the_device_unless_the_cache_is_warm(
    direct: bool, cache: Cache, workspace: Workspace
) -> None:
    parameters = {"rw": "randread", "size": "4m", "numjobs": 2, "direct": direct}
    record = run(workspace, cell(parameters=parameters, **(RAW | {"cache": cache})))
    assert record.metrics, record.error
    wanted = 8 * MIB if cache is Cache.COLD else 0
    assert value(record, "device_read_bytes") == pytest.approx(wanted, rel=0.1)
    assert value(record, "device_written_bytes_flushed") == 0


def test_each_process_has_a_region_of_its_own_and_all_are_laid_out(workspace: Workspace) -> None:
    """The rest of the device stays as it was."""
    parameters = {"rw": "write", "bs": "64k", "size": "4m", "numjobs": 2, "buffer_pattern": "0xfa"}
    for mode in ({"rw": "write"}, {"rw": "randread"}):
        with ExitStack() as undo:
            wanted = cell(parameters=parameters | mode, fresh=Fresh.CELL, **RAW)
            record = run(workspace, wanted)
            assert record.metrics, record.error
            up = stack.build(wanted.stack, workspace, undo, slot=wanted.slot, make=False, keep=True)
            assert up.raw is not None
            content = up.raw.read_bytes()
        assert content[: 8 * MIB] == b"\xfa" * 8 * MIB
        assert b"\xfa" * 512 not in content[8 * MIB :]


@pytest.mark.parametrize("operation", ["write", "read"])
def test_dd_works_on_the_device(operation: str, workspace: Workspace) -> None:
    record = run(workspace, cell("dd", {"op": operation, "bs": "1m", "count": 8}, **RAW))
    assert record.metrics, record.error
    assert value(record, f"{operation}_bandwidth") > 0
    moved = "device_read_bytes" if operation == "read" else "device_written_bytes_flushed"
    assert 8 * MIB <= value(record, moved) < 10 * MIB, "the kernel reads ahead, also behind what dd reads"


def test_what_dd_leaves_in_the_page_cache_is_not_written_before_dd_ends(workspace: Workspace) -> None:
    """The kernel flushes a device at its last close, and fslab has it open: dd is as fast as on files."""
    record = run(workspace, cell("dd", {"op": "write", "bs": "1m", "count": 8, "conv": "none"}, **RAW))
    assert record.metrics, record.error
    assert value(record, "device_written_bytes_flushed") == 8 * MIB
    assert value(record, "device_written_bytes") < 8 * MIB


def test_the_device_is_held_exclusively(workspace: Workspace) -> None:
    with ExitStack() as undo:
        up = stack.build(cell(**RAW).stack, workspace, undo, slot="m", make=True)
        assert up.raw is not None
        with pytest.raises(OSError, match="busy"):
            os.open(up.raw, os.O_RDONLY | os.O_EXCL)
        assert proc.run(["mkfs.ext4", "-q", str(up.raw)], check=False).returncode
    assert not loop_devices.attached_to(workspace.images / f"fslab-{workspace.campaign}-m.img")


def test_a_named_device_with_data_is_overwritten_with_wipe_only_and_left_without_signature(
    loop: Callable[[], Path], stable: Callable[[Path], str], shell: Any
) -> None:
    device = loop()
    shell("mkfs.ext4", "-q", device)
    before, path = device.read_bytes(), stable(device)
    spec = StackSpec(
        name="s", medium=MediumSpec(name="m", type="device", options={"path": path}), filesystem="none"
    )
    wanted = cell(parameters=FIO | {"size": "4m", "io_size": "4m"}, **RAW).model_copy(update={"stack": spec})
    with (
        cleanup.opened_workspace(new_id(), frozenset()) as workspace,
        pytest.raises(UnsafeError, match="loop device"),
    ):
        run(workspace, wanted)
    assert device.read_bytes() == before
    with cleanup.opened_workspace(new_id(), frozenset({path})) as workspace:
        for block in range(2):
            record = run(workspace, wanted, block)
            assert record.metrics, record.error
    assert device.read_bytes() != before
    assert shell("wipefs", "--noheadings", device).stdout == ""
