"""What an analysis needs to know of a campaign, whoever keeps it."""

from datetime import datetime
from typing import Any, Protocol

from fslab.cell import Cell
from fslab.stopping import StoppingRule


class MeasuredCampaign(Protocol):
    """A stored campaign has these; ``machine`` are the facts of the machine it ran on."""

    @property
    def id(self) -> str: ...
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
