"""Tests what file systems support, on scratch volumes of the host or of a guest."""

from contextlib import ExitStack

from fslab import feasibility
from fslab.campaign import cleanup, feature_tests
from fslab.campaign.feature_tests import Request
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.campaign.trial_loop import new_id
from fslab.cell import MachineSpec, MediumSpec, StackSpec
from fslab.errors import FslabError, UsageError
from fslab.features import REGISTRY as FEATURES
from fslab.features import Examination
from fslab.machine.kinds import AUTO
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS


def smallest_bytes(request: Request) -> int:
    """Return the smallest volume of the file system. Raises UsageError if it or a feature has an unknown name."""
    for name in request.only:
        FEATURES.get(name)
    driver = FILESYSTEMS.get(request.filesystem)
    if not driver.mounted:
        raise UsageError(f"'{driver.name}' is not a file system: it has no features to test")
    return driver.min_size_bytes


class Machines(ExitStack):
    """The host, and a guest, which is booted when the first file system needs it. A context manager that ends it.

    ``wish``: the machine to test on; ``auto`` is the first one that can build the file system.
    """

    def __init__(self, wish: MachineSpec) -> None:
        super().__init__()
        if wish.type != AUTO:
            MACHINES.get(wish.type)
        self._wish = wish
        self._machines: TrialMachines | None = None

    def examine(self, request: Request) -> Examination:
        """Test one file system. An error becomes its result, so that others can still be tested; not a UsageError."""
        try:
            return self._examined(request)
        except UsageError:
            raise
        except FslabError as error:
            return Examination(
                filesystem=request.filesystem,
                kernel=None,
                size_bytes=request.size_bytes,
                not_possible=f"{error.what}{f' ({error.hint})' if error.hint else ''}",
            )

    def _examined(self, request: Request) -> Examination:
        medium = MediumSpec(name=feature_tests.SLOT, type=request.medium)
        stack = StackSpec(
            name=request.filesystem, medium=medium, filesystem=request.filesystem, machine=self._wish
        )
        machine = feasibility.resolved(stack).machine
        if machine.type == "host":
            with cleanup.opened_workspace(new_id(), frozenset()) as opened:
                return feature_tests.run_tests(request, opened)
        if self._machines is None:
            opened = self.enter_context(cleanup.opened_workspace(new_id(), frozenset()))
            self._machines = TrialMachines(workspace=opened)
        return feature_tests.in_guest(request, machine, self._machines)
