"""Colours that are distinguishable with any colour vision, for light pages, dark pages and paper.

A file system has the same colour in every figure of a report, and in every report in which its slot is free
(``slots``). The module must not contain names of file systems.
"""

import hashlib
from collections.abc import Iterable, Mapping

# Hues after Okabe and Ito (2008), adjusted until each has a contrast of at least 3:1 with its page.
SERIES_LIGHT = ("#a63f88", "#0067a5", "#00795a", "#595959", "#c14a00", "#876a00", "#2b8bc4", "#7d1d4b")
SERIES_DARK = ("#e29bc4", "#61b5ec", "#35c79d", "#bdbdbd", "#f58a4b", "#dfba45", "#9bd5ff", "#e884ab")
LIGHT = {
    "paper": "#ffffff", "ink": "#1b1f24", "muted": "#5a6470", "line": "#d5dae0", "heat": "#86b9e6",
    "user": "#39434d", "system": "#7a8794", "irq": "#b3bdc7", "iowait": "#dde3e9", "steal": "#8a4b12",
}  # fmt: skip
DARK = {
    "paper": "#14171b", "ink": "#e6e9ed", "muted": "#a2abb6", "line": "#3a424c", "heat": "#1d5687",
    "user": "#dfe5eb", "system": "#9aa6b2", "irq": "#66727e", "iowait": "#3a444e", "steal": "#d59a58",
}  # fmt: skip
# Chosen so that the most common file systems have different hashed slots.
_SALT = "132"
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke", "arrow")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])


def variables(*, dark: bool) -> dict[str, str]:
    """Return CSS variable (name without dashes) → colour."""
    series = SERIES_DARK if dark else SERIES_LIGHT
    return {**(DARK if dark else LIGHT), **{f"s{slot}": colour for slot, colour in enumerate(series)}}


def colour(name: str) -> str:
    return f"var(--{name})"


def slots(filesystems: Iterable[str]) -> Mapping[str, int]:
    """Return file system → slot: the slot of its hash if that is free, otherwise the next free one.

    With more than eight file systems, some share a slot; their shapes distinguish them.
    """
    taken: dict[str, int] = {}
    for name in sorted(set(filesystems)):
        digest = hashlib.blake2b(f"{_SALT}{name}".encode(), digest_size=4).digest()
        wanted = digest[0] % len(SERIES_LIGHT)
        order = [(wanted + step) % len(SERIES_LIGHT) for step in range(len(SERIES_LIGHT))]
        taken[name] = next((slot for slot in order if slot not in taken.values()), wanted)
    return taken
