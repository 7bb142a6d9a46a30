"""Stores campaigns and trials: the only SQL in fslab.

``store.store.Store`` is the entry point, ``store.campaign.Campaign`` a stored campaign; ``export`` writes trials. This
module must not import them: importing SQLAlchemy takes half a second, and only some commands need it.
"""

from enum import StrEnum


class Format(StrEnum):
    """A file format of exports."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
