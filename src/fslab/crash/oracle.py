"""The oracle: compute what the directory of a sequence may contain after a power cut, and find what is not allowed.

It must never report an allowed state; it may miss a forbidden one. A name may lead to any inode that it had since it
was last durable. A part of a block may hold any generation that its file had since then, and zeros if it was new.
Permissions and an extended attribute may have any value since then. The oracle assumes no order between names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fslab.crash.contents import HOLE, PART_BYTES, SECTOR_BYTES, Place, Stamp, attribute, describe, part
from fslab.crash.durable_history import SETUP, History
from fslab.crash.sources import Finding, Kind
from fslab.crash.steps import Sync
from fslab.crash.tree import Inode, Tree
from fslab.crash.tree import Kind as NodeKind
from fslab.storage.crash_promises import Promise

POSIX = "POSIX, fsync(): all data and metadata needed to retrieve it is on the device when it returns"
SYNC = "sync(2): on Linux sync and syncfs provide the same guarantees as fsync called on every file"
WRITE = "POSIX, O_SYNC and msync: the data of the write, and what is needed to read it, is on the device"


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What a name leads to. ``mode``: permissions; ``owner``: its user; ``time``: its last change in seconds, -1 if not
    in whole ones; None for a symbolic link. ``inode``, ``links``: its inode number in the file system and its link
    count; 0 if unknown. ``attribute``: value of the extended attribute. ``error``: why it could not be read."""

    kind: NodeKind
    data: bytes = b""
    target: str = ""
    mode: int | None = None
    owner: int | None = None
    time: int | None = None
    inode: int = 0
    links: int = 0
    attribute: bytes | None = None
    error: str | None = None


def judge(history: History, found: Mapping[str, Seen]) -> Iterator[Finding]:
    """Yield each difference between what was found in the sequence's directory and what is allowed there."""
    names = {name for tree in history.trees[: history.begun + 1] for name in tree.names} | set(found)
    reached, lost = set[int](), set[int]()
    findings: list[tuple[Finding, set[int]]] = []
    for name in sorted(names):
        allowed, floor = history.allowed(name)
        inodes = {number for number in allowed if number is not None}
        if name not in found:
            missing = list(_judge_missing(history, name, allowed, floor))
            lost |= inodes if missing else set()
            findings += [(finding, inodes) for finding in missing]
            continue
        which, here = _judge_found(history, name, sorted(inodes), floor, found[name])
        reached |= which
        findings += [(finding, set()) for finding in here]
    for finding, inodes in findings:
        # What was promised of the file itself is gone with its last name.
        own = (history.of_inode(number) for number in inodes - reached)
        yield replace(finding, also=frozenset[int]().union(*own)) if finding.step else finding
    yield from _unreachable(history, reached | lost)
    yield from _judge_links(history, found)


def _judge_missing(history: History, name: str, allowed: set[int | None], floor: int) -> Iterator[Finding]:
    if None in allowed:
        return
    if len(allowed) > 1:
        text = f"'{name}' was replaced by renaming a file over it, and does not exist"
        yield _of(history.promises.rename, history, Kind.NEITHER, floor, name, text)
    else:
        yield _finding(history, Kind.LOST_NAME, floor, name, f"'{name}' does not exist")


def _judge_found(
    history: History, name: str, numbers: list[int], floor: int, seen: Seen
) -> tuple[set[int], list[Finding]]:
    """Return which inodes it may be, and the findings for the inode with the fewest."""
    if not numbers:
        return set(), [_finding(history, Kind.RESURRECTED, floor, name, f"'{name}' exists")]
    if seen.error is not None:
        text = f"'{name}' cannot be read: {seen.error}"
        return set(numbers), [_finding(history, Kind.UNREADABLE, floor, name, text)]
    each = {number: list(_judge_inode(history, name, number, seen)) for number in numbers}
    worst = {number: (sum(finding.broken for finding in found), len(found)) for number, found in each.items()}
    least = min(worst.values())
    best = [number for number in numbers if worst[number] == least]
    return set(best), each[best[-1]]


