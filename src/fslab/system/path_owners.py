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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import Self

from fslab.errors import UnsafeError
from fslab.system import mountinfo, path_walk

_ACL, _DEFAULT_ACL = "system.posix_acl_access", "system.posix_acl_default"
# A version, then tag, permissions and id of each entry (include/uapi/linux/posix_acl_xattr.h).
_ACL_HEAD, _ACL_ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_USER, _GROUP_OF_FILE, _GROUP, _MASK, _OTHERS = 0x02, 0x04, 0x08, 0x10, 0x20
_WRITE = 0o2
# Accounts in root's group on Fedora, Alpine and others, as which no program runs.
_OF_ROOT = frozenset({"sync", "shutdown", "halt", "operator"})


class Groups(Enum):
    """Which group that a file belongs to may write to it. PRIVATE: root's, or the owner's own, without other members.
    WITHOUT_OTHERS: also another one that no other user is in, such as Debian's staff of /usr/local. ANY: each one."""

    PRIVATE = auto()
    WITHOUT_OTHERS = auto()
    ANY = auto()


def trusted() -> set[int]:
    """Return the users whose files count as safe: root, fslab's own user, the owner of ``/`` and, for root, who
    called sudo, run0, pkexec or doas."""
    return {0, os.geteuid(), os.stat("/").st_uid, *_callers()}  # noqa: PTH116


def stranger(
    place: Path, owners: set[int] | None = None, *, sticky: bool = False, groups: Groups = Groups.PRIVATE
) -> str | None:
    """Return, in words, who besides ``owners`` (default: ``trusted``) can change a file or what is in a directory.

    Returns None if only they can. ``sticky``: in a directory with the sticky bit, only its owner counts. ``groups``:
    which group of the file is trusted. OSError if ``place`` does not exist.
    """
    return _Judge.of(owners, groups).stranger_of(place.resolve(), sticky=sticky)


def stranger_on_the_way(
    place: Path,
    owners: set[int] | None = None,
    *,
    sticky: bool = True,
    heirs: bool = False,
    groups: Groups = Groups.PRIVATE,
) -> str | None:
    """Return who besides ``owners`` can exchange ``place``, what is in it, or what leads to it; None if nobody can.

    Links are followed one by one, as the kernel does: each directory that one of them lies in counts. What does not
    exist yet is judged by the directory that it would be made in. ``sticky``: applies to ``place``; it always applies
    to what is above. ``heirs``: whom a default ACL lets write to what is made there counts too. OSError if this cannot
    be determined.
    """
    return _Judge.of(owners, groups).stranger_on_the_way(place, sticky=sticky, heirs=heirs)


def stranger_in(
    files: Iterable[Path], owners: set[int] | None = None, *, groups: Groups = Groups.PRIVATE
) -> tuple[Path, str] | None:
    """Return the first of many files and directories that somebody besides ``owners`` can change or exchange, and who.

    As ``stranger_on_the_way`` for each, without the sticky bit; what leads to a directory is followed once. OSError if
    this cannot be determined.
    """
    judge, above = _Judge.of(owners, groups), dict[Path, Path]()
    for file in files:
        if file.parent not in above:
            if why := judge.stranger_on_the_way(file.parent, sticky=False):
                return file, why
            above[file.parent] = file.parent.resolve()
        place, why = above[file.parent] / file.name, None
        if place.is_symlink():
            why = judge.stranger_on_the_way(place, sticky=False)
        elif os.path.lexists(place):
            why = judge.stranger_of(place, sticky=False)
        if why:
            return file, why
    return None


def check_closed(directory: Path, named_by: str = "path", *, sticky: bool = True) -> None:
    """Raise UnsafeError if another user could make what root writes in ``directory`` reach other files.

    Root alone is refused: for other users, a link leads to nothing that they may not write. Once this has passed, only
    trusted users can change it. ``named_by``: the key, option or variable that names the directory. Without ``sticky``,
    others may not even add files to it.
    """
    if os.geteuid() != 0:
        return
    try:
        why = stranger_on_the_way(directory, sticky=sticky, heirs=True)
    except OSError as error:
        why = f"it is not known who can write to {error.filename or directory} ({error.strerror})"
    if why:
        raise UnsafeError(
            f"not used by root: {why}, who could put a link to another file there",
            where=str(directory),
            hint=f"run fslab as this user, with or without sudo; or chmod go-w, setfacl -b; or another '{named_by}'",
        )


