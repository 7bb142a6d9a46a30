"""Tests of crash consistency without a disk: the model of operations against a real directory, and the oracle on
contents made by hand."""

from __future__ import annotations

import contextlib
import errno
import os
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from fslab.crash import (
    bounded_sequences,
    contents,
    examine,
    operations,
    oracle,
    recording,
    sequences,
    sources,
)
from fslab.crash.contents import BLOCK_BYTES, PARTS, Place
from fslab.crash.durable_history import History
from fslab.crash.judge import Positions
from fslab.crash.oracle import Seen
from fslab.crash.sources import Kind, Progress
from fslab.crash.states import State, at_ends, chosen
from fslab.crash.steps import Sequence
from fslab.crash.tree import START
from fslab.crash.trial import fewest_lost
from fslab.crash.trial_request import Alphabet
from fslab.errors import UnsupportedError, UsageError
from fslab.faults import struck_files
from fslab.storage.crash_promises import Promises
from fslab.storage.filesystems import REGISTRY
from fslab.system import syscalls

ONE, TWO = (bounded_sequences.space(length=length) for length in (1, 2))
NEW = max(START.inodes) + 1  # the inode of the first new file


def promises(filesystem: str = "ext4", *options: str, journal: bool = True) -> Promises:
    superblock = bytearray(4096)
    superblock[1024 + 0x5C] = 4 if journal else 0
    found = REGISTRY.get(filesystem).promises(options, bytes(superblock))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("filesystem", "options", "at", "number", "other"),
    [
        ("ext4", "rw", 1024 + 0xE0, 8, False),
        ("ext4", "rw", 1024 + 0xE0, 0, True),
        ("ext2", "rw", 1024 + 0xE0, 8, False),
        ("xfs", "rw,inode64", 0, 0, False),
        ("xfs", "rw,logdev=/dev/loop1", 0, 0, True),
        ("xfs", "rw,rtdev=/dev/loop1", 0, 0, True),
        ("btrfs", "rw", 65536 + 136, 1, False),
        ("btrfs", "rw", 65536 + 136, 256, True),
    ],
)
def test_a_file_system_that_is_also_on_another_device_is_known(
    filesystem: str, options: str, at: int, number: int, other: bool
) -> None:
    superblock = bytearray(128 << 10)
    superblock[1024 + 0x5C] = 4  # ext4 has a journal
    superblock[at : at + 4] = number.to_bytes(4, "little")
    found = REGISTRY.get(filesystem).has_other_devices(options.split(","), bytes(superblock))
    assert found is other


@pytest.mark.parametrize(
    ("filesystem", "options", "at", "written", "ends"),
    [
        ("ext4", "rw", 1024 + 0x3C, b"\1", False),
        ("ext4", "rw", 1024 + 0x3C, b"\3", True),
        ("ext2", "rw", 1024 + 0x3C, b"\3", True),
        ("ext4", "rw,errors=remount-ro", 1024 + 0x3C, b"\3", False),
        ("ext4", "rw", 1024 + 0x200, b"errors=panic", True),
        ("ext4", "rw,errors=continue", 1024 + 0x200, b"errors=panic", False),
        ("ext4", "rw,errors=panic", 0, b"", True),
        ("btrfs", "rw,fatal_errors=panic", 0, b"", True),
        ("xfs", "rw,inode64", 0, b"", False),
    ],
)
def test_a_file_system_whose_error_stops_the_machine_is_known(
    filesystem: str, options: str, at: int, written: bytes, ends: bool, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    superblock = bytearray(128 << 10)
    superblock[at : at + len(written)] = written
    image.write_bytes(superblock)
    refused = pytest.raises(UnsupportedError, match="stops the whole machine")
    with refused if ends else contextlib.nullcontext():
        examine.subject(REGISTRY.get(filesystem), options, ".", image)


def history(*steps: str, done: int, begun: int | None = None, given: Promises | None = None) -> History:
    sequence = bounded_sequences.parse(list(steps))
    return History(
        number=0, steps=sequence, done=done, begun=done if begun is None else begun, promises=given or promises()
    )  # fmt: skip


def written(number: int, block: int, generation: int) -> bytes:
    """Return one block of a file."""
    places = (
        Place(sequence=0, inode=number, part=part) for part in range(block * PARTS, (block + 1) * PARTS)
    )
    return b"".join(contents.part(place, generation) for place in places)


def seen(number: int, *generations: int, block: int = 0, attribute: int | None = 1) -> Seen:
    """Return a file with whole blocks of these generations, from block ``block`` on.

    Only inode 1, which is ``a`` at first, has an extended attribute. ``attribute``: its generation.
    """
    value = contents.attribute(0, 1, attribute) if number == 1 and attribute is not None else None
    data = b"".join(written(number, block + at, each) for at, each in enumerate(generations))
    return Seen(kind="file", data=data, attribute=value)


def needs_direct(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT))
    except OSError:
        pytest.skip("no O_DIRECT here, such as on tmpfs before Linux 6.6")
    path.unlink()


DIRECTORY = Seen(kind="directory")
BEFORE: Mapping[str, Seen] = {
    "a": seen(1, 1, 1), "b": seen(2, 1, 1), "d": DIRECTORY, "d/f": seen(4, 1), "e": DIRECTORY,
}  # fmt: skip


