"""Requirements of the layouts: those that are compared are part of the disks. Pure."""

from fslab.claims.requirements import Compared, Requirement


class Layouts(Requirement):
    """Where the disk server stripes, stacks with md and with LVM lie on the same device, and cannot differ."""

    summary = "what stripes the disks"
    short = "md and LVM are not part of the disks"
    limit = 1.0
    remedy = "--on guest"  # has them in its kernel
    certain = True

    def measure(self, compared: Compared) -> float | None:
        """Return 0 if stacks with different layouts are served, else 1."""
        stacks = [side.cell.stack for side in compared.sides]
        return float(len({stack.layout for stack in stacks if stack.served}) < 2)

    def words(self, compared: Compared, value: float) -> str:  # noqa: ARG002
        """Return what is compared with itself."""
        return "the disk server stripes, md and LVM themselves are not part of it"

    def implied(self, compared: Compared) -> bool:
        """Return whether the server stripes for a side."""
        return any(side.cell.stack.served for side in compared.sides)
