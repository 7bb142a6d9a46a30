"""The options of a virtual disk in a study file: the modelled disk, with its figures and their sources, as ``fslab-disk
list`` prints them, and its faults, such as ``stuck delay=2s probability=0.001; latent start=1m``. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.resources import files
from math import inf
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from fslab.storage import Stripe, media
from fslab.units import SomeSize, parse_duration, parse_size

SECTOR_BYTES = 4096
SSD_MOST_BYTES = 15 << 40  # the model numbers its flash pages with 32 bits: 16 TiB, less rounding


NONE = "none"
FAULT_EFFECTS = ("error", "latent", "bit-rot", "shorn", "stuck", "ignore-flush")
FAULT_OPERATIONS = ("read", "write", "flush", "discard")


def _read() -> dict[str, dict[str, Any]]:
    kinds = json.loads(files(__package__).joinpath("profiles.json").read_text("utf-8"))
    return {profile["name"]: {"kind": kind, **profile} for kind, all_ in kinds.items() for profile in all_}


PROFILES: Mapping[str, dict[str, Any]] = _read()
NAMES = (NONE, *PROFILES)


class WriteCache(StrEnum):
    """The write cache: volatile, none, or protected against power cuts."""

    VOLATILE = "volatile"
    NONE = "none"
    PROTECTED = "protected"


class Logged(StrEnum):
    """The contents of the log of a trial's run."""

    NO = "no"
    REQUESTS = "requests"
    DATA = "data"


