"""Loop buffered: the loop device uses the page cache of its backing file. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class LoopBuffered(TrialRule):
    """If the file system below the image does not support direct I/O, the kernel silently uses buffered I/O."""

    summary = "the loop device is cached by the file system below it"
    severity = Severity.WARNING
    when = "the file system below the image does not support direct I/O"
    hint = "put the image ('path' of the medium) on a file system that allows direct I/O, such as ext4 or xfs"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Warn if the medium was found to be buffered when it was attached."""
        if facts.medium_buffered:
            yield self.warning(
                "the loop device goes through the page cache of the backing file, so direct I/O is not direct"
            )
