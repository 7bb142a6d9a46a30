"""Direct not honoured: direct writes went through a cache nevertheless. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.units import format_size
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

_HONEST_SHARE = 0.5
_DIRTIED_SHARE = 0.5
_DIRTIED_SHARE_OF_MACHINE = 0.9  # other programs dirty pages, too


class DirectNotHonoured(TrialRule):
    """Direct writes that dirty pages of at least half their size went through the page cache.

    Without root, and before Linux 6.10 in a memory cgroup, only the pages that the whole machine dirtied are known:
    then at least nine tenths.
    ext4 with data=journal, and btrfs with checksums since Linux 6.15, accept O_DIRECT and write buffered. Direct writes
    that the device had not received when the tool ended were cached or compressed.
    """

    summary = "direct writes that went through a cache"
    severity = Severity.WARNING
    when = (
        f"direct writes that dirtied {_DIRTIED_SHARE:.0%} or more of their bytes of page cache "
        f"({_DIRTIED_SHARE_OF_MACHINE:.0%} where only the machine's dirty pages are known: without root, "
        "or before Linux 6.10 in a memory cgroup), or of which the device had seen less than "
        f"{_HONEST_SHARE:.0%} when the tool ended. ext4 with `data=journal`, and btrfs with checksums "
        "since Linux 6.15, write through the cache"
    )
    hint = "compare it with buffered writes on the other stacks, or use options that allow direct I/O"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Check by the dirtied pages and by the bytes that the device received; either may be unknown."""
        written = facts.work.written_bytes
        if not facts.work.direct or not written:
            return
        dirtied = facts.figure("volume_dirtied_bytes")
        if dirtied is not None and dirtied >= written * _DIRTIED_SHARE:
            yield self.warning(
                f"direct writes of {format_size(written)} dirtied {format_size(dirtied)} of page cache: the file "
                "system wrote through the cache",
                written_bytes=written, dirtied_bytes=dirtied,
            )  # fmt: skip
        of_machine = facts.figure("page_cache_dirtied_bytes") if dirtied is None else None
        if of_machine is not None and of_machine >= written * _DIRTIED_SHARE_OF_MACHINE:
            yield self.warning(
                f"the machine dirtied {format_size(of_machine)} of page cache during direct writes of "
                f"{format_size(written)}: the file system probably wrote through the cache",
                written_bytes=written, dirtied_bytes=of_machine,
            )  # fmt: skip
        received = facts.figure("device_written_bytes")
        if received is not None and received < written * _HONEST_SHARE:
            yield self.warning(
                f"the device had received only {format_size(received)} of {format_size(written)} of direct writes when "
                "the tool ended: the rest was cached or compressed",
                written_bytes=written, device_written_bytes=received,
            )  # fmt: skip
