"""The formats of exports, for the command line, which must not import what writes them."""

from enum import StrEnum


class Format(StrEnum):
    """A file format of exports."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