def _judge_inode(history: History, name: str, number: int, seen: Seen) -> Iterator[Finding]:
    born = next(at for at, tree in enumerate(history.trees) if number in tree.inodes)
    floor = history.data.get(number, born)
    promised = number in history.data or born == SETUP
    versions = history.versions(number, floor)
    kind = versions[-1].kind
    if not promised:
        versions.append(Inode(kind=kind, target=versions[-1].target))  # it may not have been written back
    if seen.kind != kind or seen.target != versions[-1].target:
        text = f"'{name}' is another kind of file, or a link to another target"
        if promised and history.stayed(number, born):
            yield _finding(history, Kind.NEITHER, floor, name, text)
        else:  # another file may have reused its inode, and only one of the two was written
            yield _of(history.promises.consistent, history, Kind.NEITHER, floor, name, text)
        return
    found = [*_judge_status(history, name, number, born, seen)]
    if kind == "file":
        found += _judge_file(history, name, number, born, seen, versions)
    if history.stayed(number, born):
        yield from found
        return
    # The inode or its blocks were free, and another run may have reused them and made that durable.
    for each in found:
        yield replace(each, broken=each.broken and history.promises.consistent.given)


def _judge_file(
    history: History, name: str, number: int, born: int, seen: Seen, versions: list[Inode]
) -> Iterator[Finding]:
    floor = history.data.get(number, born)
    yield from _judge_attribute(history, name, number, born, seen.attribute)
    wrong = _wrong(history.number, number, versions, seen.data)
    if wrong is not None:
        allocated, what = wrong
        if allocated:
            promise = history.promises.unexposed
            yield _of(promise, history, Kind.EXPOSED, floor, name, f"'{name}' has {what}")
        else:
            yield _finding(history, Kind.LOST_DATA, floor, name, f"'{name}' has {what}")
    yield from _judge_parts(history, name, number, seen.data)
    renamed = history.replaced(name, number)
    if wrong is None and renamed is not None and renamed > floor:
        wrong = _wrong(history.number, number, history.versions(number, renamed), seen.data)
        if wrong is not None:
            text = f"'{name}', over which a file was renamed, has neither the old nor the new contents: {wrong[1]}"
            yield _of(history.promises.replace, history, Kind.NEITHER, renamed, name, text)


def _judge_attribute(
    history: History, name: str, number: int, born: int, value: bytes | None
) -> Iterator[Finding]:
    """Check that the extended attribute has a value since it was last durable. A new file has none."""
    floor = history.attributes.get(number, born)
    allowed = {version.attribute for version in history.versions(number, floor)}
    values = {each: None if each is None else attribute(history.number, number, each) for each in allowed}
    if value in values.values():
        return
    wanted = " or ".join(sorted("none" if each is None else f"generation {each}" for each in allowed))
    what = "none" if value is None else value.decode("utf-8", "replace")[:100]
    text = f"the extended attribute of '{name}' is {what} instead of {wanted}"
    yield _finding(history, Kind.LOST_ATTRIBUTE, floor, name, text)


def _judge_status(history: History, name: str, number: int, born: int, seen: Seen) -> Iterator[Finding]:
    """Check that permissions, owner and time are those of versions since they were last durable."""
    floor = history.modes.get(number, born)
    versions = history.versions(number, floor)
    kinds: tuple[tuple[str, int | None, set[int | None], str], ...] = (
        ("permissions", seen.mode, {version.mode for version in versions}, "o"),
        ("owner", seen.owner, {version.owner for version in versions}, "d"),
        ("time of the last change", seen.time, {version.time for version in versions}, "d"),
    )
    for what, value, allowed, form in kinds:
        if value is None or None in allowed or value in allowed:
            continue
        known = sorted(each for each in allowed if each is not None)
        wanted = " or ".join(format(each, form) for each in known)
        text = f"'{name}': {what} {value:{form}} instead of {wanted}"
        if number in history.modes or born == SETUP:
            yield _finding(history, Kind.LOST_ATTRIBUTE, floor, name, text)
        else:
            yield _of(history.promises.consistent, history, Kind.LOST_ATTRIBUTE, floor, name, text)


