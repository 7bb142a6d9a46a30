"""Tests of limits on space and memory: the needs of a campaign are added up before anything is created.

If memory runs out nevertheless, the kernel kills the tools before fslab.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests import made

from fslab import feasibility
from fslab.cell import Cell, MachineSpec, MediumSpec, StackSpec, WorkloadSpec
from fslab.errors import InterruptedBySignal, MkfsError, NoSpaceError, UnsafeError
from fslab.storage import Growth, Workspace, images
from fslab.storage.mounted_stack import Stack
from fslab.system import memory, priority, proc
from fslab.workloads import REGISTRY as WORKLOADS
from fslab.workloads import parsed

GIB = 1 << 30
SMALL = {"size": "1m"}


class NoJournal:
    """A journal that fails the test if anything is created."""

    def will_create(self, kind: str, target: str, devices: Sequence[str] = ()) -> str:
        raise AssertionError(kind + target)

    def undone(self, entry: str) -> None:
        raise AssertionError(entry)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(campaign="c", runtime=tmp_path / "run", images=tmp_path / "images", journal=NoJournal())


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate 8 GiB of available memory, of which three quarters may be used."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * GIB)


def cell(name: str, kind: str = "ram", size: str = "1m", **changes: Any) -> Cell:
    medium = MediumSpec(name=name, type=kind, options=changes.pop("options", {"size": "1g"}))
    stack = made.spec(None if kind == "directory" else "ext4", name=name, medium=medium, **changes)
    return made.cell(stack, parameters={"rw": "write", "size": size})


def free(place: Path) -> int:
    about = os.statvfs(place)
    return about.f_bavail * about.f_frsize


def check(workspace: Workspace, *cells: Cell) -> None:
    feasibility._room.check_room(cells, workspace.images)


@pytest.mark.usefixtures("eight")
class TestMemory:
    def test_images_in_memory_are_added_up(self, workspace: Workspace) -> None:
        three = {"size": "3g"}
        check(workspace, cell("a", options=three))
        with pytest.raises(NoSpaceError, match=r"9(\.00)? GiB of memory"):
            check(workspace, *(cell(name, options=three) for name in ("a", "b", "c")))

    @pytest.mark.parametrize(
        ("tool", "parameters", "needed"),
        [
            ("fio", {"rw": "randread", "size": "16m", "bs": "16m", "numjobs": 1024}, 16 * GIB),
            ("fio", {"rw": "randread", "size": "1m", "bs": "4k,1g", "iodepth": 16, "direct": True}, 16 * GIB),
            ("fio", {"rw": "randread", "size": "1m", "bssplit": "4k/50:1g/50", "numjobs": 16}, 16 * GIB),
            ("fio", {"file": "a.fio", "file_text": "[a]\nsize=1m\nbsrange=4k-1g\niodepth=8\nnumjobs=2\n"}, 16 * GIB),
            ("dd", {"op": "write", "bs": "16g", "count": 1}, 16 * GIB),
            ("fio", {"rw": "randread", "size": "1m", "bs": "4k", "iodepth": 8, "direct": True}, 32 << 10),
        ],
    )  # fmt: skip
    def test_buffers_of_tools_count(
        self, tool: str, parameters: dict[str, Any], needed: int, workspace: Workspace
    ) -> None:
        work = WorkloadSpec(name="w", tool=tool, parameters=parameters)
        assert parsed(work).memory_bytes() == needed
        guest = MachineSpec(type="qemu", memory="1g")
        plain, in_guest = cell("a", options=SMALL), cell("b", options=SMALL, machine=guest)
        here, inside = (each.model_copy(update={"workload": work}) for each in (plain, in_guest))
        if needed < GIB:
            check(workspace, here, inside)
            return
        with pytest.raises(NoSpaceError, match=r"16(\.0)? GiB of memory, but only"):
            check(workspace, here)
        with pytest.raises(NoSpaceError, match="w allocates 16 GiB of memory, and the guest has 1 GiB"):
            check(workspace, inside)

    def test_guests_count_also_when_no_image_is_in_memory(self, workspace: Workspace, tmp_path: Path) -> None:
        on_disk = {"size": "1m", "path": str(tmp_path)}
        guests = [MachineSpec(type="qemu", memory=memory) for memory in ("3g", "4g")]
        cells = [cell(f"m{guest.memory}", "loop", options=on_disk, machine=guest) for guest in guests]
        check(workspace, cells[0])
        with pytest.raises(NoSpaceError, match=r"7(\.00)? GiB of memory"):
            check(workspace, *cells)

    def test_what_is_written_into_a_memory_file_system_takes_memory(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(images, "check_room", lambda *_: None)
        inside = {"path": "/dev/shm"}
        check(workspace, cell("a", "directory", "3g", options=inside))
        with pytest.raises(NoSpaceError, match="of memory"):
            check(workspace, cell("a", "directory", "4g", options=inside), cell("b", options={"size": "3g"}))

    def test_what_lies_in_memory_file_systems_fits_into_them(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The memory of a User-Mode Linux guest is a file in such a file system, like the guest's images."""
        most = max(free(place) for place in memory._places())
        monkeypatch.setattr(memory, "available_bytes", lambda: 100 * most)
        share = str(most * 6 // 10)
        guest = MachineSpec(type="uml", memory=share)
        check(workspace, cell("a", options=SMALL, machine=guest))
        with pytest.raises(NoSpaceError, match="images and guests need"):
            check(workspace, *(cell(name, options={"size": str(2 * most)}, machine=guest) for name in "ab"))


class TestDisks:
    def test_images_in_two_directories_of_one_file_system_are_added_up(
        self, workspace: Workspace, tmp_path: Path
    ) -> None:
        (tmp_path / "other").mkdir()
        share = str(free(tmp_path) * 6 // 10)
        cells = [
            cell(f"m{len(place.parts)}", "loop", options={"size": share, "path": str(place)})
            for place in (tmp_path, tmp_path / "other")
        ]
        (need,) = feasibility._room._needs(cells, workspace.images).values()
        assert (need.images_bytes, need.trial_bytes) == (2 * int(share), 0)
        with pytest.raises(NoSpaceError, match="but only"):
            check(workspace, *cells)

    def test_files_in_a_directory_count_the_largest_beside_the_images(
        self, workspace: Workspace, tmp_path: Path
    ) -> None:
        """One trial runs at a time, and its files are removed after it. Therefore only the largest trial counts."""
        here = {"path": str(tmp_path)}
        cells = [cell(name, "directory", size, options=here) for name, size in (("a", "1g"), ("b", "3g"))]
        cells.append(cell("c", "loop", options={**here, "size": "2g"}))
        (need,) = feasibility._room._needs(cells, workspace.images).values()
        assert (need.images_bytes, need.trial_bytes) == (2 * GIB, 3 * GIB)
        with pytest.raises(NoSpaceError, match="but only"):
            check(workspace, cell("a", "directory", str(2 * free(tmp_path)), options=here))


def test_a_control_group_has_less_than_the_machine(tmp_path: Path) -> None:
    """The machine has 4 GiB available, but the parent control group is limited to 1 GiB. It uses 300 MiB, of which
    100 MiB are cache that the kernel can reclaim."""
    for place, text in {
        "proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n",
        "proc/self/cgroup": "0::/a.slice/b.scope\n",
        "sys/fs/cgroup/a.slice/memory.max": str(GIB),
        "sys/fs/cgroup/a.slice/memory.current": str(300 << 20),
        "sys/fs/cgroup/a.slice/memory.stat": f"anon 5\ninactive_file {100 << 20}\n",
        "sys/fs/cgroup/a.slice/b.scope/memory.max": "max",
        "sys/fs/cgroup/a.slice/b.scope/memory.current": "5",
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    assert memory.available_bytes(tmp_path) == GIB - (200 << 20)
    (tmp_path / "proc/self/cgroup").write_text("0::/../..\n")
    assert memory.available_bytes(tmp_path) == 4 * GIB


def test_a_workload_that_fills_what_others_share_is_ended(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Free space is checked while a workload runs, because it is not always known in advance how much it writes. The
    program here does not end by itself."""
    monkeypatch.setattr(proc, "LOOK_EVERY_S", 0.01)
    stack = StackSpec(name="here", medium=MediumSpec(name="m", type="directory", options={"path": "."}))
    up = Stack(workspace=workspace, spec=stack, work=Path.cwd(), filesystem="x")
    looks = []

    def full(_: Path, size_bytes: int) -> None:
        looks.append(size_bytes)
        if len(looks) == 3:
            raise NoSpaceError("full")

    monkeypatch.setattr(images, "check_room", full)
    check = up.room_check()
    endless = [sys.executable, "-c", "import signal; signal.pause()"]
    with pytest.raises(NoSpaceError, match="full"):
        workspace.run("run", endless, watch=lambda _: check())
    assert looks == [0, 0, 0]


def test_what_a_tool_prints_or_fills_between_two_looks_is_bounded() -> None:
    fastest_bytes_per_s = 4 << 30
    assert proc.LOOK_EVERY_S * fastest_bytes_per_s < 256 << 20


def test_reports_are_looked_at_also_where_the_file_system_has_a_bound(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools write reports, and parts of a mix their output, into the runtime directory, which has no size limit."""
    stack = StackSpec(name="s", medium=MediumSpec(name="m", type="ram"), filesystem="ext4")
    up = Stack(workspace=workspace, spec=stack, work=tmp_path, filesystem="ext4", target=tmp_path)
    check = up.room_check()
    check()
    monkeypatch.setattr(images, "RESERVE_BYTES", 1 << 60)
    monkeypatch.setattr(images, "RESERVE_SHARE", 0.5)
    with pytest.raises(NoSpaceError, match="free"):
        check()


OUT_OF_MEMORY = (
    "Memory cgroup out of memory: Killed process 32503 (python3 (x)) total-vm:319320kB, anon-rss:130304kB, "
)


class TestOutOfMemory:
    def test_children_are_killed_before_fslab_when_memory_is_short(self) -> None:
        before = priority.OOM_SCORE.read_text()
        assert int(proc.run(["cat", "/proc/self/oom_score_adj"]).stdout) == max(
            int(before), priority.EXPENDABLE_SCORE
        )
        assert priority.OOM_SCORE.read_text() == before

    def test_a_campaign_goes_later_than_others_where_it_may(self) -> None:
        before = int(priority.OOM_SCORE.read_text())
        with priority.protected():
            own = int(priority.OOM_SCORE.read_text())
            assert own in {before, min(before, priority.KEPT_SCORE)}
            assert int(proc.run(["cat", "/proc/self/oom_score_adj"]).stdout) == priority.EXPENDABLE_SCORE
            assert int(priority.OOM_SCORE.read_text()) == own
        assert int(priority.OOM_SCORE.read_text()) == before

    @pytest.mark.parametrize(
        ("line", "killed"),
        [
            (f"{OUT_OF_MEMORY}UID:0 pgtables:320kB oom_score_adj:500", True),
            (f"{OUT_OF_MEMORY}oom_score_adj:1000", True),
            (f"{OUT_OF_MEMORY}oom_score_adj:300", False),
            (OUT_OF_MEMORY.removeprefix("Memory cgroup o").replace("ut", "Out", 1), True),
            ("python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=500", False),
        ],
    )
    def test_what_the_kernel_logs_of_a_killed_child_is_known(self, line: str, killed: bool) -> None:
        found = priority.killed_for_memory(["EXT4-fs (loop1): mounted filesystem", line])
        assert bool(found) is killed
        if found:
            assert found.endswith("ut of memory: Killed process 32503 (python3 (x))")


AT_ONCE = {"threads", "numjobs", "nthreads", "iodepth", "seekers"}


@pytest.mark.parametrize("name", WORKLOADS.names())
def test_what_works_at_once_has_a_bound(name: str) -> None:
    """A million threads would use up all process ids of the machine."""
    fields = WORKLOADS.get(name).Parameters.model_fields
    for field in AT_ONCE & fields.keys():
        most = [limit.le for limit in fields[field].metadata if hasattr(limit, "le")]
        assert most, field
        assert most[0] <= 4096


def test_a_file_system_without_inodes_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = list(os.statvfs(tmp_path))
    about[5:8] = [1000, 10, 10]
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(about))
    with pytest.raises(NoSpaceError, match="only 10 free inodes"):
        images.check_room(tmp_path, 0)


@pytest.fixture
def sparse(tmp_path: Path) -> Growth:
    """Return a sparse image of 64 MiB with room for 1 MiB, which is written."""
    (image := tmp_path / "sparse.img").write_bytes(b"x" * (1 << 20))
    os.truncate(image, 64 << 20)
    return Growth(image=image, room_bytes=1 << 20)


def written(growth: Growth, size_bytes: int) -> None:
    with growth.image.open("r+b") as file:
        file.write(b"x" * size_bytes)


def test_a_sparse_image_that_outgrows_its_room_ends_the_workload(
    workspace: Workspace, tmp_path: Path, sparse: Growth
) -> None:
    stack = StackSpec(name="s", medium=MediumSpec(name="m", type="loop"), filesystem="ext4")
    up = Stack(
        workspace=workspace, spec=stack, work=tmp_path, filesystem="ext4", target=tmp_path, growths=(sparse,)
    )
    check = up.room_check()
    check()
    written(sparse, 2 << 20)
    with pytest.raises(NoSpaceError, match="2 MiB, and the medium has room for 1 MiB"):
        check()


def test_the_directory_of_a_sparse_image_is_looked_at(
    sparse: Growth, monkeypatch: pytest.MonkeyPatch
) -> None:
    images.check_growth(sparse)
    monkeypatch.setattr(images, "RESERVE_BYTES", 1 << 60)
    monkeypatch.setattr(images, "RESERVE_SHARE", 0.5)
    with pytest.raises(NoSpaceError, match="free"):
        images.check_growth(sparse)
    sparse.image.unlink()
    with pytest.raises(UnsafeError, match="removed the image"):
        images.check_growth(sparse)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(5, "Input/output error"), NoSpaceError),
        (MkfsError("mkfs.ext4 exited 1"), NoSpaceError),
        (InterruptedBySignal(signal.SIGINT), InterruptedBySignal),
        (UnsafeError("another disk"), UnsafeError),
    ],
)
def test_a_full_medium_explains_an_error_but_hides_no_interruption(
    error: BaseException, told: type[BaseException]
) -> None:
    def full() -> None:
        raise NoSpaceError("full")

    with pytest.raises(told), ExitStack() as undo:
        images.tell_when_full(undo, full)
        raise error
