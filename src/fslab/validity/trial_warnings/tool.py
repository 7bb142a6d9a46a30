"""Rules about the tool: what it did, and what it says of itself."""

from fslab.trial_record import Severity
from fslab.validity import Issue, Issues
from fslab.validity.facts import TrialFacts
from fslab.validity.trial_warnings import rule

_HALF = 0.5
_NEARLY = 0.9  # the queue fills at the start and empties at the end


@rule(
    "fewer requests in flight than asked for",
    Severity.INVALID,
    when=f"less than {_HALF:.0%} of the queue depth asked for was reached, and no rate or pause is set; below "
    f"{_NEARLY:.0%} a note",
    hint="set direct: true or ioengine: io_uring, or spread the load over numjobs",
)
def depth_not_reached(facts: TrialFacts) -> Issues:
    """Use the upper bound of the depth reached, so that an imprecise figure of the tool causes no warning."""
    depth = facts.work.depth
    if depth is None or depth.asked == 1 or depth.at_most >= _NEARLY * depth.asked:
        return
    yield Issue(
        f"{depth.asked} requests in flight were asked for, {depth.at_most:.1f} were reached at most",
        severity=Severity.INVALID if depth.at_most < _HALF * depth.asked else Severity.NOTE,
        asked=depth.asked,
        at_least=depth.at_least,
        at_most=depth.at_most,
    )


@rule(
    "files disappeared or could not be used during the run",
    Severity.INVALID,
    when="the tool skipped files that had disappeared or could not be used",
    hint="another program changes the directory under test",
)
def operations_failed(facts: TrialFacts) -> Issues:
    """The tool did less work than its rate assumes."""
    failed = {name: count for name, count in facts.work.errors.items() if count}
    if failed:
        listed = ", ".join(f"{name} {count}" for name, count in failed.items())
        yield Issue(f"files disappeared or could not be used: {listed}", errors=failed)


@rule(
    "the depth is a queue of the tool's own",
    Severity.NOTE,
    when="buffered requests with libaio: the depth is the length of fio's own queue",
    hint="set direct: true or ioengine: io_uring",
)
def queue_in_tool(facts: TrialFacts) -> Issues:
    """Buffered requests block in io_submit(2): fio reports the depth of a queue that the kernel does not have."""
    if facts.work.queue_in_tool:
        depth = facts.work.depth
        yield Issue(
            "buffered requests are handled one by one; the depth that the tool reports is its own queue",
            iodepth=depth.asked if depth else None,
        )


@rule(
    "the tool itself warns",
    when="what the tool itself warns of",
)
def tool_warning(facts: TrialFacts) -> Issues:
    for message in facts.work.messages:
        yield Issue(message)


@rule(
    "sequential writes went over their files more than once",
    Severity.NOTE,
    when="sequential writes went over their files more than once: only the first pass allocates. A warning "
    "if they were buffered",
    hint="set an amount of work instead of a time, to write each file once",
)
def written_again(facts: TrialFacts) -> Issues:
    """Sequential writes for a set time restart at the end of the file. If they are buffered, later passes overwrite
    data that is still in memory."""
    passes = facts.work.passes
    if passes is not None and passes > 1:
        yield Issue(
            f"the files were written {passes:.1f} times over; only the first pass allocates",
            severity=Severity.NOTE if facts.work.direct else Severity.WARNING,
            passes=passes,
        )


@rule(
    "an operation returned a wrong answer",
    Severity.INVALID,
    when="an operation of the engine returned an answer that differs from the ground-truth manifest",
    hint=(
        "the file system lost or changed data, another program changes the directory, or the engine has a bug"
    ),
)
def wrong_answer(facts: TrialFacts) -> Issues:
    """The time of an operation with a wrong answer is not a result."""
    wrong = facts.work.wrong
    if wrong:
        listed = "; ".join(
            f"{key}: found {found}, correct is {truth}" for key, (found, truth) in wrong.items()
        )
        data = {key: {"found": found, "truth": truth} for key, (found, truth) in wrong.items()}
        yield Issue(f"the operation's answer is wrong: {listed}", answers=data)
