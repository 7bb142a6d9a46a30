"""The interface of trial rules, which check the facts of one trial. One file per reason for a warning.

A rule is pure. Its warnings are stored with the trial and are not computed again.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.registry import Registry
from fslab.validity import Rule
from fslab.validity.facts import TrialFacts


class TrialRule(Rule):
    """A rule for the facts of one trial.

    ``needs``: figures of probes; the rule is skipped if one of them is unknown. ``of_host``: if the trial runs in a
    guest, the facts for this rule are known only on the host.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    of_host: ClassVar[bool] = False

    @abstractmethod
    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Yield the warnings for these facts, usually one or none. Pure."""


REGISTRY: Registry[TrialRule] = Registry("rule", __name__, TrialRule, group="fslab.validity_rules")


def kinds() -> list[str]:
    """Return the kinds of warnings that a trial can have."""
    return [rule.kind for _, rule in REGISTRY]


def judge(
    facts: TrialFacts, known_limits: Collection[str] = (), *, of_host: bool = False
) -> tuple[ValidityWarning, ...]:
    """Return the warnings of all rules for a trial.

    ``of_host``: apply only the rules whose facts are unknown in a guest. A warning of a kind in ``known_limits``
    becomes a note, because the study accounts for it.
    """
    return tuple(
        warning.model_copy(update={"severity": Severity.NOTE})
        if warning.kind in known_limits and warning.severity is Severity.WARNING
        else warning
        for _, rule in REGISTRY
        if (rule.of_host or not of_host) and all(facts.figure(name) is not None for name in rule.needs)
        for warning in rule.judge(facts)
    )
