"""Tests of virtual disks: profiles, the syntax of faults, each disk's options, memory. No disk is started."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests import made
from tests.disk_server import BINARY

from fslab.errors import StudyError
from fslab.probes.virtual_disk import OPERATIONS, YEAR_S, figures
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.media import REGISTRY, _disk, _disk_options
from fslab.storage.parsed_stack import parsed_stack
from fslab.study.load import load_text
from fslab.system import proc

VIRTUAL = REGISTRY.get("virtual")


def options(**raw: Any) -> Any:
    return VIRTUAL.parse_options(raw)


@pytest.mark.skipif(not BINARY.exists(), reason="fslab-disk is not installed beside this Python")
def test_the_profiles_are_those_of_the_server() -> None:
    served = json.loads(proc.run([str(BINARY), "list"]).stdout)
    shipped = {profile["name"]: profile for kind in served.values() for profile in kind}
    ours = {
        name: {key: each[key] for key in each if key != "kind"}
        for name, each in _disk_options.PROFILES.items()
    }
    assert ours == shipped, "make it again: fslab-disk list > src/fslab/storage/media/profiles.json"
    assert all(each["sources"] and each["about"] for each in ours.values())


def test_faults_as_they_are_written() -> None:
    text = "stuck delay=2s probability=0.001 op=read; latent start=1m end=2m; error op=write times=3; latent start=4k"
    assert _disk_options.parse_faults(text) == (
        {"effect": "stuck", "delay_ns": 2_000_000_000, "probability": 0.001, "op": "read"},
        {"effect": "latent", "start": 1 << 20, "end": 2 << 20},
        {"effect": "error", "op": "write", "times": 3},
        {"effect": "latent", "start": 4096},
    )


@pytest.mark.parametrize(
    "text",
    [
        "stcuk",
        "stuck",
        "error delay=1s",
        "error op=raed",
        "latent start=2m end=1m",
        "error probability=2",
        "error x=1",
    ],
)
def test_faults_that_are_mistakes(text: str) -> None:
    with pytest.raises(ValueError, match="fault"):
        options(profile="hdd-7200", faults=text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"profile": "hdd-7201"},
        {"profile": "hdd-7200", "steady": True},
        {"size": "1t"},
        {"profile": "ssd-sata", "cache_size": "4m"},
        {"profile": "hdd-7200", "cache": "none", "cache_size": "4m"},
        {"profile": "hdd-7200", "cache_size": "5k"},
        {"profile": "hdd-7200", "array_chunk": "64k"},
        {"profile": "hdd-7200", "array_disks": 2, "array_chunk": "5k"},
        {"profile": "hdd-7200", "array_disks": 2, "size": "64k", "array_chunk": "1m"},
        {"profile": "hdd-7200", "array_disks": 2, "slow": 2},
    ],
)
def test_options_that_are_mistakes(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"profile|steady|cache_size|multiple of 4k|array_"):
        options(**wrong)


def test_each_disk_is_a_drive_of_its_own_and_one_is_slow() -> None:
    each = VIRTUAL.each(options(profile="hdd-7200", seed=7, slow=3), 3)
    assert [(one.seed, one.slow) for one in each] == [(7, 3), (8, 1), (9, 1)]


def test_an_array_uses_whole_chunks_of_its_disks_and_no_two_disks_have_one_seed() -> None:
    striped = options(profile="hdd-7200", size="1000m", array_disks=5, array_chunk="64m", seed=7)
    size = 5 * 15 * (64 << 20)
    assert VIRTUAL.plan(striped, Path("/images")).size_bytes == size
    words = _disk.argv(striped, Path("/run/disk-1"))
    given = dict(pairwise(words))
    assert (given["--size"], given["--drives"], given["--chunk"]) == (str(size), "5", str(64 << 20))
    assert [one.seed for one in VIRTUAL.each(striped, 2)] == [7, 12]
    assert "--drives" not in _disk.argv(options(profile="hdd-7200"), Path("/run/disk-1"))


def test_what_it_takes_is_memory_for_what_is_written_and_not_its_size() -> None:
    plan = VIRTUAL.plan(options(profile="hdd-7200", size="1t", memory="1g"), Path())
    assert (plan.size_bytes, plan.holds_bytes, plan.space) == (1 << 40, 1 << 30, {"memory": 1 << 30})
    ssd = VIRTUAL.plan(options(profile="ssd-sata", size="8g", memory="1g", steady=True), Path())
    assert ssd.space["memory"] == (1 << 30) + 2 * (8 << 30) // 4096 * 8, "the map and its prepared state"


def test_a_log_has_a_limit_and_counts_as_memory() -> None:
    for log, limit in (("no", 0), ("requests", _disk.REQUEST_LOG_BYTES), ("data", 1 << 30)):
        logged = options(profile="hdd-7200", size="1t", memory="1g", log=log)
        assert VIRTUAL.plan(logged, Path()).space == {"memory": (1 << 30) + limit}
        words = _disk.argv(logged, Path("/run/fslab/c/disk-1"))
        assert ("--log-limit" in words) is (log != "no")
        assert not limit or str(limit) in words


def test_a_hard_disk_has_no_discard() -> None:
    assert not VIRTUAL.discards(options(profile="hdd-7200"))
    assert VIRTUAL.discards(options(profile="ssd-sata"))


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs", "none"])
@pytest.mark.parametrize("steady", [False, True])
def test_mkfs_does_not_make_a_used_disk_as_new(filesystem: str, steady: bool) -> None:
    spec = made.spec(
        filesystem, medium="virtual", options={"profile": "ssd-sata", "size": "8g", "steady": steady}
    )
    parsed = parsed_stack(spec)
    found = parsed.mkfs_argv(parsed.layout_plan(["/dev/x"], "c"), "/dev/x", discard=True)
    driver = FILESYSTEMS.get(filesystem)
    assert found == driver.mkfs_argv("", "/dev/x", discard=not steady)
    assert found != driver.mkfs_argv("", "/dev/x", discard=steady)


def test_the_memory_of_a_disk_is_scaled_and_its_size_is_not() -> None:
    medium = REGISTRY.get("virtual")
    written = medium.parse_options({"profile": "hdd-7200", "size": "1t", "memory": "100g"})
    (change,) = medium.scaled(written, 0.1, least_bytes=1 << 30).items()
    assert (change[0], change[1].value) == ("memory", "10g")
    assert medium.scaled(written, 0.001, least_bytes=1 << 30)["memory"].value == "1g"


@pytest.mark.parametrize(
    ("given", "cache"),
    [
        ({"profile": "none"}, "none"),
        ({"profile": "none", "log": "data"}, "volatile"),
        ({"profile": "none", "log": "data", "cache": "protected"}, "protected"),
        ({"profile": "ssd-nvme-dc", "log": "data"}, "protected"),
    ],
)
def test_a_disk_whose_data_is_logged_for_power_cuts_has_a_volatile_cache(
    given: dict[str, str], cache: str
) -> None:
    assert ("--cache", cache) in pairwise(_disk.argv(options(**given), Path("disk-1")))


def test_a_write_cache_is_scaled_with_the_files_that_it_holds() -> None:
    found = options(profile="hdd-7200", memory="100g", cache_size="32m")
    assert [VIRTUAL.scaled(found, factor, least_bytes=1)["cache_size"].value for factor in (0.5, 0.01)] == [
        "16m",
        "2m",
    ]
    assert ("--cache-bytes", str(32 << 20)) in pairwise(_disk.argv(found, Path("disk-1")))
    assert "--cache-bytes" not in _disk.argv(options(profile="hdd-7200"), Path("disk-1"))


@pytest.mark.parametrize(
    ("filesystem", "memory", "fits"),
    [
        ("ext4", "1g", False),
        ("ext4", "1040m", True),
        ("ext4, mkfs_options: '-b 1024'", "1040m", False),
        ("ext4, mkfs_options: '-b 1024'", "1090m", True),
        ("xfs, mkfs_options: '-d agcount=2000'", "1080m", False),
        ("xfs, mkfs_options: '-d agsize=100m'", "1080m", False),
        ("xfs", "1030m", True),
        ("udf", "1060m", False),
        ("jfs", "1040m", False),
        ("jfs", "1200m", True),
        # Encrypted, the inode tables and the journal of ext4, and the log of XFS, are no longer zeros.
        ("ext4, layout: luks", "5g", False),
        ("ext4, layout: luks", "6g", True),
        # Not with own options that leave some of them out.
        ("ext4, layout: luks, mkfs_options: '-m 0'", "5g", False),
        ("ext4, layout: luks, mkfs_options: '-m 0'", "6g", True),
        ("ext4, layout: luks, mkfs_options: '-i wrong'", "5g", False),
        ("ext4, layout: luks, mkfs_options: '-i 8k'", "6g", False),
        ("ext4, layout: luks, mkfs_options: '-E lazy_itable_init=1'", "2200m", True),
        ("ext4, layout: luks, mkfs_options: '-N 100000'", "2200m", True),
        ("ext4, layout: luks, mkfs_options: '-N 100000'", "1200m", False),
        ("ext4, layout: luks, mkfs_options: '-N 100000 -O ^has_journal'", "1200m", True),
        ("xfs, layout: luks, mkfs_options: '-l size=32m'", "1090m", True),
        ("xfs, layout: luks", "1040m", False),
        ("xfs, layout: luks", "1200m", True),
    ],
)
def test_files_that_do_not_fit_into_the_memory_beside_what_mkfs_writes_are_refused(
    filesystem: str, memory: str, fits: bool
) -> None:
    text = f"""
