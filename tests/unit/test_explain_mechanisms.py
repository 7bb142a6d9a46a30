"""Tests of mechanisms: explanations need evidence, their text for given figures, and the cells that switches make."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests import made
from tests.made import known
from tests.unit.explained import DIRECT, MIB, SYNCED, by_mechanism, cell, seen, trial, written

from fslab.cell import Cache, Cell, Geometry, MediumSpec, StackSpec
from fslab.errors import UsageError
from fslab.explain import mechanisms
from fslab.explain.evidence import Certainty, Evidence, Explanation, evidence_of
from fslab.explain.mechanisms import REGISTRY, Switch, statements_of
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.parsed_stack import ParsedStack
from fslab.trial_record import WHOLE, Provenance, RunPart, Severity, Status, ValidityWarning

EVERY = [
    cell(filesystem, mount, parameters)
    for filesystem in ("ext4", "xfs", "btrfs", "jfs", "reiserfs", "nilfs2", "f2fs", "vfat")
    for mount in ("defaults", "data=journal" if filesystem == "ext4" else "noatime")
    for parameters in (SYNCED, DIRECT, {"rw": "randread", "size": "64m"}, {**SYNCED, "numjobs": 4})
]


@pytest.mark.parametrize("of", EVERY, ids=lambda of: f"{of.stack.name} {of.workload.parameters}")
def test_without_evidence_nothing_is_reported(of: Cell) -> None:
    assert statements_of(seen(of, {})) == []


@pytest.mark.parametrize("value", [1.0, 1e9])
@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs", "vfat"])
@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("engine", {"operations": "stat,read"}),  # the sizes of its requests are unknown
        ("engine", {}), ("shell", {"operation": "cat"}), ("bonnie", {"files": 1024}), ("untar", {}), ("sqlite", {}),
        ("fio", SYNCED), ("no-such-tool", {}),
    ],
)  # fmt: skip
def test_all_figures_may_be_known_of_any_workload(
    tool: str, parameters: dict[str, Any], filesystem: str, value: float
) -> None:
    files = Path(known(mechanisms.__file__)).parent.glob("*.py")
    names = {name for file in files for name in re.findall(r'"([a-z_0-9]+)"', file.read_text())}
    of = made.cell(filesystem, tool, parameters)
    figures = dict.fromkeys(names, value)
    statements_of(seen(of, figures, trial(of, figures)))


@pytest.mark.parametrize("of", EVERY, ids=lambda of: f"{of.stack.name} {of.workload.parameters}")
def test_a_switch_makes_another_cell_that_its_file_system_takes(of: Cell) -> None:
    for name, mechanism in REGISTRY:
        found = seen(of, {})
        switch = mechanism.switch(found) if mechanism.applies(found) else None
        changed = switch.off(of) if switch else None
        if switch is None or changed is None:
            continue
        assert changed.id != of.id, name
        assert switch.off(changed) is None, f"{name}: once off it is off"
        driver = FILESYSTEMS.get(str(of.stack.filesystem))
        driver.check_mount_options(changed.stack.mount_options)
        driver.check_mkfs_options(changed.stack.mkfs_options)


@pytest.mark.parametrize(
    ("switch", "words"),
    [
        (Switch(mount=("nodatacow",), instead=("datacow",)), "mount -o nodatacow"),
        (Switch(mkfs="-O ^has_journal", instead=("data", "commit")),
         "mkfs -O ^has_journal, no mount option data or commit"),
        (Switch(mount=("data=ordered", "noatime"), attributes="j"), "mount -o data=ordered,noatime, no attribute j"),
        (Switch(parameters={"direct": True}, medium={"size": "20g"}), "direct=True, size=20g"),
        (Switch(geometry=Geometry.ALIGNED), "geometry: aligned"),
    ],
)  # fmt: skip
def test_a_switch_says_what_it_changes(switch: Switch, words: str) -> None:
    assert str(switch) == words


def test_an_option_is_added_to_those_of_the_stack_and_not_to_defaults() -> None:
    off = Switch(mount=("nodatacow",))
    for mount, options in (("defaults", "nodatacow"), ("noatime", "noatime,nodatacow")):
        assert known(off.off(cell("btrfs", mount))).stack.mount_options == options
    assert off.off(cell("btrfs", "defaults,nodatacow")) is None, "it is off however that is written"


def test_a_workload_that_only_reads_meets_no_mechanism_of_writes() -> None:
    reads = seen(cell("ext4", parameters={"rw": "randread", "size": "64m"}), {})
    found = {name for name, mechanism in REGISTRY if mechanism.applies(reads)}
    assert not found & {"journal", "barriers", "ordered-mode", "commit-interval", "delayed-allocation"}
    assert {"kernel-cpu", "disk-time"} <= found


@pytest.mark.parametrize(
    ("mkfs_options", "applies"),
    [("", True), ("-O has_journal", True), ("-O dir_index,^metadata_csum", True), ("-O ^has_journal", False),
     ("-O^has_journal", False), ("-b 1k -O extent,^has_journal", False), ("-O ^has_journal_dev", True)],
)  # fmt: skip
def test_a_feature_that_is_named_is_not_off(mkfs_options: str, applies: bool) -> None:
    found = seen(cell("ext4", mkfs_options=mkfs_options), {})
    assert REGISTRY.get("journal").applies(found) is applies


def test_a_feature_that_is_off_is_not_on() -> None:
    for options, given in (("-O fast_commit", True), ("-O ^fast_commit", False), ("", False)):
        assert mechanisms._is_word("fast_commit", options) is given
    assert mechanisms._is_word("-m single", "-d single -m single")
    assert not mechanisms._is_word("-m single", "-m dup")
    assert mechanisms._is_word("agcount", "-d agcount=4")


def stated(of: Evidence, mechanism: str) -> list[Explanation]:
    return [each for each in statements_of(of) if each.mechanism == mechanism]


BUFFERED = {"rw": "write", "bs": "1m", "size": "64m"}
READS = {"rw": "randread", "bs": "4k", "size": "64m"}


@pytest.mark.parametrize(
    ("mechanism", "of", "figures", "name", "least", "just_below"),
    [
        ("discard", cell("ext4", "discard"), {}, "device_discarded_bytes", MIB, MIB - 1),
        ("discard", cell("btrfs", "discard=async"), {}, "device_discarded_bytes", MIB, MIB - 1),
        ("delayed-allocation", cell("ext4", parameters=BUFFERED), {}, "delayed_allocation_bytes", MIB + 1, MIB),
        ("atime", cell("ext4", parameters=READS), {}, "device_written_bytes_flushed", 64 << 10, (64 << 10) - 1),
        ("read-amplification", cell("ext4", parameters=READS), {}, "read_amplification", 1.1, 1.09),
        ("fast-commit", cell("ext4"), written(8, journal_commits=9.0), "journal_bytes", 8.01 * MIB, 8.0 * MIB),
        ("journal", cell("ext4"), written(100, journal_commits=9.0), "journal_bytes", 5.01 * MIB, 5.0 * MIB),
        ("data-journalling", cell("ext4", "data=journal"), written(100), "journal_bytes", 50.1 * MIB, 50.0 * MIB),
        ("ordered-mode", cell("ext4", "data=ordered"), {"journal_commits": 2.0}, "journal_commit_mean", 1.1e6, 1e6),
        ("ordered-mode", cell("ext4", "data=ordered"), {"journal_commit_mean": 2e6}, "journal_commits", 2.0, 1.0),
        ("barriers", cell("ext4"), written(8), "device_flushes", 0.21 * 2048, 0.2 * 2048),
        ("transaction-traffic", cell("xfs"), {"device_flushes_per_transaction": 1.0},
         "device_written_per_transaction", 512.0, 511.0),
        ("journal", cell("xfs"), written(100), "xfs_log_bytes", 5.01 * MIB, 5.0 * MIB),
        ("xfs-log", cell("xfs"), {}, "xfs_log_no_buffer", 1.0, 0.0),
        ("amplification", cell("xfs"), {}, "write_amplification", 1.1, 1.09),
        ("metadata-duplication", cell("btrfs"), {"btrfs_metadata_copies": 2.0}, "write_amplification", 1.11, 1.1),
        ("metadata-duplication", cell("btrfs"), written(8, 2.0), "btrfs_metadata_copies", 1.6, 1.5),
        ("copy-on-write", cell("btrfs"), {"file_extents_before": 2.0}, "file_extents", 21.0, 20.0),
        ("copy-on-write", cell("btrfs"), {"file_extents_before": 2.0}, "file_extents_at_least", 21.0, 20.0),
        ("fragmentation", cell("ext4"), {}, "file_pieces", 1001.0, 1000.0),
        ("lock-contention", cell("ext4", parameters={**SYNCED, "numjobs": 4}), {"machine_cpu_busy": 89.0},
         "tool_voluntary_switches", 10_001.0, 10_000.0),
        ("lock-contention", cell("ext4", parameters={**SYNCED, "numjobs": 4}), {"tool_voluntary_switches": 2e4},
         "machine_cpu_busy", 89.0, 90.0),
        ("kernel-cpu", cell("ext4"), {}, "tool_cpu_system_s", 0.1, 0.099),
        ("disk-time", cell("ext4"), {}, "disk_service_mean", 10_000.0, 9999.0),
        ("parity-updates", cell("ext4", layout="md-raid5"), written(100), "device_read_bytes", 20.1 * MIB, 20.0 * MIB),
        ("allocation-groups", made.cell("xfs", "engine", {"operation": "meta", "files": 30_000}), {},
         "xfs_allocated_extents", 10_001.0, 10_000.0),
    ],
)  # fmt: skip
def test_from_which_figure_on_a_mechanism_is_stated(
    mechanism: str, of: Cell, figures: dict[str, float], name: str, least: float, just_below: float
) -> None:
    run = Provenance(parts={WHOLE: RunPart(seconds=2.0)})
    found = [seen(of, {**figures, name: value}, provenance=run) for value in (least, just_below)]
    assert [len(stated(each, mechanism)) for each in found] == [1, 0]


@pytest.mark.parametrize(
    ("rotational", "pieces", "request_bytes", "busy_s", "percent"),
    [(True, 6, 950_000, 0.28, 14), (True, 2, 950_000, 0.28, None), (True, 6, 4096, 0.28, None),
     (False, 6, 950_000, 0.28, None), (False, 0, 950_000, 0.28, None), (False, 640, 65536, 0.28, 18),
     (False, 10240, 4096, 0.213, 75), (False, 10240, 4096, 0.01, None)],
)  # fmt: skip
def test_files_read_in_order_are_fragmented_where_jumps_take_part_of_the_run(
    rotational: bool, pieces: int, request_bytes: int, busy_s: float, percent: int | None
) -> None:
    """40 MiB in 0.284 s, as an aged ext4 stored them on a modelled hard disk: without five jumps, it took 0.25 s. And
    as random writes leave them on btrfs."""
    whole = 40.0 * MIB
    figures = {
        "file_pieces": pieces, "device_read_bytes": whole, "device_read_requests": whole / request_bytes,
        "clock_measured": 0.284, "device_busy": busy_s,
    }  # fmt: skip
    reads = cell("btrfs", parameters={"rw": "read", "bs": "1m", "size": "40m"})
    run = Provenance(device={"rotational": rotational}, parts={WHOLE: RunPart(seconds=0.7)})
    found = by_mechanism(seen(reads, figures, provenance=run))
    expected = (
        f"The files that were read lie in {pieces} pieces on the device: to get from one to the next takes such a disk "
        f"about {percent} % of the run."
    )
    assert found.get("fragmentation") == (None if percent is None else expected)


def test_what_is_read_compressed_does_not_come_from_the_page_cache() -> None:
    """200 MiB that were compressed to less than half, read in order with a cold cache, as measured."""
    reads = {"rw": "read", "bs": "1m", "size": "200m"}
    figures = {"read_amplification": 0.47}
    found = by_mechanism(seen(cell("btrfs", "compress=zstd", reads), figures))
    assert found["compression"] == (
        "The device delivered 0.47 bytes for each byte read: data is compressed, or came from the page cache."
    )
    assert "page-cache" not in found
    assert "page-cache" in by_mechanism(seen(cell("btrfs", parameters=reads), figures))


def test_what_the_page_cache_serves_and_absorbs() -> None:
    half = {"device_written_bytes": 32.0 * MIB}
    (absorbed,) = stated(
        seen(cell("ext4", parameters=BUFFERED), {**written(64), "device_written_bytes": 16.0 * MIB}),
        "page-cache",
    )
    assert absorbed.text.startswith("When the tool ended, the device had received 16 MiB of 64 MiB written")
    assert absorbed.weight == 4
    assert not stated(seen(cell("ext4", parameters=BUFFERED), {**written(64), **half}), "page-cache")
    reads = cell("ext4", parameters=READS)
    (served,) = stated(seen(reads, {"read_amplification": 0.49}), "page-cache")
    assert (
        served.text
        == "The device delivered 0.49 bytes for each byte read; the rest came from the page cache."
    )
    assert not stated(seen(reads, {"read_amplification": 0.5}), "page-cache")
    for other in (
        cell("ext4", parameters=DIRECT),
        made.cell("ext4", "engine", {"operation": "meta", "files": 30_000}),
    ):
        assert not REGISTRY.get("page-cache").applies(seen(other, {})), "direct I/O, or many small files"


def test_only_what_an_option_discards_can_be_switched_off() -> None:
    discarded = {"device_discarded_bytes": 3.0 * MIB}
    (found,) = stated(seen(cell("ext4", "discard"), discarded), "discard")
    assert found.text == "3 MiB were discarded during the run."
    assert found.refuted_by == "equally slow with mount -o nodiscard"
    (by_fstrim,) = stated(seen(cell("ext4"), discarded), "discard")
    assert by_fstrim.refuted_by is None


def test_a_warm_cache_may_hold_what_the_preparation_wrote() -> None:
    later = {"device_written_bytes_flushed": 1.0 * MIB}
    warm = cell("xfs", parameters=READS).model_copy(update={"cache": Cache.WARM})
    assert not stated(seen(warm, later), "atime")


def test_writes_of_btrfs_with_fsync() -> None:
    # 2048 writes of 4 KiB, 8 MiB in total. The device received 34 times as much, and 4096 flushes: two for each write.
    extents = {"file_extents_before": 2.0, "file_extents": 2050.0}
    figures = written(34 * 8, 34.0, device_flushes=4096.0, btrfs_metadata_copies=2.0, **extents)
    found = by_mechanism(seen(cell(), figures))
    assert found["barriers"] == "Each fsync caused 2.00 cache flushes of the device on average."
    assert "stored twice (DUP); the device received 34 bytes" in found["metadata-duplication"]
    assert found["copy-on-write"].startswith("The run fragmented its files into 2050 extents (before: 2)")


def test_what_was_overwritten_in_the_page_cache_was_not_compressed() -> None:
    """160 MiB over files of 16 MiB, which do not compress: the device received a tenth, as without the option."""
    of = cell(mount="compress=zstd", parameters={"rw": "randwrite", "size": "16m"})
    figures = written(16.5, 0.103)
    for back_mib, found in ((16.25, []), (160.0, ["0.10"])):
        told = stated(
            seen(of, {**figures, "volume_written_back_bytes_flushed": back_mib * MIB}), "compression"
        )
        assert [each.text.split()[4] for each in told] == found
    direct = cell(mount="compress=zstd", parameters={**DIRECT, "size": "160m"})
    aside = {**figures, "volume_written_back_bytes_flushed": 16.25 * MIB}
    assert stated(seen(direct, aside), "compression"), "nothing is overwritten in the page cache"
    assert stated(seen(of, figures), "compression"), "without root"
    assert not stated(seen(of, {**figures, "page_cache_written_bytes": 16.0 * MIB}), "compression")


@pytest.mark.parametrize(("requests", "found"), [(6472, False), (800, True)])
def test_whole_pages_for_parts_of_them_are_no_read_ahead(requests: int, found: bool) -> None:
    """Reads of 512 bytes at random places, with POSIX_FADV_RANDOM: each reads a page. Read-ahead makes them larger."""
    of = cell("ext4", parameters={"rw": "randread", "bs": "512", "size": "64m"})
    figures = {
        "read_amplification": 6.32, "device_read_bytes": 26_509_312.0, "device_read_requests": float(requests),
    }  # fmt: skip
    told = stated(seen(of, figures), "read-ahead")
    assert [each.text for each in told] == [
        "The device delivered 6.32 bytes for each byte read, in requests of 32.4 KiB on average."
    ] * found


def test_the_page_cache_absorbs_nothing_of_a_workload_that_only_reads() -> None:
    """The access times that btrfs writes later."""
    of = cell(mount="compress=zstd", parameters={"rw": "randread", "size": "64m"})
    figures = {"device_written_bytes": 0.0, "device_written_bytes_flushed": 303_104.0}
    assert not stated(seen(of, figures), "page-cache")


def test_direct_writes_that_were_not() -> None:
    figures = written(128, 2.0, volume_dirtied_bytes=64.0 * MIB)
    of = cell("ext4", "data=journal", DIRECT)
    (statement,) = stated(seen(of, figures), "direct-not-honoured")
    assert "(100 %)" in statement.text
    assert statement.certainty is Certainty.OBSERVED
    honest = {**figures, "volume_dirtied_bytes": 0.0}
    assert "direct-not-honoured" not in by_mechanism(seen(of, honest))


def test_zeros_are_said_to_be_what_was_compressed() -> None:
    of = cell(mount="compress=zstd", parameters=DIRECT)
    zeros = ValidityWarning(kind="zeros_only", severity=Severity.WARNING, message="")
    for validity, end in (
        ((), "sent to it."),
        ((zeros,), "sent to it, and the tool writes hardly anything but zeros."),
    ):
        (found,) = stated(seen(of, written(6.4, 0.1), validity=validity), "compression")
        assert found.text == f"Compression: the device received 0.10 bytes for each byte {end}"
        assert found.refuted_by == "equally slow with mount -o compress=none"
    other = seen(cell("f2fs", "compress_algorithm=lz4"), {})
    assert REGISTRY.get("compression").applies(other)
    assert REGISTRY.get("compression").switch(other) is None, "no option of its kernel module turns it off"


def test_figures_of_the_machine_are_nothing_beside_foreign_load() -> None:
    load = ValidityWarning(kind="foreign_load", severity=Severity.WARNING, message="make")
    figures = written(64, page_cache_dirtied_bytes=64.0 * MIB)
    of = cell("ext4", "data=journal", DIRECT)
    assert "direct-not-honoured" in by_mechanism(seen(of, figures))
    assert "direct-not-honoured" not in by_mechanism(seen(of, figures, validity=(load,)))


@pytest.mark.parametrize(
    ("filesystem", "mount", "commits", "window_s", "interval_s"),
    [
        ("ext4", "defaults", 1, 1.3, None),
        # One of the 3 was due when the run began, the others are from the flush at its end.
        ("ext4", "defaults", 3, 1.3, None),
        ("ext4", "defaults", 12, 60.0, None),
        ("btrfs", "defaults", 12, 60.0, 30),
        ("ext4", "commit=1", 12, 10.0, 1),
        ("ext4", "commit=1", 1, 1.3, None),
        ("ext4", "commit=1", 2, 1.3, 1),
        ("ext4", "commit=60", 12, 10.0, 60),
        ("ext4", "commit=0", 12, 10.0, 5),
        ("ext4", "defaults", 12, 10.0, 5),
    ],
)
def test_more_commits_than_the_interval_asks_for(
    filesystem: str, mount: str, commits: int, window_s: float, interval_s: int | None
) -> None:
    name = "btrfs_commits" if filesystem == "btrfs" else "journal_commits"
    of = cell(filesystem, mount, DIRECT)
    found = stated(seen(of, {name: commits, "clock_window": window_s}), "commit-interval")
    assert len(found) == (interval_s is not None)
    for each in found:
        alone = int(window_s // known(interval_s))
        begin = f"There were {commits} commits in {window_s:.1f} s; the commit interval of {interval_s} s alone makes"
        assert each.text.startswith(f"{begin} {alone} or {alone + 1}.")
        assert ("another cause" in each.text) == (interval_s != 1), "a short interval alone makes these"
        assert each.refuted_by == "clearly fewer commits with mount -o commit=300"


def test_commits_of_fsyncs_are_not_those_of_the_interval() -> None:
    figures = written(8, journal_commits=2048.0, clock_window=10.0)
    for mount in ("defaults", "commit=1"):
        assert not stated(seen(cell("ext4", mount), figures), "commit-interval")


def test_only_a_volume_that_fslab_makes_can_be_made_larger() -> None:
    switch, made_here = REGISTRY.get("small-volume").switch, cell("btrfs")
    assert known(switch(seen(made_here, {}))).medium == {"size": "20g"}
    device = MediumSpec(name="m", type="device", options={"path": "/dev/x"})
    given = made_here.model_copy(update={"stack": made_here.stack.model_copy(update={"medium": device})})
    assert switch(seen(given, {})) is None


def test_a_withdrawn_trace_says_nothing() -> None:
    figures = written(80, 10.0)
    of = cell()
    traffic = {"traced_written_bytes": 80.0 * MIB, "traced_metadata_bytes": 72.0 * MIB}
    traced = trial(of, traffic, status=Status.TRACED)
    said = by_mechanism(seen(of, figures, traced))["metadata-traffic"]
    assert "90 % of that was marked as metadata" in said
    withdrawn = Provenance(observed={"trace_withdrawn": ("off",)})
    off = trial(of, traffic, status=Status.TRACED, provenance=withdrawn)
    assert "metadata-traffic" not in by_mechanism(seen(of, figures, off))


def test_an_unknown_figure_of_one_trial_is_no_figure() -> None:
    of = cell()
    one = trial(of, {"device_flushes": 5.0})
    other = trial(of, {}, block=1)
    assert Evidence(cell=of, workload="w", stack="s", trials=[one, other]).figure("device_flushes") is None


@pytest.mark.parametrize(
    ("mechanism", "mount", "mkfs"),
    # ext4 makes full commits only, and refuses commit= where it has no commits.
    [("fast-commit", "data=journal", ""), ("commit-interval", "defaults", "-O ^has_journal")],
)
def test_a_switch_that_has_no_effect_or_that_the_kernel_refuses_is_none(
    mechanism: str, mount: str, mkfs: str
) -> None:
    assert REGISTRY.get(mechanism).applies(seen(cell("ext4"), written(4)))
    assert not REGISTRY.get(mechanism).applies(seen(cell("ext4", mount, mkfs_options=mkfs), written(4)))


def test_a_figure_is_the_median_of_the_trials_with_their_range() -> None:
    of = cell()
    trials = [trial(of, {"device_flushes": each}, block) for block, each in enumerate((7.0, 2.0, 3.0))]
    found = known(Evidence(cell=of, workload="w", stack="s", trials=trials).figure("device_flushes"))
    assert (found.value, found.low, found.high, found.n) == (3, 2, 7, 3)
    assert str(found) == "device flushes 3 (2 to 7) [probe device_flushes, 3 trials]"


def test_what_the_kernel_ignores_is_not_in_effect_also_if_it_is_shown() -> None:
    """btrfs shows ``compress=zstd:3`` of the option ``compress=zstd``, also beside ``nodatasum``."""
    of = cell("btrfs", "compress=zstd,nodatasum")
    shown = Provenance(observed={"mount_options": ("rw", "nodatasum", "compress=zstd:3")})
    ignored = ValidityWarning(
        kind="options_not_in_effect",
        severity=Severity.NOTE,
        message="",
        data={"options": {"compress=zstd": None}},
    )
    assert seen(of, {}, provenance=shown).compresses
    assert not seen(of, {}, provenance=shown, validity=(ignored,)).compresses


def test_an_attribute_without_a_mount_option_stands_for_none() -> None:
    assert seen(cell("ext4", attributes="AS"), {}).file_options == {"defaults", "noatime"}


def test_of_what_is_written_or_read_in_addition_the_share_of_all_bytes_is_told() -> None:
    """Of 100 MiB that were read and written."""
    flushed, read = written(80, 4.0, device_read_bytes=20.0 * MIB), {"read_amplification": 1.25}
    copies = {**flushed, "btrfs_metadata_copies": 2.0}
    traffic = {"traced_written_bytes": 80.0 * MIB, "traced_metadata_bytes": 20.0 * MIB}
    traced = trial(cell("ext4"), traffic, status=Status.TRACED)
    reads = {**read, "device_read_bytes": 20.0 * MIB, "device_written_bytes_flushed": 0.0}
    found = [
        (known(each.moves), each.weight)
        for mechanism, of in (
            ("amplification", seen(cell("nilfs2"), flushed)),
            ("metadata-duplication", seen(cell("btrfs"), copies)),
            ("metadata-traffic", seen(cell("ext4"), flushed, traced)),
            ("read-amplification", seen(cell("ext4", parameters=READS), reads)),
        )
        for each in stated(of, mechanism)
    ]
    assert [moves for moves, _ in found] == pytest.approx([0.8 * 3 / 4, 0.8 * 3 / 4 / 2, 0.2, 1 / 5])
    assert [weight for _, weight in found] == pytest.approx([3, 3 / 2, 1 / 3, 0.25])


def test_metadata_is_a_cause_only_if_it_is_more_than_a_little() -> None:
    of = cell("ext4")
    for meta, number in ((2.0, 0), (2.1, 1)):
        traffic = {"traced_written_bytes": 100.0 * MIB, "traced_metadata_bytes": meta * MIB}
        traced = trial(of, traffic, status=Status.TRACED)
        assert len(stated(seen(of, written(100), traced), "metadata-traffic")) == number


@pytest.mark.parametrize(("layout", "switchable"), [("single", True), ("btrfs-raid0", False)])
def test_profiles_that_the_layout_sets_cannot_be_switched(layout: str, switchable: bool) -> None:
    found = seen(cell("btrfs", layout=layout), {"btrfs_metadata_copies": 2.0})
    assert (REGISTRY.get("metadata-duplication").switch(found) is not None) is switchable


@pytest.mark.parametrize(
    ("mechanism", "mkfs", "least"),
    [("directory-index", "", 10_000), ("linear-directories", "-O ^dir_index", 2000)],
)
def test_directories_count_by_the_names_in_each(mechanism: str, mkfs: str, least: int) -> None:
    for files, number in ((4 * least, 1), (4 * least - 4, 0)):
        work = {"operation": "meta", "files": files, "dirs": 4}
        of = made.cell(made.spec("ext4", mkfs_options=mkfs), "engine", work)
        said = stated(seen(of, {"tool_cpu_system_s": 1.0}), mechanism)
        assert len(said) == number
        assert all(f"Each directory had {least} names" in each.text for each in said)


def test_what_writes_or_has_one_thread_meets_no_mechanism_of_reads_or_of_threads() -> None:
    def applies(mechanism: str, **parameters: Any) -> bool:
        return REGISTRY.get(mechanism).applies(seen(cell("ext4", parameters=parameters), {}))

    assert applies("read-ahead", **READS)
    assert not applies("read-ahead", **BUFFERED)
    assert not applies("read-ahead", **READS, direct=True)
    assert applies("direct-not-honoured", **DIRECT)
    assert not applies("direct-not-honoured", **READS, direct=True)
    assert applies("lock-contention", **SYNCED, numjobs=2)
    assert not applies("lock-contention", **SYNCED)


def test_what_is_compressed_did_not_stay_in_the_page_cache() -> None:
    figures = {**written(64), "device_written_bytes": 16.0 * MIB, "volume_written_back_bytes": 60.0 * MIB}
    assert stated(seen(cell("btrfs", parameters=BUFFERED), figures), "page-cache")
    assert not stated(seen(cell("btrfs", "compress=zstd", BUFFERED), figures), "page-cache")


def test_the_time_of_commits_is_told_in_milliseconds() -> None:
    (found,) = stated(
        seen(cell("ext4", "data=ordered"), {"journal_commits": 2.0, "journal_commit_mean": 2.5e6}),
        "ordered-mode",
    )
    assert found.text == "The last commits of the journal took 2.5 ms, including the wait for data."


def test_counts_per_fsync_are_those_of_each_trial() -> None:
    """In a set time, trials make different numbers of writes; each fsync costs the same."""
    of = cell("ext4")
    trials = [
        trial(of, {"device_written_bytes_flushed": 4096.0 * writes, "write_amplification": each,
                   "device_flushes": 2 * writes / each}, block)
        for block, (writes, each) in enumerate([(100, 1.0), (900, 3.0), (40, 2.0)])
    ]  # fmt: skip
    found = Evidence(cell=of, workload="w", stack="s", trials=trials)
    flushes = known(found.per_sync("device_flushes", "flushes per fsync"))
    assert (flushes.value, flushes.low, flushes.high) == (2, 2, 2)
    assert (found.written_bytes, found.syncs()) == (4096 * 100, 100)


def test_a_disk_that_is_not_the_trial_s_alone_only_coincides() -> None:
    figures = written(4, 4.0, device_flushes=512.0)
    alone = cell("ext4")
    here = alone.stack.model_copy(
        update={"medium": MediumSpec(name="m", type="directory", options={"path": "/x"})}
    )
    shared = alone.model_copy(update={"stack": here})
    (barriers,) = stated(seen(alone, figures), "barriers")
    assert barriers.certainty is Certainty.OBSERVED
    (barriers,) = stated(seen(shared, figures), "barriers")
    assert barriers.certainty is Certainty.COINCIDES
    assert barriers.figures[0].evidence.endswith("of the whole disk")
    commits = {"journal_commits": 40.0, "clock_window": 10.0}
    buffered = cell("ext4", parameters={"rw": "write", "size": "64m"})
    beside = buffered.model_copy(update={"stack": here})
    for each, expected in ((buffered, Certainty.OBSERVED), (beside, Certainty.COINCIDES)):
        found = stated(seen(each, commits), "commit-interval")
        assert [one.certainty for one in found] == [expected], "a counter of the whole file system"
    timed = {"disk_service_mean": 1e6, "device_busy": 0.1}
    assert [each.certainty for each in stated(seen(shared, timed), "disk-time")] == [Certainty.COINCIDES], (
        "one of its figures"
    )
    busy = ValidityWarning(kind="foreign_load", severity=Severity.WARNING, message="", data={})
    assert "barriers" in by_mechanism(seen(alone, figures, validity=(busy,)))
    assert "barriers" not in by_mechanism(seen(shared, figures, validity=(busy,)))


@pytest.mark.parametrize(
    ("slow", "chance", "said"), [(78.0, 15.0, True), (39.0, 15.0, False), (100.0, 90.0, False)]
)
def test_commits_coincide_with_slow_operations_beyond_chance(slow: float, chance: float, said: bool) -> None:
    of = cell("ext4")
    figures = {
        "traced_slow_in_commits": slow, "traced_chance_in_commits": chance, "traced_all_in_commits": 14.0,
        "traced_slow_operations": 41.0, "traced_slow_from": 2e6,
    }  # fmt: skip
    found = stated(seen(of, {}, traced=trial(of, figures, status=Status.TRACED)), "commit-stalls")
    assert [each.certainty for each in found] == [Certainty.COINCIDES] * said
    assert all("By chance 15 %" in each.text for each in found)


def test_traced_trials_are_evidence_and_no_trials() -> None:
    of = cell()
    traced = trial(of, {}, status=Status.TRACED)
    assert evidence_of([of], []) == []
    assert [each.trials for each in evidence_of([of], [traced])] == [[]]
    (found,) = evidence_of([of], [trial(of, {})], [traced])
    assert found.traced == traced


def test_what_a_transaction_writes() -> None:
    figures = {"device_written_per_transaction": 480.0 * 1024, "device_flushes_per_transaction": 7.74}
    found = by_mechanism(seen(cell(), figures))
    assert found["transaction-traffic"] == (
        "Each transaction wrote 480 KiB to the disk and flushed its cache 7.7 times, "
        "on average and with what the application's end wrote."
    )
    reads = {"device_written_per_transaction": 20.0, "device_flushes_per_transaction": 0.0}
    assert "transaction-traffic" not in by_mechanism(seen(cell(), reads))


def test_copies_and_flushes_of_several_disks_are_not_those_of_one() -> None:
    figures = written(128, 2.0, btrfs_metadata_copies=2.0, device_flushes=3.0 * 16384)
    three = Provenance(device={"parts": [{}, {}, {}]})
    found = by_mechanism(seen(cell("btrfs", layout="btrfs-raid1"), figures, provenance=three))
    assert "metadata-duplication" not in found, "the data is stored twice as well"
    assert found["barriers"] == "Each fsync caused 1.00 cache flushes of each device on average."
    striped = by_mechanism(seen(cell("btrfs", layout="lvm-stripe"), figures, provenance=three))
    assert "stored twice (DUP)" in striped["metadata-duplication"]
    own = by_mechanism(seen(cell("btrfs", layout="btrfs-raid0"), figures, provenance=three))
    assert "stored twice (RAID1)" in own["metadata-duplication"]


@pytest.mark.parametrize("layout", sorted(LAYOUTS.names()))
def test_no_file_system_is_blamed_for_what_its_layout_adds(layout: str) -> None:
    disks, alone = LAYOUTS.get(layout), layout in {"single", "luks", "external-journal"}
    figures = written(128, 2.0, btrfs_metadata_copies=2.0, device_read_bytes=64.0 * MIB)
    spread = alone or layout in {"md-raid0", "lvm-stripe", "btrfs-raid0"}
    assert disks.multiplies(disks.parse_options({})) is not spread
    assert ("metadata-duplication" in by_mechanism(seen(cell("btrfs", layout=layout), figures))) is spread
    striped, misaligned = (
        layout in {"lvm-stripe", "md-raid0", "md-raid10", "md-raid5", "md-raid6"},
        REGISTRY.get("stripe-misalignment"),
    )
    assert misaligned.applies(seen(cell("ext4", layout=layout), figures)) is striped, (
        "no other can be aligned"
    )
    assert not misaligned.applies(seen(cell("btrfs", layout=layout), figures))
    used = Provenance(device={"stripes_in_use": {"stripe": "24"}})
    assert not misaligned.applies(seen(cell("ext4", layout=layout), figures, provenance=used)), (
        "mkfs has read them"
    )


def test_what_is_aligned_or_only_read_crosses_no_stripe() -> None:
    misaligned, parity = (REGISTRY.get(name) for name in ("stripe-misalignment", "parity-updates"))
    assert misaligned.applies(seen(cell("ext4", layout="md-raid5"), {}))
    assert not misaligned.applies(seen(cell("ext4", layout="md-raid5", geometry=Geometry.ALIGNED), {}))
    reads = seen(cell("ext4", layout="md-raid5", parameters=READS), {})
    assert not misaligned.applies(reads)
    assert not parity.applies(reads)


def test_what_reached_the_disks_of_a_mirror_is_compared_with_what_both_disks_receive() -> None:
    """Of 64 MiB, each of two disks had 20 MiB when the tool ended."""
    figures = written(128, 2.0, device_written_bytes=40.0 * MIB)
    buffered = {"rw": "write", "bs": "1m", "size": "64m"}
    said = by_mechanism(seen(cell("ext4", parameters=buffered, layout="md-raid1"), figures))["page-cache"]
    assert said.startswith("When the tool ended, the device had received 40 MiB of 128 MiB written")


@pytest.mark.parametrize("geometry", Geometry)
@pytest.mark.parametrize("layout", sorted(LAYOUTS.names()))
def test_reads_of_a_workload_that_writes_are_those_for_parity_only_where_there_is_parity(
    layout: str, geometry: Geometry
) -> None:
    figures = written(16, 2.0, device_read_bytes=15.0 * MIB)
    found = stated(seen(cell("ext4", layout=layout, geometry=geometry), figures), "parity-updates")
    assert bool(found) is any(kind in layout for kind in ("raid5", "raid6"))
    for each in found:
        assert each.text.startswith("Writing 8 MiB caused 15 MiB of reads from the disks")
        assert "aligned" not in str(each.refuted_by)


FLUSHING = (
    "ext2",
    "ext3",
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "nilfs2",
    "reiserfs",
    "vfat",
    "exfat",
    "udf",
    "ntfs3",
)


def test_a_mechanism_of_both_stacks_is_seen_in_both() -> None:
    """Otherwise an ablation would name what the faster stack has, too. Flushes: as counted in guests."""
    journalled = {"ext3", "ext4", "xfs", "jfs", "reiserfs", "reiser4", "bcachefs"}
    elsewhere = {"btrfs", "nilfs2", "bcachefs", "zfs"}
    for filesystem in FILESYSTEMS.names():
        of = seen(cell(filesystem), {})
        assert REGISTRY.get("journal").present(of) is (filesystem in journalled), filesystem
        assert REGISTRY.get("copy-on-write").present(of) is (filesystem in elsewhere), filesystem
        flushing = filesystem in {*FLUSHING, "reiser4", "bcachefs", "zfs"}
        assert REGISTRY.get("barriers").present(of) is flushing, filesystem
    for filesystem, name, mount in (
        ("jfs", "journal", "nointegrity"), ("reiserfs", "barriers", "barrier=none"), ("vfat", "barriers", None)
    ):  # fmt: skip
        switch = REGISTRY.get(name).switch(seen(cell(filesystem), {}))
        assert (switch and switch.mount) == (mount and (mount,))
        assert mount is None or not REGISTRY.get(name).present(seen(cell(filesystem, mount), {}))


def test_one_copy_of_metadata_is_none_however_mkfs_was_told() -> None:
    duplication = REGISTRY.get("metadata-duplication")
    assert duplication.present(seen(cell(), {}))
    for copies, present in ((1.0, False), (2.0, True)):
        one = seen(cell(mkfs_options="--metadata single"), {"btrfs_metadata_copies": copies})
        assert duplication.present(one) is present


def test_cpu_time_is_that_of_compression_where_data_is_compressed_and_of_no_write_beside_reads() -> None:
    figures = written(4, tool_cpu_system_s=0.1, kernel_threads_cpu=0.9)
    spent = "Each 4 KiB written took 977 µs of CPU time in the kernel, including"
    assert by_mechanism(seen(cell(), figures))["data-checksums"] == f"{spent} checksums."
    compressed = by_mechanism(seen(cell("btrfs", "compress-force=zstd:15"), figures))
    assert compressed["compression"] == f"{spent} compression."
    assert "data-checksums" not in compressed
    mixed = by_mechanism(seen(cell(parameters={**SYNCED, "rw": "randrw"}), figures))
    assert "data-checksums" not in mixed


def test_an_attribute_of_the_directory_is_an_option_of_its_files() -> None:
    def present(mechanism: str, filesystem: str, attributes: str, mount: str = "defaults") -> bool:
        return REGISTRY.get(mechanism).present(
            seen(cell(filesystem, mount, attributes=attributes), written(4))
        )

    for mechanism in ("copy-on-write", "data-checksums"):
        assert [present(mechanism, "btrfs", attributes) for attributes in ("", "C")] == [True, False]
    assert [present("compression", "btrfs", attributes) for attributes in ("", "c")] == [False, True]
    assert not present("compression", "btrfs", "C", "compress=zstd"), (
        "btrfs compresses only what it copies on write"
    )
    assert [present("data-journalling", "ext4", attributes) for attributes in ("", "j")] == [False, True]
    reads = cell("ext4", parameters={"rw": "randread", "size": "64m"}, attributes="A")
    assert not REGISTRY.get("atime").present(seen(reads, {}))


def test_a_switch_also_removes_the_attribute() -> None:
    for mechanism, filesystem, given, left in (
        ("compression", "btrfs", "cS", "S"),
        ("data-journalling", "ext4", "j", ""),
    ):
        found = seen(cell(filesystem, attributes=given), written(4))
        switch = known(REGISTRY.get(mechanism).switch(found))
        assert known(switch.off(found.cell)).stack.attributes == left
        assert f"no attribute {given[0]}" in str(switch)
        assert "attribute" not in str(REGISTRY.get(mechanism).switch(seen(cell(filesystem), {})))


def test_reservations_of_metadata_are_evidence_on_small_volumes_only() -> None:
    figures = {"btrfs_metadata_reserved": 1222.0 * MIB, "btrfs_metadata_total": 256.0 * MIB}
    assert not stated(seen(cell(), figures), "small-volume"), "normal where there is free space to add"
    small = ValidityWarning(kind="volume_small", severity=Severity.WARNING, message="", data={})
    (found,) = stated(seen(cell(), figures, validity=(small,)), "small-volume")
    assert (found.certainty, "it may write back early" in found.text) == (Certainty.COINCIDES, True)


def test_data_that_is_overwritten_in_the_journal_is_not_said_to_be_written_twice() -> None:
    figures = written(70.4, 1.1, journal_bytes=64.0 * MIB, journal_commits=9.0)
    found = by_mechanism(seen(cell("ext4", "data=journal"), figures))["data-journalling"]
    assert found == (
        "Data went through the journal (64 MiB for 64 MiB of data), then to its place: 1.1 bytes on the device for "
        "each byte written."
    )


def test_what_nothing_switches_off_is_there_nevertheless() -> None:
    (flushes,) = stated(seen(cell("xfs"), written(8, device_flushes=2.0 * 2048)), "barriers")
    assert flushes.refuted_by is None, "XFS has no nobarrier"
    journal = REGISTRY.get("journal")
    assert journal.present(seen(cell("ext4", "data=journal"), {}))
    assert not journal.applies(seen(cell("ext4", "data=journal"), {}))
    twice = written(128, 2.0, journal_bytes=64.0 * MIB, journal_commits=9.0)
    found = by_mechanism(seen(cell("ext4", "data=journal"), twice))
    assert "data-journalling" in found
    assert "journal" not in found, "the same bytes are stated once"
    assert not REGISTRY.get("barriers").present(seen(cell("f2fs", "nobarrier"), {}))


def test_without_root_only_nearly_all_bytes_are_a_sign_of_the_page_cache() -> None:
    of = cell("ext4", "data=journal", DIRECT)
    half, whole = (seen(of, written(64, page_cache_dirtied_bytes=mib * MIB)) for mib in (40.0, 64.0))
    assert "direct-not-honoured" not in by_mechanism(half)
    assert by_mechanism(whole)["direct-not-honoured"].startswith("The direct writes were probably not direct")


def test_what_is_written_in_addition_is_known_without_a_trace() -> None:
    of = cell("nilfs2")
    assert by_mechanism(seen(of, written(64, 17.0)))["amplification"].startswith(
        "The device received 17 bytes for"
    )
    assert "amplification" not in by_mechanism(seen(of, written(64, 1.05)))
    copied = cell("ext4", layout="lvm-snapshot")
    assert "amplification" not in by_mechanism(seen(copied, written(64, 2.0))), "the layout writes it twice"


def test_the_time_of_a_modelled_disk() -> None:
    figures = {
        "disk_service_mean": 4e6,
        "disk_read_mean": 8e6,
        "disk_movements": 311.0,
        "disk_seek_cylinders": 14.0,
    }
    found = by_mechanism(seen(cell("ext4", parameters=DIRECT), figures))
    assert found["disk-time"] == (
        "The disk answered reads after 8 ms on average. Its heads moved 311 times, over 14 cylinders on average."
    )
    sized = {**figures, "device_read_bytes": 128.0 * MIB, "device_read_requests": 32768.0}
    found = by_mechanism(seen(cell("ext4", parameters=DIRECT), sized))
    assert found["disk-time"].startswith("The disk answered reads of 4 KiB after 8 ms on average.")
    assert "disk-time" not in by_mechanism(seen(cell("ext4"), {"disk_service_mean": 500.0}))
    unsplit = by_mechanism(seen(cell("ext4"), {"disk_service_mean": 1e6}))
    assert unsplit["disk-time"] == "The disk answered requests after 1 ms on average."
    flushed = seen(cell("ext4"), {"disk_service_mean": 1e6, "disk_flush_mean": 5e6, "disk_write_mean": 3e4})
    assert "writes after 30 µs and flushes after 5 ms" in by_mechanism(flushed)["disk-time"]


def test_the_time_of_a_disk_that_is_no_model_is_what_the_kernel_counts() -> None:
    """A disk under a loop device, which took reads in 85 µs and no time for writes; 60 % of a run of 2 s."""
    figures = {
        "device_read_mean": 85e3,
        "device_write_mean": 4e3,
        "device_busy": 1.3,
        "device_flush_time": 0.1,
    }
    run = Provenance(parts={WHOLE: RunPart(seconds=2.0)})
    disk = cell("ext4", medium="loop")
    (found,) = stated(seen(disk, figures, provenance=run), "disk-time")
    assert found.text == (
        "The disk answered reads after 85 µs and writes after 4 µs on average. It was busy for 60 % of the run, apart "
        "from flushes."
    )
    assert found.takes == pytest.approx(0.6)
    assert found.refuted_by == "equally slow on a faster disk"
    assert not stated(seen(disk, {**figures, "device_read_mean": 9999.0}, provenance=run), "disk-time")
    assert not stated(seen(cell("ext4"), figures, provenance=run), "disk-time"), (
        "in memory, the CPU takes the time"
    )


def test_no_statement_is_said_to_be_falsified_by_what_the_stack_has() -> None:
    figures = written(64, xfs_log_bytes=32.0 * MIB, xfs_log_no_buffer=3.0)
    for mount, expected in (
        ("defaults", "equally slow with mount -o logbsize=256k"),
        ("logbsize=256k", None),
        ("logbsize=256k,noatime", None),
        ("defaults,logbsize=256k", None),
    ):
        found = statements_of(seen(cell("xfs", mount), figures))
        assert {each.mechanism: each.refuted_by for each in found}["xfs-log"] == expected


@pytest.mark.parametrize(
    ("ratio", "slc", "weight"), [(3.1, 0.042, 1.1), (2.0, 0.042, None), (3.1, 0.0, 2.1), (1.0, 0.0, None)]
)
def test_what_an_ssd_writes_to_its_flash(ratio: float, slc: float, weight: float | None) -> None:
    """An SLC cache writes everything twice, also without garbage."""
    figures = {"device_write_amplification": ratio, "flash_written_bytes": 310.0 * MIB}
    disk = Provenance(device={"virtual_disks": [{"profile": "p", "figures": {"slc": slc}}]})
    found = {each.mechanism: each for each in statements_of(seen(cell("ext4"), figures, provenance=disk))}
    assert ("flash-collection" in found) is (weight is not None)
    if weight is not None:
        assert "wrote 310 MiB to its flash, 3.10 bytes" in found["flash-collection"].text
        assert found["flash-collection"].weight == pytest.approx(weight)


@pytest.mark.parametrize(("erases", "found"), [(0.0, False), (0.2, True)])
def test_an_slc_cache_that_is_emptied_of_earlier_writes_collects_no_garbage(
    erases: float, found: bool
) -> None:
    """XFS that copied a file by reference, and wrote 70 KB, after 120 MiB had been written before the run."""
    figures = {
        "device_write_amplification": 1385.0, "flash_written_bytes": 92.0 * MIB, "flash_erases_per_block": erases,
    }  # fmt: skip
    disk = Provenance(device={"virtual_disks": [{"profile": "p", "figures": {"slc": 0.04}}]})
    of = seen(cell("xfs"), figures, provenance=disk)
    assert ("flash-collection" in by_mechanism(of)) is found


@pytest.mark.parametrize(
    ("mount", "dropped", "found"),
    [
        ("compress=zstd", {}, {"compression", "copy-on-write"}),
        ("compress=zstd,nodatasum", {"compress=zstd": None}, {"copy-on-write"}),
        ("nodatacow,compress=zstd", {"nodatacow": None}, {"compression", "copy-on-write"}),
        ("compress=zstd:16", {"compress=zstd:16": "compress=zstd:15"}, {"compression", "copy-on-write"}),
    ],
)
def test_options_that_are_not_in_effect_explain_nothing(
    mount: str, dropped: dict[str, str | None], found: set[str]
) -> None:
    warning = ValidityWarning(
        kind="options_not_in_effect", severity=Severity.WARNING, message="m", data={"options": dropped}
    )
    listed = tuple("compress=zstd:15" if "zstd:16" in each else each for each in mount.split(","))
    figures = {**written(60, 0.6), "file_extents_before": 2.0, "file_extents": 2050.0}
    of = seen(
        cell("btrfs", mount), figures, validity=(warning,) if dropped else (),
        provenance=Provenance(observed={"mount_options": tuple(o for o in listed if o != "nodatacow")}),
    )  # fmt: skip
    assert {"compression", "copy-on-write"} & set(by_mechanism(of)) == found


def test_a_stack_that_cannot_be_parsed_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[StackSpec] = []

    def refused(spec: StackSpec) -> ParsedStack:
        tried.append(spec)
        raise UsageError("unknown option")

    monkeypatch.setattr("fslab.explain.evidence.parsed_stack", refused)
    found = seen(cell("ext4", parameters=SYNCED), written(64))
    assert (found.multiplied, found.takes_stripe) == (False, False)
    assert len(tried) == 1
