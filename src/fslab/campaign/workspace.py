"""A campaign's workspace: its directories, journal and media. Created at the start, removed at the end."""

from collections.abc import Iterator
from contextlib import contextmanager

from fslab.campaign.cleanup import undo_pending
from fslab.campaign.undo_journal import CampaignJournal
from fslab.storage import Workspace
from fslab.system import files, oom, paths, signals
from fslab.system.signals import Teardown


@contextmanager
def opened(campaign: str, wipe: frozenset[str]) -> Iterator[Workspace]:
    """Open the workspace of a campaign. Leaving it undoes everything made in it, in any case.

    The journal undoes the directories, and what a signal left between its journal entry and its registration on an
    ExitStack.
    """
    with Teardown() as undo:
        with signals.shielded():  # a journal that is not closed leaves its file
            journal = undo.enter_context(CampaignJournal(campaign))
        undo.enter_context(oom.protected())
        undo_pending(journal)
        undo.callback(undo_pending, journal)
        runtime = paths.runtime() / campaign
        journal.will_create("directory", str(runtime))
        # Other users must have no access: with write access they could exchange our files, and with read access they
        # could take the machine lock.
        files.own_directory(runtime.parent, 0o700)
        runtime.mkdir(mode=0o700)
        scratch = runtime / "scratch"
        journal.will_create("tree", str(scratch))
        scratch.mkdir(mode=0o700)
        workspace = Workspace(
            campaign=campaign,
            runtime=runtime,
            images=paths.images(),
            journal=journal,
            mark=journal.mark,
            wipe=wipe,
        )
        undo.callback(workspace.exit.close)
        yield workspace
