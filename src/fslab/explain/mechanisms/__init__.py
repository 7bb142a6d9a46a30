"""The contract of a mechanism: where it applies, its statements and their evidence, and what turns it off.

One file per subject. Pure. A statement about a cell is an observation; only switching off shows a cause (``ablation``).
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from fslab.explain.evidence import Evidence
from fslab.explain.mechanism_switch import Switch
from fslab.explain.statement_model import Certainty, EvidenceFigure, Explanation
from fslab.registry import Registry
from fslab.workloads import Switchable

NOTICEABLE = 1.1
MOST_WEIGHT = 10.0
_PLAIN_WEIGHT = 5.0  # up to this, a weight counts as it is


class Mechanism(ABC):
    """One mechanism. Its ``name`` is that of the class (``ReadAhead`` is ``read-ahead``), unless it sets another.
    ``cause`` completes "switching … off".

    ``alters``: switching it off makes another workload or another volume. That shows what the mechanism costs, but is
    no share of a ratio. The mechanism applies to these ``filesystems`` (empty: any), to workloads that write (if
    ``writing``), with all options of ``wants`` and none of ``unless``. An option is a mount option, or a word of the
    mkfs options; ``^feature`` is a feature that is off. ``off``: the switch, independent of the evidence;
    ``off_by``: it is one that the workload's tool declares. ``unswitchable``: file systems that have the mechanism, but
    nothing that turns it off.
    """

    name: str
    summary: ClassVar[str]
    cause: ClassVar[str]
    alters: ClassVar[bool] = False
    filesystems: ClassVar[frozenset[str]] = frozenset()
    writing: ClassVar[bool] = True
    wants: ClassVar[tuple[str, ...]] = ()
    unless: ClassVar[tuple[str, ...]] = ()
    off: ClassVar[Switch | None] = None
    off_by: ClassVar[Switchable | None] = None
    unswitchable: ClassVar[frozenset[str]] = frozenset()

    def applies(self, evidence: Evidence) -> bool:
        """Return whether this stack has the mechanism and this workload can meet it."""

        def given(option: str) -> bool:
            return option in evidence.mount_options or _is_word(option, evidence.cell.stack.mkfs_options)

        return (
            (evidence.filesystem in self.filesystems or not self.filesystems)
            and (writes(evidence) or not self.writing)
            and all(map(given, self.wants))
            and not any(map(given, self.unless))
        )

    def present(self, evidence: Evidence) -> bool:
        """Return whether this stack has the mechanism, with or without a switch, if the workload can meet it."""
        return self.applies(evidence) or evidence.filesystem in self.unswitchable

    def switch(self, evidence: Evidence) -> Switch | None:
        """Return what turns it off; None if nothing does."""
        if self.off_by is not None:
            parameters = evidence.traits.switches.get(self.off_by)
            return Switch(parameters=parameters) if parameters else None
        return None if evidence.filesystem in self.unswitchable else self.off

    @abstractmethod
    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        """Yield the statements that the evidence allows; none without evidence, or if no mechanism is found."""

    def explanation(
        self,
        evidence: Evidence,
        text: str,
        *figures: EvidenceFigure | None,
        weight: float = 0.0,
        refuted_by: str | None = None,
        certainty: Certainty = Certainty.OBSERVED,
    ) -> Explanation:
        switch = self.switch(evidence)
        if certainty is Certainty.OBSERVED and any(
            figure is not None and figure.shared for figure in figures
        ):
            certainty = Certainty.COINCIDES
        return Explanation(
            mechanism=self.name,
            workload=evidence.workload,
            stack=evidence.stack,
            text=text,
            figures=tuple(figure for figure in figures if figure is not None),
            certainty=certainty,
            refuted_by=refuted_by or (f"equally slow with {switch}" if switch else "equally slow without it"),
            weight=_bounded(weight),
        )


def _bounded(weight: float) -> float:
    """Return a weight below ``MOST_WEIGHT`` in the same order. Weights are ratios of unlike things, up to millions."""
    return weight if weight <= _PLAIN_WEIGHT else MOST_WEIGHT - _PLAIN_WEIGHT**2 / weight


def _is_word(option: str, mkfs_options: str) -> bool:
    """Return whether mkfs options contain an option or feature. ``^feature`` does not contain ``feature``."""
    return re.search(rf"(?:^|[\s,]|-\w){re.escape(option)}(?![\w-])", mkfs_options) is not None


def writes(evidence: Evidence) -> bool:
    """Return whether the workload may write."""
    return evidence.traits.writes is not False


REGISTRY: Registry[Mechanism] = Registry(
    "mechanism", __name__, Mechanism, by_subject=True, group="fslab.mechanisms"
)
