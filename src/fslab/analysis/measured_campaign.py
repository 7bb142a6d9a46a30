"""The attributes of a campaign that an analysis needs, independent of how the campaign is stored."""

from datetime import datetime
from typing import Any, Protocol

from fslab.cell import Cell
from fslab.stopping_settings import StoppingRule


class MeasuredCampaign(Protocol):
    """The interface of a stored campaign. ``machine``: facts of the machine on which it ran."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def study_id(self) -> str: ...
    @property
    def cells(self) -> tuple[Cell, ...]: ...
    @property
    def machine(self) -> dict[str, Any]: ...
    @property
    def created(self) -> datetime: ...
    @property
    def stopping(self) -> StoppingRule: ...
