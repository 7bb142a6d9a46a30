"""Tests of plans: cells, order, commands, space and time. A plan is complete, reproducible and without side effects."""

from __future__ import annotations

import codecs
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import ruamel.yaml
from hypothesis import given
from hypothesis import strategies as st
from tests import made

from fslab.cell import Cell, Fresh, MachineSpec, StackSpec
from fslab.cli.plan import _where
from fslab.machine.kinds import AUTO, BEST, GUEST, _qemu
from fslab.plan.expand import order, tool_seed
from fslab.plan.model import Plan, Stage
from fslab.plan.plan import IMAGE_BYTES_PER_S, OVERHEAD_S, make_plan, trial_s
from fslab.study import shipped
from fslab.study.load import load, load_text
from fslab.workloads import REGISTRY as WORKLOADS

IN_GUESTS = """\
title: t
on: {machine}
media: {{d: {{type: virtual, profile: hdd-7200, size: 1t, memory: 1g}}, r: {{type: ram, size: 600m}}}}
stacks:
  hdd: {{medium: d, filesystem: [ext4, xfs]}}
  md: {{medium: d, filesystem: ext4, layout: {{type: md-raid5, disks: 3}}}}
workloads:
  random: {{tool: fio, rw: randread, bs: 4k, size: 128m, direct: true}}
"""


def in_guests(machine: str) -> Plan:
    return make_plan(load_text(IN_GUESTS.format(machine=machine), "s.yaml"), images=Path(), runtime=Path())


def test_a_plan_knows_the_speed_of_a_modelled_disk_and_what_mkfs_writes_below_md() -> None:
    """Measured in User-Mode Linux: 230 s for the requests, and 33 to 140 s for mkfs of 2 TiB on the array."""
    seconds = {cell.stack.name: trial_s(cell) for cell in in_guests("uml").cells}
    assert seconds["ext4"] == pytest.approx(230, rel=0.2)
    assert seconds["md"] - seconds["ext4"] == pytest.approx(70, rel=0.2)


@pytest.mark.parametrize(
    ("workload", "seen_s"),
    [
        ("{tool: dd, op: write, bs: 1m, count: 800}", 1.3),
        ("{tool: shell, operation: touch, files: 1500}", 1.4),
        ("{tool: fio, rw: randread, size: 64m, runtime: 2s}", 3.0),
    ],
)
def test_a_plan_knows_that_memory_is_no_disk(workload: str, seen_s: float) -> None:
    """As in campaigns on a quiet machine; 4.5 s and 2.9 s had been planned for dd and touch."""
    text = "title: t\nmedia: {m: {type: MEDIUM, size: 2g}}\nstacks: {s: {medium: m, filesystem: ext4}}\n"
    text += f"workloads: {{w: {workload}}}\n"
    in_memory, on_disk = (
        make_plan(load_text(text.replace("MEDIUM", medium), "s.yaml"), images=Path(), runtime=Path()).cells[0]
        for medium in ("ram", "loop")
    )
    assert trial_s(in_memory) == pytest.approx(seen_s, rel=0.25)
    assert (trial_s(on_disk) > 2 * trial_s(in_memory)) is ("dd" in workload)


@pytest.mark.parametrize(
    ("layout", "written"),
    [
        ("md-raid0", False),
        ("md-raid10", True),
        ("lvm-thin", True),
        ("lvm-snapshot", False),
        ("{type: lvm-snapshot, thin: true}", True),
    ],
)
def test_zeros_of_mkfs_take_time_below_a_layout_that_does_not_pass_them_on(
    layout: str, written: bool
) -> None:
    stacks = "  hdd: {medium: d, filesystem: ext4}\n  other: {medium: d, filesystem: ext4, layout: LAYOUT}\n"
    head, _, workloads = IN_GUESTS.format(machine="uml").partition("stacks:\n")
    text = f"{head}stacks:\n{stacks.replace('LAYOUT', layout)}{workloads[workloads.index('workloads:') :]}"
    plan = make_plan(load_text(text, "s.yaml"), images=Path(), runtime=Path())
    seconds = {cell.stack.name: trial_s(cell) for cell in plan.cells}
    assert (seconds["other"] - seconds["hdd"] > 10) is written


