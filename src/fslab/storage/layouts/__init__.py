"""The contract of a layout: how the devices of a medium become one block device. One file per layout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar, Generic, TypeVar

from fslab.cell import Frozen
from fslab.registry import Registry
from fslab.storage import BlockDevice, Site
from fslab.system.tools import Tool


class Options(Frozen):
    """Base of every layout's options (disks, chunk, …)."""


O = TypeVar("O", bound=Options)  # noqa: E741 - the usual letter for options here


class Layout(ABC, Generic[O]):
    """One way to join devices. ``name`` is set by the registry from the file's name."""

    name: str
    summary: ClassVar[str]
    tools: ClassVar[tuple[Tool, ...]] = ()
    Options: type[O]

    @abstractmethod
    def disks(self, options: O) -> int:
        """How many devices it needs of the medium."""

    @abstractmethod
    def commands(self, options: O, devices: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The command lines that join ``devices``. Pure."""

    @abstractmethod
    def assemble(
        self, options: O, devices: Sequence[BlockDevice], site: Site, undo: ExitStack
    ) -> BlockDevice:
        """Join the devices; taking them apart again goes on ``undo``."""

    def parse_options(self, raw: Mapping[str, Any]) -> O:
        """Validated options; pydantic's ValidationError lists all mistakes."""
        return self.Options.model_validate(dict(raw))


REGISTRY: Registry[Layout[Any]] = Registry("layout", __name__, Layout)
