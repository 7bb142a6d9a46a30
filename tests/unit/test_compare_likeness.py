"""Tests of which cells are compared with each other, and of the facts whose differences prevent a comparison."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.unit.compared import FACTS, MEDIUM, around, cell, compared, trials

from fslab.analysis.campaign_comparison import refused
from fslab.analysis.matching_cells import MatchedBy, chosen, match
from fslab.api import comparisons
from fslab.cell import Cache, MachineSpec, StackSpec
from fslab.errors import UsageError
from fslab.machine.differences import ALL, Circumstances, Difference, differences
from fslab.machine.fact import FactGroup
from fslab.trial_record import Provenance, Slices, TrialRecord


class TestPartners:
    def test_by_content_then_by_name_and_what_differs_is_named(self) -> None:
        same, changed = cell("ext4"), cell("xfs")
        other = cell("xfs", bs="64k", tuning={"cpu_governor": "performance", "vm.laptop_mode": "1"})
        lonely = cell("btrfs")
        found = match([same, changed, lonely], [other, same], MatchedBy.STACK)
        assert [(each.a, each.b) for each in found.partners] == [(same, same), (changed, other)]
        assert [str(each) for each in found.partners[0].differences] == []
        # The governor is not listed here: it is compared as a fact of the machine.
        differing = [str(each) for each in found.partners[1].differences]
        assert differing == ["parameters.bs: 4k → 64k", "tuning.vm.laptop_mode: – → 1"]
        assert (found.only_a, found.only_b) == ((lonely,), ())

    @pytest.mark.parametrize(
        ("a", "b", "told"),
        [
            ("[w]\nbs=4k\nrw=write\n", "[w]\n  bs=8k\nrw=write\n", "bs=4k → bs=8k"),
            ("[w]\nrw=write\n", "[w]\nrw=write\nfsync=1\n", "– → fsync=1"),
            ("a\nb\nc\nd\ne\nz\n", "z\ny\n", "a; b; c; and 2 more → y"),
            ("a\nb\n", "b\na\n", "4 bytes, digest → 4 bytes, digest"),
            ("a\nb\n", "a\nb", "4 bytes, digest → 3 bytes, digest"),
            ("a\nb\n", "a", "4 bytes, digest → a"),
        ],
    )
    def test_of_two_files_the_lines_that_differ_are_told(self, a: str, b: str, told: str) -> None:
        found = match([cell(bs=a)], [cell(bs=b)], MatchedBy.STACK)
        (differing,) = map(str, found.partners[0].differences)
        assert re.sub("digest [0-9a-f]{12}", "digest", differing) == f"parameters.bs: {told}"

    def test_a_cold_cell_is_no_partner_of_a_warm_one(self) -> None:
        found = match([cell()], [cell(cache=Cache.WARM)], MatchedBy.STACK)
        assert not found.partners

    def test_stacks_of_one_campaign_by_their_workload(self) -> None:
        left, right = [cell("ext4"), cell("ext4", "seq")], [cell("xfs", "seq"), cell("xfs")]
        found = match(left, right, MatchedBy.WORKLOAD)
        names = [(each.a.workload.name, each.b.workload.name) for each in found.partners]
        assert names == [("rand-4k", "rand-4k"), ("seq", "seq")]
        assert not any(each.differences for each in found.partners)

    def test_kernels_of_one_campaign_by_all_else(self) -> None:
        machines = [MachineSpec(type="uml", kernel=kernel) for kernel in ("/boot/a", "/boot/b")]
        specs = [
            StackSpec(name=f"ext4 {each.kernel}", medium=MEDIUM, filesystem="ext4", machine=each)
            for each in machines
        ]
        found = match([cell(spec=specs[0])], [cell(spec=specs[1])], MatchedBy.MACHINE)
        assert len(found.partners) == 1
        assert not found.partners[0].differences

    def test_a_stack_is_named_by_itself_or_by_its_file_system(self) -> None:
        one, two = (StackSpec(name=f"ext4 {name}", medium=MEDIUM, filesystem="ext4") for name in ("a", "b"))
        cells = [cell(spec=one), cell(spec=two), cell("xfs")]
        assert chosen(cells, "xfs") == [cells[2]]
        assert chosen(cells, "ext4 b") == [cells[1]]
        with pytest.raises(UsageError, match="2 stacks"):
            chosen(cells, "ext4")
        with pytest.raises(UsageError, match="'ext4 a'"):
            chosen(cells, "zfs")


class TestFacts:
    def differing(self, *allowed: str, **facts: Any) -> tuple[list[str], list[str]]:
        """Return the names of the facts that differ, and of those that prevent the comparison."""
        one = cell()
        found = compared(trials(one, around(1)), trials(one, around(1), "b", **facts), allowed=allowed)
        return [each.fact for each in found.differences], [each.fact for each in refused(found)]

    def test_equal_facts_differ_in_nothing(self) -> None:
        assert self.differing() == ([], [])

    def test_what_matters_refuses_until_it_is_allowed(self) -> None:
        facts = {"kernel": "6.1.0-26", "governor": "powersave", "hostname": "other"}
        assert self.differing(**facts) == (["kernel", "governor", "hostname"], ["kernel", "governor"])
        assert self.differing("kernel", **facts)[1] == ["governor"]
        assert self.differing("kernel", "governor", **facts)[1] == []
        assert self.differing(ALL, **facts)[1] == []

    def test_what_is_unknown_to_one_side_is_said_and_does_not_refuse(self) -> None:
        assert self.differing(governor=None) == (["governor"], [])

    def test_memory_is_compared_in_whole_gib(self) -> None:
        assert self.differing(memory_bytes=(24 << 30) - 10_000_000) == ([], [])
        assert self.differing(memory_bytes=16 << 30)[1] == ["memory_bytes"]
        assert self.differing("machine", memory_bytes=16 << 30)[1] == []

    @pytest.mark.parametrize("size", [480 << 20, 15 << 29, 3 << 29])
    def test_a_little_less_memory_is_the_same(self, size: int) -> None:
        """The memory of a guest changes by a few hundred KiB from boot to boot.

        This is not a difference, even if the two sizes are rounded differently.
        """
        a = trials(cell(), around(1), memory_bytes=size - (192 << 10))
        assert compared(a, trials(cell(), around(1), "b", memory_bytes=size + (192 << 10))).differences == ()
        assert refused(compared(a, trials(cell(), around(1), "b", memory_bytes=size // 2)))

    def test_what_a_guest_is_told_of_one_run_is_no_difference(self) -> None:
        line = (
            "mem=1g root=/dev/root ro con=null con0=null,fd:{0} con1=fd:{0},fd:{0} init=/usr/bin/python3 "
            "fslab_run={1} fslab_modules=/m fslab_link=/dev/tty1 panic=-1 -- -P"
        )
        one = line.format(7, "/run/fslab/20261121-010203-ab12/guest-1")
        two = line.format(11, '"/run/with blank/20261122-010203-cd34/guest-2"')
        a = trials(cell(), around(1), kernel_command_line=one)
        assert compared(a, trials(cell(), around(1), kernel_command_line=two)).differences == ()
        off = compared(a, trials(cell(), around(1), kernel_command_line=f"mitigations=off {two}"))
        told = "mem=1g root=/dev/root ro con=null init=/usr/bin/python3 panic=-1 -- -P"
        assert [(each.a, each.b) for each in refused(off)] == [((told,), (f"mitigations=off {told}",))]

    def test_the_booted_files_are_no_difference_and_a_switch_is(self) -> None:
        line = "BOOT_IMAGE=/vmlinuz-{} root=/dev/sda1"
        one, two = line.format(25), line.format(26)
        a = trials(cell(), around(1), kernel_command_line=one)
        assert compared(a, trials(cell(), around(1), kernel_command_line=two)).differences == ()
        off = compared(a, trials(cell(), around(1), kernel_command_line=f"{two} mitigations=off"))
        assert [each.b for each in refused(off)] == [("root=/dev/sda1 mitigations=off",)]

    def test_parts_of_a_fact_are_named(self) -> None:
        a = trials(cell(), around(1), mitigations={"meltdown": "Mitigation: PTI", "mds": "Not affected"})
        b = trials(cell(), around(1), mitigations={"meltdown": "Vulnerable", "mds": "Not affected"})
        found = refused(compared(a, b))
        assert [(each.fact, each.a, each.b) for each in found] == [
            ("mitigations.meltdown", ("Mitigation: PTI",), ("Vulnerable",))
        ]
        assert not refused(compared(a, b, allowed=["mitigations"]))
        assert not refused(compared(a, b, allowed=["kernel"]))

    def test_what_a_study_sets_stands_for_what_was_found(self) -> None:
        """The machines had different governors before, but both measured with the governor that the study set."""
        tuned = cell(tuning={"cpu_governor": "performance", "vm.dirty_bytes": "1048576"})
        a = trials(tuned, around(1), governor="powersave", dirty_ratio=20)
        b = trials(tuned, around(1), "b", governor="schedutil", dirty_ratio=10)
        assert compared(a, b).differences == ()
        spelled = cell(tuning={"cpu_turbo": "yes", "cpu_dma_latency": "007"})
        same = trials(cell(), around(1), "b", turbo=True, cpu_dma_latency=7)
        assert refused(compared(trials(spelled, around(1), turbo=False), same)) == ()
        untuned = trials(cell(), around(1), "b", governor="schedutil", dirty_bytes=0, dirty_ratio=20)
        found = {each.fact: (each.a, each.b) for each in refused(compared(a, untuned))}
        assert found == {
            "governor": (("performance",), ("schedutil",)),
            "dirty_bytes": (("1048576",), ("0",)),
            "dirty_ratio": (("0",), ("20",)),
        }

    def test_what_a_trial_measured_on_its_disks_is_no_condition(self) -> None:
        """Counters of a virtual disk differ in each trial, as does how fslab prepared it. A model's figures do not."""

        def on(disks: Sequence[Mapping[str, object]], **more: object) -> list[TrialRecord]:
            return [
                trial.model_copy(update={"provenance": Provenance(
                    machine=FACTS, device={"virtual_disks": disks, "parts": [{"path": f"/dev/loop{block}"}], **more})})
                for block, trial in enumerate(trials(cell(), around(1)))
            ]  # fmt: skip

        figures = {"rpm": 7200, "about": "7200 rpm"}
        disk = {"profile": "hdd-7200", "figures": figures, "statistics": {"reads": 7}}
        disk["image"] = "/dev/shm/fslab-20261129-235413-7815-d.img"
        other = {**disk, "statistics": {"reads": 8}, "fidelity": {"round_trip_ns": 9}}
        other["image"] = "/dev/shm/fslab-20261130-000358-9a34-d.img"  # in guests: named after its campaign
        a = on([disk, disk])
        same = on([other, disk])
        assert compared(a, same).differences == ()
        slow = on([disk, {**disk, "figures": {"rpm": 5400}}])
        (found,) = refused(compared(a, slow))
        assert found.fact == "device.virtual_disks.figures.rpm"
        assert (found.a, found.b) == (("7200",), ("5400", "7200"))

    def test_devices_and_tools_matter_and_the_name_of_a_device_does_not(self) -> None:
        a, b = trials(cell(), around(1)), trials(cell(), around(1), "b")
        b = [
            trial.model_copy(update={"provenance": Provenance(
                machine=FACTS, tools={"fio": "3.36"}, device={"model": "Y", "device": "loop7"})})
            for trial in b
        ]  # fmt: skip
        assert {each.fact for each in refused(compared(a, b))} == {"fio", "device.model"}
        assert {each.fact for each in refused(compared(a, b, allowed=["tools"]))} == {"device.model"}
        # Two stacks of one campaign have different devices: these are not compared.
        stacks = compared(a, b, by=MatchedBy.WORKLOAD)
        assert [each.fact for each in stacks.differences] == ["fio"]