def test_a_plan_knows_that_commands_for_many_zeros_take_time() -> None:
    """Seen on a busy machine: 6 to 8 s for ext4 of 16 TiB, and 1.3 s for XFS."""
    text = "title: t\nmedia: {d: {type: virtual, profile: none, size: 16t}}\n"
    text += "stacks: {s: {medium: d, filesystem: [ext4, xfs]}}\nworkloads: {w: {tool: fio, rw: write, size: 48m}}\n"
    plan = make_plan(load_text(text, "s.yaml"), images=Path(), runtime=Path())
    seconds = {cell.stack.filesystem: trial_s(cell) for cell in plan.cells}
    assert seconds["ext4"] == pytest.approx(7, rel=0.3)
    assert seconds["xfs"] < 2


def test_a_plan_says_where_stacks_run_and_that_emulation_gives_no_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_qemu, "known_accelerator", lambda _: "tcg")
    slow, quick = in_guests("qemu"), in_guests("uml")
    emulated = {each.type: each.emulated for each in (*slow.machines, *quick.machines)}
    assert emulated == {"qemu": True, "uml": False}
    assert slow.expected_s > 8 * (quick.expected_s - 2 * 70)
    assert list(_where(quick)) == ["on uml: ext4, xfs, md"]
    assert "without KVM" in next(_where(slow))


TEXT = """\
title: t
media: {m: {type: ram, size: 1g}, d: {type: loop, size: 2g}, b: {type: device, path: /dev/disk/by-id/x}}
stacks:
  fs: {medium: m, filesystem: [ext4, xfs]}
  loop: {medium: d, filesystem: btrfs, mkfs_options: -n 32k, mount_options: noatime}
  disk: {medium: b, filesystem: ext4, workloads: [w]}
workloads:
  w: {tool: fio, rw: write, bs: 1m, size: 64m, direct: true}
  r: {tool: fio, rw: randread, size: 64m, runtime: 2s, direct: true}
trials: 3
seed: 7
budget: 10m
"""


def plan_of(text: str = TEXT, *overrides: str) -> Plan:
    return make_plan(load_text(text, "s.yaml", overrides), images=Path("/images"), runtime=Path("/run/x"))


def test_commands_in_slices_show_each_stack_its_own_mount_point_and_the_run_time_of_all() -> None:
    plan = plan_of(TEXT, "slices=auto", "stacks.disk.workloads=w")
    read = [cell for cell in plan.cells if cell.workload.name == "r"]
    assert all(cell.slice_s for cell in read)
    for cell in read:
        (run,) = argvs(plan, cell.stack.name, "r", Stage.RUN)
        # Three stacks of 2 s; the time that the others take to start is not added.
        assert "--runtime=6000ms" in run
        assert f"--directory=/run/x/mnt-{cell.stack_id}/work" in run
        (mount,) = argvs(plan, cell.stack.name, "r", Stage.MOUNT)
        assert mount.endswith(f" /run/x/mnt-{cell.stack_id}")
    assert len({cell.stack_id for cell in read}) == 3


