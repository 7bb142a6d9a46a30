"""The common parts of layouts in which the file system itself uses several devices. The kernel makes no new device."""

from collections.abc import Sequence
from contextlib import ExitStack

from fslab.errors import LayoutError
from fslab.storage import StackDevice, Workspace
from fslab.storage.layouts import Layout, O


class SeveralLayout(Layout[O]):
    """A layout whose devices are all given to mkfs and mount."""

    def assemble(
        self,
        options: O,
        devices: Sequence[StackDevice],
        workspace: Workspace,
        undo: ExitStack,
        *,
        make: bool,
        keep: bool,
    ) -> StackDevice:
        """Prepare the devices; only mkfs joins them. ``undo`` unregisters them in the kernel, because they go away."""
        self.require(load=True)
        plan = self.plan(options, [str(device.path) for device in devices], workspace.campaign)
        for argv in plan.deactivate if keep else plan.remove:
            undo.callback(workspace.run, "detach", argv, check=False)
        for argv in plan.create if make else plan.activate:
            workspace.run("attach", argv, failure=LayoutError)
        first = devices[0]
        facts = {
            **first.facts,
            "layout": self.name,
            **options.model_dump(),
            "parts": [dict(device.facts) for device in devices],
        }
        return StackDevice(
            path=first.path,
            size_bytes=self.usable_bytes(options, min(each.size_bytes for each in devices)),
            discard=all(device.discard for device in devices),
            facts=facts,
        )
