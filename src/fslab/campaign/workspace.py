"""A campaign's workspace: its directories, journal and media, made at the start and gone at the end."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fslab.campaign.cleanup import undo_pending
from fslab.campaign.journal import CampaignJournal
from fslab.storage import Workspace
from fslab.system import oom, paths
from fslab.system.signals import Teardown


@contextmanager
def opened(campaign: str, wipe: frozenset[str]) -> Iterator[Workspace]:
    """The workspace of a campaign; everything made in it is undone on leaving, whatever happened.

    What a signal left between being journalled and being put on an ExitStack is undone by the journal.
    """
    with CampaignJournal(campaign) as journal, Teardown() as undo:
        undo.enter_context(oom.protected())
        undo_pending(journal)
        undo.callback(undo_pending, journal)
        runtime = paths.runtime() / campaign
        entry = journal.will_create("directory", str(runtime))
        undo.callback(_leave, runtime, journal, entry)
        # Nobody else's business: who can write there can exchange what is ours, and who can open it can take the
        # lock by which campaigns take turns.
        runtime.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        runtime.parent.chmod(0o700)
        runtime.mkdir(mode=0o700)
        scratch = runtime / "scratch"
        scratch_entry = journal.will_create("tree", str(scratch))
        undo.callback(_leave, scratch, journal, scratch_entry)
        scratch.mkdir(mode=0o700)
        workspace = Workspace(
            campaign=campaign, runtime=runtime, images=paths.images(), journal=journal, wipe=wipe
        )
        undo.callback(workspace.exit.close)
        yield workspace


def _leave(path: Path, journal: CampaignJournal, entry: str) -> None:
    if path.name == "scratch":
        shutil.rmtree(path, ignore_errors=True)
    elif path.is_dir():
        path.rmdir()
    journal.undone(entry)
