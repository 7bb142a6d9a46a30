"""Requirements of the stacks: their options are in effect and differ, and their layouts are part of the disks. Pure."""

from fslab.claims.requirements import Compared, Lever, Requirement


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
        return "the disk server stripes, md and LVM themselves are not part of it"

    def implied(self, compared: Compared) -> bool:
        return any(side.cell.stack.served for side in compared.sides)


_NOT_IN_EFFECT = "options_not_in_effect"


class Options(Requirement):
    """The kernel drops options without an error, and an option can be its default: then a cell is compared with
    itself."""

    summary = "which options were in effect"
    short = "options not in effect"
    limit = 1.0
    remedy = None  # the kernel decides
    by_software = True

    def measure(self, compared: Compared) -> float | None:
        """Return 1 if all options are in effect and differ, else 0."""
        if self._dropped(compared):
            return 0.0
        effects = [side.options for side in compared.sides]
        mounted = {side.cell.stack.mounted_with for side in compared.sides}
        if None in effects or len(mounted) == 1:  # what mkfs made differ is not known
            return None
        return float(len(set(effects)) > 1)

    def words(self, compared: Compared, value: float) -> str:  # noqa: ARG002
        dropped = self._dropped(compared)
        if dropped:
            return f"options of {', '.join(dropped)} are not in effect"
        names = " and ".join(dict.fromkeys(side.cell.stack.name for side in compared.sides))
        return f"{names} have the same options in effect"

    def implied(self, compared: Compared) -> bool:
        return Lever.OPTIONS in compared.levers

    @staticmethod
    def _dropped(compared: Compared) -> list[str]:
        return [side.cell.stack.name for side in compared.sides if _NOT_IN_EFFECT in side.warnings]
