"""The contract of a trial rule: judges the facts of one trial. One file per reason for doubt.

A rule is pure; its warnings are stored with the trial and never made again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from fslab.record import ValidityWarning
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


def judge(facts: TrialFacts) -> tuple[ValidityWarning, ...]:
    """What all rules say of a trial."""
    return tuple(
        warning
        for _, rule in REGISTRY
        if all(facts.figure(name) is not None for name in rule.needs)
        for warning in rule.judge(facts)
    )
