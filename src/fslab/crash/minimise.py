"""Find the fewest lost writes of a state that still break its promise: delta debugging (Zeller, Hildebrandt, IEEE TSE
2002), in the greedy form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fslab.crash.states import State

MOST_TRIES = 60


def fewest_lost(state: State, lost: Sequence[int], breaks: Callable[[State], bool]) -> State:
    """Return the state with the fewest lost writes found in about ``MOST_TRIES`` attempts.

    Return ``state`` itself if losing its writes as a whole does not break the promise, as with torn writes.
    """
    rows, tries = list(lost), 0
    if not rows or not breaks(_without(state, rows)):
        return state
    size = max(1, len(rows) // 2)
    while tries < MOST_TRIES:
        for start in range(0, len(rows), size):
            fewer = rows[:start] + rows[start + size :]
            tries += 1
            if fewer != rows and breaks(_without(state, fewer)):
                rows = fewer
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return _without(state, rows)


def _without(state: State, rows: Sequence[int]) -> State:
    return State(cut=state.cut, fate="without", without=tuple(rows))
