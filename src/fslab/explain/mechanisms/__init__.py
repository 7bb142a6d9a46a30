"""The contract of a mechanism: where it applies, its statements and their evidence, and what turns it off.

One file per subject. Pure. A statement about a cell is an observation; only switching off shows a cause (``ablation``).
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from fslab.cell import Cell, Geometry, Scalar
from fslab.explain.evidence import Certainty, Evidence, EvidenceFigure, Explanation
from fslab.registry import Registry
from fslab.workloads import Switchable

# Options that include others (btrfs(5)): the other option then changes nothing.
_IMPLIED = {"nodatacow": {"nodatasum"}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """The changes to a cell that turn a mechanism off.

    ``mount``: mount options to add. They replace options of the same name and those in ``instead``. ``attributes``:
    those of the work directory to remove. ``mkfs``: mkfs options to add. ``parameters``: of the workload. ``medium``:
    options of the medium. ``geometry``: of mkfs.
    """

    mount: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    attributes: str = ""
    mkfs: str = ""
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    medium: Mapping[str, Scalar] = field(default_factory=dict)
    geometry: Geometry | None = None

    def __str__(self) -> str:
        parts = (
            f"mount -o {','.join(self.mount)}" if self.mount else "",
            f"mkfs {self.mkfs}" if self.mkfs else "",
            f"no mount option {' or '.join(self.instead)}" if self.instead and not self.mount else "",
            f"no attribute {self.attributes}" if self.attributes else "",
            *(f"{name}={value}" for name, value in (*self.parameters.items(), *self.medium.items())),
            f"geometry: {self.geometry}" if self.geometry else "",
        )
        return ", ".join(filter(None, parts))

    def off(self, cell: Cell) -> Cell | None:
        """Return the cell with the mechanism off; None if nothing would change."""
        stack = cell.stack
        options = [each for each in stack.mount_options.split(",") if each and each != "defaults"]
        kept = [each for each in options if not self._replaces(each)]
        kept += [each for each in self.mount if each not in kept]
        implied = {each for option in kept for each in _IMPLIED.get(option, ())}
        left = [each for each in kept if each not in implied]
        same = set(left) == {*options} - implied  # in whatever order
        mkfs = stack.mkfs_options
        if self.mkfs and self.mkfs not in mkfs:
            mkfs = f"{mkfs} {self.mkfs}".strip()
        medium = stack.medium.model_copy(update={"options": {**stack.medium.options, **self.medium}})
        changed = stack.model_copy(
            update={
                "attributes": "".join(each for each in stack.attributes if each not in self.attributes),
                "mount_options": stack.mount_options if same else ",".join(left) or "defaults",
                "mkfs_options": mkfs,
                "medium": medium,
                "geometry": self.geometry or stack.geometry,
            }
        )
        parameters = {**cell.workload.parameters, **self.parameters}
        work = cell.workload.model_copy(update={"parameters": parameters})
        if changed == stack and work == cell.workload:
            return None
        return cell.model_copy(update={"stack": changed, "workload": work})

    def _replaces(self, option: str) -> bool:
        names = {each.partition("=")[0] for each in self.mount} | {*self.instead}
        return option.partition("=")[0] in names or option in self.instead


def all_off(cell: Cell, switches: Sequence[Switch]) -> Cell:
    """Return the cell with several mechanisms off, whatever their order.

    An option that one switch rules out, such as ``data=`` without a journal, stays out if another one would add it.
    """
    for switch in switches:
        cell = switch.off(cell) or cell
    for switch in switches:
        added = {each.partition("=")[0] for each in switch.mount}
        ruled_out = tuple(each for each in switch.instead if each not in added)
        cell = Switch(instead=ruled_out).off(cell) or cell
    return cell


NOTICEABLE = 1.1
SLIGHT = 0.05  # of the run


class Mechanism(ABC):
    """One mechanism. Its ``name`` is that of the class (``ReadAhead`` is ``read-ahead``), unless it sets another.
    ``cause`` completes "switching … off".

    ``alters``: switching it off makes another workload or another volume. That shows what the mechanism costs, but is
    no share of a ratio. The mechanism applies to these ``filesystems`` (empty: any), to workloads that write (if
    ``writing``), with all options of ``wants`` and none of ``unless``. An option is a mount option, or a word of the
    mkfs options; ``^feature`` is a feature that is off. ``off``: the switch, independent of the evidence;
    ``off_by``: it is one that the workload's tool declares. ``attribute``: that of a directory that switches it on.
    ``speeds_up``: whether more of it makes a stack faster, not slower; None: either. ``general``: it says only where
    time or bytes go, and comes after what says why.
    ``unswitchable``: file systems that have the mechanism, but nothing that turns it off.
    ``needs``: the figures of probes without which it is unknown how much of it a stack has.
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
    attribute: ClassVar[str] = ""
    speeds_up: ClassVar[bool | None] = False
    general: ClassVar[bool] = False
    unswitchable: ClassVar[frozenset[str]] = frozenset()
    needs: ClassVar[tuple[str, ...]] = ()

    def applies(self, evidence: Evidence) -> bool:
        """Return whether this stack has the mechanism and this workload can meet it."""

        def given(option: str) -> bool:
            return option in evidence.file_options or _is_word(option, evidence.cell.stack.mkfs_options)

        return (
            (evidence.filesystem in self.filesystems or not self.filesystems)
            and (writes(evidence) or not self.writing)
            and all(map(given, self.wants))
            and not any(map(given, self.unless))
        )

    def present(self, evidence: Evidence) -> bool:
        """Return whether this stack has the mechanism, with or without a switch, if the workload can meet it."""
        return self.applies(evidence) or evidence.filesystem in self.unswitchable

    def known(self, evidence: Evidence) -> bool:
        """Return whether it is known how much of it this stack has, be it nothing."""
        return not self.present(evidence) or all(evidence.figure(name) is not None for name in self.needs)

    def differs(self, more: Evidence, less: Evidence) -> bool:  # noqa: ARG002
        """Return whether two stacks with unlike weights of it are unlike, and not only of unlike speed."""
        return True

    def switch(self, evidence: Evidence) -> Switch | None:
        """Return what turns it off; None if nothing does."""
        if self.off_by is not None:
            parameters = evidence.traits.switches.get(self.off_by)
            return Switch(parameters=parameters) if parameters else None
        return (
            None
            if evidence.filesystem in self.unswitchable
            else self.off and self.without(self.off, evidence)
        )

    def without(self, switch: Switch, evidence: Evidence) -> Switch:
        """Return a switch that also removes the attribute, if the stack has it."""
        given = self.attribute if self.attribute in evidence.cell.stack.attributes else ""
        return replace(switch, attributes=given)

    @abstractmethod
    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        """Yield the statements that the evidence allows; none without evidence, or if no mechanism is found."""

    def explanation(
        self,
        evidence: Evidence,
        text: str,
        *figures: EvidenceFigure | None,
        weight: float = 0.0,
        takes: float | None = None,
        moved: float | None = None,
        refuted_by: str | None = None,
        certainty: Certainty = Certainty.OBSERVED,
    ) -> Explanation:
        """Return a statement. With ``takes``, a share of the run, its weight is what that is of the rest of the run.

        ``moved``: the bytes that the device reads or writes because of it.
        """
        switch, known = self.switch(evidence), tuple(filter(None, figures))
        if switch is not None and switch.off(evidence.cell) is None:  # it is off, as far as it can be
            switch = None
        if takes is not None:
            weight = takes / max(1 - takes, 0.01)
        if any(figure.shared for figure in known):
            certainty = Certainty.COINCIDES
        return Explanation(
            mechanism=self.name, workload=evidence.workload, stack=evidence.stack, text=text, figures=known,
            certainty=certainty, weight=weight, takes=takes,
            moves=None if moved is None or not evidence.moved_bytes else min(moved / evidence.moved_bytes, 1.0),
            refuted_by=refuted_by or (f"equally slow with {switch}" if switch else None),
        )  # fmt: skip


def _is_word(option: str, mkfs_options: str) -> bool:
    """Return whether mkfs options contain an option or feature. ``^feature`` does not contain ``feature``."""
    return re.search(rf"(?:^|[\s,]|-\w){re.escape(option)}(?![\w-])", mkfs_options) is not None


def writes(evidence: Evidence) -> bool:
    """Return whether the workload may write."""
    return evidence.traits.writes is not False


REGISTRY: Registry[Mechanism] = Registry(
    "mechanism", __name__, Mechanism, by_subject=True, group="fslab.mechanisms"
)


def statements_of(evidence: Evidence) -> list[Explanation]:
    """Return the statements about one cell. The one with the largest weight comes first."""
    found = [
        each for _, mechanism in REGISTRY if mechanism.present(evidence) for each in mechanism.state(evidence)
    ]
    return sorted(found, key=lambda statement: -statement.weight)


def all_statements(everything: Sequence[Evidence]) -> Iterator[Explanation]:
    for evidence in everything:
        yield from statements_of(evidence)
