"""Tests of the sequences of published bugs: each fault is found."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.unit.test_crash import promises

from fslab.crash import bounded_sequences, contents, operations, oracle
from fslab.crash.contents import Place
from fslab.crash.durable_history import History
from fslab.crash.oracle import Seen
from fslab.crash.published_bugs import SCENARIOS, Scenario
from fslab.crash.sources import Kind
from fslab.crash.steps import Sequence, Sync, trees
from fslab.crash.tree import START, TOP, Inode, Tree
from fslab.system import page_cache

REACHED = [each for each in SCENARIOS if each.sequences]
# What must not happen, by test, as a change of what the sequence leaves: "gone NAME", "back NAME OTHER" (NAME still is
# what was OTHER at the start), "old NAME" (it has the contents, permissions, owner, time and attribute from the start),
# "bare NAME" (without its attribute), "stale NAME" (its first block holds what the disk held), "links NAME" (a wrong
# link count); "mount", "write": it shows when the file system is mounted, or written to. Some sequences of a test show
# another fault than its first one.
FAULTS = {
    "034": "write", "039": "write", "042": "stale n", "047": "old n", "048": "old n", "049": "old n",
    "054": "gone n", "056": "old n", "057": "old a", "059": "old a", "065": "links a", "066": "old a",
    "073": "old a", "090": "old a", "101": "old a", "104": "links b", "106": "back l n", "107": "back d/k a",
    "177": "old a", "321": "gone m", "322": "gone r", "325": "old a", "335": "gone e/x", "336": "gone e/f",
    "341": "gone g", "342": "gone r", "343": "gone d/m", "348": "gone s; gone m/s", "376": "gone r",
    "392": "old a", "468": "old a", "474": "gone n", "479": "mount", "480": "mount", "481": "write",
    "489": "bare n", "498": "gone x", "502": "gone r", "505": "old a; old n", "509": "mount", "510": "back e e",
    "512": "gone n", "520": "gone m/l; gone l; gone m/n", "526": "gone q", "527": "gone r", "534": "old r",
    "535": "old a; old d", "536": "stale n", "552": "old m/r", "557": "back m/n b", "640": "gone e/f",
    "690": "gone d/t", "695": "old a", "737": "old a", "764": "back a a", "771": "mount", "779": "gone t",
    "782": "gone m", "784": "mount", "785": "gone m", "789": "old a", "790": "gone x", "792": "back m d",
    "btrfs/236": "old r; old n", "ext4 fast_commit": "gone n",
}  # fmt: skip
# Nothing is judged here: a mount, or a program that writes, finds these faults.
ELSEWHERE = {"mount": Kind.UNMOUNTABLE, "write": Kind.UNWRITABLE}


def seen(number: int, inode: Inode, links: int) -> Seen:
    if inode.kind == "symlink":
        return Seen(kind="symlink", target=inode.target, inode=number, links=links)
    if inode.kind != "file":
        return Seen(kind=inode.kind, mode=inode.mode, inode=number, links=links)
    places = (Place(sequence=0, inode=number, part=stamp.number) for stamp in inode.parts)
    data = b"".join(
        contents.part(place, stamp.generation) for place, stamp in zip(places, inode.parts, strict=True)
    )
    time = -1 if inode.time is None else inode.time
    value = None if inode.attribute is None else contents.attribute(0, number, inode.attribute)
    return Seen(
        kind="file", data=data, mode=inode.mode, owner=inode.owner, time=time, inode=number, links=links,
        attribute=value,
    )  # fmt: skip


def left(tree: Tree) -> dict[str, Seen]:
    links = list(tree.names.values())
    return {
        name: seen(number, tree.inodes[number], links.count(number)) for name, number in tree.names.items()
    }


def faulty(fault: str, tree: Tree) -> dict[str, Seen]:
    """Return what the sequence leaves, with the fault."""
    found = left(tree)
    what, name, *other = fault.split()
    if what == "gone":
        del found[name]
    elif what == "links":
        found[name] = replace(found[name], links=found[name].links + 1)
    elif what == "back":
        found[name] = {**left(START), **found}[other[0]]
    elif what == "bare":
        found[name] = replace(found[name], attribute=None)
    elif what == "stale":
        stale = contents.STALE * (contents.BLOCK_BYTES // contents.SECTOR_BYTES)
        found[name] = replace(found[name], data=stale + found[name].data[len(stale) :])
    else:
        number = tree.names[name]
        old = START.inodes.get(number, Inode())
        found[name] = replace(seen(number, old, 1), inode=found[name].inode, links=found[name].links)
    return found


def reported(past: History, faults: str) -> bool:
    """Return whether one of the faults, at the end of the sequence, breaks a promise."""
    last = past.trees[-1]
    possible = (fault for fault in faults.split("; ") if fault.split()[1] in last.names or "back" in fault)
    return any(finding.broken for fault in possible for finding in oracle.judge(past, faulty(fault, last)))


def history(steps: Sequence, filesystem: str) -> History:
    return History(number=0, steps=steps, done=len(steps), begun=len(steps), promises=promises(filesystem))


@pytest.mark.parametrize("scenario", REACHED, ids=lambda each: each.test)
@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs"])
def test_the_fault_of_a_published_bug_is_found(scenario: Scenario, filesystem: str) -> None:
    for text in scenario.sequences:
        past = history(bounded_sequences.parse(text.split("; ")), filesystem)
        assert list(oracle.judge(past, left(past.trees[-1]))) == [], "nothing is wrong without the fault"
        faults = FAULTS[scenario.test]
        assert faults in ELSEWHERE or reported(past, faults), text


def test_each_scenario_is_reached_or_says_what_is_missing() -> None:
    assert all(bool(each.lacks) != bool(each.sequences) for each in SCENARIOS)
    assert FAULTS.keys() == {each.test for each in REACHED}


def test_each_operation_of_a_scenario_changes_something() -> None:
    """A hole that is punched into a hole, for example, repeats no test."""
    unchanged = {"evict inodes", "evict files", *operations.SYNCS}
    for scenario in REACHED:
        for steps in (bounded_sequences.parse(text.split("; ")) for text in scenario.sequences):
            for step, (before, after) in zip(steps, pairwise(trees(steps)), strict=True):
                same = step.operation is None or step.operation.name in unchanged
                assert (before == after) is same, f"{scenario.test}: {step}"


def test_each_fsync_of_a_scenario_has_something_to_write() -> None:
    """Otherwise btrfs logs nothing, and what needs the file in the log (generic/534) cannot happen. Right before a
    sync, fsync stands for the first one of a test: after it btrfs logs less of the file."""
    for scenario in REACHED:
        for steps in (bounded_sequences.parse(text.split("; ")) for text in scenario.sequences):
            changed: set[int] = set()
            for at, (step, (before, after)) in enumerate(zip(steps, pairwise(trees(steps)), strict=True)):
                numbers = {TOP, *after.inodes}
                changed |= {number for number in numbers if state(before, number) != state(after, number)}
                if step.sync is Sync.SYNC:
                    changed.clear()
                elif step.sync is not None:
                    number = after.names[step.target] if step.target else TOP
                    first = any(each.sync is Sync.SYNC for each in steps[at + 1 : at + 2])
                    assert first or number in changed, f"{scenario.test}: {step}"
                    changed.discard(number)


def state(tree: Tree, number: int) -> object:
    """Return what fsync of this file or directory may have to write: the inode, its names, and what is in it."""
    entries = {entry: other for entry, other in tree.entries().items() if number in {entry[0], other}}
    return tree.inodes.get(number), entries


def test_a_file_that_leaves_memory_has_no_pages() -> None:
    """Since Linux 5.16 an inode with cached pages stays; those of the start have some."""
    for steps in bounded_sequences.published():
        evicted = [str(step).startswith(operations.EVICT) for step in steps]
        if any(evicted):
            tree = trees(steps)[-1]
            synced = [step.target for step in steps[evicted.index(True) :] if step.target]
            assert not {tree.names[name] for name in synced} & START.inodes.keys(), list(map(str, steps))


@pytest.mark.parametrize(("which", "kept"), [("inodes", [""]), ("files", ["", "d", "e"])])
def test_directories_are_in_use_while_inodes_are_evicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, kept: list[str]
) -> None:
    """As in generic/552 and 557: btrfs commits all when it has to read the directory again."""
    for name in ("d", "e"):
        (tmp_path / name).mkdir()
    held: list[str] = []

    def evict() -> None:
        used = [each.resolve() for each in Path("/proc/self/fd").iterdir()]
        held.extend(name for name in ("", "d", "e") if tmp_path / name in used)

    monkeypatch.setattr(page_cache, "drop_inodes", evict)
    (step,) = bounded_sequences.parse([f"{operations.EVICT} {which}"])
    assert step.operation is not None
    step.operation.run(tmp_path, 0, START, 2)
    assert held == kept
