"""Parse the faults of a virtual disk in a study: ``stuck delay=2s probability=0.001; latent start=1m``. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from fslab.units import parse_duration, parse_size

EFFECTS = ("error", "latent", "bit-rot", "shorn", "stuck", "ignore-flush")
OPERATIONS = ("read", "write", "flush", "discard")


def parse(text: str) -> tuple[dict[str, Any], ...]:
    """Return the faults as arguments of the server's request ``arm``. ValueError for what the server would refuse."""
    return tuple(_fault(part.split()) for part in text.split(";") if part.strip())


def _fault(words: list[str]) -> dict[str, Any]:
    effect, *pairs = words
    if effect not in EFFECTS:
        raise ValueError(f"unknown fault '{effect}'; known: {', '.join(EFFECTS)}")
    fault: dict[str, Any] = {"effect": effect}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in _VALUES:
            raise ValueError(
                f"fault '{effect}': unknown '{pair}'; known: {', '.join(f'{name}=' for name in _VALUES)}"
            )
        name, read = _VALUES[key]
        try:
            fault[name] = read(value)
        except ValueError as error:
            raise ValueError(f"fault '{effect}': '{pair}': {error}") from error
    if (effect == "stuck") != ("delay_ns" in fault):
        raise ValueError(f"fault '{effect}' {'needs a' if effect == 'stuck' else 'has no'} 'delay'")
    if effect == "latent" and "probability" in fault:
        raise ValueError(
            "fault 'latent' has no 'probability': all of its sectors fail until they are written"
        )
    if fault.get("end", 1) <= fault.get("start", 0):
        raise ValueError(f"fault '{effect}': 'end' must be greater than 'start'")
    return fault


def _operation(value: str) -> str:
    if value not in OPERATIONS:
        raise ValueError(f"must be one of {', '.join(OPERATIONS)}")
    return value


def _share(value: str) -> float:
    share = float(value)
    if not 0 < share <= 1:
        raise ValueError("must be above 0 and at most 1")
    return share


def _times(value: str) -> int:
    times = int(value)
    if times < 1:
        raise ValueError("must be at least 1")
    return times


def _nanoseconds(value: str) -> int:
    return round(parse_duration(value) * 1e9)


_VALUES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "op": ("op", _operation),
    "start": ("start", parse_size),
    "end": ("end", parse_size),
    "probability": ("probability", _share),
    "times": ("times", _times),
    "delay": ("delay_ns", _nanoseconds),
}
