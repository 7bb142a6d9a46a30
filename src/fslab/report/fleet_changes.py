"""Describes what changed on the machines of a fleet, for the terminal and the page. Computes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from fslab.analysis.history import History
from fslab.units import metric_text


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownChange:
    """A change of level on a machine.

    ``figure``: the metric that changed. ``words``: by how much. ``facts``: facts that changed at the same time.
    """

    machine: str
    figure: str
    before: str
    since: str
    words: str
    facts: str


def changes(histories: Sequence[History]) -> list[ShownChange]:
    """Return the changes of all machines, newest first."""
    found = [
        ShownChange(
            machine=history.machine or "this machine",
            figure=f"{series.workload} on {series.stack}, {metric_text(series.metric)}",
            before=change.before,
            since=change.since,
            words=change.words,
            facts=", ".join(map(str, change.facts)),
        )
        for history in histories
        for series in history.series
        for change in series.changes
    ]
    return sorted(found, key=lambda each: (each.since, each.machine, each.figure), reverse=True)


def summary(histories: Sequence[History]) -> str:
    """Return a summary such as ``12 changes of level on 3 of 4 machines``.

    If machines have too few campaigns to detect a change, it also gives their number and the number that is needed.
    """
    found = changes(histories)
    with_some = len({each.machine for each in found})
    few = sum(len(each.campaigns) < each.enough for each in histories)
    enough = max((each.enough for each in histories), default=0)
    said = (
        f"{len(found)} change{'s' * (len(found) != 1)} of level on {with_some} of {len(histories)} "
        f"machine{'s' * (len(histories) != 1)}"
    )
    return f"{said}; {few} of them have fewer than {enough} campaigns, too few to detect one" if few else said