@pytest.mark.parametrize(
    ("kernel", "wanted", "meant"),
    [
        ("6.1.0-25", "6.1", True),
        ("6.12.3", "6.1", False),
        ("6.1", "6.1", True),
        ("6.12.3", "6.", True),
        ("5.1", "6.1", False),
    ],
)
def test_a_kernel_is_meant_by_whole_numbers(kernel: str, wanted: str, meant: bool) -> None:
    assert comparisons._is_release(kernel, wanted) is meant


@pytest.mark.parametrize("by", [MatchedBy.STACK, MatchedBy.WORKLOAD])
def test_what_was_measured_in_slices_is_not_like_what_was_measured_whole(by: MatchedBy) -> None:
    """Whether a trial was is known by the trial: what takes too short is measured whole, whatever the plan says."""
    sliced = [in_slices(each) for each in trials(cell(), around(100))]
    found = compared(trials(cell(), around(100)), sliced, by=by)
    assert [(each.fact, each.a, each.b) for each in refused(found)] == [("slices", ("no",), ("yes",))]
    assert not refused(compared(sliced, sliced, by=by))
    some = compared(sliced, [*sliced[:2], *trials(cell(), around(100))[2:]], by=by, allowed=["study"])
    assert [(each.fact, each.b) for each in some.differences] == [("slices", ("no", "yes"))]
    assert not refused(some)


