"""Compares the verdicts of two campaigns of one study. Pure."""

from fslab.cell import Frozen
from fslab.claims.model import BELOW, FAILED, UNTESTED, UPHELD, ClaimAnswer, ClaimVerdict, Verdicts


class ChangedVerdict(Frozen):
    """A claim that both campaigns decided, with different results."""

    id: str
    says: str
    a: ClaimAnswer
    b: ClaimAnswer


class Agreement(Frozen):
    """``common``: the number of claims that both campaigns decided. ``changed``: those of which one is replicated,
    contradicted, below the margin or no longer so, and the other is not. ``reworded``: ids of those with the same
    result in other words, such as a tie, and a small difference in the claimed direction. ``only_a``, ``only_b``: ids
    of those that only one of them did."""

    common: int
    changed: tuple[ChangedVerdict, ...]
    reworded: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def agreement(a: Verdicts, b: Verdicts) -> Agreement:
    """Compare the verdicts on the claims that mean the same in both."""
    ours, theirs = _decided(a), _decided(b)
    common = [key for key in ours if key in theirs]
    other = [key for key in common if ours[key].verdict is not theirs[key].verdict]
    changed = [key for key in other if result_of(ours[key].verdict) != result_of(theirs[key].verdict)]
    return Agreement(
        common=len(common),
        changed=tuple(ChangedVerdict(id=key[0], says=key[1], a=ours[key], b=theirs[key]) for key in changed),
        reworded=tuple(key[0] for key in other if key not in changed),
        only_a=tuple(key[0] for key in ours if key not in theirs),
        only_b=tuple(key[0] for key in theirs if key not in ours),
    )


def result_of(verdict: ClaimVerdict) -> tuple[ClaimVerdict, ...]:
    """Return the verdicts that mean the same for a claim."""
    return next((group for group in (UPHELD, FAILED, BELOW) if verdict in group), (verdict,))


def _decided(verdicts: Verdicts) -> dict[tuple[str, str, tuple[str, ...]], ClaimAnswer]:
    """Return the answers of the decided claims, by id, words and meaning."""
    return {
        (claim.id, claim.says, claim.that): claim.measured
        for claim in verdicts.claims
        if claim.measured is not None and claim.measured.verdict not in {ClaimVerdict.OPEN, *UNTESTED}
    }
