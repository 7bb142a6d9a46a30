"""Tests of machines without booting a guest: lists of modules, initramfs, choice of a machine, studies, disk models."""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests import made

from fslab import feasibility
from fslab.cell import MachineSpec, MediumSpec, StackSpec
from fslab.errors import StudyError, UnsafeError, UnsupportedError
from fslab.machine import kinds
from fslab.machine.kinds import REGISTRY, Need, _qemu, uml
from fslab.plan.expand import expand
from fslab.study.load import load_text
from fslab.system import cgroup, disk_server, kernel, rights
from fslab.system.kernel import Kernel


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a modules directory with files in the formats that kmod writes."""
    made = tmp_path / "6.1.9-test"
    (made / "kernel/net").mkdir(parents=True)
    (made / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\nkernel/drivers/virtio/virtio_pci.ko\n")
    (made / "modules.builtin.modinfo").write_bytes(b"ext4.alias=fs-ext4\0ext4.alias=ext3\0ext4.license=GPL\0")
    (made / "modules.alias").write_text("# Aliases\nalias fs-f2fs f2fs\nalias pci:v1d2 e1000\n")
    (made / "modules.dep").write_text(
        "kernel/fs/f2fs/f2fs.ko.xz:\n"
        "kernel/net/9p.ko.xz: kernel/net/9pnet.ko.xz kernel/net/netfs.ko.gz\n"
        "kernel/net/9pnet.ko.xz: kernel/net/netfs.ko.gz\n"
        "kernel/net/netfs.ko.gz:\n"
        "kernel/md/dm-mod.ko:\n"
    )
    return made


def test_the_lists_beside_its_modules_say_what_a_kernel_has(directory: Path) -> None:
    known = kernel.read_modules(directory)
    assert known.release == "6.1.9-test"
    assert known.filesystems == {"ext4", "f2fs"}
    assert known.has_module("dm_mod")
    assert known.has_module("dm-mod")
    assert known.has_module("ext4")
    assert not known.has_module("raid0")


def test_the_newest_kernel_is_told_by_numbers(tmp_path: Path) -> None:
    for release in ("6.9.0-1", "6.12.0-1", "6.12.0-rc1"):
        (tmp_path / release).mkdir()
        (tmp_path / release / "modules.dep").write_text("")
    (tmp_path / "7.0.0").mkdir()  # ignored, because it has no modules.dep
    newest = kernel.newest_modules(tmp_path)
    assert newest is not None
    assert newest.name == "6.12.0-1"
    assert kernel.newest_modules(tmp_path / "nowhere") is None


def test_modules_are_loaded_after_what_they_need(directory: Path) -> None:
    files = _qemu.modules_in_order(directory, ["virtio_pci", "9p"])
    assert [file.name for file in files] == ["netfs.ko.gz", "9pnet.ko.xz", "9p.ko.xz"]
    with pytest.raises(UnsupportedError, match="this kernel lacks virtio_blk"):
        _qemu.modules_in_order(directory, ["virtio_blk"])


def entries(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """Return name → mode and content of a cpio archive. Parses it as the format's documentation describes."""
    found: dict[str, tuple[int, bytes]] = {}
    at = 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, length = fields[1], fields[6], fields[11]
        name = archive[at + 110 : at + 110 + length - 1].decode()
        data = (at + 110 + length + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, archive[data : data + size])
        at = (data + size + 3) // 4 * 4