def test_each_stack_in_slices_has_a_file_system_of_its_own() -> None:
    """Stacks that differ only in how they are mounted share an empty file system, but not two that are mounted at once:
    XFS and btrfs refuse a second one with the same UUID."""
    text = """\
title: t
media: {m: {type: ram, size: 1g, room: 512m}}
stacks: {fs: {medium: m, filesystem: xfs, mount_options: [noatime, relatime]}}
workloads:
  r: {tool: fio, rw: randread, size: 64m, runtime: 2s, direct: true}
  w: {tool: fio, rw: randwrite, size: 64m, runtime: 2s, fsync: 1}
  o: {tool: fio, rw: write, size: 64m}
fresh: block
"""
    whole, sliced = plan_of(text), plan_of(text, "slices=auto")
    new = [each.id for each in whole.cells if each.workload.name == "o"]
    assert len({whole.shared[each].group for each in new}) == 1
    assert not set(new) & set(sliced.shared)
    # Files are shared by workloads that only use them in another way.
    files = [sliced.shared[each.id] for each in sliced.cells if each.workload.name in {"r", "w"}]
    assert all(each.files for each in files)
    assert len({each.group for each in files}) == 2


def cell(number: int) -> Cell:
    return made.cell(made.spec(None, name=f"s{number}"))


def argvs(plan: Plan, stack: str, workload: str, stage: Stage) -> list[str]:
    (found,) = [cell for cell in plan.cells if (cell.stack.name, cell.workload.name) == (stack, workload)]
    return [" ".join(command.argv) for command in plan.commands[found.id] if command.stage is stage]


@given(cells=st.integers(1, 12), trials=st.integers(1, 6), seed=st.integers(0, 1 << 63))
def test_every_block_has_every_cell_once_and_blocks_follow_each_other(
    cells: int, trials: int, seed: int
) -> None:
    everything = [cell(number) for number in range(cells)]
    ordered = order(everything, trials, seed)
    assert [block for block, _ in ordered] == [block for block in range(trials) for _ in range(cells)]
    for block in range(trials):
        assert sorted(each.stack.name for at, each in ordered if at == block) == sorted(
            each.stack.name for each in everything
        )
    assert order(everything, trials, seed) == ordered


def test_more_trials_continue_the_same_order() -> None:
    cells = [cell(number) for number in range(6)]
    assert order(cells, 8, 3)[: 5 * 6] == order(cells, 5, 3)


def test_blocks_and_seeds_give_different_orders() -> None:
    cells = [cell(number) for number in range(8)]
    orders = {
        tuple(each.stack.name for at, each in order(cells, 20, seed) if at == block)
        for seed in range(5)
        for block in range(20)
    }
    assert len(orders) > 95  # 100 draws from 8! = 40320 orders, of which a few may be equal


def test_no_position_belongs_to_a_cell() -> None:
    cells = [cell(number) for number in range(4)]
    first = Counter(each.stack.name for at, each in order(cells, 400, 1)[::4])
    # Binomial(400, 1/4): mean 100, standard deviation 8.7; 60 and 140 are more than four of them away.
    assert all(60 < first[each.stack.name] < 140 for each in cells)


def test_the_stacks_of_a_workload_follow_each_other_in_random_order() -> None:
    cells = [
        cell(number).model_copy(update={"workload": cell(number).workload.model_copy(update={"name": name})})
        for number in range(3)
        for name in "abcd"
    ]
    orders = set()
    for block in range(20):
        ordered = [each for at, each in order(cells, 20, 5) if at == block]
        runs = [ordered[at : at + 3] for at in range(0, 12, 3)]
        assert all(len({each.workload.name for each in run}) == 1 for run in runs)
        orders |= {tuple(run[0].workload.name for run in runs), tuple(each.stack.name for each in runs[0])}
    assert len(orders) > 15


def test_the_order_is_the_same_on_every_machine_and_python() -> None:
    # Computed once with Python 3.11. If this order changed, resumed campaigns would continue in another order.
    ordered = order([cell(number) for number in range(5)], 2, 1)
    assert [(block, each.stack.name) for block, each in ordered] == [
        *((0, f"s{number}") for number in (2, 4, 3, 1, 0)),
        *((1, f"s{number}") for number in (2, 0, 4, 3, 1)),
    ]
    assert tool_seed(1, 0) == 1201852341


@given(seed=st.integers(0, 1 << 63), block=st.integers(0, 1000))
def test_tool_seeds_fit_every_tool(seed: int, block: int) -> None:
    assert 0 < tool_seed(seed, block) < 1 << 31