def in_slices(record: TrialRecord) -> TrialRecord:
    slices = Slices(count=40, started_s=0.0, ran_s=1.0)
    return record.model_copy(update={"provenance": record.provenance.model_copy(update={"slices": slices})})


def test_of_long_lists_only_what_differs_is_told() -> None:
    """Such as the features of a file system. Short ones are told whole."""
    features = [
        "has_journal",
        "ext_attr",
        "resize_inode",
        "dir_index",
        "filetype",
        "extent",
        "64bit",
        "flex_bg",
    ]

    def told(a: list[str], b: list[str]) -> str:
        return str(Difference(fact="features", group=FactGroup.DEVICE, a=(" ".join(a),), b=(" ".join(b),)))

    assert told(features, [*features[1:], "orphan_file"]) == (
        "features: also has_journal → also orphan_file (the rest is equal)"
    )
    assert told(features, [*features, "quota"]) == "features: nothing more → also quota (the rest is equal)"
    assert told(features[:2], features[:1]) == "features: has_journal ext_attr → has_journal"


def test_differences_are_told_in_one_order_whatever_was_measured_first() -> None:
    """Of one fact, too: which cell comes first is random."""
    small, large, both = [{"size": 1}], [{"size": 2}], [{"size": 1}, {"size": 2}]
    before = {"w": small, "x": large, "y": both, "z": small}
    after = {"w": large, "x": both, "y": small, "z": both}
    one, other = (
        [Circumstances(machine=(), devices={name: side[name] for name in names}) for side in (before, after)]
        for names in ("wxyz", "zyxw")
    )
    told = [str(each) for each in differences((), *one)]
    assert told == [str(each) for each in differences((), *other)] == [
        "device.size: 1 → 1 or 2", "device.size: 1 → 2", "device.size: 1 or 2 → 1", "device.size: 2 → 1 or 2",
    ]  # fmt: skip