title: t
on: uml
media: {{d: {{type: virtual, profile: hdd-7200, size: 200g, memory: {memory}}}}}
stacks: {{s: {{medium: d, filesystem: {filesystem}}}}}
workloads: {{w: {{tool: fio, rw: write, size: 1g}}}}
"""
    if fits:
        load_text(text, "s.yaml")
        return
    with pytest.raises(StudyError, match=r"'w' needs 1 GiB, mkfs of .* writes .* give it more 'memory'"):
        load_text(text, "s.yaml")


def test_the_years_of_an_ssd_are_those_at_the_rate_of_the_run_and_not_of_the_flush_after_it() -> None:
    def taken(seconds: int, host_bytes: int) -> dict[str, Any]:
        idle = {"requests": 0, "service_ns": None}
        model = {
            "kind": "ssd",
            "host_bytes": host_bytes,
            "flash_bytes": 2 * host_bytes,
            "rated_bytes": YEAR_S,
            "erases_per_block": {"mean": host_bytes / 8, "max": 1},
        }
        return {
            "time_ns": seconds * 10**9, "rate": 1.0, "late_ns": None, "model": model,
            "operations": dict.fromkeys(OPERATIONS, idle),
        }  # fmt: skip

    found = figures([taken(10, 0)], [taken(12, 3)], [taken(19, 4)])
    assert found["ssd_years_at_this_rate"].value == pytest.approx(1 / 4 * 2)
    assert found["device_write_amplification"].value == 2
    assert found["flash_erases_per_block"].value == 4 / 8