def is_closed(directory: Path, *, sticky: bool = True) -> bool:
    """Return whether ``check_closed`` passes."""
    try:
        check_closed(directory, sticky=sticky)
    except UnsafeError:
        return False
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class _Judge:
    """Whom to trust: users ``safe`` and ``groups``. ``mounts``: the text of mountinfo. ``through``: the mounts whose
    layers and images are looked at: what is mounted over its own layer hides it."""

    safe: set[int]
    groups: Groups
    mounts: bytes
    through: frozenset[int] = frozenset()

    @classmethod
    def of(cls, owners: set[int] | None, groups: Groups) -> Self:
        safe = trusted() if owners is None else owners
        return cls(safe=safe, groups=groups, mounts=mountinfo.OWN.read_bytes())

    def stranger_of(self, place: Path, *, sticky: bool) -> str | None:
        """``place``: without links, because it is looked up in the layers of its mount."""
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
        try:
            return self.stranger(place, descriptor, sticky=sticky)
        finally:
            os.close(descriptor)

    def stranger_on_the_way(self, place: Path, *, sticky: bool, heirs: bool = False) -> str | None:
        why = None
        with contextlib.closing(path_walk.steps(place, existing=True)) as way:
            for step in way:
                if not step.is_link:
                    if above := self.stranger(step.path, step.descriptor, sticky=True):
                        return above
                    why = None if sticky else self.stranger(step.path, step.descriptor, sticky=False)
                    why = why or (self._heir(step) if heirs else None)
                elif step.about.st_uid not in self.safe:
                    return f"the link {step.path} belongs to user {step.about.st_uid}"
        return why

    def stranger(self, place: Path, descriptor: int, *, sticky: bool) -> str | None:
        about, safe = os.fstat(descriptor), self.safe
        if (owner := about.st_uid) not in safe:
            return f"{place} belongs to user {owner}"
        try:
            if why := self._stranger_below(place, descriptor, owner, sticky=sticky):
                return why
        except OSError as error:  # such as of a FUSE file system that answers what it likes
            raise PermissionError(error.errno, error.strerror, str(place)) from error
        if sticky and about.st_mode & stat.S_ISVTX:
            return None
        if about.st_mode & stat.S_IWOTH:
            return f"other users can write to {place}"
        for tag, number in _named_writers(descriptor, about):
            if allowed := self._allowed(tag, number, about):
                return f"other users can write to {place}: {allowed}"
        return None

    def _heir(self, step: path_walk.PathStep) -> str | None:
        """Return whom a default ACL lets write to what is made in a directory. The umask does not apply there."""
        for tag, number in _writers(_acl(step.descriptor, _DEFAULT_ACL)):
            # Without the set-group-ID bit, the group of what is made is our own.
            ours = tag == _GROUP_OF_FILE and not step.about.st_mode & stat.S_ISGID
            if not ours and (allowed := self._allowed(tag, number, step.about)):
                return f"other users can write to what is made in {step.path}: {allowed} by default"
        return None

    def _allowed(self, tag: int, number: int, about: os.stat_result) -> str | None:
        """Return whom an entry of an ACL allows to write, if they are not trusted."""
        if tag == _OTHERS:
            return "its ACL allows all"
        if tag == _USER and number not in self.safe:
            return f"its ACL allows user {number}"
        if tag == _GROUP and not _is_private(number, about, self.safe):
            return f"its ACL allows group {number}"
        if tag == _GROUP_OF_FILE and not _may_write(about.st_gid, self.groups, about, self.safe):
            others = ", ".join(sorted(user_name(user) for user in _members(about.st_gid) - self.safe))
            named = f", which has the members {others}" if others else ""
            return f"its group is {about.st_gid}{named}"
        return None

    def _stranger_below(self, place: Path, descriptor: int, owner: int, *, sticky: bool) -> str | None:
        """Return who can change what a mount shows although its owners and modes do not say so.

        The server of a FUSE file system decides what it contains; of virtiofs, that is the hypervisor. An idmapped
        mount can show files of another user as root's; those in a user namespace do not count, because container
        managers mount volumes so. A user who can write to the image of a loop device, also one below a volume or an
        array, can make any entry in its file system; of a deleted image, nothing is known. A directory of an overlayfs
        has the owner of its uppermost layer, and entries of all layers; layers that are not seen here are those of a
        container. OSError if it is not known.
        """
        view = mountinfo.view_of(descriptor, self.mounts)
        if view is None or view.mount.number in self.through:
            return None
        if (server := view.fuse_user) is not None and server not in self.safe:
            return f"{place} is on a FUSE file system of user {server}"
        if view.idmapped and owner == 0:
            return f"{place} is on an idmapped mount, with files of other users"
        below = replace(self, through=self.through | {view.mount.number})
        for image in view.images:
            why = below.stranger_on_the_way(image, sticky=True)
            if why := "who can is unknown" if mountinfo.is_gone(image) else why:
                return f"{place} is on an image that others can change: {why}"
        for layer in view.layers_of(place):
            if why := below.stranger_on_the_way(layer, sticky=sticky):
                return f"{place} is on an overlayfs with a layer that others can change: {why}"
        return None


