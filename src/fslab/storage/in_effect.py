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


def followed(
    driver: FileSystem, listed: Sequence[str], attributes: str, *, discards: bool
) -> tuple[str, ...]:
    """Return the options that the kernel lists, without those that it does not follow because of another option, of an
    attribute (a letter of chattr) of the work directory, or of a device without ``discards``."""
    stronger = {*listed, *(f"+{letter}" for letter in attributes)}
    return tuple(
        option
        for option in listed
        if stronger.isdisjoint(driver.overruled.get(option.partition("=")[0], ()))
        and (discards or option.partition("=")[0] != _DISCARD)
    )


def changed(
    driver: FileSystem, asked: str, listed: Sequence[str], *, discards: bool
) -> dict[str, str | None]:
    """Return the options that are not in effect as asked: what the kernel lists instead, or None if it dropped them.

    ``listed``: its list for this mount, as far as it is known, or what of it is ``followed``.
    """
    values = {name: value for name, _, value in (option.partition("=") for option in listed)}
    found: dict[str, str | None] = {}
    for option in _words(asked):
        if option in _UNSHOWN or not listed:
            continue
        is_there, instead = _look_up(driver, option, values)
        is_there = is_there and (discards or option.partition("=")[0] != _DISCARD)
        if not is_there:
            found[option] = instead
    return found


def signature(driver: FileSystem, asked: str, listed: Sequence[str]) -> tuple[str, ...] | None:
    """Return what two mounts of the same file system have in common exactly if their options have the same effect.

    It contains the kernel's list, and the options that the kernel does not show. None if that is not known. To list no
    ``discard`` is to list ``nodiscard``.
    """
    if driver.unlisted is None or not listed:
        return None
    unshown = (f"asked: {word}" for word in _words(asked) if _is_unshown(driver, word))
    return tuple(sorted({*listed, *unshown} - {f"no{_DISCARD}"}))


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


def _is_unshown(driver: FileSystem, option: str) -> bool:
    name = option.partition("=")[0]
    return option != "defaults" and bool({option, name} & {*_UNSHOWN, *driver.unshown})


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
