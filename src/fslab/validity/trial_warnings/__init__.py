"""The interface of trial rules, which check the facts of one trial. One function per reason for a warning.

To add a warning, write a function with ``@rule`` in the module of its subject, such as ``cpu``. Warnings are stored
with the trial and are not computed again.
"""

from collections.abc import Callable, Collection, Iterator

from fslab.registry import Registry, decorator_of
from fslab.trial_record import Severity, ValidityWarning
from fslab.validity import Issues, Rule
from fslab.validity.facts import TrialFacts

Find = Callable[..., Issues]  # of ``TrialFacts``, and of the figures that the rule needs


class TrialRule(Rule):
    """A rule for the facts of one trial, which ``rule`` makes of a function.

    ``needs``: figures of probes, which the function gets in this order after the facts; the rule is skipped if one of
    them is unknown. ``of_host``: if the trial runs in a
    guest, the facts for this rule are known only on the host. ``by_others``: what it warns of comes from outside the
    trial, such as other programs; a report sums such warnings up.
    """

    def __init__(
        self,
        find: Find,
        summary: str,
        severity: Severity = Severity.WARNING,
        *,
        when: str = "",
        hint: str | None = None,
        needs: tuple[str, ...] = (),
        of_host: bool = False,
        by_others: bool = False,
    ) -> None:
        super().__init__(find, summary, severity, when=when, hint=hint)
        self.needs = needs
        self.of_host = of_host
        self.by_others = by_others

    def warnings(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Yield the warnings for these facts; none if a needed figure is unknown."""
        figures = [facts.figure(name) for name in self.needs]
        if None not in figures:
            yield from map(self.warning, self._find(facts, *figures))


rule = decorator_of(TrialRule)
REGISTRY = Registry("rule", __name__, TrialRule, by_subject=True, group="fslab.validity_rules")


def kinds() -> list[str]:
    return [each.kind for _, each in REGISTRY]


def trial_warnings(
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
        for _, each in REGISTRY
        if each.of_host or not of_host
        for warning in each.warnings(facts)
    )
