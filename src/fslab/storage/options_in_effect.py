"""Compares the mount options and features that a study asks for with those that are listed afterwards. Pure.

The kernel drops or changes options without an error: an option of a feature that it lacks, one that contradicts another
one, or a value beyond a limit.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence

from fslab.storage.filesystem_options import VFS_OPTIONS
from fslab.storage.filesystems import FileSystem
from fslab.units import parse_size

# mount(8): options that the kernel does not list because they are its default, and what it lists otherwise.
_DEFAULTS: Mapping[str, str] = {
    "async": "sync", "atime": "noatime", "dev": "nodev", "diratime": "nodiratime", "exec": "noexec",
    "nolazytime": "lazytime", "norelatime": "relatime", "strictatime": "relatime", "suid": "nosuid",
}  # fmt: skip
_DISCARD = "discard"
_UNSHOWN = frozenset({"defaults", "silent", "loud", "iversion", "noiversion", "nostrictatime"})


def ignored(
    driver: FileSystem, listed: Sequence[str], features: Collection[str], others: Collection[str]
) -> dict[str, str]:
    """Return the names of options that have no effect, though the kernel may list them, and the reason.

    ``features``: of the file system; empty: unknown. ``others``: what else it has (``FileSystem.overruled``).
    """
    has = {*listed, *map(_name, listed), *(f"feature {each}" for each in features), *others}
    found: dict[str, str] = {}
    for name, conditions in {_DISCARD: {"^discards"}, **driver.overruled}.items():
        for condition in sorted(conditions):
            needed = condition.removeprefix("^").split("|")
            unknown = not features and needed[0].startswith("feature ")
            if not unknown and has.isdisjoint(needed) is condition.startswith("^"):
                found[name] = f"{'without' if condition.startswith('^') else 'with'} {' or '.join(needed)}"
    return found


def changed(
    driver: FileSystem, asked: str, listed: Sequence[str], ignored: Collection[str] = ()
) -> dict[str, str | None]:
    """Return the options that are not in effect as asked: what the kernel lists instead, or None if it dropped them.

    ``listed``: its list for this mount, as far as it is known. ``ignored``: names of options that have no effect.
    """
    values = dict(_followed(listed, ignored))
    found: dict[str, str | None] = {}
    for option in _words(asked):
        if option in _UNSHOWN or not listed:
            continue
        is_there, instead = _look_up(driver, option, values)
        if not is_there or _name(option) in ignored:
            found[option] = instead
    return found


def signature(
    driver: FileSystem, asked: str, listed: Sequence[str], ignored: Collection[str] = ()
) -> tuple[str, ...] | None:
    """Return what two mounts of the same file system have in common exactly if their options have the same effect.

    It contains the kernel's list, and the options that the kernel does not show, without those that have no effect.
    None if that is not known. To list a default is to list nothing; ``nodiscard`` is one.
    """
    if driver.unlisted is None or not listed:
        return None
    unshown = {f"asked: {word}" for word in _words(asked) if _is_unshown(driver, word, ignored)}
    shown = {"=".join(filter(None, pair)) for pair in _followed(listed, ignored)}
    return tuple(sorted((shown | unshown) - driver.unlisted - {f"no{_DISCARD}"}))


def changed_features(driver: FileSystem, mkfs_options: str, listed: Collection[str]) -> dict[str, str | None]:
    """Return the features that mkfs was asked for and that the file system lacks, or has otherwise."""
    found: dict[str, str | None] = {}
    for flag, feature in _features(driver, mkfs_options) if listed else ():
        name, equals, value = feature.partition("=")
        if equals:
            shown = next((word for word in listed if word.startswith(f"{name}=")), None)
            if value in {"0", "1"} and shown not in {None, feature}:
                found[f"mkfs {flag} {feature}"] = shown
            continue
        plain = name.removeprefix("^")
        there = driver.feature_names.get(plain, plain)
        if there and there not in driver.kernel_features and (there in listed) is name.startswith("^"):
            found[f"mkfs {flag} {feature}"] = there if name.startswith("^") else None
    return found


def _features(driver: FileSystem, mkfs_options: str) -> Iterator[tuple[str, str]]:
    """Yield each flag for features, and each word of its value: the rest of the flag's word, or the next word."""
    words = iter(shlex.split(mkfs_options))
    for word in words:
        flag, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        if flag in driver.feature_flags:
            value = value if equals else next(words, "")
            yield from ((flag, each) for each in value.split(",") if each not in {"", "none"})


def _words(options: str) -> list[str]:
    return [word for option in options.split(",") if (word := option.strip())]


def _name(option: str) -> str:
    return option.partition("=")[0]


def _followed(listed: Sequence[str], ignored: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each option in effect of a list, with its value."""
    for name, _, value in (option.partition("=") for option in listed):
        if name not in ignored:
            yield name, value


def _is_unshown(driver: FileSystem, option: str, ignored: Collection[str]) -> bool:
    name = _name(option)
    shown = option == "defaults" or name in ignored
    return not shown and bool({option, name} & {*_UNSHOWN, *driver.unshown})


def _look_up(driver: FileSystem, option: str, values: Mapping[str, str]) -> tuple[bool, str | None]:
    """Return whether an option is in effect, and what the kernel lists instead."""
    written = driver.listed_as.get(option, option)
    name, equals, value = written.partition("=")
    if name in values:
        shown = f"{name}={values[name]}" if values[name] else name
        return _same(value, values[name], exactly=bool(equals)), shown
    opposite = _DEFAULTS.get(name) or (name.removeprefix("no") if name.startswith("no") else f"no{name}")
    if opposite in values:
        return False, opposite
    silent = {option, name} & {*_DEFAULTS, *(driver.unlisted or ()), *driver.unshown}
    unknown = driver.unlisted is None and name not in VFS_OPTIONS
    return bool(silent) or unknown, None


def _same(asked: str, shown: str, *, exactly: bool) -> bool:
    """Return whether two values are equal: as text, as sizes (64k), or as numbers (022); zstd also means zstd:3."""
    if asked == shown or (not asked and not exactly):
        return True
    if shown.partition(":")[0] == asked:
        return True
    try:
        return parse_size(asked.lstrip("0") or "0") == parse_size(shown.lstrip("0") or "0")
    except ValueError:
        return False
