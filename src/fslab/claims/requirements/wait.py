"""Wait: the tool waited for its device. Pure."""

from fslab.claims.requirements import Compared, Lever, Requirement
from fslab.claims.requirements._facts import HALF


class Wait(Requirement):
    """With w of the slower cell's time spent waiting, an infinitely fast device would make it 1/(1 − w) times as fast.

    What differs in its disks only, or what the disks bounded in the publication, is not tested by a run that hardly
    waited for them. Nothing has to wait if it is claimed that disks do not matter, and they had nothing to do.
    """

    summary = "how long the disks were waited for"
    limit = HALF
    by_software = True

    def measure(self, compared: Compared) -> float | None:
        """Return the share of the slower cell's time; 1 if no disk is needed."""
        return 1.0 if compared.needs_no_disk else compared.wait

    def words(self, compared: Compared, value: float) -> str:  # noqa: ARG002
        """Return the share and the bound that follows from it."""
        return (
            f"the disks were waited for {value * 100:.0f} % of the time, so they can change this by at most "
            f"{1 / (1 - value):.2f} ×"
        )

    def implied(self, compared: Compared) -> bool:
        """Return whether the cells differ in their disks."""
        return Lever.DISKS in compared.levers
