"""The numbers in a stack: options of its layout and medium, and numbers in its mkfs and mount options. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fslab.cell import Scalar, StackSpec
from fslab.units import parse_size

# Matches -J size=64, -b 4096, commit=5, logbsize=256k; does not match compress=zstd:3.
_OPTION = re.compile(r"(?<![\w-])(-\w(?: [a-z_]+)?|[A-Za-z][\w-]*)([= ])(\d+[kmgtKMGT]?)(?![\w.:])")


def number(value: Scalar) -> float | None:
    """Return the value of ``4``, ``0.5`` or ``64k``; None if it is not a number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(parse_size(value))
    except ValueError:
        return None


def numbers(spec: StackSpec) -> dict[str, Scalar]:
    """Return name in figures → value: ``chunk``, ``medium size``, ``mkfs -J size``, ``mount commit``."""
    found = _numeric(spec.layout_options) | _numeric(spec.tuning)
    found |= {f"medium {key}": value for key, value in _numeric(spec.medium.options).items()}
    for tool, text in (("mkfs", spec.mkfs_options), ("mount", spec.mount_options)):
        found |= {f"{tool} {match[1]}": match[3] for match in _OPTION.finditer(text)}
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Stacks that differ only in their numbers: stack id → numbers.

    ``parts``: what the stacks have in common, in words.
    """

    parts: tuple[str, ...]
    members: dict[str, Mapping[str, Scalar]] = field(default_factory=dict)

    @property
    def varying(self) -> tuple[str, ...]:
        """The one or two numbers that differ between the stacks; empty if there are more, or a stack lacks one."""
        each = list(self.members.values())
        keys = dict.fromkeys(key for numbers in each for key in numbers)
        differing = [key for key in keys if len({str(numbers.get(key)) for numbers in each}) > 1]
        shared = all(key in numbers for key in differing for numbers in each)
        return tuple(differing) if shared and len(differing) <= 2 else ()


def families(stacks: Mapping[str, StackSpec]) -> dict[tuple[str, ...], list[Family]]:
    """Return names of the varying numbers → families of two or more stacks. ``stacks``: id → stack."""
    found: dict[str, Family] = {}
    for key, spec in stacks.items():
        family = found.setdefault(_rest(spec).model_dump_json(), Family(parts=_parts(spec)))
        family.members[key] = numbers(spec)
    by_keys: dict[tuple[str, ...], list[Family]] = {}
    for family in found.values():
        if family.varying:
            by_keys.setdefault(family.varying, []).append(family)
    return by_keys


def labels(together: Sequence[Family]) -> list[str]:
    """Return a label per family: file system, layout, and the parts in which the families differ."""
    differ = [
        len({family.parts[place] for family in together}) > 1 for place in range(len(together[0].parts))
    ]
    return [
        " ".join(part for place, part in enumerate(family.parts) if part and (place < 2 or differ[place]))
        for family in together
    ]


def _numeric(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {key: value for key, value in options.items() if number(value) is not None}


def _words(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {key: value for key, value in options.items() if number(value) is None}


def _parts(spec: StackSpec) -> tuple[str, ...]:
    rest = _rest(spec)
    medium = ", ".join(map(str, rest.medium.options.values())) or rest.medium.type
    options = ", ".join(f"{key}={value}" for key, value in rest.layout_options.items())
    return (
        spec.filesystem or spec.name, "" if spec.layout == "single" else spec.layout, options,
        rest.mkfs_options, rest.mount_options, " ".join(f"{key}={value}" for key, value in rest.settings.items()),
        f"on {medium}", f"geometry {spec.geometry.value}",
        " ".join(["in", *filter(None, (spec.machine.type, spec.machine.kernel, spec.machine.memory))]),
    )  # fmt: skip


def _rest(spec: StackSpec) -> StackSpec:
    """Return the stack without its numbers and its names."""
    medium = spec.medium.model_copy(update={"name": "", "options": _words(spec.medium.options)})
    changes = {
        "name": "", "medium": medium, "layout_options": _words(spec.layout_options), "tuning": _words(spec.tuning),
        "mkfs_options": _OPTION.sub(r"\1\2…", spec.mkfs_options),
        "mount_options": _OPTION.sub(r"\1\2…", spec.mount_options),
    }  # fmt: skip
    return spec.model_copy(update=changes)
