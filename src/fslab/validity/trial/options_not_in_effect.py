"""Options not in effect: the kernel dropped or changed options of the study without an error. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.units import listed
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class OptionsNotInEffect(TrialRule):
    """The trial measures other options than its label says."""

    summary = "options of mount or mkfs are not in effect as the study asks"
    severity = Severity.WARNING
    when = (
        "the kernel dropped or changed a mount option or a feature of mkfs without an error, such as "
        "`nodatacow` beside `compress`. Stacks that differ only in such options are the same stack, and "
        "are not compared"
    )
    hint = "remove these options from the study"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Name each option, with what the kernel lists instead."""
        changed = facts.changed_options
        if changed:
            words = [
                f"'{option}' is not in effect" if shown is None else f"'{option}' became '{shown}'"
                for option, shown in changed.items()
            ]
            yield self.warning(f"options: {listed(words)}", options=dict(changed))
