"""Switches that turn mechanisms off: mount options, mkfs options, parameters. Pure: a cell in, another cell out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fslab.cell import Cell, Geometry, Scalar

# Options that include others (btrfs(5)): the other option then changes nothing.
_IMPLIED = {"nodatacow": {"nodatasum"}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """The changes to a cell that turn a mechanism off.

    ``mount``: mount options to add. They replace options of the same name and those in ``instead``. ``mkfs``: mkfs
    options to add. ``parameters``: of the workload. ``medium``: options of the medium. ``geometry``: of mkfs.
    """

    mount: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    mkfs: str = ""
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    medium: Mapping[str, Scalar] = field(default_factory=dict)
    geometry: Geometry | None = None

    def __str__(self) -> str:
        parts = (
            f"mount -o {','.join(self.mount)}" if self.mount else "",
            f"mkfs {self.mkfs}" if self.mkfs else "",
            f"no mount option {' or '.join(self.instead)}" if self.instead and not self.mount else "",
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
        mount = ",".join(each for each in kept if each not in implied) or "defaults"
        mkfs = stack.mkfs_options
        if self.mkfs and self.mkfs not in mkfs:
            mkfs = f"{mkfs} {self.mkfs}".strip()
        medium = stack.medium.model_copy(update={"options": {**stack.medium.options, **self.medium}})
        changed = stack.model_copy(
            update={
                "mount_options": stack.mount_options if mount == stack.mounted_with else mount,
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
