"""Rules about the page cache: reads and writes that did not reach the device, or reached it unexpectedly."""

from fslab.trial_record import Severity
from fslab.units import format_size
from fslab.validity import Issue, Issues
from fslab.validity.facts import TrialFacts, WorkFacts
from fslab.validity.trial_warnings import rule


@rule(
    "the machine's caches were dropped",
    Severity.INVALID,
    when="something else than the tool wrote to /proc/sys/vm/drop_caches; with `tool: command` a warning",
    needs=("cache_drops",),
    hint="measure when the machine is idle, and leave caches to 'cache' of the study",
)
def cache_dropped(facts: TrialFacts, drops: float) -> Issues:
    """Only the tool itself (``drops``) writes to /proc/sys/vm/drop_caches during a run; other writes are from another
    process."""
    own = facts.work.drops
    if own is None and drops > 0:
        yield Issue(
            "the command or another process dropped the machine's caches during the run",
            severity=Severity.WARNING,
            drops=drops,
        )
    elif own is not None and drops > own:
        yield Issue("another process dropped the machine's caches during the run", drops=drops - own)


@rule(
    "dentries and inodes stayed cached",
    when="`cache: cold` without root: only pages of the workload's files could be dropped",
    hint="run as root for a cold cache",
)
def cache_not_dropped(facts: TrialFacts) -> Issues:
    """Dentries and inodes can be dropped only through /proc/sys/vm/drop_caches, which needs root."""
    if facts.cold and not facts.caches_dropped:
        yield Issue("without root only the files' own pages were dropped: dentries and inodes stayed cached")


@rule(
    "files that were cached without the limit of memory",
    when="`cache: warm` with `guest_memory` on the host, of files that are larger than that",
    hint="measure with a cold cache, or in a guest",
)
def cache_not_limited(facts: TrialFacts) -> Issues:
    """The control group of the tool is not charged for pages that fslab read into the cache before the run."""
    size, memory = facts.work.working_set_bytes, facts.memory_bytes
    if not facts.memory_limited or facts.cold or facts.work.direct or size is None or memory is None:
        return
    if size > memory:
        yield Issue(
            f"{format_size(size)} of files were cached before the run, although the memory of the tool is limited to "
            f"{format_size(memory)}",
            working_set_bytes=size,
            memory_bytes=memory,
        )


_METADATA_BYTES = 1 << 20
_WARM_SHARE = 0.05  # share of a warm run's reads that may come from the device


@rule(
    "warm reads that came from the device",
    when=f"a buffered run with `cache: warm`: more than {_WARM_SHARE:.0%} of the bytes that it read, and "
    f"more than {format_size(_METADATA_BYTES)}, came from the device",
    needs=("device_read_bytes",),
    hint="use a file set that fits in memory, or measure cold reads",
)
def cache_not_warm(facts: TrialFacts, device_bytes: float) -> Issues:
    """The data was evicted from the cache, or was never in it."""
    work = facts.work
    if not work.read_bytes or facts.cold or work.direct:
        return
    if device_bytes > max(_METADATA_BYTES, work.read_bytes * _WARM_SHARE):
        yield Issue(
            f"{format_size(device_bytes)} of {format_size(work.read_bytes)} read with a warm cache came from the "
            "device",
            read_bytes=work.read_bytes,
            device_read_bytes=device_bytes,
        )


_HONEST_SHARE = 0.5
_NOTICEABLE_BYTES = 16 << 20
_METADATA_SHARE = 0.01


@rule(
    "direct or cold reads that did not come from the device",
    Severity.INVALID,
    when=f"direct reads of which the device saw less than {_HONEST_SHARE:.0%}; cold buffered reads of at "
    f"least {format_size(_NOTICEABLE_BYTES)}, in a run that wrote nothing, of which it saw less than "
    f"{_METADATA_SHARE:.0%}",
    needs=("device_read_bytes",),
    hint="check whether the file system honours direct I/O with these options, or measure warm reads",
)
def cache_served(facts: TrialFacts, device_bytes: float) -> Issues:
    """Other cold reads cannot be checked: a job that reads its files several times correctly finds them cached
    (``fits-in-memory``), and a job that also writes may read what it has just written."""
    work = facts.work
    if not work.read_bytes:
        return
    if work.direct:
        cached = device_bytes < work.read_bytes * _HONEST_SHARE
    else:
        once = min(work.read_bytes, (work.working_set_bytes or work.read_bytes) * work.rounds)
        enough = facts.cold and work.written_bytes == 0 and once >= _NOTICEABLE_BYTES
        cached = enough and device_bytes < max(_METADATA_BYTES, _METADATA_SHARE * once)
    if cached:
        yield Issue(
            f"only {format_size(device_bytes)} of {format_size(work.read_bytes)} of "
            f"{'direct' if work.direct else 'cold'} reads came from the device: the rest came from a cache, from "
            "holes or from compressed data",
            read_bytes=work.read_bytes,
            device_read_bytes=device_bytes,
        )


