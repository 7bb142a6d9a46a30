"""What no file system may get as options of mkfs and mount, and the forms of flags and values. Pure.

Which options a file system has, its file declares.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping

from fslab.errors import nearest

# mount(8), "FILESYSTEM-INDEPENDENT MOUNT OPTIONS", without options that would hide the mount from fslab or that are
# meaningless for a file system of one trial (user, auto, remount, bind, …).
VFS_OPTIONS: Mapping[str, str] = {
    "defaults": "", "async": "", "sync": "", "dirsync": "", "atime": "", "noatime": "", "diratime": "",
    "nodiratime": "", "relatime": "", "norelatime": "", "strictatime": "", "nostrictatime": "", "lazytime": "",
    "nolazytime": "", "rw": "", "suid": "", "nosuid": "", "dev": "", "nodev": "", "exec": "", "noexec": "",
    "silent": "", "loud": "", "iversion": "", "noiversion": "", "symfollow": "", "nosymfollow": "",
}  # fmt: skip

# Options that never reach a file system: those of fstab(5) in mount(8) and systemd.mount(5), of loop devices, of bind
# mounts, of nfs(5), mount.cifs(8), mount.fuse(8) and ntfs-3g(8); and those that name a second device, whose contents
# fslab would not check.
_NOT_OF_A_FILE_SYSTEM: Mapping[str, str] = {
    r"auto|noauto|nofail|nobootwait|_netdev|user|nouser|users|owner|group|sw|comment|[xX]-.*":
        "an option of /etc/fstab for when, and by whom, it is mounted; leave it out",
    r"ro": "a workload writes; leave it out",
    r"loop|offset|sizelimit": "use a medium of type 'loop'",
    r"bind|rbind|move|remount|private|shared|slave|unbindable":
        "fslab mounts a new file system, and only once; leave it out",
    r"logdev|jdev|journal_dev|journal_path": "a journal on another disk is layout 'external-journal'",
    r"device|rtdev": "disks that are used together are a layout (fslab list layouts)",
    r"mand|nomand": "Linux 5.15 removed mandatory locks; leave it out",
    r"(?:fs|def|root)?context|seclabel": "a label of SELinux, which fslab does not set; leave it out",
    r"[rw]size|hard|soft|softerr|intr|nointr|timeo|retrans|(?:nfs)?vers|minorversion|proto|tcp|udp|rdma|bg|fg|sec"
    r"|lock|nolock|local_lock|nconnect|fsc|nofsc|lookupcache|ac(?:reg|dir)(?:min|max)|actimeo|noac|(?:no)?rdirplus"
    r"|cred(?:ential)?s|username|pass(?:word)?|domain|cifs|seal|mfsymlinks|nobrl|(?:no)?serverino|(?:file|dir)_mode":
        "an option of network file systems (NFS, SMB); leave it out",
    r"allow_(?:other|root)|default_permissions|big_writes|blksize|max_read|permissions|usermapping|streams_interface"
    r"|locale|efs_raw|(?:no)?recover|remove_hiberfile|ignore_case|inherit":
        "an option of file systems in user space (FUSE, such as ntfs-3g); leave it out",
    r"(?:usr|grp|prj)jquota|jqfmt": "it names quota files, and a new file system has none; leave it out",
}  # fmt: skip

ENDS_THE_MACHINE = re.compile(r"(?:^|[_-])(?:panic|reboot|oops|halt|poweroff)(?:$|[_-])")
WHOLE = re.compile(r"[0-9]{1,20}")
SIZE = re.compile(r"[0-9]{1,20}[kmgKMG]?")
# The allowed characters of a value in the form "any". Names of character sets make the kernel load a module.
FREE = re.compile(r"[A-Za-z0-9_.:+*-]{1,255}")
_FORMS = {
    "int": (WHOLE, "a whole number"),
    "size": (SIZE, "a size such as 256k"),
    "any": (FREE, "A-Z, a-z, 0-9 and '_.:+*-', at most 255"),
}
# A value can directly follow its flag: -llogdev=…
ELSEWHERE = re.compile(r"(?:^|^-\w|,)\s*(?:device|logdev|rtdev|name|file)\s*=")
NAME = "name"  # the form of a flag that gives a file system its UUID or label
_UUID = re.compile(r"(?:^|^-\w|,)\s*uuid\s*=")  # as a word of a value: mkfs.xfs(8)


def mkfs_mistakes(
    filesystem: str, options: str, flags: Mapping[str, str], mounted: Collection[str]
) -> list[str]:
    """Return what is wrong with mkfs options: mistakes of ``flags`` (``FileSystem.mkfs_flags``), and what fslab does
    not allow. ``mounted``: names of mount options."""
    try:
        words = shlex.split(options)
    except ValueError as error:
        return [f"mkfs options '{options}': {error}"]
    refused = [*ends_the_machine(filesystem, " ".join(words)), *_other_devices(filesystem, words)]
    refused += [_names_it(word, filesystem) for word in words if _UUID.search(word)]
    return refused or list(_flag_mistakes(filesystem, words, flags, mounted))


def why_never(name: str) -> str | None:
    """Return why a mount option never reaches a file system, and what to do; None if it may."""
    return next((why for key, why in _NOT_OF_A_FILE_SYSTEM.items() if re.fullmatch(key, name)), None)


def not_shown(options: str) -> str | None:
    """Return the first mount option that the kernel never shows for one file system on one device, or None.

    mount(8) would use another device or loop device, or another place, with it.
    """
    names = (option.strip().partition("=")[0] for option in options.split(","))
    return next((name for name in names if why_never(name)), None)


def ends_the_machine(filesystem: str, options: str) -> Iterator[str]:
    """Yield the options with which an error of the file system stops the whole machine.

    This holds for all file systems, whatever they declare, and also in guests. There only the trial would be lost, but
    ``--on`` can run the same study on the host.
    """
    for word in re.split(r"[^\w-]+", options.lower()):
        attached = word[2:] if word.startswith("-") else word  # -epanic
        if ENDS_THE_MACHINE.search(word) or ENDS_THE_MACHINE.search(attached):
            yield f"'{word}' of {filesystem} can stop the whole machine: fslab does not allow it on any file system"


def _other_devices(filesystem: str, words: list[str]) -> Iterator[str]:
    """Yield external logs and second devices: mkfs would overwrite them without fslab's checks."""
    for word in words:
        if ELSEWHERE.search(word) or "/" in word:
            yield f"mkfs option '{word}' of {filesystem} names another file or device: fslab does not allow it"


