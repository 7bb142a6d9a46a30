"""Rules about the data that a tool writes: it is easier to store than that of users."""

from fslab.units import format_size
from fslab.validity import Issue, Issues
from fslab.validity.facts import TrialFacts
from fslab.validity.trial_warnings import rule

_STORED_SHARE = 0.9


@rule(
    "zeros that were compressed, deduplicated or stored as holes",
    when="dd, sysbench, IOzone, bonnie++, shell, or fio with `zero_buffers`: the device received less than "
    f"{_STORED_SHARE:.0%} of the zeros that were written: they were compressed, deduplicated or stored "
    "as holes",
    needs=("device_written_bytes_flushed",),
    hint="write data that does not compress, with fio and without zero_buffers",
)
def zeros_only(facts: TrialFacts) -> Issues:
    """A file system that compresses, deduplicates or makes holes of zeros sends less to the device than was written."""
    found = _not_stored(facts) if facts.work.zeros else None
    if found:
        received, written = found
        yield Issue(
            f"the tool wrote hardly anything but zeros, and the device received {format_size(received)} of "
            f"{format_size(written)}: zeros were compressed, deduplicated or stored as holes, and other data is not",
            received_bytes=received,
            written_bytes=written,
        )


@rule(
    "repeated data that was compressed or deduplicated",
    when=f"fio without `refill_buffers`: the device received less than {_STORED_SHARE:.0%} of the data: fio "
    "writes one buffer again and again",
    needs=("device_written_bytes_flushed",),
    hint="set refill_buffers: true, or buffer_compress_percentage to that of your data",
)
def repeated_data(facts: TrialFacts) -> Issues:
    """fio(1), ``scramble_buffers``: the same random buffer, of which a few bytes change.

    Blocks of 4 KiB that btrfs compresses in pieces of 128 KiB shrink to a thirteenth.
    """
    found = _not_stored(facts) if facts.work.repeats and not facts.work.zeros else None
    if found:
        received, written = found
        yield Issue(
            f"the tool wrote the same buffer again and again, and the device received {format_size(received)} of "
            f"{format_size(written)}: other data is compressed or deduplicated less",
            received_bytes=received,
            written_bytes=written,
        )


_COMPRESSES = frozenset({"compress", "compress-force"})  # btrfs(5)


def _not_stored(facts: TrialFacts) -> tuple[float, float] | None:
    """Return what the device received, and what it would have received of other data, if it received less.

    The bytes count once: a tool that writes its files several times may overwrite them in the page cache. With an
    option that compresses, all of them count if they are zeros or direct, because copy-on-write sends metadata too.
    Bytes that never left the page cache do not count: blocks that were written several times, as random ones are, and
    files that were deleted.
    """
    work, received = facts.work, facts.known("device_written_bytes_flushed")
    if not work.written_bytes:
        return None
    listed = (option.partition("=") for option in facts.texts.get("mount_options", ()))
    dropped = {option.partition("=")[0] for option, how in facts.changed_options.items() if how is None}
    compresses = any(name in _COMPRESSES - dropped and how not in {"no", "none"} for name, _, how in listed)
    if compresses and (work.zeros or work.direct):
        return (received, work.written_bytes) if received < work.written_bytes else None
    once = min(work.written_bytes, (work.working_set_bytes or work.written_bytes) * work.rounds)
    written_back = _written_back(facts)
    sent = once if written_back is None else min(once, written_back)
    return (received, sent) if received < sent * _STORED_SHARE else None


def _written_back(facts: TrialFacts) -> float | None:
    """Return what the page cache sent to the file system; None if the writes bypassed it, or it is unknown.

    Without root, only that of the whole machine until the tool ended is known.
    """
    for dirtied, written_back in (
        ("volume_dirtied_bytes", "volume_written_back_bytes_flushed"),
        ("page_cache_dirtied_bytes", "page_cache_written_bytes"),
    ):
        if (known := facts.figure(dirtied)) is not None:
            return facts.figure(written_back) if known else None
    return None
