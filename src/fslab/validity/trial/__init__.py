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
    """``needs`` names figures of probes: without all of them the rule is not asked."""

    needs: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """The warnings that the facts give reason for, as a rule one or none. Pure."""


REGISTRY: Registry[TrialRule] = Registry("rule", __name__, TrialRule, group="fslab.validity_rules")


def kinds() -> list[str]:
    """The kinds of warnings that a trial can have."""
    return [rule.kind for _, rule in REGISTRY]


def judge(facts: TrialFacts, known_limits: Collection[str] = ()) -> tuple[ValidityWarning, ...]:
    """What all rules say of a trial. A doubt of a kind among ``known_limits`` is a note: the study accounts for it."""
    return tuple(
        warning.model_copy(update={"severity": Severity.NOTE})
        if warning.kind in known_limits and warning.severity is Severity.DOUBT
        else warning
        for _, rule in REGISTRY
        if all(facts.figure(name) is not None for name in rule.needs)
        for warning in rule.judge(facts)
    )