def _flag_mistakes(
    filesystem: str, words: list[str], known: Mapping[str, str], mounted: Collection[str]
) -> Iterator[str]:
    """Yield the mistakes of all flags. The words that follow an unknown flag may be its value, and are left out."""
    index = 0
    while index < len(words):
        try:
            index += _check_flag(filesystem, words[index], words[index + 1 :], known, mounted)
        except ValueError as error:
            yield str(error)
            index += 1
            while index < len(words) and not words[index].startswith("-"):
                index += 1


def _check_flag(
    filesystem: str, flag: str, rest: list[str], known: Mapping[str, str], mounted: Collection[str]
) -> int:
    """Check one flag and return how many words it takes."""
    name = flag if flag.startswith("--") else flag[:2]
    name, _, attached = name.partition("=") if flag.startswith("--") else (name, "", flag[2:])
    if name not in known:
        written = flag[2:] or " ".join(rest[:1]) if name == "-o" else flag.lstrip("-")
        of_mount = re.split("[,=]", written)[0] in mounted
        instead = f"write 'mount_options: {written}'" if of_mount else nearest(name, known)
        raise ValueError(f"fslab does not know or allow the mkfs option '{flag}' of {filesystem}: {instead}")
    if known[name] == NAME:
        raise ValueError(_names_it(name, filesystem))
    if known[name] == "":
        if attached:
            raise ValueError(f"mkfs option '{name}' of {filesystem} takes no value, but has '{attached}'")
        return 1
    if attached or "=" in flag:
        return 1
    if not rest:
        raise ValueError(f"mkfs option '{name}' of {filesystem} needs a value")
    return 2


def _names_it(word: str, filesystem: str) -> str:
    return (
        f"mkfs option '{word}' of {filesystem} gives it a UUID or a label, and a mount by that could find it instead "
        "of another file system: leave it out"
    )


def value_mistakes(name: str, value: str | None, form: str) -> Iterator[str]:
    """Yield what is wrong with the value of a mount option. ``form``: as in ``FileSystem.mount_options``."""
    optional = form.endswith("?")
    form = form.removesuffix("?")
    if value is None or value == "":
        if form and not optional:
            yield f"mount option '{name}' needs a value ({form})"
    elif not form:
        yield f"mount option '{name}' takes no value, but has '{value}'"
    elif form in _FORMS:
        pattern, takes = _FORMS[form]
        if not pattern.fullmatch(value):
            yield f"mount option '{name}' takes {takes}, not '{value}'"
    else:
        words = form.split("|")
        if not (value.partition(":")[0] in words and FREE.fullmatch(value)):
            yield f"mount option '{name}' cannot be '{value}': {nearest(value, words)}"
