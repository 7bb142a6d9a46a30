"""Rules about the file system: whether it is the one that the study asks for, stores all data, and keeps promises."""

from fslab.trial_record import Severity
from fslab.units import format_size, listed
from fslab.validity import Issue, Issues
from fslab.validity.facts import TrialFacts
from fslab.validity.trial_warnings import rule


@rule(
    "the file system was lost and made again",
    Severity.NOTE,
    when="`fresh: cell` or `campaign`: the file system was lost with an interrupted run, and is not aged "
    "any more",
    hint="run the study again without interruption if its ageing matters",
)
def filesystem_remade(facts: TrialFacts) -> Issues:
    if facts.remade:
        yield Issue(
            "the file system that earlier trials used was lost when a run was interrupted, and was made again"
        )


@rule(
    "options of mount or mkfs are not in effect as the study asks",
    when="the kernel dropped or changed a mount option or a feature of mkfs without an error, such as "
    "`nodatacow` beside `compress`, or lists an option that lacks what it needs. Stacks that "
    "differ only in such options are the same stack, and are not compared",
    hint="remove these options from the study",
)
def options_not_in_effect(facts: TrialFacts) -> Issues:
    """The trial measures other options than its label says."""
    changed, ignored = facts.changed_options, facts.ignored_options
    if changed:
        words = [
            f"'{option}' became '{shown}'"
            if shown is not None
            else f"'{option}' has no effect {reason}"
            if (reason := ignored.get(option.partition("=")[0]))
            else f"'{option}' is not in effect"
            for option, shown in changed.items()
        ]
        yield Issue(f"options: {listed(words)}", options=dict(changed))


_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


@rule(
    "the directory is in memory: not a storage result",
    when="a directory, also that of an image, on tmpfs or ramfs, as `/tmp` often is: no disk is used. Not `type: ram`",
    of_host=True,
    hint="name a directory on a disk",
)
def directory_in_memory(facts: TrialFacts) -> Issues:
    for what, found in (("directory", facts.filesystem), ("image", facts.image_filesystem)):
        if found in _IN_MEMORY:
            yield Issue(f"the {what} is on {found}: nothing reaches a disk")


_LEAST_SYNCS, _SYNCS_PER_FLUSH = 20, 20


@rule(
    "fsync did not flush the disk's cache",
    when=f"less than one flush of the disk's cache for {_SYNCS_PER_FLUSH} calls of fsync of each thread, of "
    f"{_LEAST_SYNCS} or more, as with `nobarrier`, and on jfs",
    needs=("device_flushes",),
    hint="a power cut can take what was synced: compare it only with stacks of which that is true, too",
)
def sync_not_flushed(facts: TrialFacts, flushes: float) -> Issues:
    """Threads that call fsync at the same time can share a flush."""
    syncs = facts.syncs or 0
    if facts.caches_writes and _LEAST_SYNCS <= syncs > flushes * _SYNCS_PER_FLUSH * facts.threads:
        yield Issue(
            f"{syncs:.0f} calls of fsync made the disk flush its cache {flushes:.0f} times",
            syncs=syncs,
            flushes=flushes,
        )


_SHOWN = 3


@rule(
    "a power cut broke a promise of POSIX or of the file system",
    when="after a simulated power cut, data that was promised to persist is lost or damaged",
    hint="make the state again and look at its image: fslab crash replay ID",
)
def promise_broken(facts: TrialFacts) -> Issues:
    """The figures are correct, but the file system, its options or the disk is not reliable."""
    for text in facts.work.promises_broken[:_SHOWN]:
        yield Issue(text)


@rule(
    "the volume is too small for its file system",
    when="the volume is smaller than the file system's driver calls fair: btrfs below 16 GiB, where "
    "reservations of metadata space force early commits",
    hint="use a larger medium",
)
def volume_small(facts: TrialFacts) -> Issues:
    size, fair = facts.volume_bytes, facts.fair_volume_bytes
    if size is not None and fair is not None and size < fair:
        yield Issue(
            f"the volume has {format_size(size)}; {facts.filesystem} is slower below {format_size(fair)} than on a "
            "large volume, most of all with metadata",
            size_bytes=size,
            fair_size_bytes=fair,
        )


_STORED_SHARE = 0.9


@rule(
    "zeros that were compressed, deduplicated or stored as holes",
    when="dd, sysbench, IOzone, bonnie++, shell, or fio with `zero_buffers`: the device received less than "
    f"{_STORED_SHARE:.0%} of the zeros that were written: they were compressed, deduplicated or stored "
    "as holes",
    needs=("device_written_bytes_flushed",),
    hint="write data that does not compress, with fio and without zero_buffers",
)
def zeros_only(facts: TrialFacts, received: float) -> Issues:
    if facts.work.zeros:
        yield from _not_stored(
            facts, received, "the tool wrote hardly anything but zeros",
            "zeros were compressed, deduplicated or stored as holes, and other data is not",
        )  # fmt: skip


@rule(
    "repeated data that was compressed or deduplicated",
    when=f"fio without `refill_buffers`: the device received less than {_STORED_SHARE:.0%} of the data: fio "
    "writes one buffer again and again",
    needs=("device_written_bytes_flushed",),
    hint="set refill_buffers: true, or buffer_compress_percentage to that of your data",
)
def repeated_data(facts: TrialFacts, received: float) -> Issues:
    """fio(1), ``scramble_buffers``: the same random buffer, of which a few bytes change.

    Blocks of 4 KiB that btrfs compresses in pieces of 128 KiB shrink to a thirteenth.
    """
    if facts.work.repeats and not facts.work.zeros:
        wrote = "the tool wrote the same buffer again and again"
        yield from _not_stored(facts, received, wrote, "other data is compressed or deduplicated less")


_COMPRESSES = frozenset({"compress", "compress-force"})  # btrfs(5)


def _not_stored(facts: TrialFacts, received: float, wrote: str, why: str) -> Issues:
    """Yield an issue if the device received less than it would have received of other data.

    The bytes count once: a tool that writes its files several times may overwrite them in the page cache. With an
    option that compresses, all of them count if they are zeros or direct, because copy-on-write sends metadata too.
    Bytes that never left the page cache do not count: blocks that were written several times, as random ones are, and
    files that were deleted.
    """
    work = facts.work
    if not work.written_bytes:
        return
    listed = (option.partition("=") for option in facts.texts.get("mount_options", ()))
    dropped = {option.partition("=")[0] for option, how in facts.changed_options.items() if how is None}
    compresses = any(name in _COMPRESSES - dropped and how not in {"no", "none"} for name, _, how in listed)
    sent: float = work.written_bytes
    share = 1.0
    if not (compresses and (work.zeros or work.direct)):
        once = min(work.written_bytes, (work.working_set_bytes or work.written_bytes) * work.rounds)
        written_back = _written_back(facts)
        sent, share = once if written_back is None else min(once, written_back), _STORED_SHARE
    if received < sent * share:
        told = f"{wrote}, and the device received {format_size(received)} of {format_size(sent)}: {why}"
        yield Issue(told, received_bytes=received, written_bytes=sent)


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