def test_tool_seeds_differ_from_block_to_block() -> None:
    assert len({tool_seed(1, block) for block in range(1000)}) == 1000


def test_the_stages_of_a_trial() -> None:
    plan = plan_of()
    assert argvs(plan, "loop", "w", Stage.ATTACH) == [
        "losetup --find --show --direct-io=on /images/fslab-CAMPAIGN-d.img"
    ]
    assert argvs(plan, "loop", "w", Stage.MKFS) == ["mkfs.btrfs -f -q -K -n 32k /dev/loopN"]
    assert argvs(plan, "loop", "w", Stage.MOUNT) == ["mount -t btrfs -o noatime /dev/loopN /run/x/mnt"]
    assert argvs(plan, "loop", "w", Stage.PREPARE) == []
    assert len(argvs(plan, "loop", "r", Stage.PREPARE)) == 1
    (run,) = argvs(plan, "loop", "r", Stage.RUN)
    assert run.startswith("fio ")
    assert "--directory=/run/x/mnt/work" in run
    assert "--output=/run/x/scratch/tool/" in run
    assert f"--randseed={tool_seed(7, 0)}" in run


def test_mkfs_discards_on_a_device_and_never_on_an_image() -> None:
    plan = plan_of()
    assert "nodiscard" in argvs(plan, "ext4", "w", Stage.MKFS)[0]
    (mkfs,) = argvs(plan, "disk", "w", Stage.MKFS)
    assert "nodiscard" not in mkfs
    assert mkfs.endswith(" /dev/disk/by-id/x")


def test_what_is_needed_and_what_is_lost() -> None:
    plan = plan_of()
    assert plan.space == {"memory": 1 << 30, "/images": 2 << 30}
    assert plan.devices == ("/dev/loopN", "/dev/disk/by-id/x")
    assert plan.wipes == ("/dev/disk/by-id/x",)


def test_devices_of_one_medium_have_other_names_in_a_guest() -> None:
    plan = plan_of(TEXT, "stacks.fs.on=[host,uml]", "stacks.disk.on=uml")
    assert plan.devices == ("/dev/loopN", "/dev/ubdN", "/dev/disk/by-id/x")


@pytest.mark.parametrize(
    ("fresh", "images"),
    [("trial", 1), ("campaign", 2), ("cell", 4)],  # 2 file systems, 2 workloads on 'm'
)
def test_lasting_file_systems_need_images_of_their_own(fresh: str, images: int) -> None:
    text = TEXT.replace("{medium: b,", "{medium: d,")
    assert plan_of(text, f"fresh={fresh}").space["memory"] == images << 30


def test_slots_name_the_medium_and_what_lasts() -> None:
    one = cell(1)
    assert one.slot == "m"
    for fresh, ending in ((Fresh.CELL, "id"), (Fresh.CAMPAIGN, "stack_id")):
        kept = one.model_copy(update={"fresh": fresh})
        assert kept.slot == f"m-{getattr(kept, ending)}"


def test_a_directory_is_neither_formatted_nor_mounted() -> None:
    plan = make_plan(load("here"), images=Path("/images"), runtime=Path("/run/x"))
    stages = {command.stage for commands in plan.commands.values() for command in commands}
    assert stages <= {Stage.PREPARE, Stage.RUN, Stage.CLEANUP}
    assert (plan.devices, plan.wipes, plan.space) == ((), (), {})


def test_the_expected_time_is_that_of_all_trials_and_of_writing_the_images() -> None:
    plan = plan_of()
    by_tool = WORKLOADS.get("fio")
    trials_s = sum(
        by_tool.expected_s(by_tool.parse_parameters(each.workload.parameters)) + OVERHEAD_S
        for each in plan.cells
    )
    # mkfs writes hardly any zeros on images as small as these
    assert plan.expected_s == pytest.approx(3 * trials_s + 3 * (1 << 30) / IMAGE_BYTES_PER_S, rel=2e-3)
    assert plan.budget_s == 600.0