_DIRTIED_SHARE = 0.5
_DIRTIED_SHARE_OF_MACHINE = 0.9  # other programs dirty pages, too


@rule(
    "direct writes that went through a cache",
    when=f"direct writes that dirtied {_DIRTIED_SHARE:.0%} or more of their bytes of page cache "
    f"({_DIRTIED_SHARE_OF_MACHINE:.0%} where only the machine's dirty pages are known: without root, "
    "or before Linux 6.10 in a memory cgroup), or of which the device had seen less than "
    f"{_HONEST_SHARE:.0%} when the tool ended. ext4 with `data=journal`, and btrfs with checksums "
    "since Linux 6.15, write through the cache",
    hint="compare it with buffered writes on the other stacks, or use options that allow direct I/O",
)
def direct_not_honoured(facts: TrialFacts) -> Issues:
    """Direct writes that the device had not received when the tool ended were cached or compressed."""
    written = facts.work.written_bytes
    if not facts.work.direct or not written:
        return
    dirtied = facts.figure("volume_dirtied_bytes")
    if dirtied is not None and dirtied >= written * _DIRTIED_SHARE:
        yield Issue(
            f"direct writes of {format_size(written)} dirtied {format_size(dirtied)} of page cache: the file "
            "system wrote through the cache",
            written_bytes=written,
            dirtied_bytes=dirtied,
        )
    of_machine = facts.figure("page_cache_dirtied_bytes") if dirtied is None else None
    if of_machine is not None and of_machine >= written * _DIRTIED_SHARE_OF_MACHINE:
        yield Issue(
            f"the machine dirtied {format_size(of_machine)} of page cache during direct writes of "
            f"{format_size(written)}: the file system probably wrote through the cache",
            written_bytes=written,
            dirtied_bytes=of_machine,
        )
    received = facts.figure("device_written_bytes")
    if received is not None and received < written * _HONEST_SHARE:
        yield Issue(
            f"the device had received only {format_size(received)} of {format_size(written)} of direct writes when "
            "the tool ended: the rest was cached or compressed",
            written_bytes=written,
            device_written_bytes=received,
        )


_ONE_PASS = 1.05
_ALL = 0.9
_MOSTLY = 0.5


@rule(
    "a buffered run on data that fit in memory",
    Severity.NOTE,
    when="a cold buffered run that accessed data that fit in memory more than once: a note, "
    f"or a warning if less than {_MOSTLY:.0%} of the bytes reached the device. A warning if it wrote "
    "and did not flush in the measured time",
    hint="use a set of files larger than memory or direct I/O, read it only once, or set 'cache: warm'",
)
def fits_in_memory(facts: TrialFacts) -> Issues:
    """A set of files smaller than memory is read from the device once, and then from the page cache.

    Written data stays in the page cache unless it is flushed. There is no warning for a single pass with a cold cache,
    for writes that are flushed within the measured time, and for a study with a warm cache.
    """
    work, size, memory = facts.work, facts.work.working_set_bytes, facts.memory_bytes
    if work.direct or not facts.cold or size is None or memory is None or size >= memory:
        return
    if work.written_bytes and work.flushed is False:
        yield Issue(
            f"{format_size(work.written_bytes)} were written and not flushed in the measured time; they fit in "
            f"memory ({format_size(memory)})",
            severity=Severity.WARNING,
            working_set_bytes=size,
            memory_bytes=memory,
        )
    elif _moved(work) > _ONE_PASS * size * work.rounds:
        share = _share_of_device(facts)
        if share is None or share < _ALL:
            times = _moved(work) / size / work.rounds
            yield Issue(
                f"the workload accessed {format_size(size)} of files {times:.1f} times, and they fit "
                f"in memory ({format_size(memory)}): the cache was cold only at the start",
                severity=Severity.WARNING if share is not None and share < _MOSTLY else Severity.NOTE,
                working_set_bytes=size, memory_bytes=memory, moved_bytes=_moved(work), device_share=share,
            )  # fmt: skip


def _share_of_device(facts: TrialFacts) -> float | None:
    """Return the share of the tool's I/O that reached the device; None if it is unknown."""
    seen = 0.0
    for moved, name in (
        (facts.work.read_bytes, "device_read_bytes"),
        (facts.work.written_bytes, "device_written_bytes_flushed"),
    ):
        device_bytes = facts.figure(name)
        if moved is None or (moved and device_bytes is None):
            return None
        seen += min(moved, device_bytes or 0.0)
    return seen / _moved(facts.work)


def _moved(work: WorkFacts) -> int:
    return (work.read_bytes or 0) + (work.written_bytes or 0)


@rule(
    "the loop device is cached by the file system below it",
    when="the file system below the image does not support direct I/O",
    hint="put the image ('path' of the medium) on a file system that allows direct I/O, such as ext4 or xfs",
)
def loop_buffered(facts: TrialFacts) -> Issues:
    """The kernel then uses buffered I/O without an error."""
    if facts.medium_buffered:
        yield Issue(
            "the loop device goes through the page cache of the backing file, so direct I/O is not direct"
        )