def _judge_parts(history: History, name: str, number: int, data: bytes) -> Iterator[Finding]:
    """Check the parts that O_SYNC or msync made durable one by one; the first wrong one of each such write."""
    told = set[int]()
    for (inode, at), step in history.parts.items():
        if inode != number or step in told:
            continue
        versions, start = history.versions(number, step), at * PART_BYTES
        end = min(start + PART_BYTES, *(version.size for version in versions))
        if len(data) < end:
            text = f"'{name}' has {len(data)} bytes instead of at least {end}"
            yield _finding(history, Kind.LOST_DATA, step, name, text)
            told.add(step)
            continue
        wrong = _wrong_sector(history.number, number, versions, data[: start + PART_BYTES], start)
        if wrong is not None:
            told.add(step)
            yield _finding(history, Kind.LOST_DATA, step, name, f"'{name}' has {wrong[1]}")


def _wrong(sequence: int, number: int, versions: list[Inode], data: bytes) -> tuple[bool, str] | None:
    """Return what is wrong in ``data``, and before it whether that is in a block that may be new; None if it is one of
    ``versions`` or a mix."""
    sizes = [version.size for version in versions]
    if not min(sizes) <= len(data) <= max(sizes):
        return False, f"{len(data)} bytes instead of {' to '.join(map(str, sorted(set(sizes))))}"
    return _wrong_sector(sequence, number, versions, data, 0)