def test_the_archive_holds_the_modules_unpacked_and_the_script(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "kernel/net/netfs.ko.gz").write_bytes(gzip.compress(b"netfs"))
    (directory / "kernel/net/9pnet.ko.xz").write_bytes(lzma.compress(b"9pnet"))
    (directory / "kernel/net/9p.ko.xz").write_bytes(lzma.compress(b"9p"))
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"ELF!!")
    wanted = _qemu.modules_in_order(directory, ["9p"])
    monkeypatch.setattr(_qemu, "modules_in_order", lambda _: wanted)
    _qemu.write_initramfs(tmp_path / "initrd", directory, ["/usr/bin/python 3", "-m", "it"], busybox)
    found = entries((tmp_path / "initrd").read_bytes())
    assert [found[f"m/{n}.ko"][1] for n in range(3)] == [b"netfs", b"9pnet", b"9p"]
    assert found["bin/busybox"] == (0o100755, b"ELF!!")
    assert found["bin/sh"] == (0o120777, b"busybox")
    assert found["dev/console"][0] == 0o20600
    script = found["init"][1].decode()
    assert script.startswith("#!/bin/sh\n")
    assert "insmod /m/0.ko\ninsmod /m/1.ko\ninsmod /m/2.ko\n" in script
    assert "exec switch_root /host '/usr/bin/python 3' -m it\n" in script


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("fpu sse2 avx2", False), ("fpu avx512f amx_tile", True), ("fpu amx_bf16", False)],
)
def test_only_a_cpu_with_larger_registers_needs_the_library(
    flags: str, expected: bool, tmp_path: Path
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    assert uml.xstate_needed(tmp_path / "cpuinfo") is expected


def stack(filesystem: str = "f2fs", **changes: object) -> StackSpec:
    kind = str(changes.pop("medium", "ram"))
    options = {"path": "/dev/disk/by-id/x"} if kind == "device" else {}
    return made.spec(filesystem, kind, options, **{"name": "s", **changes})


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> dict[str, Kernel]:
    """Simulate three machines, used by root: a host with ext4 only, a User-Mode Linux guest that also has f2fs and
    device-mapper, and QEMU, which is not installed. Return the kernels."""
    found = {
        "host": Kernel(release="6.18", filesystems=frozenset({"ext4"}), modules=frozenset()),
        "uml": Kernel(
            release="6.1", filesystems=frozenset({"ext4", "f2fs"}), modules=frozenset({"dm_mod", "dm_stripe"})
        ),
    }
    for name, machine in REGISTRY:
        needs = () if name in found else (Need(what="is not installed", remedy="install it"),)
        monkeypatch.setattr(machine, "missing", lambda _, needs=needs: needs)
        monkeypatch.setattr(machine, "kernel", lambda _, name=name: found.get(name))
    monkeypatch.setattr(rights, "missing_for_mounts", lambda: None)
    monkeypatch.setattr(cgroup, "may_limit_memory", lambda: True)
    return found


AUTO = MachineSpec(type=kinds.AUTO, memory="512m")


def test_auto_is_the_first_machine_that_can(kernels: dict[str, Kernel]) -> None:
    assert feasibility.resolved(stack("ext4", machine=AUTO)).machine == MachineSpec(memory="512m")
    assert feasibility.resolved(stack("f2fs", machine=AUTO)).machine == MachineSpec(type="uml", memory="512m")
    nowhere = feasibility.resolved(stack("bcachefs", machine=AUTO))
    assert nowhere.machine == MachineSpec(memory="512m"), "its trials say why not, the others' go on"
    reasons = [
        need.what
        for name in ("host", "uml")
        for need in feasibility._machines.missing_filesystem("jfs", MachineSpec(type=name))
    ]
    assert ["Linux 6.18 has no jfs" in reasons[0], "Linux 6.1 has no jfs" in reasons[1]] == [True, True]


def test_auto_knows_what_another_user_cannot_do_on_the_host(
    kernels: dict[str, Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "missing_for_mounts", lambda: "root")
    assert feasibility.resolved(stack("ext4", machine=AUTO)).machine.type == "uml"


BEST = MachineSpec(type=kinds.BEST, memory="512m")


def best(*filesystems: str, **more: object) -> list[str]:
    found = feasibility.all_resolved([stack(name, machine=BEST, **more) for name in filesystems])
    return [one.machine.type for one in found]


def test_best_is_one_machine_for_all_stacks(kernels: dict[str, Kernel]) -> None:
    assert best("ext4") == ["host"]
    assert best("ext4", "f2fs") == ["uml", "uml"]
    assert best("ext4", "bcachefs") == ["host", "host"], "what no machine can build does not count"
    assert best("f2fs", "ext4", "bcachefs") == ["uml"] * 3
    beside = feasibility.all_resolved(
        [stack("f2fs", machine=BEST), stack("ext4", machine=AUTO), stack("ext4")]
    )
    assert [one.machine.type for one in beside] == ["uml", "host", "host"]
    assert beside[0].machine.memory == "512m"


def test_only_the_guest_answers_at_its_console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any user of the machine can send to the abstract name of the socket that waits for the answer."""
    monkeypatch.chdir(tmp_path)
    refused = []

    def serve(guest: socket.socket, other: socket.socket) -> None:
        _, client = guest.recvfrom(4096)
        try:
            other.sendto(struct.pack("=III", 0, 0, 5) + b"false", client)
        except OSError as error:
            refused.append(error.errno)
        guest.sendto(struct.pack("=III", 0, 0, 4) + b"true", client)

    kind = (socket.AF_UNIX, socket.SOCK_DGRAM)
    with socket.socket(*kind) as guest, socket.socket(*kind) as other, ThreadPoolExecutor() as pool:
        guest.bind("mconsole")
        served = pool.submit(serve, guest, other)
        assert uml.ask_console(tmp_path / "mconsole", "version") == "true"
        served.result()
    assert refused == [errno.EPERM]


@pytest.mark.parametrize(("emulated", "chosen"), [(False, "qemu"), (True, "uml"), (None, "uml")])
def test_best_prefers_a_guest_on_the_cpus_themselves(
    kernels: dict[str, Kernel], monkeypatch: pytest.MonkeyPatch, emulated: bool | None, chosen: str
) -> None:
    qemu = REGISTRY.get("qemu")
    monkeypatch.setattr(qemu, "missing", lambda _: ())
    monkeypatch.setattr(qemu, "kernel", lambda _: kernels["uml"])
    monkeypatch.setattr(qemu, "emulated", lambda _: emulated)
    assert best("ext4", "f2fs") == [chosen, chosen]


def test_guest_is_never_the_host_and_has_the_memory_and_the_disks_of_its_kind(
    kernels: dict[str, Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files larger than memory need one. Only in User-Mode Linux, modelled disks have its speed."""
    disk = MediumSpec(name="d", type="virtual", options={"profile": "ssd-sata", "uml_speed": 0.5})
    asked = stack("ext4", machine=MachineSpec(type=kinds.GUEST, memory="328m")).model_copy(
        update={"medium": disk}
    )
    native = asked.model_copy(update={"machine": MachineSpec()})
    (uml, host) = feasibility.all_resolved([asked, native])
    assert (uml.machine.type, uml.machine.memory, uml.medium.options["speed"]) == ("uml", "328m", 0.5)
    assert (host.machine.type, host.medium.options) == ("host", {"profile": "ssd-sata"})
    qemu = REGISTRY.get("qemu")
    monkeypatch.setattr(qemu, "missing", lambda _: ())
    monkeypatch.setattr(qemu, "kernel", lambda _: kernels["uml"])
    monkeypatch.setattr(qemu, "emulated", lambda _: False)
    (kvm,) = feasibility.all_resolved([asked])
    assert (kvm.machine.type, kvm.machine.memory) == ("qemu", "512m")
    assert "speed" not in kvm.medium.options


def test_a_guest_with_kvm_has_the_cpus_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    for accelerator, cpus in ((_qemu.KVM, "8"), (_qemu.TCG, "1")):
        argv = _qemu.machine_argv("qemu", accelerator, 256, "k", "i")
        assert argv[argv.index("-smp") + 1] == cpus


def test_a_guest_is_checked_before_anything_is_made(kernels: dict[str, Kernel]) -> None:
    feasibility._machines.check_machine(stack("f2fs", machine=MachineSpec(type="uml")))
    with pytest.raises(UnsupportedError, match=r"Linux 6\.1 has no xfs"):
        feasibility._machines.check_machine(stack("xfs", machine=MachineSpec(type="uml")))
    with pytest.raises(UnsupportedError, match=r"Linux 6\.1 has no raid0"):
        feasibility._machines.check_machine(stack("ext4", layout="md-raid0", machine=MachineSpec(type="uml")))
    with pytest.raises(UnsupportedError, match="is not installed"):
        feasibility._machines.check_machine(stack("ext4", machine=MachineSpec(type="qemu")))
    with pytest.raises(UnsupportedError, match="on the host only"):
        feasibility._machines.check_machine(stack("ext4", medium="device", machine=MachineSpec(type="uml")))


STUDY = """
title: kernels
{keys}
media: {{m: {{type: ram, size: 1g}}}}
stacks: {{fs: {{medium: m, filesystem: [ext4, xfs]{own}}}}}
workloads: {{w: {{tool: fio, rw: read, bs: 4k, size: 16m, runtime: 2s}}}}
"""


def names(keys: str = "", own: str = "", *overrides: str) -> dict[str, MachineSpec]:
    study = load_text(STUDY.format(keys=keys, own=own), "s.yaml", overrides)
    return {cell.stack.name: cell.stack.machine for cell in expand(study)}


def test_stacks_run_on_the_host_unless_the_study_says_otherwise() -> None:
    assert set(names().values()) == {MachineSpec()}
    assert set(names("on: uml").values()) == {MachineSpec(type="uml")}
    assert set(names("on: host", ", on: uml").values()) == {MachineSpec(type="uml")}
    assert set(names("", ", on: uml", "on=host").values()) == {MachineSpec()}, "--on is for all"


def test_two_kernels_and_two_machines_are_factors_with_names() -> None:
    found = names("on: uml\nkernel: [/a/linux-6.1, /b/linux-6.12]\nguest_memory: 512m")
    assert list(found) == ["ext4 @linux-6.1", "xfs @linux-6.1", "ext4 @linux-6.12", "xfs @linux-6.12"]
    assert found["xfs @linux-6.12"] == MachineSpec(type="uml", kernel="/b/linux-6.12", memory="512m")
    assert "ext4 @/a/linux" in names("on: uml\nkernel: [/a/linux, /b/linux]")
    assert list(names("on: [host, uml]")) == ["ext4 @host", "xfs @host", "ext4 @uml", "xfs @uml"]
    assert list(names("on: [host, uml]\nkernel: [/a/linux-6.1, /b/linux-6.12]")) == [
        "ext4 @host", "xfs @host", "ext4 @linux-6.1 @uml", "xfs @linux-6.1 @uml",
        "ext4 @linux-6.12 @uml", "xfs @linux-6.12 @uml",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "own", "said"),
    [
        ("on: umm", "", "s.yaml:3: on: no machine 'umm' — did you mean 'uml'?"),
        ("", ", on: [uml, uml]", "stacks.fs.on.2: 'uml' is listed twice"),
        ("kernel: /x", "", "s.yaml:3: kernel: has no effect: only a guest has it"),
        ("on: uml\nguest_memory: lots", "", "s.yaml:4: guest_memory: 'lots' is not a size"),
        (
            "on: uml\nguest_memory: 512",
            "",
            "guest_memory: '512' is 512 B, too little for a guest: write it with a unit",
        ),
        ("", ", on: uml, guest_memory: 512k", "guest_memory: '512k' is 512 KiB, too little for a guest"),
        ("on: uml\nkernel: /x\nmodules: [/a, /b]", "", "names 2 directories for 1 kernels"),
    ],
)
def test_mistakes_are_shown_where_they_were_written(keys: str, own: str, said: str) -> None:
    with pytest.raises(StudyError) as refusal:
        names(keys, own)
    assert said in str(refusal.value)


def test_a_word_of_a_kernel_s_command_line_can_have_spaces_but_no_quotes() -> None:
    assert kinds.option("init", "/usr/bin/python3") == "init=/usr/bin/python3"
    assert kinds.option("fslab_run", Path("/home/a b,c")) == 'fslab_run="/home/a b,c"'
    for odd in ('/a"b', "/a\nb"):
        with pytest.raises(UnsupportedError, match="path with a double quote"):
            kinds.option("init", odd)


@pytest.mark.parametrize(
    ("mode", "place_mode", "checked_contents"),
    [(0o600, 0o700, True), (0o620, 0o700, False), (0o600, 0o777, None)],
)
def test_only_a_library_that_nobody_else_can_have_written_is_loaded(
    mode: int, place_mode: int, checked_contents: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None: root refuses a directory to which others can write, and for other users nothing is available."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("fslab.machine.kinds.uml.tools.find", lambda _: None)
    assert not uml.xstate_available(), "no compiler, and none was built"
    kept = uml._kept_xstate()
    kept.parent.mkdir()
    (tmp_path / "else").write_bytes(b"another's")
    kept.symlink_to(tmp_path / "else")
    assert not uml.xstate_available(), "a link"
    kept.unlink()
    kept.write_bytes(b"library")
    kept.chmod(mode)
    kept.parent.chmod(place_mode)
    if checked_contents is None and os.geteuid() == 0:
        with pytest.raises(UnsafeError, match="other users can write"):
            uml.xstate_available()
    else:
        assert uml.xstate_available() is bool(checked_contents)
    if checked_contents:  # copied from the cache, because there is no compiler
        assert uml.install_xstate(tmp_path) == "./xstate.so"
        assert (tmp_path / "xstate.so").read_bytes() == b"library"


def test_a_kernel_that_was_named_and_is_not_there_is_not_to_be_installed(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for machine in ("uml", "qemu"):
        spec = MachineSpec(type=machine, kernel=str(tmp_path / "nothing"))
        (need,) = [each for each in REGISTRY.get(machine).missing(spec) if "nothing" in each.what]
        assert need.what.endswith("does not exist")
        assert (need.remedy or "").startswith("check the path")
    spec = MachineSpec(type="uml", kernel=str(tmp_path / "text"))
    assert any(each.what.endswith("text cannot be executed") for each in REGISTRY.get("uml").missing(spec))


@pytest.mark.parametrize("machine", ["uml", "qemu"])
def test_a_guest_without_modprobe_would_have_no_modules(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small distribution images lack kmod. Without modprobe, loadable modules would seem to be missing in the kernel,
    so modprobe is reported as missing, with the package to install."""
    kind = REGISTRY.get(machine)
    assert "kmod" in {tool.package for tool in kind.tools}
    monkeypatch.setattr(
        "fslab.system.tools.find", lambda program: None if program == "modprobe" else f"/bin/{program}"
    )
    (need,) = [each for each in kind.missing(MachineSpec(type=machine)) if "modprobe" in each.what]
    assert need.remedy
    assert "kmod" in need.remedy


DISK = MediumSpec(name="d", type="virtual", options={"profile": "hdd-7200"})
STRIPES = {"lvm-stripe": {"disks": 3, "chunk": "16k"}, "md-raid0": {"disks": 3, "chunk": "16k"}}


def striped(medium: MediumSpec = DISK, *more: str) -> list[tuple[str, str, bool]]:
    """Return layout, machine and whether the server stripes, for one disk, LVM and md, and ``more`` layouts."""
    plain = stack("ext4", machine=BEST).model_copy(update={"medium": medium})
    layouts = {"single": {}, **STRIPES, **{name: {} for name in more}}
    asked = [
        plain.model_copy(update={"layout": name, "layout_options": options})
        for name, options in layouts.items()
    ]
    return [(each.layout, each.machine.type, each.served) for each in feasibility.all_resolved(asked)]


SOME = (("single", False), ("lvm-stripe", True), ("md-raid0", True))


@pytest.fixture
def serving(kernels: dict[str, Kernel], monkeypatch: pytest.MonkeyPatch) -> dict[str, Kernel]:
    """Simulate the same, where virtual disks can be served, and md in the guest."""
    kernels["uml"] = Kernel(
        release="6.1", filesystems=frozenset({"ext4"}), modules=frozenset({"dm_mod", "raid0", "raid1"})
    )
    monkeypatch.setattr(disk_server, "check_supported", lambda: None)
    return kernels


def test_best_has_the_disk_server_stripe_where_the_kernel_cannot(serving: dict[str, Kernel]) -> None:
    assert striped() == [(layout, "host", served) for layout, served in SOME]
    serving["host"] = Kernel(release="6.18", filesystems=frozenset({"ext4"}), modules=frozenset({"raid0"}))
    assert striped() == [(layout, "host", served) for layout, served in SOME], "all of them, or none"


def test_best_takes_the_kernel_s_md_and_lvm_where_it_has_both(serving: dict[str, Kernel]) -> None:
    both = frozenset({"dm_mod", "raid0"})
    serving["host"] = Kernel(release="6.18", filesystems=frozenset({"ext4"}), modules=both)
    assert striped() == [(layout, "host", False) for layout, _ in SOME]


def test_best_takes_a_guest_where_the_server_cannot_stripe(
    serving: dict[str, Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = [(layout, "uml", False) for layout, _ in SOME]
    assert striped(DISK, "md-raid1") == [*guest, ("md-raid1", "uml", False)], "a mirror is no stripe"
    for key, value in (("faults", "error op=read"), ("log", "requests"), ("slow", 2), ("array_disks", 2)):
        own = DISK.model_copy(update={"options": {**DISK.options, key: value}})
        assert striped(own) == guest, key
    assert striped(MediumSpec(name="m", type="ram")) == guest

    def refuse() -> None:
        raise UnsupportedError("this kernel has no FUSE")

    monkeypatch.setattr(disk_server, "check_supported", refuse)
    assert striped() == guest
    monkeypatch.setattr(disk_server, "check_supported", lambda: None)
    monkeypatch.setattr(rights, "missing_for_mounts", lambda: "root")
    assert striped() == guest
