"""Tests of layouts: commands, usable space and refused options. Tests in tests/root and tests/guest build real ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fslab.campaign.trial_loop import new_id
from fslab.errors import LayoutError, ToolFailedError
from fslab.names import is_word
from fslab.storage import StackDevice, Stripe, Workspace, layouts
from fslab.storage.layouts import REGISTRY, LayoutPlan, _joined, _lvm, volume_name

ALL = REGISTRY.names()
JOINING = [name for name in ALL if name != "single"]
MIB = 1 << 20


def plan(name: str, campaign: str = "c1", **options: Any) -> LayoutPlan:
    layout = REGISTRY.get(name)
    parsed = layout.parse_options(options)
    return layout.plan(parsed, [f"/dev/x{index}" for index in range(layout.disks(parsed))], campaign)


def on_disks(name: str, count: int) -> dict[str, Any]:
    """Return the options of a layout on so many disks; none for one that takes a single disk."""
    return {"disks": count} if "disks" in REGISTRY.get(name).Options.model_fields else {}


def lines(argvs: tuple[tuple[str, ...], ...]) -> list[str]:
    """Return the command lines, without the configuration of LVM."""
    return [re.sub(r"--config .*? --yes", "--yes", " ".join(argv)) for argv in argvs]


@pytest.mark.parametrize("name", ALL)
def test_the_contract_is_kept(name: str) -> None:
    layout = REGISTRY.get(name)
    options = layout.parse_options({})
    assert layout.name == name
    assert layout.summary
    assert layout.disks(options) >= 1
    made = plan(name)
    assert made.device.startswith("/dev/")
    assert 0 < layout.usable_bytes(options, 1 << 30) <= layout.disks(options) << 30


@pytest.mark.parametrize("more", ["", "-why-0a1b", "-lab", "-machine.example.org-2", "x" * 100])
def test_the_volume_of_any_campaign_has_a_name_that_mdadm_stores(more: str) -> None:
    """The superblock has 32 bytes for it, with the name of the host and a NUL. Traced trials and fleets add to ids."""
    campaign = new_id() + more
    name = volume_name(campaign)
    assert is_word(name)
    assert len(f"none:{name}") < 32
    assert name != volume_name(f"{campaign}x")
    assert more or name == f"fslab-{campaign}"


@pytest.mark.parametrize("name", JOINING)
def test_every_device_is_used_and_left_without_a_trace(name: str) -> None:
    made = plan(name, **on_disks(name, 4))
    layout = REGISTRY.get(name)
    used = [f"/dev/x{index}" for index in range(layout.disks(layout.parse_options(on_disks(name, 4))))]
    for argvs in (made.create, made.remove):
        words = [word for argv in argvs for word in argv]
        assert set(used) <= set(words)
    assert made.create[0] == ("wipefs", "--all", "--quiet", *used)


@pytest.mark.parametrize("name", [name for name in ALL if REGISTRY.get(name).undo_kind])
def test_what_it_makes_carries_the_campaign(name: str) -> None:
    made = plan(name, campaign="20261121-010203-ab12")
    for argv in (*made.create[1:], *made.deactivate):
        assert any("fslab-20261121-010203-ab12" in word for word in argv), argv


def test_lvm_makes_one_striped_volume_of_all_extents() -> None:
    made = plan("lvm-stripe", disks=3, chunk="256k")
    assert lines(made.create)[1:] == [
        (
            "env LVM_SYSTEM_DIR= lvm vgcreate --yes -qq --setautoactivation n --physicalextentsize 4m fslab-c1"
            " /dev/x0 /dev/x1 /dev/x2"
        ),
        (
            "env LVM_SYSTEM_DIR= lvm lvcreate --yes -qq --zero n --wipesignatures n --stripes 3 --stripesize 256k"
            " --extents 100%FREE --name lv fslab-c1"
        ),
    ]
    assert made.device == "/dev/mapper/fslab--c1-lv"
    assert made.stripe == Stripe(chunk_bytes=256 << 10, data_disks=3)
    assert lines(made.deactivate) == ["env LVM_SYSTEM_DIR= lvm vgchange --yes -qq --activate n fslab-c1"]


def test_labels_of_lvm_carry_the_campaign_until_they_are_removed() -> None:
    verbs = [argv[argv.index("lvm") + 1] for argv in plan("lvm-stripe").remove]
    assert verbs == ["vgchange", "pvremove"]


class NoJournal:
    """Keeps no entries."""

    def will_create(self, *_: Any) -> str:
        return ""

    def undone(self, entry: str) -> None:
        pass


class Refusing(Workspace):
    """A workspace in which every command that must succeed fails."""

    def run(
        self, stage: str, argv: Sequence[str], *, failure: type[ToolFailedError] = ToolFailedError,
        check: bool = True, **_: Any,
    ) -> Any:  # fmt: skip
        if check:
            raise failure(f"{argv[0]} exited 1")


@pytest.mark.parametrize("name", ["luks", "md-raid0", "lvm-stripe", "external-journal"])
def test_disks_that_cannot_be_joined_are_a_failure_of_the_layout(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = REGISTRY.get(name)
    monkeypatch.setattr(type(layout), "require", lambda *_, **__: None)
    monkeypatch.setattr(_joined, "holders", lambda _: [])
    workspace = Refusing(campaign="c", runtime=tmp_path, images=tmp_path, journal=NoJournal())
    options = layout.parse_options({})
    disks = [
        StackDevice(path=tmp_path / str(number), size_bytes=1 << 30, discard=False)
        for number in range(layout.disks(options))
    ]
    with pytest.raises(LayoutError) as caught, ExitStack() as undo:
        layout.assemble(options, disks, workspace, undo, make=True, keep=False)
    assert caught.value.failure == "layout"


def test_a_disk_that_is_let_go_at_the_deadline_is_not_reported_as_held_by_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_joined, "RELEASE_DEADLINE_S", 0)
    monkeypatch.setattr(_joined, "holders", lambda _: ["dm-3"])
    with pytest.raises(LayoutError, match="held by dm-3"):
        _joined._wait_released([tmp_path])
    said = [["dm-3"]]
    monkeypatch.setattr(_joined, "holders", lambda _: said.pop() if said else [])
    _joined._wait_released([tmp_path])
    assert not said


def test_lvm_takes_no_lock_of_the_machine_s() -> None:
    made = plan("lvm-stripe")
    commands = (*made.create[1:], *made.activate, *made.deactivate, *made.remove)
    assert len(commands) == 6
    assert all("--nolocking" in argv for argv in commands)


def test_lvm_sees_our_devices_and_no_others() -> None:
    config = _lvm.command("vgs", ["/dev/loop1", "/dev/md.5"])[5]
    accepted = '["a|^/dev/loop1$|","a|^/dev/md\\.5$|","r|.*|"]'
    assert f"filter={accepted}" in config
    assert f"global_filter={accepted}" in config
    for setting in (
        "use_devicesfile=0",
        "udev_sync=0",
        "udev_rules=0",
        "backup=0",
        "archive=0",
        "event_activation=0",
    ):
        assert setting in config
    assert "types=" not in config
    assert 'types=["ubd",16]' in _lvm.command("vgs", ["/dev/ubdb"])[5]


def test_md_is_made_without_the_machine_s_configuration() -> None:
    made = plan("md-raid0", disks=2, chunk="1m")
    assert lines(made.create)[1:] == [
        (
            "mdadm --create --config=none /dev/md/fslab-c1 --homehost=none --name=fslab-c1 --metadata=1.2 --run"
            " --level=0 --raid-devices=2 --chunk=1024 /dev/x0 /dev/x1"
        )
    ]
    assert lines(made.activate) == [
        "mdadm --assemble --config=none /dev/md/fslab-c1 --homehost=none --run /dev/x0 /dev/x1"
    ]
    assert lines(made.remove) == [
        "mdadm --stop --config=none /dev/md/fslab-c1",
        "mdadm --zero-superblock /dev/x0 /dev/x1",
    ]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("md-raid1", {}, "--level=1 --raid-devices=2 --assume-clean --bitmap=none"),
        (
            "md-raid5",
            {"bitmap": "internal"},
            "--level=5 --raid-devices=3 --chunk=64 --assume-clean --bitmap=internal",
        ),
        (
            "md-raid10",
            {"chunk": "16k"},
            "--level=10 --raid-devices=4 --chunk=16 --assume-clean --bitmap=none",
        ),
    ],
)
def test_redundant_arrays_are_not_synchronised_beneath_a_trial(
    name: str, options: dict[str, str], words: str
) -> None:
    assert words in lines(plan(name, **options).create)[1]


def test_btrfs_gets_all_devices_at_mkfs_and_at_mount() -> None:
    made = plan("btrfs-raid0", disks=3)
    assert (made.device, made.members) == ("/dev/x0", ("/dev/x1", "/dev/x2"))
    assert made.mkfs_options == "-d raid0 -m raid1"
    assert made.mount_options == "device=/dev/x1,device=/dev/x2"
    assert plan("btrfs-raid0", metadata="raid0").mkfs_options == "-d raid0 -m raid0"
    assert plan("btrfs-raid1").mkfs_options == "-d raid1 -m raid1"


@pytest.mark.parametrize(
    ("name", "options", "stripe"),
    [
        ("md-raid0", {"disks": 5, "chunk": "16k"}, (16 << 10, 5)),
        ("md-raid5", {"disks": 5, "chunk": "64k"}, (64 << 10, 4)),
        ("md-raid6", {"disks": 6, "chunk": "64k"}, (64 << 10, 4)),
        ("md-raid10", {"disks": 4, "chunk": "64k"}, (64 << 10, 2)),
        ("md-raid10", {"disks": 3, "chunk": "64k"}, (64 << 10, 3)),
        ("md-raid1", {}, None), ("btrfs-raid0", {}, None), ("btrfs-raid1", {}, None), ("single", {}, None),
    ],
)  # fmt: skip
def test_how_data_is_spread(name: str, options: dict[str, Any], stripe: tuple[int, int] | None) -> None:
    expected = Stripe(chunk_bytes=stripe[0], data_disks=stripe[1]) if stripe else None
    assert plan(name, **options).stripe == expected


@pytest.mark.parametrize(
    ("name", "disks", "expected"),
    [
        ("single", None, 160 * MIB),
        ("lvm-stripe", 3, 3 * 156 * MIB),  # 1 MiB of metadata, then 39 whole extents of 4 MiB
        ("btrfs-raid0", 3, 480 * MIB),
        ("btrfs-raid1", 3, 240 * MIB),
        ("btrfs-raid10", 4, 320 * MIB),
        ("btrfs-raid5", 4, 480 * MIB),
        ("btrfs-raid6", 4, 320 * MIB),
        ("luks", None, 144 * MIB),
        ("lvm-thin", None, 140 * MIB),  # 90 % of 39 extents
        ("lvm-snapshot", None, 68 * MIB),  # 45 % of them
    ],
)
def test_room_of_disks_of_160_mib(name: str, disks: int | None, expected: int) -> None:
    layout = REGISTRY.get(name)
    options = layout.parse_options({"disks": disks} if disks else {})
    assert layout.usable_bytes(options, 160 * MIB) == expected


@pytest.mark.parametrize("chunk_mib", [1, 64, 128, 512])
@pytest.mark.parametrize(
    ("name", "more", "copies"), [("lvm-thin", {}, 1), ("lvm-snapshot", {"thin": True}, 2)]
)
def test_a_pool_has_a_chunk_for_each_of_its_volume_and_snapshot(
    name: str, more: dict[str, Any], copies: int, chunk_mib: int
) -> None:
    """A pool allocates whole chunks: in one of 1 GiB, seven of 128 MiB. When it is full, writes wait, then fail."""
    layout = REGISTRY.get(name)
    options = layout.parse_options({"chunk": f"{chunk_mib}m", **more})
    usable = layout.usable_bytes(options, 1024 * MIB)
    chunks = -(-usable // (chunk_mib * MIB))
    assert copies * chunks <= 1024 * 9 // 10 // chunk_mib  # a tenth is metadata
    assert usable >= (1020 * 9 // 10 // copies // max(chunk_mib, 4) - 1) * max(chunk_mib, 4) * MIB


@pytest.mark.parametrize(
    ("name", "disks", "shares"),
    [("md-raid0", 3, 3), ("md-raid1", 3, 1), ("md-raid5", 3, 2), ("md-raid6", 4, 2), ("md-raid10", 4, 2)],
)
def test_room_of_arrays_is_at_most_what_mdadm_gave(name: str, disks: int, shares: int) -> None:
    # With mdadm 4.2, 159 MiB of each disk of 160 MiB were usable.
    layout = REGISTRY.get(name)
    usable = layout.usable_bytes(layout.parse_options({"disks": disks}), 160 * MIB)
    assert shares * 158 * MIB <= usable <= shares * 159 * MIB


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("lvm-stripe", {"disks": 1}, "greater than or equal to 2"),
        ("lvm-stripe", {"chunk": "48k"}, "power of two"), ("lvm-stripe", {"chunk": "2k"}, "at least 4 KiB"),
        ("lvm-stripe", {"chunk": "8m"}, "larger than an LVM extent"), ("md-raid0", {"chunk": "0"}, "power of two"),
        ("md-raid5", {"disks": 2}, "greater than or equal to 3"),
        ("md-raid6", {"disks": 3}, "greater than or equal to 4"),
        ("btrfs-raid6", {"chunk": "64k"}, "not permitted"), ("lvm-thin", {"chunk": "32k"}, "power of two from 64 KiB"),
        ("lvm-snapshot", {"chunk": "1m"}, "from 4 KiB to 512 KiB"),
        ("lvm-snapshot", {"chunk": "4k", "thin": True}, "from 64 KiB"), ("luks", {"cipher": "/tmp/x"}, "pattern"),
        ("luks", {"cipher": "aes-xts-plain64 /dev/sda"}, "pattern"), ("luks", {"cipher": "-\naes-xts"}, "pattern"),
        ("luks", {"key_bits": 300}, "multiple of 8"), ("luks", {"sector_size": 520}, "should be 512"),
        ("md-raid10", {"disks": 2}, "greater than or equal to 3"),
        ("md-raid1", {"chunk": "64k"}, "not permitted"), ("btrfs-raid0", {"chunk": "64k"}, "not permitted"),
        ("md-raid1", {"bitmap": "external"}, "'none' or 'internal'"), ("single", {"disks": 2}, "not permitted"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        REGISTRY.get(name).parse_options(options)


@pytest.mark.parametrize("options", ["-m single", "-dsingle", "--data=dup", "-M", "-n 16k --metadata raid10"])
def test_btrfs_profiles_are_the_layout_s_own(options: str) -> None:
    with pytest.raises(ValueError, match="sets a profile, but layout btrfs-raid1 sets it"):
        REGISTRY.get("btrfs-raid1").check_mkfs_options(options)
    REGISTRY.get("md-raid1").check_mkfs_options(options)
    REGISTRY.get("btrfs-raid1").check_mkfs_options("-n 16k --csum xxhash")


@pytest.mark.parametrize(("lost", "multiplied"), [(0, False), (1, True), (2, True)])
def test_a_layout_that_keeps_copies_or_parity_is_known_by_its_space(lost: int, multiplied: bool) -> None:
    """A plug-in need not say it: explanations would blame the file system for what its layout adds."""

    class Own(layouts.SeveralLayout[layouts.Disks]):
        Options = layouts.Disks

        def usable_bytes(self, options: layouts.Disks, disk_bytes: int) -> int:
            return (options.disks - lost) * disk_bytes * 999 // 1000

        def plan(self, options: layouts.Disks, devices: Sequence[str], campaign: str) -> LayoutPlan:
            raise NotImplementedError

    for count in (3, 20):
        assert Own().multiplies(layouts.Disks(disks=count)) is multiplied