def test_the_first_study_that_is_shown_takes_about_as_long_as_is_said() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    study, said = text.partition("```yaml\n")[2].split("```", 1)
    plan = plan_of(study)
    assert "4 stacks × 2 workloads, 5 trials each, about seven minutes" in said
    assert (len({cell.stack_id for cell in plan.cells}), len(plan.cells), plan.trials) == (4, 8, 5)
    assert 300 < plan.expected_s < 600


def test_the_longest_time_is_that_of_the_most_trials() -> None:
    assert plan_of().expected_most_s is None
    plan = plan_of(TEXT, "precision=5%", "max_trials=30")
    images_s = 3 * (1 << 30) / IMAGE_BYTES_PER_S
    assert plan.expected_most_s == pytest.approx((plan.expected_s - images_s) * 10 + images_s)
    assert (plan.trials, plan.stopping.most) == (3, 30)


def test_a_plan_survives_json() -> None:
    plan = plan_of()
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert (plan.study, plan.title, plan.trials, plan.seed, len(plan.cells)) == ("s", "t", 3, 7, 7)
    assert Counter(planned.cell for planned in plan.order) == {each.id: 3 for each in plan.cells}


def on_the_host(stacks: Sequence[StackSpec]) -> list[StackSpec]:
    """Choose the host for stacks that may run anywhere: finding out what a kernel has reads its lists."""
    return [
        stack.model_copy(update={"machine": MachineSpec()})
        if stack.machine.type in {AUTO, BEST, GUEST}
        else stack
        for stack in stacks
    ]


@pytest.mark.parametrize("study_id", shipped.ids())
def test_planning_starts_no_process_and_opens_nothing_but_our_own_files(study_id: str) -> None:
    load(study_id)  # imports the registered files that it needs, which may read files
    codecs.lookup("ascii")  # a module of Python's, imported when it is first used
    seen: list[tuple[str, Any]] = []
    watching = True

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if watching and event.partition(".")[0] in {"open", "subprocess", "os", "socket", "shutil", "fcntl"}:
            seen.append((event, args))

    sys.addaudithook(watch)  # cannot be removed, only made inactive
    try:
        make_plan(load(study_id), images=Path("/images"), runtime=Path("/run/x"), place=on_the_host)
    finally:
        watching = False
    # ruamel.yaml looks for plug-ins in its own package each time. Mounts can show a directory as another user's.
    allowed = (
        str(Path(shipped.__file__).parents[1]), str(Path(ruamel.yaml.__file__).parent),
        "/proc/self/mountinfo", "/proc/self/fd", "/sys/",
    )  # fmt: skip
    foreign = [
        (event, args)
        for event, args in seen
        # A descriptor with O_PATH, by which the owner of a directory is judged, opens nothing.
        if not (str(args[0]).startswith(allowed) or (event == "open" and args[2] & os.O_PATH))
    ]
    assert any(event == "open" for event, _ in seen)  # the study's own file, so the hook works
    assert foreign == []


def test_that_nilfs2_never_frees_anything_is_noted() -> None:
    text = TEXT.replace("filesystem: [ext4, xfs]", "filesystem: [ext4, nilfs2]")
    assert [each.partition(":")[0] for each in plan_of(text).notices] == ["nilfs2"]


def test_a_discard_that_the_medium_does_not_allow_is_noted() -> None:
    added = "  t: {medium: m, filesystem: ext4, mount_options: 'noatime,discard'}\n  u: {medium: b, filesystem: xfs, "
    text = TEXT.replace("workloads:\n", f"{added}mount_options: discard}}\nworkloads:\n", 1)
    assert plan_of(text).notices == (
        "t: mount option 'discard' has no effect: a 'ram' medium does not allow discards",
    )
