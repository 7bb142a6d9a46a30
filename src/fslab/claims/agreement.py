"""Compares the verdicts of two campaigns of one study. Pure."""

from fslab.cell import Frozen
from fslab.claims.model import UNTESTED, ClaimAnswer, ClaimVerdict, Verdicts


class ChangedVerdict(Frozen):
    """A claim that both campaigns decided, with different verdicts. ``both_small``: in both, the difference is below
    the margin; whether its sign is shown depends on the number of trials."""

    id: str
    says: str
    a: ClaimAnswer
    b: ClaimAnswer
    both_small: bool


class Agreement(Frozen):
    """``common``: the number of claims that both campaigns decided. ``only_a``, ``only_b``: ids of those that only one
    of them did."""

    common: int
    changed: tuple[ChangedVerdict, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


_SMALL = {ClaimVerdict.TIE, ClaimVerdict.SMALL, ClaimVerdict.OPPOSITE}


def agreement(a: Verdicts, b: Verdicts) -> Agreement:
    """Compare the verdicts on the claims that mean the same in both."""
    ours, theirs = _decided(a), _decided(b)
    common = [key for key in ours if key in theirs]
    return Agreement(
        common=len(common),
        changed=tuple(
            ChangedVerdict(
                id=key[0],
                says=key[1],
                a=ours[key],
                b=theirs[key],
                both_small={ours[key].verdict, theirs[key].verdict} <= _SMALL,
            )
            for key in common
            if ours[key].verdict is not theirs[key].verdict
        ),
        only_a=tuple(key[0] for key in ours if key not in theirs),
        only_b=tuple(key[0] for key in theirs if key not in ours),
    )


def _decided(verdicts: Verdicts) -> dict[tuple[str, str, tuple[str, ...]], ClaimAnswer]:
    """Return the answers of the decided claims, by id, words and meaning."""
    return {
        (claim.id, claim.says, claim.that): claim.measured
        for claim in verdicts.claims
        if claim.measured is not None and claim.measured.verdict not in {ClaimVerdict.OPEN, *UNTESTED}
    }
