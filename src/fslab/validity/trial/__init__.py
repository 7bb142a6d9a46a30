"""The contract of a trial rule: judges the facts of one trial. One file per reason for doubt.

A rule is pure; its warnings are stored with the trial and never made again.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.registry import Registry
from fslab.validity import Rule
from fslab.validity.facts import TrialFacts


class TrialRule(Rule):
    """``needs`` names figures of probes: without all of them the rule is not asked. ``of_host``: where the trial runs
    in a guest, its facts are known on the host only."""

    needs: ClassVar[tuple[str, ...]] = ()
    of_host: ClassVar[bool] = False

    @abstractmethod
    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """The warnings that the facts give reason for, as a rule one or none. Pure."""


REGISTRY: Registry[TrialRule] = Registry("rule", __name__, TrialRule, group="fslab.validity_rules")


def kinds() -> list[str]:
    """The kinds of warnings that a trial can have."""
    return [rule.kind for _, rule in REGISTRY]


def judge(
    facts: TrialFacts, known_limits: Collection[str] = (), *, of_host: bool = False
) -> tuple[ValidityWarning, ...]:
    """What all rules say of a trial; with ``of_host`` only those whose facts a guest lacks. A doubt of a kind among
    ``known_limits`` is a note: the study accounts for it."""
    return tuple(
        warning.model_copy(update={"severity": Severity.NOTE})
        if warning.kind in known_limits and warning.severity is Severity.DOUBT
        else warning
        for _, rule in REGISTRY
        if (rule.of_host or not of_host) and all(facts.figure(name) is not None for name in rule.needs)
        for warning in rule.judge(facts)
    )
