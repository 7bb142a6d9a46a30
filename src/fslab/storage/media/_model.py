"""Limits that give an image the speed of a kind of disk. A guest's kernel applies them during the run.

They limit only requests and bytes: every request costs the same, so seeks, caches and flash wear are not modelled.
"""

from abc import abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field

from fslab import scaling
from fslab.errors import UnsupportedError
from fslab.storage import Growth, Workspace, images, media
from fslab.storage.media import _copies, _loop
from fslab.system.throttle import Limit
from fslab.units import Size, SomeSize, parse_size


class Model(StrEnum):
    """Kinds of disks."""

    NONE = "none"
    HDD_7200 = "hdd-7200"
    SSD_SATA = "ssd-sata"
    NVME = "nvme"


# Orders of magnitude from data sheets. Hard disk: 8.5 ms seek and 4.2 ms for half a revolution give about 80 requests
# per second. SATA transfers 530 MB/s, and its command queue about 90,000 requests per second. Four PCIe 3 lanes
# transfer 3.5 GB/s.
LIMITS: Mapping[Model, Limit | None] = {
    Model.NONE: None,
    Model.HDD_7200: Limit(iops=80, bytes_per_s=160_000_000),
    Model.SSD_SATA: Limit(iops=90_000, bytes_per_s=530_000_000),
    Model.NVME: Limit(iops=500_000, bytes_per_s=3_500_000_000),
}
NOT_MODELLED = (
    "a limit on requests and on bytes per second, reads and writes apart, from the run on; every request costs the "
    "same, sequential or not: seeks are not modelled"
)


class ImageOptions(media.MediumOptions):
    """Size and limits of an image. The limits (``model``, ``iops``, ``bandwidth``) work in a guest only."""

    size: Size = "1g"
    room: SomeSize | None = Field(
        None,
        description="make the image sparse, with space for this much written data, such as 4g; a trial that writes "
        "more fails. The first write to a region includes its allocation",
    )
    sector_size: Literal[512, 4096] | None = Field(
        None, description="logical block size of the device, on the host; default: the kernel's, which is 512"
    )
    model: Model = Field(
        Model.NONE,
        description="in a guest: limit the disk to the IOPS and bandwidth of this kind of disk; seeks are not modelled",
    )
    iops: int | None = Field(
        None, ge=1, description="in a guest: limit in requests per second, instead of the model's"
    )
    bandwidth: SomeSize | None = Field(
        None, description="in a guest: limit in bytes per second, such as 100m, instead of the model's"
    )


P = TypeVar("P", bound=ImageOptions)


def room_bytes(options: ImageOptions) -> int:
    """Return how much space an image needs in its directory or in memory."""
    size = parse_size(options.size)
    return size if options.room is None else min(size, parse_size(options.room))


def sparse_bytes(options: ImageOptions) -> int | None:
    """Return how far a sparse image may grow; None for an image that is fully written."""
    return room_bytes(options) if options.room else None


def growth(options: ImageOptions, image: Path) -> Growth | None:
    """Return the limit of a sparse image; None for an image that is fully written."""
    return Growth(image=image, room_bytes=room_bytes(options)) if options.room else None


_MIB = 1 << 20


def refuse_sectors(sector_size: int | None) -> None:
    """Raise UnsupportedError if a sector size is given: disks of guests have their own."""
    if sector_size is not None:
        raise UnsupportedError(
            "'sector_size' of a medium works on the host only",
            where="medium",
            hint="run it with --on host, or remove it",
        )


class ImageMedium(media.Medium[P]):
    """A medium whose devices are image files that fslab creates. They can be plugged into a guest."""

    image = True

    def scaled(self, options: P, factor: float, *, least_bytes: int) -> scaling.Changes:
        """Scale ``size`` and ``room`` to whole MiB, at least ``least_bytes``. A smaller value of the study stays: what
        the study says that a medium has is never exceeded."""
        least = -(-least_bytes // _MIB) * _MIB
        written = {"size": options.size, **({"room": options.room} if options.room else {})}
        return {
            key: scaling.size(text, factor, least_bytes=least, unit_bytes=_MIB)
            for key, text in written.items()
        }

    def copyable(self, options: P) -> bool:
        """Return whether it is sparse: of a sparse image, only what is written to it needs to be copied."""
        return bool(options.room)

    @abstractmethod
    def place(self, options: P, workspace: Workspace, slot: str, *, in_guest: bool) -> Path | None:
        """Return the directory of the slot's image, of the one plugged into a guest or of the host's. None if there is
        none yet. On the host and in a guest, a slot can have different images."""

    def copies(self, options: P, workspace: Workspace, slot: str, *, in_guest: bool) -> media.Copies | None:
        """Return the copies of the slot's image, as further images."""
        image = self._known(options, workspace, slot, in_guest=in_guest) if self.copyable(options) else None
        return None if image is None else _copies.ImageCopies(image=image, workspace=workspace)

    def renew(self, options: P, workspace: Workspace, slot: str, *, in_guest: bool) -> None:
        """Empty a sparse image, so that every trial begins without allocated regions and not only the first."""
        image = self._known(options, workspace, slot, in_guest=in_guest)
        if options.room and image is not None:
            images.empty(image, workspace)

    def _known(self, options: P, workspace: Workspace, slot: str, *, in_guest: bool) -> Path | None:
        return _loop.known_image(self.place(options, workspace, slot, in_guest=in_guest), workspace, slot)

    def limit(self, options: P) -> Limit | None:
        """Return the limit of the disk. The study's own values replace those of the model."""
        base = LIMITS[options.model] or Limit()
        own = parse_size(options.bandwidth) if options.bandwidth is not None else None
        found = Limit(iops=options.iops or base.iops, bytes_per_s=own or base.bytes_per_s)
        return found if found.files() else None

    def emulation(self, options: P) -> dict[str, Any]:
        """Return the limits, and what they do not model."""
        found = self.limit(options)
        if found is None:
            return {}
        limits = {"iops": found.iops, "bytes_per_s": found.bytes_per_s}
        return {"emulated_model": options.model.value, "limits": limits, "limits_are": NOT_MODELLED}

    def refuse_limits(self, options: P) -> None:
        """Raise UnsupportedError if there are limits: on the host, they would also affect other users."""
        if self.limit(options) is not None:
            raise UnsupportedError(
                "'model', 'iops' and 'bandwidth' of a medium work in a guest only",
                where="medium",
                hint="run it with --on uml or --on qemu, or remove them",
            )
