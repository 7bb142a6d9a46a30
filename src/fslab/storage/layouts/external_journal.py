"""A journal on a disk of its own. mke2fs(8), "-O journal_dev"; mkfs.xfs(8), "-l logdev"."""

import shlex
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field, field_validator

from fslab.storage import layouts
from fslab.storage.layouts import LayoutOptions, LayoutPlan
from fslab.units import Size, format_size, parse_size

LEAST_BYTES, LARGEST_BYTES = 64 << 20, 2000 << 20  # of a log of XFS: mkfs.xfs(8), and XFS_MAX_LOG_BYTES


class ExternalJournalOptions(LayoutOptions):
    """The size of the journal, the same for all file systems."""

    without: ClassVar[Mapping[str, str]] = {"disks": "one disk is for the files, one for the journal"}

    journal_size: Size = Field("128m", description="size of the journal, from 64m to 2000m")

    @field_validator("journal_size")
    @classmethod
    def _size(cls, value: str) -> str:
        if not LEAST_BYTES <= parse_size(value) <= LARGEST_BYTES:
            raise ValueError(
                f"journal_size '{value}' is not from {format_size(LEAST_BYTES)} to {format_size(LARGEST_BYTES)}"
            )
        return value


class ExternalJournal(layouts.SeveralLayout[ExternalJournalOptions]):
    """The file system lies on the medium's first disk, its journal on the second: of a `device` medium, the second of
    its paths. Counters are those of both."""

    summary = "the journal of ext3, ext4 or XFS on a second disk"
    least_disk_bytes = LEAST_BYTES
    turns = True
    Options = ExternalJournalOptions

    def disks(self, options: ExternalJournalOptions) -> int:  # noqa: ARG002
        return 2

    def usable_bytes(self, options: ExternalJournalOptions, disk_bytes: int) -> int:
        return disk_bytes if disk_bytes >= parse_size(options.journal_size) else 0

    def multiplies(self, options: ExternalJournalOptions) -> bool:  # noqa: ARG002
        return False

    def plan(self, options: ExternalJournalOptions, devices: Sequence[str], campaign: str) -> LayoutPlan:  # noqa: ARG002
        """Return the plan: the file system makes its journal there itself."""
        data, journal = devices
        wiped = (("wipefs", "--all", "--quiet", *devices),)
        return LayoutPlan(
            device=data,
            journal=journal,
            journal_bytes=parse_size(options.journal_size),
            create=wiped,
            remove=wiped,
        )

    def check_mkfs_options(self, options: str) -> None:
        """Raise ValueError for options of the journal, because the layout sets them."""
        for word in shlex.split(options):
            if word[:2] in {"-J", "-l"}:
                raise ValueError(
                    f"mkfs option '{word}' describes the journal, but layout {self.name} sets it: remove the option"
                )
