"""What the tools share that test how a file system copes with a virtual disk: their request and document. Pure."""

from typing import Any, ClassVar

from fslab import untrusted_text
from fslab.cell import EntryOptions
from fslab.crash.trial_request import IMAGES_FULL, LESS
from fslab.errors import NoSpaceError, UnsupportedError
from fslab.filesystem_abilities import Ability, Needs
from fslab.system.tools import Tool
from fslab.workloads import Commands, Job, P, ToolOutput, Workload

REQUEST = "request.json"
SEEDS = 1 << 31
_NO_SUCH_DISK = (
    "this is not on one virtual disk",
    "the virtual disk keeps no log",
)  # messages of fslab crash


class OneDiskTest(Workload[P]):
    """A tool that drives the disk under the file system. ``disk``: the one that it needs; ``medium``: as in a study."""

    tools: ClassVar[tuple[Tool, ...]] = (
        Tool(program="fslab", package=None),
        Tool(program="fslab-disk", package=None),
    )
    drives_disk = True
    disk: ClassVar[str]
    medium: ClassVar[str]

    def needs(self, parameters: P) -> Needs:  # noqa: ARG002
        return Needs(abilities=frozenset({Ability.PROMISES}))

    def requested(self, request: EntryOptions, job: Job, *prepare: tuple[str, ...]) -> Commands:
        """Return ``fslab crash run`` of this request, which is written to a file."""
        return Commands(
            prepare=prepare,
            run=("fslab", "crash", "run", str(job.scratch / REQUEST)),
            inputs={REQUEST: request.model_dump_json(indent=2)},
        )

    def document(self, output: ToolOutput) -> dict[str, Any]:
        """Return the document on standard output. UnsupportedError if the medium is not such a disk; NoSpaceError if
        the memory for images of crash states was full."""
        if any(message in output.stderr for message in _NO_SUCH_DISK):
            raise UnsupportedError(
                f"{self.name} needs a medium that is {self.disk}",
                where="medium",
                hint=f"media: {{disk: {self.medium}}}, layout: single",
            )
        if IMAGES_FULL in output.stderr:
            raise NoSpaceError(IMAGES_FULL, hint=LESS)
        document: dict[str, Any] = untrusted_text.json_of(output.stdout)
        return document
