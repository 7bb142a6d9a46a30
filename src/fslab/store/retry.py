"""Retries while the database is unavailable: a campaign's writes for a minute, what a fleet does for hours. Only the
caller waits.

After a lost connection it is unknown whether the transaction was committed.
"""

import time
from collections.abc import Callable, Iterable
from itertools import chain, repeat
from typing import TypeVar

from fslab.errors import StoreLostError

WAITS_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # restarting a server takes some seconds
FIRST_WAITS_S, LONGEST_WAIT_S = (1.0, 2.0, 4.0, 8.0), 10.0
Result = TypeVar("Result")


def tried(
    do: Callable[[bool], Result], waits_s: Iterable[float], tell: Callable[[StoreLostError, float], object]
) -> Result:
    """Call ``do`` until it succeeds, and return its result; its argument: whether this is a retry.

    ``tell`` gets each error with the time to the next attempt. StoreLostError if the attempt after the last wait fails.
    """
    again = False
    for wait_s in waits_s:
        try:
            return do(again)
        except StoreLostError as error:
            tell(error, wait_s)
        time.sleep(wait_s)
        again = True
    return do(again)


def written(campaign: str, note: Callable[[str], object], write: Callable[[bool], None]) -> None:
    """Try to write what belongs to a campaign, which is to be resumed if all attempts fail. ``note``: for the user."""
    try:
        tried(
            write,
            WAITS_S,
            lambda error, wait_s: note(
                f"the store is unavailable ({error.what}): next attempt in {wait_s:g} s"
            ),
        )
    except StoreLostError as error:
        first = f"{error.hint}; then" if error.hint else "when the store is available again,"
        hint = f"{first} finish the campaign with: fslab run --resume {campaign}"
        raise StoreLostError(error.what, where=error.where, hint=hint) from error


def patiently(do: Callable[[], Result], tell: Callable[[str], object]) -> Result:
    """Call ``do`` until the fleet's store is available, and return its result. ``tell`` gets one message."""

    def once(error: StoreLostError, wait_s: float) -> None:
        if wait_s == FIRST_WAITS_S[0]:
            tell(f"waiting for the fleet's store: {error.what}")

    return tried(lambda _: do(), chain(FIRST_WAITS_S, repeat(LONGEST_WAIT_S)), once)
