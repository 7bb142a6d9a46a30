"""Tests of the block device probe, on synthetic counters and on counters of Linux 6.18.

The latter were recorded around a dd of 64 MiB on ext4 on a loop device.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.probed import WORK, values, warnings_of

from fslab.probes import REGISTRY, ProbeFinding, Snapshot, SnapshotMoment, Target, Transactions, Work
from fslab.trial_record import Severity

GOLDEN = Path(__file__).parents[1] / "golden/linux-6.18"
PROBE = REGISTRY.get("block-device")
MIB = 1 << 20


def work(read: int | None = 0, written: int | None = 0, *, direct: bool = False, cold: bool = True) -> Work:
    return replace(WORK, read_bytes=read, written_bytes=written, direct=direct, cold=cold)


def machine(root: Path, counters: dict[str, str], *, partition_of: str | None = None) -> Target:
    """Create a /sys with the stat files of these devices. Return a target that uses them."""
    links = root / "class/block"
    links.mkdir(parents=True, exist_ok=True)
    for name, text in counters.items():
        real = root / "devices" / (f"{partition_of}/{name}" if partition_of else name)
        real.mkdir(parents=True, exist_ok=True)
        (real / "stat").write_text(text)
        if not (links / name).exists():
            (links / name).symlink_to(real)
    return Target(devices=tuple(counters), filesystem="ext4", directory=Path("/mnt/x"), sys=root)


def taken(tmp_path: Path, scenario: str) -> dict[SnapshotMoment, Snapshot]:
    return {
        moment: PROBE.snapshot(
            machine(tmp_path, {"loop0": (GOLDEN / scenario / f"{moment.value}.block-stat").read_text()})
        )
        for moment in PROBE.moments
    }


def test_what_each_transaction_costs(tmp_path: Path) -> None:
    known = Transactions(count=1 << 14, bytes_before=32 * MIB, flushes=1 << 15)
    found = values(PROBE.derive(taken(tmp_path, "direct-write"), replace(work(), transactions=known)))
    assert found["device_written_per_transaction"] == pytest.approx(2048, rel=0.01)  # 64 MiB, and metadata
    assert found["device_flushes_per_transaction"] == 2
    assert "device_written_per_transaction" not in values(
        PROBE.derive(taken(tmp_path, "direct-write"), work())
    )


def test_direct_writes_reach_the_device_at_once(tmp_path: Path) -> None:
    meanwhile = work(written=64 * MIB, direct=True)
    found = PROBE.derive(taken(tmp_path, "direct-write"), meanwhile)
    assert values(found) == {
        "device_read_bytes": 0,
        "device_written_bytes": 131072 * 512,  # 128782781 - 128651709 sectors: 64 MiB
        "device_written_bytes_flushed": 131184 * 512,  # 128782893 - 128651709
        "device_discarded_bytes": 0,
        "device_read_requests": 0,
        "device_write_requests": 128,  # 919299 - 919171
        "device_read_merges": 0,
        "device_write_merges": 0,
        "device_flushes": 0,
        "device_busy": 0.016,  # 67668 - 67652 ms
        "device_flush_time": 0,
        "device_read_mean": None,
        "device_write_mean": 37e6 / 128,  # ms of all requests
        "device_flush_mean": None,
        "read_amplification": None,
        "write_amplification": 131184 / 131072,
    }
    assert warnings_of(found, meanwhile) == ()


def test_buffered_writes_reach_it_when_flushed(tmp_path: Path) -> None:
    meanwhile = work(written=64 * MIB)
    found = PROBE.derive(taken(tmp_path, "buffered-write"), meanwhile)
    assert values(found)["device_written_bytes"] == 0
    assert values(found)["device_written_bytes_flushed"] == 131192 * 512  # 128914197 - 128783005
    assert warnings_of(found, meanwhile) == ()


def test_direct_writes_that_the_device_did_not_get_are_a_warning(tmp_path: Path) -> None:
    meanwhile = work(written=64 * MIB, direct=True)
    (warning,) = warnings_of(PROBE.derive(taken(tmp_path, "buffered-write"), meanwhile), meanwhile)
    assert (warning.kind, warning.severity) == ("direct_not_honoured", Severity.WARNING)
    assert warning.data == {"written_bytes": 64 * MIB, "device_written_bytes": 0}


@pytest.mark.parametrize("direct", [True, False])
def test_reads_that_the_device_did_not_serve_are_invalid(tmp_path: Path, direct: bool) -> None:
    meanwhile = work(read=64 * MIB, direct=direct)
    (warning,) = warnings_of(PROBE.derive(taken(tmp_path, "cached-read"), meanwhile), meanwhile)
    assert (warning.kind, warning.severity) == ("cache_served", Severity.INVALID)
    assert warning.data == {"read_bytes": 64 * MIB, "device_read_bytes": 0}


@pytest.mark.parametrize(
    "meanwhile",
    [
        work(read=64 * MIB, cold=False),  # warm reads are meant to be cached
        work(read=64 * MIB, written=64 * MIB),  # may read what it has just written
        work(read=64 * MIB, written=None),  # may have written: the amount is unknown
        work(read=MIB),  # too little for a warning
        work(read=None),
    ],
)
def test_reads_that_may_rightly_be_cached(tmp_path: Path, meanwhile: Work) -> None:
    assert warnings_of(PROBE.derive(taken(tmp_path, "cached-read"), meanwhile), meanwhile) == ()


def line(*, reads: int = 0, read_sectors: int = 0, written_sectors: int = 0) -> str:
    return f"{reads} 0 {read_sectors} 0 0 0 {written_sectors} 0 0 0 0 0 0 0 0 0 0"


def three(tmp_path: Path, *steps: dict[str, str]) -> dict[SnapshotMoment, Snapshot]:
    return {
        moment: PROBE.snapshot(machine(tmp_path, counters))
        for moment, counters in zip(PROBE.moments, steps, strict=True)
    }


@pytest.mark.parametrize(
    ("device_mib", "direct", "valid"),
    [(32, True, True), (31, True, False), (31, False, True), (1, False, True)],
)
def test_how_much_a_device_must_have_served(
    tmp_path: Path, device_mib: int, direct: bool, valid: bool
) -> None:
    after = {"sda": line(read_sectors=device_mib * 2048)}
    snapshots = three(tmp_path, {"sda": line()}, after, after)
    meanwhile = work(read=64 * MIB, direct=direct)
    found = PROBE.derive(snapshots, meanwhile)
    assert (warnings_of(found, meanwhile) == ()) is valid
    assert values(found)["read_amplification"] == device_mib / 64


def test_several_devices_are_summed(tmp_path: Path) -> None:
    before = {"sda": line(written_sectors=100), "sdb": line(written_sectors=0)}
    end = {"sda": line(written_sectors=300), "sdb": line(written_sectors=50)}
    found = PROBE.derive(three(tmp_path, before, end, end), work(written=1000))
    assert values(found)["device_written_bytes"] == 250 * 512
    assert values(found)["write_amplification"] == 128.0


def test_a_counter_that_started_over_is_unknown(tmp_path: Path) -> None:
    before, end = {"sda": line(written_sectors=300)}, {"sda": line(written_sectors=10)}
    found = values(PROBE.derive(three(tmp_path, before, end, end), work(written=1000)))
    assert found["device_written_bytes"] is None
    assert found["write_amplification"] is None
    assert found["device_read_bytes"] == 0


def test_the_time_of_flushes(tmp_path: Path) -> None:
    """Of 432 flushes that take 10 ms each."""
    before, end = {"sda": line()}, {"sda": line().removesuffix("0 0") + "432 5344"}
    found = values(PROBE.derive(three(tmp_path, before, end, end), work()))
    assert (found["device_flushes"], found["device_flush_time"]) == (432, 5.344)
    assert found["device_flush_mean"] == pytest.approx(5344e6 / 432)
    end = {"sda": line().removesuffix("0 0") + "4 19"}
    found = values(PROBE.derive(three(tmp_path, before, end, end), work()))
    assert found["device_flush_mean"] is None, "the counter has whole milliseconds"


def test_of_several_devices_the_longest_time_is_known_too(tmp_path: Path) -> None:
    """A mirror whose second disk flushes three times as long, as measured."""

    def counters(flush_ms: int) -> str:
        busy_ms = flush_ms + 100
        return f"0 0 0 0 0 0 0 0 0 {busy_ms} 0 0 0 0 0 94 {flush_ms}"

    at = {
        moment: PROBE.snapshot(machine(tmp_path, {"a": counters(one), "b": counters(other)}))
        for moment, one, other in zip(PROBE.moments, (0, 950, 950), (0, 2830, 2830), strict=True)
    }
    found = values(PROBE.derive(at, work()))
    assert (found["device_flush_time"], found["device_flush_time_longest"]) == (3.78, 2.83)
    assert found["device_busy_longest"] == 2.83
    alone = {moment: {"a": each["a"]} for moment, each in at.items()}
    assert "device_busy_longest" not in values(PROBE.derive(alone, work()))
    gone = {**at, SnapshotMoment.END: {"a": at[SnapshotMoment.END]["a"]}}
    assert values(PROBE.derive(gone, work()))["device_flush_time_longest"] is None


def test_an_old_kernel_has_no_flush_counters(tmp_path: Path) -> None:
    old = {"sda": "1 2 3 4 5 6 7 8 9 10 11"}
    found = values(PROBE.derive(three(tmp_path, old, old, old), work()))
    assert found["device_flushes"] is None
    assert found["device_flush_time"] is None
    assert found["device_discarded_bytes"] is None
    assert found["device_write_requests"] == 0


def test_amplification_needs_to_know_what_the_application_did(tmp_path: Path) -> None:
    found = values(PROBE.derive(taken(tmp_path, "direct-write"), work(written=None)))
    assert found["write_amplification"] is None
    assert found["device_written_bytes"] == 64 * MIB


def test_without_devices_there_are_no_values() -> None:
    target = Target(devices=(), filesystem="nfs", directory=Path("/mnt/x"))
    snapshots = {moment: PROBE.snapshot(target) for moment in PROBE.moments}
    assert PROBE.derive(snapshots, work(read=64 * MIB, direct=True)) == ProbeFinding(values={})


def test_a_kernel_that_does_not_count_is_an_error(tmp_path: Path) -> None:
    target = machine(tmp_path, {"sda": line()})
    (tmp_path / "devices/sda/queue").mkdir()
    (tmp_path / "devices/sda/queue/iostats").write_text("0\n")
    with pytest.raises(ValueError, match="does not count requests of sda"):
        PROBE.snapshot(target)
    (tmp_path / "devices/sda/queue/iostats").write_text("1\n")
    assert PROBE.snapshot(target)["sda"]["write_sectors"] == 0


def test_a_partition_is_counted_when_its_disk_is(tmp_path: Path) -> None:
    target = machine(tmp_path, {"sda1": line(written_sectors=7)}, partition_of="sda")
    assert PROBE.snapshot(target)["sda1"]["write_sectors"] == 7
    (tmp_path / "devices/sda/queue").mkdir()
    (tmp_path / "devices/sda/queue/iostats").write_text("0\n")
    with pytest.raises(ValueError, match="does not count requests of sda1"):
        PROBE.snapshot(target)


def test_a_device_that_is_gone_is_an_error(tmp_path: Path) -> None:
    target = Target(devices=("sdz",), filesystem="ext4", directory=Path("/mnt/x"), sys=tmp_path)
    with pytest.raises(FileNotFoundError):
        PROBE.snapshot(target)


@pytest.mark.parametrize(("cold", "direct", "sectors", "warned"), [
    (False, False, 8192, True), (False, False, 64, False), (False, True, 8192, False), (True, False, 8192, False),
])  # fmt: skip
def test_a_warm_run_that_read_from_the_device_is_a_warning(
    tmp_path: Path, cold: bool, direct: bool, sectors: int, warned: bool
) -> None:
    steps = [
        {"loop0": line()},
        {"loop0": line(reads=9, read_sectors=sectors)},
        {"loop0": line(reads=9, read_sectors=sectors)},
    ]
    meanwhile = work(4 << 20, 0, direct=direct, cold=cold)
    found = REGISTRY.get("block-device").derive(three(tmp_path, *steps), meanwhile)
    assert ("cache_not_warm" in [warning.kind for warning in warnings_of(found, meanwhile)]) is warned