def user_name(user: int) -> str:
    """Return the name of a user; the number of one without an account."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def _named_writers(descriptor: int, about: os.stat_result) -> Iterator[tuple[int, int]]:
    """Yield tag and id of each group or named user that can write, by the ACL if there is one, else by the mode."""
    if not about.st_mode & stat.S_IWGRP:  # with an ACL, these bits are its mask
        return
    entries = _acl(descriptor, _ACL)
    if not entries:
        yield _GROUP_OF_FILE, about.st_gid
    yield from _writers(entries)


def _writers(entries: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield tag and id of each entry of an ACL that allows others than the owner to write."""
    mask = next((permissions for tag, permissions, _ in entries if tag == _MASK), _WRITE)
    for tag, permissions, number in entries:
        masked = mask if tag in {_USER, _GROUP_OF_FILE, _GROUP} else _WRITE * (tag == _OTHERS)
        if permissions & masked & _WRITE:
            yield tag, number


def _acl(descriptor: int, name: str) -> list[tuple[int, int, int]]:
    try:
        value = os.getxattr(f"/proc/self/fd/{descriptor}", name)
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
    found = {
        each.pw_uid
        for each in pwd.getpwall()
        if each.pw_gid == group and not (group == 0 and each.pw_name in _OF_ROOT)
    }
    with contextlib.suppress(KeyError):  # the group has no name
        for name in grp.getgrgid(group).gr_mem:
            with contextlib.suppress(KeyError):  # a member without an account
                found.add(pwd.getpwnam(name).pw_uid)
    return found


def _is_private(group: int, about: os.stat_result, owners: set[int]) -> bool:
    """Return whether only trusted users are in a group: root's, or the owner's own, without other members."""
    return (group in {0, about.st_uid} or _is_of(about.st_uid, group)) and _members(group) <= owners


def _is_of(user: int, group: int) -> bool:
    """Return whether a group is the user's private one: their first one, of the same name (pam_umask(8), usergroups).
    Members of others are not all known: a directory service does not list them."""
    try:
        account = pwd.getpwuid(user)
        return account.pw_gid == group and grp.getgrgid(group).gr_name == account.pw_name
    except KeyError:
        return False


def _callers() -> set[int]:
    """Return who became root by sudo(8) or run0(1), pkexec(1) or doas(1), as these say."""
    if os.geteuid() != 0:
        return set()
    given = (os.environ.get(name, "") for name in ("SUDO_UID", "PKEXEC_UID"))
    found = {int(user) for user in given if user.isdecimal()}
    with contextlib.suppress(KeyError):
        found.add(pwd.getpwnam(os.environ["DOAS_USER"]).pw_uid)
    return found
