"""What the file systems of other systems have in common: no owners, and options that make some up."""

from collections.abc import Mapping

from fslab.abilities import Ability

# mount(8), "Mount options for fat", and the same of exfat, ntfs3 and udf.
OWNER_OPTIONS: Mapping[str, str] = {"uid": "int", "gid": "int", "umask": "any"}
MASK_OPTIONS: Mapping[str, str] = {**OWNER_OPTIONS, "dmask": "any", "fmask": "any", "iocharset": "any"}

# FAT and exFAT have neither inodes nor holes.
FAT_LACKS: Mapping[Ability, str] = {
    Ability.HARD_LINKS: "a file is its one directory entry",
    Ability.SYMLINKS: "",
    Ability.PERMISSIONS: "all files belong to the owner given when mounting",
    Ability.XATTR: "",
    Ability.SPARSE: "every byte of a file has a cluster",
    Ability.REFLINK: "no two files share clusters",
    Ability.CASE: "names ignore case",
}
