"""Retries writes when the database becomes unavailable while a campaign runs.

The number of retries is limited. After a lost connection it is unknown whether the transaction was committed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fslab.errors import StoreLostError

WAITS_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # restarting a server takes some seconds


@dataclass(kw_only=True, slots=True)
class WriteRetries:
    """Retries a campaign's writes. ``note`` gets messages for the user. ``campaign``: the id to resume afterwards."""

    campaign: str
    note: Callable[[str], object]
    waits_s: tuple[float, ...] = field(default_factory=lambda: WAITS_S)

    def tried(self, write: Callable[[bool], None]) -> None:
        """Call ``write`` until it succeeds; its argument: whether this is a retry. StoreLostError if all fail."""
        for number, wait_s in enumerate((*self.waits_s, None)):
            try:
                write(number > 0)
            except StoreLostError as error:
                if wait_s is None:
                    raise self._given_up(error) from error
                self.note(f"the store is unavailable ({error.what}): next attempt in {wait_s:g} s")
                time.sleep(wait_s)
            else:
                return

    def _given_up(self, error: StoreLostError) -> StoreLostError:
        first = f"{error.hint}; then" if error.hint else "when the store is available again,"
        hint = f"{first} finish the campaign with: fslab run --resume {self.campaign}"
        return StoreLostError(error.what, where=error.where, hint=hint)