def _wrong_sector(
    sequence: int, number: int, versions: list[Inode], data: bytes, start: int
) -> tuple[bool, str] | None:
    """Do the same as :func:`_wrong` for the sectors from byte ``start``, without checking the size. What is wrong in
    an old block comes first."""
    first: tuple[bool, str] | None = None
    parts = range(start // PART_BYTES, len(data) // PART_BYTES)
    whole = {
        each
        for each in parts
        if _is_one_of(_stamps(versions, each), data[each * PART_BYTES :][:PART_BYTES], 0, sequence, number)
    }
    for at in range(start, len(data), SECTOR_BYTES):
        number_of_part, within = divmod(at, PART_BYTES)
        if number_of_part in whole:
            continue
        sector = data[at : at + SECTOR_BYTES]
        allowed = _stamps(versions, number_of_part)
        if _is_one_of(allowed, sector, within, sequence, number):
            continue
        wanted = ", ".join(map(str, sorted({stamp.generation for stamp in allowed})))
        # A part that was a hole, or beyond the end, may have been allocated since, with the bytes that were there.
        # But the zeros of a part that is a hole in each version are contents.
        everywhere = all(number_of_part < len(version.parts) for version in versions)
        allocated = HOLE in allowed and not (allowed == {HOLE} and everywhere)
        wrong = allocated, f"{describe(sector)} at byte {at} instead of generation {wanted}"
        if not allocated:
            return wrong
        first = first or wrong
    return first


def _is_one_of(stamps: set[Stamp], sector: bytes, within: int, sequence: int, inode: int) -> bool:
    """Return whether the sector at byte ``within`` of a part is that of one of these stamps."""
    wholes = (
        part(Place(sequence=sequence, inode=inode, part=stamp.number), stamp.generation) for stamp in stamps
    )
    return any(whole[within : within + len(sector)] == sector for whole in wholes)


def _stamps(versions: list[Inode], number: int) -> set[Stamp]:
    """Return the stamps that a part may have; HOLE if it was missing in a version.

    A file system may write a part in place after it was shifted, and lose the shift: then it is where it was before.
    """
    moved = {version.moved for version in versions}
    places = ((version, number + version.moved - each) for version in versions for each in moved)
    return {version.parts[place] if 0 <= place < len(version.parts) else HOLE for version, place in places}


def _unreachable(history: History, known: set[int]) -> Iterator[Finding]:
    """Check that a durable file or directory that always had a name since then still has one. ``known``: those that
    were found, or whose loss is reported already."""
    for number, since in history.durable().items():
        if number not in known and history.stayed(number, since):
            name = next(name for name, inode in history.trees[since].names.items() if inode == number)
            text = f"what was '{name}' has neither its old nor its new name"
            yield _of(history.promises.rename, history, Kind.NEITHER, since, name, text)


def _judge_links(history: History, found: Mapping[str, Seen]) -> Iterator[Finding]:
    """Check that a file has as many links as names, and a directory one name. All are in the sequence's directory."""
    names = defaultdict[int, list[str]](list)
    for name, seen in found.items():
        if seen.inode and seen.error is None:
            names[seen.inode].append(name)
    for each in names.values():
        seen = found[each[0]]
        links = 1 if seen.kind == "directory" else seen.links
        if links != len(each):
            text = f"'{each[0]}' has {links} links, and {len(each)} names: {', '.join(each)}"
            yield _of(history.promises.consistent, history, Kind.DAMAGED, SETUP, each[0], text)


def _finding(history: History, kind: Kind, step: int, name: str, detail: str) -> Finding:
    return Finding(
        kind=kind, broken=True, detail=f"{detail}; {_why(history, step)}", name=name, step=step,
        sequence=history.number, source=history.promises.caution or _source(history, step, kind),
    )  # fmt: skip


def _of(promise: Promise, history: History, kind: Kind, step: int, name: str, detail: str) -> Finding:
    return Finding(
        kind=kind, broken=promise.given, detail=detail, name=name, step=step, sequence=history.number,
        source=promise.source,
    )  # fmt: skip


def _why(history: History, step: int) -> str:
    if step == SETUP:
        return "it was durable before the sequence started"
    return f"step {step}, {history.steps[step - 1]}, had returned"


def lost_operations(history: History, found: Mapping[str, Seen]) -> set[int]:
    """Return the operations that had returned and left no trace: a loss is allowed unless ``judge`` reports it."""
    lost, now = set(), history.trees[history.done]
    for at in range(1, history.done + 1):
        operation, before, after = history.steps[at - 1].operation, history.trees[at - 1], history.trees[at]
        if operation is None:
            continue
        names = {
            name
            for name in before.names.keys() | after.names
            if before.names.get(name) != after.names.get(name)
        }
        settled = [name for name in names if now.names.get(name) == after.names.get(name)]
        if any((name in found) != (after.names.get(name) is not None) for name in settled):
            lost.add(at)
        written = [
            number for number, inode in after.inodes.items() if before.inodes.get(number) not in {None, inode}
        ]
        if any(not _has(history, number, now, found) for number in written):
            lost.add(at)
    return lost


def _has(history: History, number: int, now: Tree, found: Mapping[str, Seen]) -> bool:
    """Return whether a file has its last contents; True if it is not found under its last name."""
    for name, inode in now.names.items():
        if inode == number and name in found:
            last, seen = now.inodes[number], found[name]
            wanted = None if last.attribute is None else attribute(history.number, number, last.attribute)
            same = seen.mode in {None, last.mode} and seen.owner in {None, last.owner}
            same = same and (last.time is None or seen.time in {None, last.time})
            return (
                same
                and seen.attribute == wanted
                and _wrong(history.number, number, [last], seen.data) is None
            )
    return True


def _source(history: History, step: int, kind: Kind) -> str:
    """Return the source of the promise that a finding of this ``kind`` breaks. ``step`` made the promise.

    POSIX promises data after fsync. Names and extended attributes are promised by the file system only.
    """
    if step == SETUP:
        return SYNC
    made, promises = history.steps[step - 1], history.promises
    if made.sync is Sync.SYNC:
        return SYNC
    if made.operation is not None and made.operation.durable is not None:
        return WRITE
    if kind is Kind.LOST_ATTRIBUTE:
        return promises.attributes.source if promises.attributes.given else POSIX
    if kind not in {Kind.LOST_NAME, Kind.RESURRECTED}:
        return POSIX
    if made.sync is Sync.DIRECTORY:
        return promises.directories.source
    if made.operation is None:
        return promises.names.source
    return (promises.removal if made.operation.gone is not None else promises.at_once).source