class VirtualOptions(media.MediumOptions):
    """The modelled disk and its behaviour. Each disk of a layout has its own seed: ``seed``, ``seed`` + 1, …"""

    profile: str = Field(
        description=f"the modelled disk: {', '.join(NAMES)}; none: no model, requests take no extra time"
    )
    size: SomeSize = Field(
        "1t", description="size of the disk, a multiple of 4k; only written blocks take memory"
    )
    memory: SomeSize = Field(
        "1g", description="memory for written blocks, a multiple of 4k; when it is full, writes fail"
    )
    cache: WriteCache | None = Field(
        None,
        description="write cache; protected: survives power cuts; default: the profile's; without a profile volatile "
        "if the log has the data, else none",
    )
    cache_size: SomeSize | None = Field(
        None,
        description="size of a hard disk's write cache; default: the profile's. A scaled study scales it, down to 2m",
    )
    speed: float = Field(
        1.0, gt=0, le=1000, description="factor by which the model runs faster than real time"
    )
    uml_speed: float | None = Field(
        None,
        gt=0,
        le=1000,
        description="the same in User-Mode Linux, whose system calls take several times as long; default: speed",
    )
    sector_size: Literal[512, 4096] | None = Field(
        None, description="logical block size of the device, on the host; default: the kernel's, which is 512"
    )
    array_disks: int = Field(
        1,
        ge=1,
        le=64,
        description="stripe so many of these disks into one, by the mapping of md RAID 0 and LVM, but without them; "
        "size is that of each, memory that of all",
    )
    array_chunk: SomeSize = Field("64k", description="size of a chunk of that stripe, a multiple of 4k")
    seed: int = Field(
        1,
        ge=0,
        lt=1 << 62,
        description="random seed: start position of the platters, requests that faults hit",
    )
    steady: bool = Field(
        False,
        description="start with an SSD that was filled, then overwritten twice at random; mkfs does not discard on it",
    )
    slow: float = Field(
        1.0, ge=1, le=1000, description="factor by which requests to the first disk take longer"
    )
    faults: str = Field(
        "",
        description="faults during the measured run, such as `stuck delay=2s probability=0.001; latent start=1m`; "
        "their effects: docs/disk.md",
    )

    log: Logged = Field(
        Logged.NO,
        description="log the requests of the run, or also the written data (needed by crash)",
    )

    @field_validator("profile")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in NAMES:
            raise ValueError(f"unknown profile '{value}'; known: {', '.join(NAMES)}")
        return value

    @field_validator("size", "memory", "cache_size", "array_chunk")
    @classmethod
    def _whole(cls, value: str | None) -> str | None:
        if value is not None and parse_size(value) % SECTOR_BYTES:
            raise ValueError(f"'{value}' is not a multiple of 4k")
        return value

    @field_validator("faults")
    @classmethod
    def _armable(cls, value: str) -> str:
        parse_faults(value)
        return value

    @model_validator(mode="after")
    def _together(self) -> VirtualOptions:
        if self.steady and self.kind != "ssd":
            raise ValueError(f"'steady' needs the profile of an SSD; '{self.profile}' is not one")
        if self.kind == "ssd" and parse_size(self.size) * (1 + self.figures["spare"]) > SSD_MOST_BYTES:
            raise ValueError(f"'size' {self.size}: an SSD with its spare flash has at most 15t")
        if self.cache_size is not None and (self.kind != "hdd" or self.cache is WriteCache.NONE):
            raise ValueError("'cache_size' needs a hard disk with a write cache")
        if "array_chunk" in self.model_fields_set and self.array_disks == 1:
            raise ValueError("'array_chunk' needs 'array_disks'")
        if self.array_disks > 1 and self.slow != 1:
            raise ValueError(
                "'slow' is for the first disk of a layout; those of 'array_disks' are equally fast"
            )
        if self.size_bytes == 0:
            raise ValueError(f"'size' {self.size} is smaller than 'array_chunk' {self.array_chunk}")
        return self

    def striped(self, stripe: Stripe) -> VirtualOptions | None:
        """Return the options of such a stripe of the server; None with what concerns single disks."""
        if self.array_disks > 1 or self.slow != 1 or self.faults or self.log is not Logged.NO:
            return None
        memory = str(stripe.data_disks * parse_size(self.memory))
        array = {"array_disks": stripe.data_disks, "array_chunk": str(stripe.chunk_bytes), "memory": memory}
        return self.model_copy(update=array)

    @property
    def figures(self) -> Mapping[str, Any]:
        """The figures of the profile; empty without a model."""
        return PROFILES.get(self.profile, {})

    @property
    def size_bytes(self) -> int:
        """The size of the disk that the file system has: of each striped one, whole chunks are used."""
        each = parse_size(self.size)
        return (
            each if self.array_disks == 1 else self.array_disks * (each - each % parse_size(self.array_chunk))
        )

    @property
    def write_cache(self) -> str:
        """The kind of its write cache. Without a profile, a disk whose data is logged for power cuts has a volatile
        one: only such a disk shows whether flushes are sent where they are needed."""
        unmodelled = WriteCache.VOLATILE if self.log is Logged.DATA else WriteCache.NONE
        return str(self.cache or self.figures.get("cache", unmodelled))

    @property
    def kind(self) -> str | None:
        """``hdd`` or ``ssd``; None without a model."""
        return self.figures.get("kind")


def parse_faults(text: str) -> tuple[dict[str, Any], ...]:
    """Return the faults as arguments of the server's request ``arm``. ValueError for what the server would refuse."""
    return tuple(_fault(part.split()) for part in text.split(";") if part.strip())


def _fault(words: list[str]) -> dict[str, Any]:
    effect, *pairs = words
    if effect not in FAULT_EFFECTS:
        raise ValueError(f"unknown fault '{effect}'; known: {', '.join(FAULT_EFFECTS)}")
    fault: dict[str, Any] = {"effect": effect}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in _FAULT_VALUES:
            raise ValueError(
                f"fault '{effect}': unknown '{pair}'; known: {', '.join(f'{name}=' for name in _FAULT_VALUES)}"
            )
        name, read = _FAULT_VALUES[key]
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
    if fault.get("end", inf) <= fault.get("start", 0):
        raise ValueError(f"fault '{effect}': 'end' must be greater than 'start'")
    return fault


def _operation(value: str) -> str:
    if value not in FAULT_OPERATIONS:
        raise ValueError(f"must be one of {', '.join(FAULT_OPERATIONS)}")
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


_FAULT_VALUES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "op": ("op", _operation),
    "start": ("start", parse_size),
    "end": ("end", parse_size),
    "probability": ("probability", _share),
    "times": ("times", _times),
    "delay": ("delay_ns", _nanoseconds),
}
