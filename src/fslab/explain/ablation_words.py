"""Describes what the trials of an ablation show about the causes of a difference. Pure."""

from collections.abc import Iterator
from math import log
from typing import Any

from fslab.explain.attribution import Attribution, Share
from fslab.explain.mechanisms import NOTICEABLE, REGISTRY
from fslab.store.campaign import Ablation
from fslab.units import counted


def in_words(ablation: Ablation, found: Attribution) -> list[str]:
    """Return sentences: the difference, its causes, then what is not a cause, and what remains unexplained."""
    blocks = f"{ablation.metric}, {counted(found.ratio.n, 'block')}"
    gap = found.ratio.factor > 1 and found.ratio.nothing is False
    lines = [f"{ablation.workload}: {_difference(ablation, found.ratio)} ({blocks})."]
    ordered = sorted(found.shares, key=lambda name: -found.shares[name].factor)
    causes = [
        name for name in ordered if name not in ablation.common and _narrows(found.shares[name], found.ratio)
    ]
    if causes and gap:
        lines.append(
            f"{ablation.slow} is slower because of {', '.join(REGISTRY.get(name).cause for name in causes)}."
        )
    lines += [f"  {_of_share(ablation, found, name, gap=gap)}" for name in ordered]
    lines += [f"  {line}" for line in _of_costs(ablation, found)]
    lines.append(f"  A factor of {_factor(found.rest)} remains unexplained.")
    return lines


def as_document(ablation: Ablation, found: Attribution | None) -> dict[str, Any]:
    return {
        "ablation": ablation.model_dump(mode="json"),
        "attribution": found.model_dump(mode="json") if found else None,
        "words": in_words(ablation, found) if found else [],
    }


def _difference(ablation: Ablation, ratio: Share) -> str:
    fast, slow, factor = ablation.fast, ablation.slow, _factor(ratio)
    if ratio.nothing:
        return f"{fast} and {slow} do not differ clearly in these trials: a factor of {factor}"
    if ratio.factor <= 1:
        return f"{fast} is not better than {slow} in these trials: a factor of {factor}"
    if ratio.nothing is None:
        return f"{fast} measured better than {slow} by a factor of {factor}; too few blocks for an interval"
    return f"{fast} is better than {slow} by a factor of {factor}"


def _of_share(ablation: Ablation, found: Attribution, name: str, *, gap: bool) -> str:
    share, alone = found.shares[name], found.alone[name]
    cause, switch = REGISTRY.get(name).cause, ablation.switches[name]
    if share.nothing is None:
        return f"{cause}: a factor of {_factor(share)}; too few blocks for an interval"
    slight = _is_negligible(share, found.ratio)
    if (share.nothing and alone.nothing is not False) or (slight and _is_negligible(alone, found.ratio)):
        verdict = "not the cause" if slight else "open: more trials are needed"
        what = _effect(share, ablation.slow, gap=False)
        return f"{cause}: {verdict}; switching it off ({switch}) {what} by a factor of {_factor(share)}"
    together = found.complete and len(found.shares) > 1
    how = "on average over all orders of switching off" if together else "alone"
    alone_too = f"; alone by {_factor(alone)}" if how != "alone" else ""
    both = f". {ablation.fast} has it, too" if name in ablation.common else ""
    what = _effect(share, ablation.slow, gap=gap and not both)
    return f"Switching {cause} off ({switch}) {what} by a factor of {_factor(share)}, {how}{alone_too}{both}"


def _of_costs(ablation: Ablation, found: Attribution) -> Iterator[str]:
    """Yield what switches cost that make another workload or volume: no share of the difference."""
    for name, cost in found.costs.items():
        yield (
            f"Switching {REGISTRY.get(name).cause} off ({ablation.switches[name]}) "
            f"{_effect(cost, ablation.slow, gap=False)} by a factor of {_factor(cost)}; that is another question, and "
            "no share of the difference"
        )


def _narrows(share: Share, ratio: Share) -> bool:
    return share.nothing is False and share.factor > 1 and not _is_negligible(share, ratio)


def _effect(share: Share, slow: str, *, gap: bool) -> str:
    """Return what switching off does: to the gap, or if there is none, to the stack itself."""
    if gap:
        return "narrows the gap" if share.factor >= 1 else "widens the gap"
    return f"makes {slow} {'faster' if share.factor >= 1 else 'slower'}"


def _is_negligible(share: Share, ratio: Share) -> bool:
    """Return whether the interval excludes effects above a tenth, and above a quarter of a difference that is shown."""
    if share.low is None or share.high is None:
        return False
    most = log(NOTICEABLE)
    if ratio.nothing is False:
        most = min(most, abs(log(ratio.factor)) / 4)
    return max(abs(log(share.low)), abs(log(share.high))) <= most


def _factor(share: Share) -> str:
    interval = (
        f" ({share.low:.3g}–{share.high:.3g})" if share.low is not None and share.high is not None else ""
    )
    return f"{share.factor:.3g}{interval}"
