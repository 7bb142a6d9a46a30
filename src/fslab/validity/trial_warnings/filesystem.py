"""Rules about the file system: whether it is the one that the study asks for, and keeps its promises."""

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
    """The new file system is not aged."""
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
    """The driver of each file system defines the smallest volume on which a comparison is fair."""
    size, fair = facts.volume_bytes, facts.fair_volume_bytes
    if size is not None and fair is not None and size < fair:
        yield Issue(
            f"the volume has {format_size(size)}; {facts.filesystem} is slower below {format_size(fair)} than on a "
            "large volume, most of all with metadata",
            size_bytes=size,
            fair_size_bytes=fair,
        )
