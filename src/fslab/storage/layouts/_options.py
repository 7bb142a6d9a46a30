"""Options that several layouts share, and the checks of their values."""

from pydantic import Field, field_validator

from fslab.storage import layouts
from fslab.units import Size, format_size, parse_size

LEAST_CHUNK_BYTES = 4 << 10  # a page: the minimum of dm-stripe and md
MOST_DISKS = 64


class Disks(layouts.LayoutOptions):
    """The number of disks, all of the same size."""

    disks: int = Field(2, ge=2, le=MOST_DISKS, description="number of disks")


class Chunked(Disks):
    """The number of disks, and the chunk: the bytes on one disk before the next."""

    chunk: Size = Field("64k", description="bytes on one disk before the next, a power of two of at least 4k")

    @field_validator("chunk")
    @classmethod
    def _chunk(cls, value: str) -> str:
        chunk_bytes = parse_size(value)
        if chunk_bytes < LEAST_CHUNK_BYTES or chunk_bytes & (chunk_bytes - 1):
            least = format_size(LEAST_CHUNK_BYTES)
            raise ValueError(f"chunk '{value}' is not a power of two of at least {least}")
        return value

    @property
    def chunk_bytes(self) -> int:
        return parse_size(self.chunk)
