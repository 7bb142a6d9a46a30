"""Tests of accepted mkfs options: the device remains the only operand, and no option takes it as its value.

The command lines are parsed as getopt_long(3) parses them. An attack is a sequence of words that a study can contain.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fslab.storage.filesystem_options import NAME
from fslab.storage.filesystems import REGISTRY

DEVICE = "/dev/the-device"
# The options that each driver itself adds to the accepted ones.
OWN: Mapping[str, Mapping[str, str]] = {
    **{name: {"-F": "", "-q": ""} for name in ("ext2", "ext3", "ext4")},
    "xfs": {"-f": "", "-q": "", "-K": ""},
    "btrfs": {"-f": "", "-q": "", "-K": ""},
    "f2fs": {"-f": "", "-q": "", "-t": "value"},
    "jfs": {"-q": ""},
    "nilfs2": {"-f": "", "-q": "", "-K": ""},
    "ntfs3": {"-F": "", "-Q": "", "-q": ""},
    "reiserfs": {"-q": "", "-f": ""},
    "reiser4": {"-y": "", "-f": "", "-d": ""},
    "vfat": {"-I": "", "--mbr": "value"},
    "exfat": {},
    "udf": {"--media-type": "value"},
    "bcachefs": {"--force": "", "--quiet": "", "--discard": ""},
    "zfs": {"-f": ""},
}
SUBCOMMAND = {"bcachefs": ("format",), "zfs": ("create",)}
# Options that are accepted, for a file system whose values are checked: few attacks would pass by chance.
ACCEPTED = {"zfs": ["-oashift=12", "-Oatime=-f", "-Osync=x y", "-Ocopies=--", "-ofeature@x=$(id)"]}
WORDS = [
    "",
    "-",
    "--",
    "-x",
    "x",
    "4096",
    "1",
    "a=b",
    "precious",
    "vda",
    "-E",
    "-L",
    "--label",
    "-f",
    "$(id)",
    "x y",
]


def operands(words: list[str], flags: Mapping[str, str]) -> list[str]:
    """Return the operands that getopt_long finds. ValueError for an unknown option, and for a missing or unexpected
    value."""
    left: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*left, *rest]
        if not word.startswith("-") or word == "-":
            left.append(word)
            continue
        name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
        if name not in flags:
            raise ValueError(f"no option {name}")
        if flags[name] and not equals and not value:
            if not rest:
                raise ValueError(f"{name} without a value")
            rest.pop(0)
        elif flags[name] == "" and value:
            raise ValueError(f"{word}: a value, or more flags")
    return left


def attacks(name: str) -> st.SearchStrategy[str]:
    """Generate options from the file system's flags, flags of other file systems, and values that look like flags."""
    flags = sorted(flag for flag, form in REGISTRY.get(name).mkfs_flags.items() if form != NAME)
    word = st.one_of(
        st.sampled_from(flags),
        st.sampled_from(WORDS),
        st.builds(lambda flag, value: f"{flag}{value}", st.sampled_from(flags), st.sampled_from(WORDS)),
        st.builds(lambda flag, value: f"{flag}={value}", st.sampled_from(flags), st.sampled_from(WORDS)),
        st.text(max_size=4),
    )
    if name in ACCEPTED:
        word = st.one_of(st.sampled_from(ACCEPTED[name]), word.map(str))  # each one half of the words
    return st.lists(word, max_size=6).map(shlex.join)


@pytest.mark.parametrize("name", sorted(OWN))
def test_the_device_is_the_only_operand(name: str) -> None:
    driver = REGISTRY.get(name)
    flags = {**driver.mkfs_flags, **OWN[name]}
    before = SUBCOMMAND.get(name, ())
    wanted = ["the-device", DEVICE] if name == "zfs" else [DEVICE]
    tried = 0

    @settings(max_examples=150)
    @given(attacks(name))
    def attack(options: str) -> None:
        nonlocal tried
        try:
            driver.check_mkfs_options(options)
        except ValueError:
            return
        tried += 1
        for discard in (False, True):
            argv = driver.mkfs_argv(options, DEVICE, discard=discard)
            assert tuple(argv[1 : 1 + len(before)]) == before
            assert operands(argv[1 + len(before) :], flags) == wanted

    attack()
    assert tried > 10, "too few were let through to say anything"


def test_every_file_system_is_attacked() -> None:
    assert set(OWN) == {name for name, driver in REGISTRY if driver.mounted}
