"""Who can write where: whether another user could change a file, or exchange what lies in a directory. Only reads.

The one place that judges owners, modes and POSIX ACLs. Whoever owns a directory or one above it, or can write to one of
them, can put a link in the place of what is in it; in one with the sticky bit, such as /tmp, only the owner can.
"""

import contextlib
import errno
import grp
import os
import pwd
import stat
import struct
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path

from fslab.errors import UnsafeError

_ACL = "system.posix_acl_access"
# A version, then tag, permissions and id of each entry (include/uapi/linux/posix_acl_xattr.h).
_ACL_HEAD, _ACL_ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_USER, _GROUP_OF_FILE, _GROUP, _MASK = 0x02, 0x04, 0x08, 0x10
_WRITE = 0o2
_MOST_LINKS = 40  # as the kernel (path_resolution(7))


class Groups(Enum):
    """Which group that a file belongs to may write to it. PRIVATE: root's, or the owner's own, without other members.
    WITHOUT_OTHERS: also another one that no other user is in, such as Debian's staff of /usr/local. ANY: each one."""

    PRIVATE = auto()
    WITHOUT_OTHERS = auto()
    ANY = auto()


def trusted() -> set[int]:
    """Return the users whose files count as safe: root, fslab's own user, the owner of ``/`` and, for root, who
    called sudo."""
    return {0, os.geteuid(), os.stat("/").st_uid, *_caller()}  # noqa: PTH116


def stranger(
    place: Path, owners: set[int] | None = None, *, sticky: bool = False, groups: Groups = Groups.PRIVATE
) -> str | None:
    """Return, in words, who besides ``owners`` (default: ``trusted``) can change a file or what is in a directory.

    Returns None if only they can. ``sticky``: in a directory with the sticky bit, only its owner counts. ``groups``:
    which group of the file is trusted. OSError if ``place`` does not exist.
    """
    about, safe = place.stat(), trusted() if owners is None else owners
    if about.st_uid not in safe:
        return f"{place} belongs to user {about.st_uid}"
    if sticky and about.st_mode & stat.S_ISVTX:
        return None
    if about.st_mode & stat.S_IWOTH:
        return f"other users can write to {place}"
    for tag, number in _named_writers(place, about):
        if tag == _USER and number not in safe:
            return f"other users can write to {place}: its ACL allows user {number}"
        if tag == _GROUP and not _is_private(number, about, safe):
            return f"other users can write to {place}: its ACL allows group {number}"
        if tag == _GROUP_OF_FILE and not _may_write(about.st_gid, groups, about, safe):
            return f"other users can write to {place}: its group is {about.st_gid}"
    return None


def stranger_on_the_way(
    place: Path, owners: set[int] | None = None, *, sticky: bool = True, groups: Groups = Groups.PRIVATE
) -> str | None:
    """Return who besides ``owners`` can exchange ``place``, what is in it, or what leads to it; None if nobody can.

    Links are followed one by one, as the kernel does: each directory that one of them lies in counts. What does not
    exist yet is judged by the directory that it would be made in. ``sticky``: applies to ``place``; it always applies
    to what is above. OSError if this cannot be determined.
    """
    safe = trusted() if owners is None else owners
    passed: list[Path] = []
    for step in _way(place):
        if step.is_symlink():
            if (owner := step.lstat().st_uid) not in safe:
                return f"the link {step} belongs to user {owner}"
        else:
            passed.append(step)
    found = (stranger(each, safe, sticky=True, groups=groups) for each in passed[:-1])
    why = next((each for each in found if each), None)
    return why or stranger(passed[-1], safe, sticky=sticky, groups=groups)


def _way(place: Path) -> Iterator[Path]:
    """Yield each directory and each link that leads to ``place``, and ``place`` itself, as far as they exist."""
    here, rest, links = Path("/"), list(reversed((Path.cwd() / place).parts[1:])), 0
    yield here
    while rest:
        part = rest.pop()
        step = here.parent if part == ".." else here / part
        if not os.path.lexists(step):
            return
        yield step
        if not step.is_symlink():
            here = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(place))
        target = step.readlink()
        here = Path("/") if target.is_absolute() else here
        rest += reversed(target.parts[1:] if target.is_absolute() else target.parts)


def check_closed(directory: Path, named_by: str = "path", *, sticky: bool = True) -> None:
    """Raise UnsafeError if another user could make what root writes in ``directory`` reach other files.

    Root alone is refused: for other users, a link leads to nothing that they may not write. Once this has passed, only
    trusted users can change it. ``named_by``: the key, option or variable that names the directory. Without ``sticky``,
    others may not even add files to it.
    """
    if os.geteuid() != 0:
        return
    try:
        why = stranger_on_the_way(directory, sticky=sticky)
    except OSError as error:
        why = f"it is not known who can write to {error.filename} ({error.strerror})"
    if why:
        raise UnsafeError(
            f"not used by root: {why}, who could put a link to another file there",
            where=str(directory),
            hint=f"run fslab as this user, with or without sudo; or chmod go-w, setfacl -b; or another '{named_by}'",
        )


def is_closed(directory: Path) -> bool:
    """Return whether ``check_closed`` passes."""
    try:
        check_closed(directory)
    except UnsafeError:
        return False
    return True


def _named_writers(place: Path, about: os.stat_result) -> Iterator[tuple[int, int]]:
    """Yield tag and id of each group or named user that can write, by the ACL if there is one, else by the mode."""
    if not about.st_mode & stat.S_IWGRP:  # with an ACL, these bits are its mask
        return
    entries = _acl(place)
    if not entries:
        yield _GROUP_OF_FILE, about.st_gid
    mask = next((permissions for tag, permissions, _ in entries if tag == _MASK), _WRITE)
    for tag, permissions, number in entries:
        if tag in {_USER, _GROUP_OF_FILE, _GROUP} and permissions & mask & _WRITE:
            yield tag, number


def _acl(place: Path) -> list[tuple[int, int, int]]:
    try:
        value = os.getxattr(place, _ACL)
    except OSError as error:
        if error.errno in {errno.ENODATA, errno.EOPNOTSUPP}:
            return []
        raise
    return list(_ACL_ENTRY.iter_unpack(value[_ACL_HEAD.size :]))


def _may_write(group: int, groups: Groups, about: os.stat_result, owners: set[int]) -> bool:
    if groups is Groups.ANY or _is_private(group, about, owners):
        return True
    return groups is Groups.WITHOUT_OTHERS and _members(group) <= owners


def _members(group: int) -> set[int]:
    """Return the users of a group: those that it names, and those whose own group it is."""
    found = {each.pw_uid for each in pwd.getpwall() if each.pw_gid == group}
    with contextlib.suppress(KeyError):  # the group has no name
        for name in grp.getgrgid(group).gr_mem:
            with contextlib.suppress(KeyError):  # a member without an account
                found.add(pwd.getpwnam(name).pw_uid)
    return found


def _is_private(group: int, about: os.stat_result, owners: set[int]) -> bool:
    """Return whether only trusted users are in a group: root's, or the owner's own, without other members."""
    return group in {0, about.st_uid} and _members(group) <= owners


def _caller() -> list[int]:
    given = os.environ.get("SUDO_UID", "")
    return [int(given)] if os.geteuid() == 0 and given.isdigit() else []
