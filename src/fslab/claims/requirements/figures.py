"""Requirements of the figures: they are of the size of what is printed, and not of a fixed cost. Pure."""

from math import inf

from fslab.claims.requirements import CellFacts, Compared, Lever, SideRequirement
from fslab.units import Unit, format_value

_SHARES = frozenset({Unit.PERCENT, Unit.RATIO, Unit.COUNT, Unit.BYTES})


class FixedCost(SideRequirement):
    """A small file is found and opened for as long as a large one. Two sizes of the same workload show that time, as
    the part of a straight line that does not depend on the size."""

    summary = "how much of the time does not grow with the size: two sizes would show it"
    short = "fixed costs"
    limit = 0.05
    remedy = "--scale 1"  # restores the publication's amounts
    at_least = False

    def of_side(self, side: CellFacts) -> float | None:
        return side.fixed_share

    def side_words(self, side: CellFacts) -> str:
        where = f"{side.cell.workload.name} on {side.cell.stack.name}"
        return f"{(side.fixed_share or 0.0) * 100:.0f} % of the time of {where} do not grow with the size"


class PrintedRate(SideRequirement):
    """A figure that is many times the printed one comes from another place, such as a cache instead of a disk.

    It is so only if the whole interval of the figure is: one at the limit would test a claim in one campaign and not in
    the next. Of too few trials for an interval, the median decides: their range would let noise test a claim. A claim
    about CPU time, or about the figure itself, has no such requirement.
    """

    name = "rate"
    summary = "how far the figures are from the printed ones"
    short = "another rate than the printed one"
    limit = 3.0
    at_least = False

    def of_side(self, side: CellFacts) -> float | None:
        """Return the factor between the interval of a figure and the nearest one that is printed for it."""
        if not side.printed or side.value is None:
            return None
        low, high = side.span or (side.value, side.value)
        return min(_apart(low, high, printed) for printed in side.printed)

    def side_words(self, side: CellFacts) -> str:
        own, unit = side.value or 0.0, side.metric.unit
        near = min(side.printed, key=lambda printed: _apart(own, own, printed))
        return (
            f"{side.cell.stack.name} has {format_value(own, unit)} here, {format_value(near, unit)} in print "
            f"({_apart(own, own, near):.1f} × apart)"
        )

    def implied(self, compared: Compared) -> bool:
        """Return whether the claim is about a ratio of rates or times."""
        about_cpu = Lever.CPU in compared.levers or any(
            side.metric.unit in _SHARES for side in compared.sides
        )
        return not compared.of_figure and not about_cpu


def _apart(low: float, high: float, printed: float) -> float:
    """Return the factor between a printed figure and the nearest value of an interval."""
    near = min(max(low, printed), high)
    return max(near / printed, printed / near) if near > 0 and printed > 0 else inf