def judged(past: History, **changed: Seen | None) -> list[tuple[Kind, bool]]:
    found = {name: each for name, each in {**BEFORE, **changed}.items() if each is not None}
    return [(finding.kind, finding.broken) for finding in oracle.judge(past, found)]


@pytest.mark.parametrize("number", [*range(0, len(ONE), 3), *range(len(ONE), len(ONE) + len(TWO), 397)])
def test_the_model_is_what_a_real_directory_has(number: int, tmp_path: Path) -> None:
    steps = ONE[number] if number < len(ONE) else TWO[number - len(ONE)]
    check_model(steps, tmp_path)


@pytest.mark.parametrize("number", range(len(bounded_sequences.published())))
def test_the_model_of_published_sequences_is_what_a_real_directory_has(number: int, tmp_path: Path) -> None:
    steps = bounded_sequences.published()[number]
    if any(str(step).startswith(operations.EVICT) for step in steps):
        pytest.skip("drops the caches of the machine")
    check_model(steps, tmp_path)


def check_model(steps: Sequence, tmp_path: Path) -> None:
    if any("O_DIRECT" in str(step) for step in steps):
        needs_direct(tmp_path / "try")
    source = sequences.Sequences(chosen=(steps,))
    source.lay_out(tmp_path)
    marks: list[str] = []
    source.perform(tmp_path, 0, marks.append)
    assert len(marks) == 2 * len(steps)
    found = sequences.contents(sources.directory_of(tmp_path, 0))
    past = History(number=0, steps=steps, done=len(steps), begun=len(steps), promises=promises())
    assert list(oracle.judge(past, found)) == []
    assert oracle.lost_operations(past, found) == set()


