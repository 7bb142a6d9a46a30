"""The common parts of file systems of other operating systems: no owners, and mount options that set one."""

from collections.abc import Mapping

from fslab.filesystem_abilities import Ability

# mount(8), "Mount options for fat"; exfat, ntfs3 and udf have the same options.
OWNER_OPTIONS: Mapping[str, str] = {"uid": "int", "gid": "int", "umask": "any"}
MASK_OPTIONS: Mapping[str, str] = {**OWNER_OPTIONS, "dmask": "any", "fmask": "any", "iocharset": "any"}

# FAT and exFAT have neither inodes nor holes.
FAT_LACKS: Mapping[Ability, str] = {
    Ability.HARD_LINKS: "a file has exactly one directory entry",
    Ability.SYMLINKS: "",
    Ability.PERMISSIONS: "all files have the owner given by the mount options",
    Ability.SOCKETS: "directory entries have no type for them",
    Ability.XATTR: "",
    Ability.SPARSE: "all bytes of a file are allocated",
    Ability.REFLINK: "no two files share clusters",
    Ability.CASE: "names ignore case",
    Ability.COLON: "",
    Ability.OVERLAY: "names ignore case",
}
