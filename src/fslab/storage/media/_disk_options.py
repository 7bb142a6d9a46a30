"""What a study says of a virtual disk."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator, model_validator

from fslab.storage import media
from fslab.storage.media import _faults, _profiles
from fslab.units import SomeSize, parse_size

SECTOR_BYTES = 4096


class Kept(StrEnum):
    """What becomes of written data until it is on the medium."""

    VOLATILE = "volatile"
    NONE = "none"
    PROTECTED = "protected"


class Collection(StrEnum):
    """Which block an SSD collects."""

    GREEDY = "greedy"
    COST_BENEFIT = "cost-benefit"


class Logged(StrEnum):
    """What of each request the log of a trial's run has."""

    NO = "no"
    REQUESTS = "requests"
    DATA = "data"


class VirtualOptions(media.MediumOptions):
    """Which disk it is, and how it behaves. Each disk of a layout has a seed of its own: ``seed``, ``seed`` + 1, …"""

    profile: str = Field(description=f"the modelled disk: {', '.join(_profiles.NAMES)} (at once, no model)")
    size: SomeSize = Field(
        "1t", description="size of the disk, such as 1t; what is never written takes no memory"
    )
    memory: SomeSize = Field("1g", description="memory for what is written; a write beyond it fails")
    cache: Kept | None = Field(None, description="the disk's write cache; default: the profile's")
    speed: float = Field(1.0, gt=0, le=1000, description="run the model that many times faster")
    seed: int = Field(
        1, ge=0, lt=1 << 62, description="where platters stand at first, and which requests faults meet"
    )
    steady: bool = Field(False, description="an SSD that was filled, and written over twice at random")
    collection: Collection = Field(Collection.GREEDY, description="how an SSD chooses the block to collect")
    slow: float = Field(1.0, ge=1, le=1000, description="the first disk takes that many times as long")
    faults: str = Field(
        "", description="from the run on, such as `stuck delay=2s probability=0.001; latent start=1m`"
    )

    log: Logged = Field(
        Logged.NO,
        description="keep a log of the run's requests, or also of the data that is written (for crash)",
    )

    @field_validator("profile")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in _profiles.NAMES:
            raise ValueError(f"no profile '{value}': known are {', '.join(_profiles.NAMES)}")
        return value

    @field_validator("size", "memory")
    @classmethod
    def _whole(cls, value: str) -> str:
        if parse_size(value) % SECTOR_BYTES:
            raise ValueError(f"'{value}' is not a multiple of 4k")
        return value

    @field_validator("faults")
    @classmethod
    def _armable(cls, value: str) -> str:
        _faults.parse(value)
        return value

    @model_validator(mode="after")
    def _together(self) -> VirtualOptions:
        if self.steady and self.kind != "ssd":
            raise ValueError(f"'steady' is a state of SSDs, and '{self.profile}' is none")
        return self

    @property
    def figures(self) -> Mapping[str, Any]:
        """Those of the profile; none without a model."""
        return _profiles.PROFILES.get(self.profile, {})

    @property
    def kind(self) -> str | None:
        """``hdd`` or ``ssd``; None without a model."""
        return self.figures.get("kind")