def test_directories_of_any_depth_are_read_judged_and_removed(tmp_path: Path) -> None:
    """A recording of another machine can have them."""
    inner = "/".join("d" * 1200)
    for length in range(0, len(inner) + 2, 2):
        (tmp_path / "s" / inner[: max(0, length - 1)]).mkdir()
    (tmp_path / "s/d/b").touch()
    found = sequences.contents(tmp_path / "s")
    assert ([*found][:2], [*found][-2:]) == (["d", "d/b"], [inner.removesuffix("/d"), inner])
    source = sequences.Sequences(chosen=(ONE[0],))
    verdict = source.judge(Progress(number=0, done=0, begun=0), found, promises())
    assert inner in {finding.name for finding in verdict.findings}
    source.use(tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_a_sequence_is_its_text() -> None:
    chosen = [*ONE, *(TWO[number] for number in range(0, len(TWO), 97))]
    for steps in chosen:
        assert bounded_sequences.parse(list(map(str, steps))) == steps
    assert len({tuple(map(str, steps)) for steps in chosen}) == len(chosen) > 600
    with pytest.raises(ValueError, match="not possible"):
        bounded_sequences.parse(["rename n over a"])


def test_a_name_is_promised_by_fsync_and_not_before() -> None:
    assert judged(history("create n", "fsync n", done=1)) == []
    assert judged(history("create n", "fsync n", done=1, begun=2)) == []
    assert judged(history("create n", "fsync n", done=2)) == [(Kind.LOST_NAME, True)]
    assert judged(history("create n", "fdatasync n", done=2)) == []
    assert judged(history("create n", "sync", done=2)) == [(Kind.LOST_NAME, True)]


def shifted(*stamps: tuple[int, int]) -> Seen:
    """Return a as blocks of these generations and of these numbers when they were written."""
    blocks = (written(1, number, generation) for generation, number in stamps)
    return Seen(kind="file", data=b"".join(blocks), attribute=contents.attribute(0, 1, 1))


OLD, COLLAPSED, INSERTED, HALF = ((1, 0), (1, 1)), ((1, 1),), ((0, 0), (1, 0), (1, 1)), ((0, 0), (1, 1))


@pytest.mark.parametrize(
    ("operation", "new"), [("collapse a range of a", COLLAPSED), ("insert a range into a", INSERTED)]
)
def test_a_shift_may_be_seen_half_done_until_it_is_durable(
    operation: str, new: tuple[tuple[int, int], ...]
) -> None:
    begun = history(operation, "fsync a", done=0, begun=1)
    returned = history(operation, "fsync a", done=1)
    for past in (begun, returned):
        assert [judged(past, a=shifted(*stamps)) for stamps in (OLD, new, HALF)] == [[], [], []]
    durable = history(operation, "fsync a", done=2)
    assert judged(durable, a=shifted(*new)) == []
    for stamps in (OLD, HALF):
        assert judged(durable, a=shifted(*stamps)) == [(Kind.LOST_DATA, True)]


def test_a_shift_moves_each_block_to_one_place_only() -> None:
    returned = history("collapse a range of a", "fsync a", done=1)
    assert judged(returned, a=shifted((1, 1), (1, 0))) == [(Kind.EXPOSED, True)]
    assert judged(returned, a=shifted((1, 0), (1, 0))) == [(Kind.EXPOSED, True)]
    both = history("insert a range into a", "overwrite a", "fsync a", done=3)
    assert judged(both, a=shifted((3, 0), (1, 0), (1, 1))) == []
    assert judged(both, a=shifted((1, 0), (1, 0), (1, 1))) == [(Kind.LOST_DATA, True)]


def test_a_block_that_was_written_after_a_shift_may_be_where_it_was_before() -> None:
    """It is written in place, at once; the shift is committed later."""
    steps = ("collapse a range of a", "overwrite a", "fsync a")
    assert judged(history(*steps, done=2), a=shifted((1, 0), (3, 0))) == []
    assert judged(history(*steps, done=2), a=shifted((3, 0), (3, 0))) == []
    assert judged(history(*steps, done=3), a=shifted((1, 0), (3, 0))) == [(Kind.LOST_DATA, True)]


def test_data_is_promised_by_fsync() -> None:
    past = history("overwrite a", "fsync a", done=2)
    assert judged(past, a=seen(1, 2, 1)) == []
    assert judged(past, a=seen(1, 1, 1)) == [(Kind.LOST_DATA, True)]
    assert judged(past, a=seen(1, 2)) == [(Kind.LOST_DATA, True)]
    assert judged(history("overwrite a", "fsync a", done=1, begun=2), a=seen(1, 1, 1)) == []
    torn = seen(1, 2).data[:512] + seen(1, 1).data[512:] + seen(1, 1, block=1).data
    mixed = replace(seen(1, 1), data=torn)
    assert judged(history("overwrite a", done=1), a=mixed) == [], (
        "a write that is torn, and nobody promised anything"
    )
    assert judged(past, a=mixed) == [(Kind.LOST_DATA, True)]


def test_what_was_durable_before_stays() -> None:
    past = history("create n", done=1)
    assert judged(past, a=None) == [(Kind.LOST_NAME, True)]
    (lost,) = oracle.judge(past, {name: each for name, each in BEFORE.items() if name != "a"})
    assert lost.detail == "'a' does not exist; it was durable before the sequence started"
    assert judged(past, a=seen(1, 0, 1)) == [(Kind.LOST_DATA, True)]
    assert judged(past, x=seen(1, 1)) == [(Kind.RESURRECTED, True)]


def test_a_write_with_o_sync_promises_its_own_block_and_no_other() -> None:
    """A write with O_SYNC makes only its own data durable, and what is needed to read it (POSIX).

    The block of an earlier append may be missing, contain zeros, or contain the appended data.
    """
    past = history("append a", "overwrite a with O_SYNC", done=2)
    assert (
        judged(past, a=seen(1, 3, 1))
        == judged(past, a=seen(1, 3, 1, 0))
        == judged(past, a=seen(1, 3, 1, 2))
        == []
    )
    assert judged(past, a=seen(1, 1, 1, 2)) == [(Kind.LOST_DATA, True)]
    assert past.promising == {2}
    renamed = history("write n", "rename n over a", "overwrite a with O_SYNC", done=3, given=promises("xfs"))
    assert judged(renamed, a=seen(NEW, 4, 0)) == [(Kind.NEITHER, False)], "its other block is not promised"
    assert (Kind.LOST_DATA, True) in judged(renamed, a=Seen(kind="file"))
    beside = history("overwrite b", "overwrite a with O_SYNC", done=2)
    assert judged(beside, a=seen(1, 3, 1), b=seen(2, 1, 1)) == [], "nor that of another file"
    cut = history("overwrite a with O_SYNC", "truncate a to 1 block", done=2)
    assert judged(cut, a=seen(1, 2)) == []
    assert judged(cut, a=seen(1, 1)) == [(Kind.LOST_DATA, True)]


@pytest.mark.parametrize(
    ("steps", "source"),
    [
        (["overwrite a", "fsync a"], "POSIX, fsync"),
        (["overwrite a", "sync"], "sync(2)"),
        (["overwrite a with O_SYNC"], "POSIX, O_SYNC"),
        (["create n", "fsync-directory"], "ext4/journal.rst"),
    ],
)
def test_a_broken_promise_cites_what_gave_it(steps: list[str], source: str) -> None:
    (finding,) = oracle.judge(history(*steps, done=len(steps)), BEFORE)
    assert finding.broken
    assert finding.source.startswith(source)
    assert finding.detail.endswith(f"; step {len(steps)}, {steps[-1]}, had returned")
    careless = history(*steps, done=len(steps), given=promises("ext4", "barrier=0"))
    assert "barrier" in next(oracle.judge(careless, BEFORE)).source


def test_msync_promises_what_was_stored() -> None:
    past = history("append a", "store to a with mmap and msync", done=2)
    assert judged(past, a=seen(1, 3, 1)) == []
    assert judged(past, a=seen(1, 1, 1)) == [(Kind.LOST_DATA, True)]
    stored = history("store to a with mmap", "fsync a", done=2)
    assert judged(stored) == [(Kind.LOST_DATA, True)]
    assert judged(history("store to a with mmap", "fsync a", done=1)) == []


def test_an_empty_file_cannot_be_mapped() -> None:
    with pytest.raises(ValueError, match="store to a with mmap"):
        bounded_sequences.parse(["create n", "rename n over a", "store to a with mmap"])


def test_an_extended_attribute_is_promised_by_fsync_and_not_by_fdatasync() -> None:
    old, new = seen(1, 1, 1), seen(1, 1, 1, attribute=2)
    past = history("setxattr a", "fsync a", done=2)
    assert judged(past, a=new) == []
    assert judged(past, a=old) == [(Kind.LOST_ATTRIBUTE, True)]
    for sync in ("fdatasync a", "fsync-directory"):
        past = history("setxattr a", sync, done=2)
        assert judged(past, a=old) == judged(past, a=new) == [], sync
    assert judged(history("setxattr a", "sync", done=2), a=old) == [(Kind.LOST_ATTRIBUTE, True)]
    assert judged(history("setxattr a", done=0, begun=1), a=old) == []


def test_a_new_file_may_lack_an_attribute_that_nobody_promised() -> None:
    none, new = Seen(kind="file"), Seen(kind="file", attribute=contents.attribute(0, NEW, 3))
    past = history("create n", "setxattr n", done=2)
    assert judged(past, n=none) == judged(past, n=new) == []
    assert judged(history("create n", "setxattr n", "fsync n", done=3), n=none) == [
        (Kind.LOST_ATTRIBUTE, True)
    ]


def test_a_removed_attribute_does_not_come_again() -> None:
    """A removed attribute that reappears was a bug of btrfs (fstests generic/066)."""
    old, none = seen(1, 1, 1), seen(1, 1, 1, attribute=None)
    past = history("removexattr a", "fsync a", done=2)
    assert judged(past, a=none) == []
    assert judged(past, a=old) == [(Kind.LOST_ATTRIBUTE, True)]
    other = history("setxattr a", "overwrite a", done=2)
    assert judged(other, a=none) == [(Kind.LOST_ATTRIBUTE, True)], "it always had one"


def test_a_step_that_the_file_system_lacks_ends_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's own driver for ext2 exchanges no names. The marks are those of a cut during the step."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(syscalls, "rename", refuse)
    source = sequences.Sequences(chosen=(bounded_sequences.parse(["create n", "exchange a b", "fsync b"]),))
    source.lay_out(tmp_path)
    marks: list[str] = []
    source.perform(tmp_path, 0, marks.append)
    assert marks == ["0:1:begins", "0:1:returned", "0:2:begins"]


def test_without_a_journal_nobody_promises_attributes() -> None:
    past = history("setxattr a", "fsync a", done=2, given=promises("ext2", journal=False))
    assert judged(past, a=seen(1, 1, 1)) == []


def test_bytes_of_others_are_exposed() -> None:
    past = history("write n", done=1)
    foreign = replace(seen(2, 1), data=seen(2, 1).data + seen(2, 1, block=1).data)
    holes = replace(seen(1, 0, 1), data=seen(1, 0, 1).data + seen(2, 1).data)
    assert judged(history("punch a hole into a", "append a", done=2), a=holes) == [(Kind.EXPOSED, True)]
    longer = replace(seen(1, 1, 1), data=seen(1, 1, 1).data + 3 * seen(2, 1).data)
    careless = history("truncate a to 5 blocks", done=1, given=promises("ext4", "data=writeback"))
    assert judged(careless, a=longer) == [(Kind.EXPOSED, False)], "nothing was there before"
    assert judged(past, n=foreign) == [(Kind.EXPOSED, True)]
    assert judged(past, n=Seen(kind="file")) == judged(past, n=seen(NEW, 0, 2)) == []
    allowed = history("write n", done=1, given=promises("ext4", "data=writeback"))
    assert judged(allowed, n=foreign) == [(Kind.EXPOSED, False)]


@pytest.mark.parametrize("filesystem", ["ext2", "ext4"])
def test_without_a_journal_fsync_of_a_renamed_file_does_not_remove_its_old_name(filesystem: str) -> None:
    given = promises(filesystem, journal=False)
    moved = history("rename a d/r", "fsync d/r", done=2, given=given)
    old = seen(1, 1, 1)
    assert judged(moved, **{"d/r": old}) == judged(moved, a=None, **{"d/r": old}) == []
    names = [] if filesystem == "ext2" else [(Kind.LOST_NAME, True)]
    assert judged(moved) == names, (
        "ext4 promises the new name; the kernel's own driver for ext2 writes no directory"
    )
    assert judged(history("rename a d/r", "fsync d/r", done=2), **{"d/r": old}) == [(Kind.RESURRECTED, True)]
    over = history("rename b over a", "fsync a", done=2, given=given)
    assert judged(over) == [], "ext4_rename adds no entry over another"
    both = history("link a d/l", "fsync d/l", done=2, given=given)
    assert judged(both) == [], "ext4_sync_parent writes one of both directories"


def names(**found: str) -> dict[str, Seen]:
    """Return what START has under other names: NAME=OLD."""
    return {name.replace("_", "/"): BEFORE[old.replace("_", "/")] for name, old in found.items()}


def test_what_is_below_a_renamed_directory_is_where_the_directory_is() -> None:
    steps = ("rename d g", "append b", "fsync b")
    here, there = names(a="a", b="b", d="d", d_f="d_f", e="e"), names(a="a", b="b", g="d", g_f="d_f", e="e")
    past = history(*steps, done=1)
    for found in (here, there):
        assert list(oracle.judge(past, found)) == []
    lost = {name: each for name, each in here.items() if not name.startswith("d")}
    kinds = [(finding.kind, finding.name) for finding in oracle.judge(past, lost)]
    assert kinds == [(Kind.NEITHER, "d"), (Kind.NEITHER, "d/f")]
    durable = history("rename d g", "fsync g", done=2)
    assert [(finding.kind, finding.step) for finding in oracle.judge(durable, here)] == [
        (Kind.RESURRECTED, 2), (Kind.RESURRECTED, 2), (Kind.LOST_NAME, 2), (Kind.LOST_NAME, 2),
    ]  # fmt: skip


def test_an_exchange_is_seen_done_or_not_and_no_half_of_it_is_lost() -> None:
    past = history("exchange a b", done=1)
    assert judged(past) == judged(past, a=seen(2, 1, 1), b=seen(1, 1, 1)) == []
    assert judged(past, a=None) == [(Kind.NEITHER, True)]
    assert judged(history("exchange d e", done=1)) == []


def test_permissions_are_promised_by_fsync() -> None:
    past = history("chmod a", "fsync a", done=2)
    assert judged(past, a=replace(seen(1, 1, 1), mode=0o602)) == []
    assert judged(past, a=replace(seen(1, 1, 1), mode=0o600)) == [(Kind.LOST_ATTRIBUTE, True)]
    assert judged(history("chmod a", "fdatasync a", done=2), a=replace(seen(1, 1, 1), mode=0o600)) == []


@pytest.mark.parametrize(("journal", "broken"), [(True, True), (False, False)])
def test_a_new_file_has_the_permissions_that_it_ever_had(journal: bool, broken: bool) -> None:
    """Where the inode may still be that of a deleted file, it may have those of that one."""
    past = history("create n", "chmod n", done=2, given=promises("ext2", journal=journal))
    for mode in (0o600, 0o603):
        assert judged(past, n=Seen(kind="file", mode=mode)) == []
    assert judged(past, n=Seen(kind="file", mode=0o640)) == [(Kind.LOST_ATTRIBUTE, broken)]


def test_a_file_has_as_many_links_as_names() -> None:
    both = {name: replace(seen(1, 1, 1), inode=7, links=2) for name in ("a", "l")}
    past = history("link a l", "fsync l", done=2)
    assert judged(past, **both) == []
    wrong = {name: replace(each, links=1) for name, each in both.items()}
    assert judged(past, **wrong) == [(Kind.DAMAGED, True)]


def test_a_half_block_is_written_alone() -> None:
    past = history("overwrite half a block of a", "fsync a", done=2)
    half = contents.part(Place(sequence=0, inode=1, part=1), 2)
    old = seen(1, 1, 1)
    new = replace(old, data=old.data[: len(half)] + half + old.data[2 * len(half) :])
    assert judged(past, a=new) == []
    assert judged(past, a=old) == [(Kind.LOST_DATA, True)]
    assert judged(past, a=seen(1, 2, 1)) == [(Kind.LOST_DATA, True)], "the other half was not written"


def test_a_lost_name_breaks_what_was_promised_of_the_file_too() -> None:
    (finding,) = oracle.judge(history("write n", "fdatasync n", "fsync-directory", done=3), BEFORE)
    assert finding.broken_steps == {2, 3}


@pytest.mark.parametrize(("filesystem", "broken"), [("ext4", True), ("xfs", False), ("btrfs", False)])
def test_replacing_by_rename_without_fsync(filesystem: str, broken: bool) -> None:
    past = history("write n", "rename n over a", done=2, given=promises(filesystem))
    assert judged(past) == []
    assert judged(past, a=seen(NEW, 2, 2)) == []
    assert judged(past, a=Seen(kind="file")) == [(Kind.NEITHER, broken)]


@pytest.mark.parametrize(("journal", "broken"), [(True, True), (False, False)])
def test_a_name_that_is_replaced_never_vanishes(journal: bool, broken: bool) -> None:
    past = history("write n", "rename n over a", done=2, given=promises("ext2", journal=journal))
    assert judged(past, a=None) == [(Kind.NEITHER, broken)]


def test_a_renamed_file_has_one_of_its_names() -> None:
    past = history("rename a r", done=1)
    assert judged(past, a=None, r=seen(1, 1, 1)) == judged(past) == []
    assert judged(past, a=None) == [(Kind.NEITHER, True)]
    bare = history("rename a r", done=1, given=promises("ext2", journal=False))
    assert judged(bare, a=None) == [(Kind.NEITHER, False)]


@pytest.mark.parametrize(("journal", "broken"), [(True, True), (False, False)])
def test_an_inode_that_another_file_has_taken(journal: bool, broken: bool) -> None:
    """Without a journal, the old name may still be on the disk when its inode already contains the new file."""
    given = promises("ext2", journal=journal)
    link = Seen(kind="symlink", target="b")
    assert judged(history("unlink a", "symlink a s", done=2, given=given), a=link) == [(Kind.NEITHER, broken)]
    untouched = history("create n", done=1, given=given)
    assert judged(untouched, a=link) == [(Kind.NEITHER, True)], "nothing has freed its inode"


def test_lost_operations_are_those_that_left_no_trace() -> None:
    past = history("write n", "overwrite a", done=2)
    assert oracle.lost_operations(past, BEFORE) == {1, 2}
    assert oracle.lost_operations(past, {**BEFORE, "a": seen(1, 3, 1)}) == {1}
    old = replace(seen(1, 1, 1), mode=0o600, owner=0, time=0)
    for step in ("chmod a", "chown a", "utime a", "setxattr a"):
        past = history(step, done=1)
        last = past.trees[1].inodes[1]
        value = contents.attribute(0, 1, last.attribute or 0)
        new = replace(old, mode=last.mode, owner=last.owner, time=last.time, attribute=value)
        assert oracle.lost_operations(past, {**BEFORE, "a": old}) == {1}, step
        assert oracle.lost_operations(past, {**BEFORE, "a": new}) == set(), step


def test_with_an_option_names_are_durable_when_an_operation_returns() -> None:
    for filesystem, option in (("ext4", "dirsync"), ("ext3", "sync"), ("xfs", "wsync"), ("xfs", "dirsync")):
        given = promises(filesystem, option)
        past = history("rename a r", "create n", "unlink b", done=2, begun=3, given=given)
        assert past.promising == {1, 2}
        found = list(oracle.judge(past, BEFORE))
        assert {(each.kind, each.name, each.broken) for each in found} == {
            (Kind.RESURRECTED, "a", True), (Kind.LOST_NAME, "n", True), (Kind.LOST_NAME, "r", True),
        }  # fmt: skip
        assert all(option in each.source for each in found)
    for given in (promises("ext4"), promises("btrfs", "sync"), promises("ext4", "sync", journal=False)):
        assert not given.at_once.given


def test_promises_depend_on_options() -> None:
    assert promises("ext4").caution is None
    assert promises("ext4", "barrier=0").caution is not None
    assert not promises("ext4", "noauto_da_alloc").replace.given
    assert not promises("ext4", journal=False).consistent.given
    assert promises("btrfs", "nobarrier").caution is not None
    assert promises("ext4", "nobarrier", journal=False).caution is not None, (
        "fsync does not flush there either"
    )


@pytest.mark.parametrize("option", ["noload", "norecovery"])
def test_a_journal_that_the_mount_does_not_use_promises_nothing(option: str) -> None:
    assert promises("ext4", option) == promises("ext4", journal=False)


@pytest.mark.parametrize(
    "steps",
    [["symlink a s", "fsync s"], ["symlink a s", "rename s t", "fdatasync t"], ["mkfifo p", "fsync p"]],
)
def test_fsync_is_called_only_on_what_can_be_opened(steps: list[str]) -> None:
    """It would sync what a symbolic link leads to, which promises nothing of the link, or wait at a FIFO forever."""
    with pytest.raises(ValueError, match="not possible"):
        bounded_sequences.parse(steps)


@pytest.mark.parametrize("alphabet", [Alphabet.ALL, Alphabet.METADATA])
def test_each_sequence_can_be_given_by_its_words(alphabet: Alphabet) -> None:
    """Those that begin with a symlink, which are neighbours: to make all of them takes ten seconds."""
    every = bounded_sequences.space(length=2, alphabet=alphabet)
    order = operations.METADATA if alphabet is Alphabet.METADATA else operations.ALL
    own = next(number for number, text in enumerate(order) if text.startswith("symlink"))
    begin, end = (
        bisect(range(len(every)), own, key=lambda number: order.index(str(every[number][0])))
        for bisect in (bisect_left, bisect_right)
    )
    assert end - begin > 50
    for each in (every[number] for number in range(begin, end)):
        assert bounded_sequences.parse(list(map(str, each))) == each


@pytest.mark.parametrize(
    "name", ["12-kept", "0-lost", "7-random-42", "7-torn4096-9", "8-without-3.5", "8-without-"]
)
def test_a_state_is_its_name(name: str) -> None:
    assert str(State.parse(name)) == name


def test_a_state_of_no_name() -> None:
    with pytest.raises(UsageError, match="not the name of a crash state"):
        State.parse("12-x")


def log(*marks: str | None) -> pl.DataFrame:
    """Return a disk log with the given marks. None stands for a write and a flush."""
    rows: list[dict[str, Any]] = []
    for mark in marks:
        kinds = ["mark"] if mark else ["write", "flush"]
        rows += [{"op": kind, "mark": mark, "done_ns": 100 * len(rows)} for kind in kinds]
    schema = {"op": pl.String, "mark": pl.String, "done_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema).with_row_index("row")


def test_progress_is_read_from_the_marks() -> None:
    table = log("start", "0:1:begins", "0:1:returned", "0:2:begins", None, "0:2:returned", None, "1:1:begins")
    positions = Positions.of(table, (2, 2))

    def steps(number: int, cut: int) -> tuple[int, int]:
        at = positions.at(number, cut)
        return at.done, at.begun

    assert [steps(0, cut) for cut in range(6)] == [(0, 0), (0, 0), (0, 1), (1, 1), (1, 2), (1, 2)]
    assert steps(0, 7) == (2, 2)
    assert steps(1, 7) == (0, 0)
    assert positions.current(10) == 1
    assert steps(0, 10) == (2, 2)
    assert steps(1, 10) == (0, 1)
    assert positions.age_ns(0, 1, cut=7) == 100 * (6 - 2), (
        "the mark of its return is row 2, the last row before is 6"
    )
    assert positions.age_ns(0, 1, cut=0) == positions.age_ns(1, 1, cut=9) == 0


def test_what_was_freed_may_be_in_use_by_another_run() -> None:
    """Without a journal, the entry of a deleted file may still lead to an inode or blocks that were used again."""
    ext2 = promises("ext2", journal=False)
    empty = Seen(kind="file", data=b"")
    for given, broken in ((promises(), True), (ext2, False)):
        unlinked = history("unlink a", done=1, given=given)
        assert {each for _, each in judged(unlinked, a=empty)} == {broken}
        assert judged(unlinked, a=seen(1, 0, 0)) == [(Kind.LOST_DATA, broken)]
    assert judged(history("overwrite a", done=1, given=ext2), a=seen(1, 0, 0)) == [(Kind.LOST_DATA, True)]


def test_a_new_block_may_hold_what_was_freed_where_that_is_not_ruled_out() -> None:
    steps = ("truncate a to 1 block", "fsync a", "append a")
    for given, broken in ((promises(), True), (promises("ext4", "data=writeback"), False)):
        past = history(*steps, done=3, given=given)
        assert judged(past, a=seen(1, 1, 1)) == [(Kind.EXPOSED, broken)]


def test_the_bytes_of_another_file_are_no_synced_contents() -> None:
    for given in (promises(), promises("ext4", "data=writeback")):
        past = history("rename a r", "write a", "fsync a", done=3, given=given)
        assert (Kind.LOST_DATA, True) in judged(past, a=seen(1, 1, 1))
    later = history(
        "fsync a", "punch a hole into a", "append a", done=3, given=promises("ext4", "data=writeback")
    )
    mixed = replace(seen(1, 2, 2, 2), data=seen(2, 1, 1).data + seen(1, 4, block=2).data)
    assert judged(later, a=mixed) == [(Kind.LOST_DATA, True)], "and a new block with old bytes before it"


@pytest.mark.parametrize(
    "steps",
    [
        ("punch a hole into a", "fsync a"),
        ("truncate a to 1 block", "truncate a to 5 blocks", "fsync a"),
    ],
    ids=str,
)
def test_the_zeros_of_a_synced_hole_are_contents(steps: tuple[str, ...]) -> None:
    size = 2 if "punch" in steps[0] else 5
    for given in (promises(), promises("ext4", "data=writeback"), promises("ext2", journal=False)):
        past = history(*steps, done=len(steps), given=given)
        assert judged(past, a=seen(1, *[1] * size)) == [(Kind.LOST_DATA, True)]
        returned = history(*steps, done=len(steps) - 1, given=given)
        assert (Kind.LOST_DATA, True) not in judged(returned, a=seen(1, *[1] * size))


def test_runs_may_overlap() -> None:
    """Two runs at the same time, then one more."""
    marks = (
        "0:1:begins",
        "1:1:begins",
        "1:1:returned",
        "0:1:returned",
        "1:2:begins",
        "1:2:returned",
        "flushed",
        "2:1:begins",
    )
    positions = Positions.of(log(*marks), (1, 2, 1))
    steps = [
        [(each.done, each.begun) for each in (positions.at(number, cut) for number in range(3))]
        for cut in (3, 8)
    ]
    assert steps == [[(0, 1), (1, 1), (0, 0)], [(1, 1), (2, 2), (0, 1)]]
    at_stake = [positions.at_stake(cut) for cut in (0, 2, 4, 6, 7, 8)]
    assert at_stake == [set(), {0, 1}, {0, 1}, {0, 1}, set(), {2}]
    assert positions.current(4) == 0


def test_states_are_the_same_again() -> None:
    table = log("start", *[None] * 20)
    first, again = (chosen(table, 12, Random(3), unit=4096) for _ in range(2))
    assert first == again
    assert len(first) == 12
    assert [state.cut for state in first] == sorted(state.cut for state in first)
    assert chosen(table, 12, Random(4), unit=4096) != first


def test_the_fewest_lost_writes() -> None:
    def breaks(state: State) -> bool:
        return {3, 7} <= set(state.without)

    state = State(cut=20, fate="random", seed=1)
    assert fewest_lost(state, range(12), breaks).without == (3, 7)
    assert fewest_lost(state, [1, 2], breaks) == state


def test_a_stamp_says_what_it_is() -> None:
    place = Place(sequence=3, inode=1, part=2)
    assert (
        contents.describe(contents.part(place, 4)[512:1024])
        == "generation 4 of half block 2 of file 1 of sequence 3"
    )
    assert contents.describe(bytes(512)) == "zeros"
    assert len(contents.part(place, 4)) * PARTS == BLOCK_BYTES


@pytest.mark.parametrize(("length", "count"), [(2, 120), (2, 80), (3, 60), (1, 1000)])
def test_a_sample_has_sequences_of_all_lengths_those_near_known_bugs_first(length: int, count: int) -> None:
    sample = bounded_sequences.sampled(length, count, Random(1))
    assert sample == bounded_sequences.sampled(length, count, Random(1))
    assert sample != bounded_sequences.sampled(length, count, Random(2)) or count > len(ONE)
    texts = [tuple(map(str, steps)) for steps in sample.sequences]
    assert len(set(texts)) == len(texts) == min(count, len(ONE) if length == 1 else count)
    told = {each: tried for each, (tried, _) in sample.lengths.items()}
    assert told == {
        each: sum(sum(step.operation is not None for step in steps) == each for steps in sample.sequences)
        for each in range(1, length + 1)
    }
    assert sample.lengths[1][1] == len(ONE)
    assert max(told.values()) - min(told.values()) <= length
    known = {tuple(map(str, steps)) for steps in bounded_sequences.published()}
    # Of one operation, all sequences are tried, whichever are known.
    assert length == 1 or sum(text in known for text in texts) >= min(count // 10, 10)
    near = [text for text in texts if {step for step in text if step in operations.ALL} <= operations.NEAR]
    assert len(near) > count // 4 or length == 1


def test_a_file_or_directory_that_is_synced_after_its_removal_stays_removed() -> None:
    steps = ("unlink a and fsync it",)
    assert judged(history(*steps, done=1), a=None) == []
    assert judged(history(*steps, done=1)) == [(Kind.RESURRECTED, True)]
    assert judged(history(*steps, done=0, begun=1)) == [], "it had not returned"
    assert judged(history(*steps, done=1, given=promises(journal=False))) == [], "ext2 does not promise it"
    assert judged(history("rmdir e and fsync it", done=1), e=None) == []
    assert judged(history("rmdir e and fsync it", done=1)) == [(Kind.RESURRECTED, True)]


def test_fsync_of_a_file_that_lost_one_of_two_names_keeps_the_other() -> None:
    cut = history("link a l", "overwrite a", "unlink a and fsync it", done=3)
    kept = seen(1, 3, 1)
    assert judged(cut, a=None, l=kept) == []
    assert judged(cut, a=None, l=seen(1, 1, 1)) == [(Kind.LOST_DATA, True)]
    assert judged(cut, a=kept, l=kept) == [(Kind.RESURRECTED, True)]


def test_a_renamed_symlink_has_its_new_name_after_fsync_of_the_directory() -> None:
    cut = history("symlink a s", "fsync-directory", "rename s t", "fsync-directory", done=4)
    link = Seen(kind="symlink", target="a")
    assert judged(cut, t=link) == []
    assert judged(cut, t=replace(link, target="b")) == [(Kind.NEITHER, True)]
    assert judged(cut, s=link) == [(Kind.RESURRECTED, True), (Kind.LOST_NAME, True)]


@pytest.mark.parametrize(
    ("steps", "changed", "source"),
    [
        (("write n", "fsync n"), {}, "fs/ext4/"),  # POSIX does not promise the name
        (("write n", "fsync n"), {"n": seen(NEW, 1, 1)}, "POSIX"),
        (("setxattr a", "fsync a"), {}, "generic/066"),
        (("mkdir m", "sync"), {}, "sync(2)"),
        (("unlink a and fsync it",), {}, "generic/764"),
        (("overwrite a with O_SYNC",), {}, "O_SYNC"),
    ],
)
def test_a_finding_names_the_text_that_makes_its_promise(
    steps: tuple[str, ...], changed: dict[str, Seen], source: str
) -> None:
    (found,) = oracle.judge(history(*steps, done=len(steps)), {**BEFORE, **changed})
    assert source in found.source


def test_exhaustive_sequences_that_end_with_a_promise() -> None:
    found = list(bounded_sequences.enumerated(2, Alphabet.METADATA, promising=True))
    texts = [[str(step) for step in steps] for steps in found]
    assert len(texts) == len({tuple(each) for each in texts})
    assert all(steps[-1].startswith(("fsync", "unlink a and fsync it")) for steps in texts)
    assert not any("write" in step for steps in texts for step in steps)
    sample = bounded_sequences.sampled(2, 10_000, Random(2), Alphabet.METADATA, promising=True)
    assert found == list(sample.sequences)
    assert sum(tried for tried, _ in sample.lengths.values()) == len(found)


def test_cuts_at_the_ends_of_sequences() -> None:
    assert [str(state) for state in at_ends([7, 3], 5, Random(0))] == ["4-lost", "8-lost"]
    assert len(at_ends(range(100), 5, Random(0))) == 5


class TestSparseImages:
    @pytest.fixture
    def image(self, tmp_path: Path) -> Path:
        path = tmp_path / "image"
        with path.open("wb") as file:
            for at in (0, 3 << 20):
                file.seek(at)
                file.write(b"x" * BLOCK_BYTES)
            file.truncate(8 << 20)
        return path

    @pytest.fixture
    def disk(self, tmp_path: Path) -> Path:
        path = tmp_path / "disk"
        path.write_bytes(bytes(8 << 20))
        return path

    def test_data_is_copied_and_restored(self, image: Path, disk: Path) -> None:
        recording._copy_image(image, disk)
        assert disk.read_bytes() == image.read_bytes()
        disk.write_bytes(b"y" * (8 << 20))
        struck_files._restore(image, (image, disk), disk)
        assert disk.read_bytes() == image.read_bytes()

    def test_an_error_is_not_the_end_of_the_data(
        self, image: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*_: object) -> int:
            raise OSError(errno.EIO, "read error")

        monkeypatch.setattr(os, "lseek", fails)
        with pytest.raises(OSError, match="read error"):
            recording._copy_image(image, disk)
        with pytest.raises(OSError, match="read error"):
            struck_files._restore(image, (image,), disk)
