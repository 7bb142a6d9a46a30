"""Answers a question by several campaigns of the same cells: what differs between campaigns is in the interval. Pure.

With one campaign, nothing of this is known. With several, the excess of their means over the noise within each is
measured, so that the autocorrelation of trials need not be known: it is a part of that excess.
"""

from collections.abc import Sequence
from dataclasses import replace

from fslab.answers.ratio import Estimate
from fslab.stats.campaign_spread import NO_SPREAD, CampaignRatio, CampaignSpread, Weight, combined, fit

__all__ = ["NO_SPREAD", "CampaignSpread", "Weight", "fit", "over_campaigns"]


def over_campaigns(found: Sequence[Estimate], spread: CampaignSpread, weights: Sequence[Weight]) -> Estimate:
    """Return the estimate of all campaigns together, from those of each campaign.

    ``weights``: those of the figures in the logarithm of the ratio. Campaigns without an interval do not count; without
    any, the first estimate is returned.
    """
    known = [each for each in found if each.interval and each.interval.low > 0 and each.ratio]
    ratios = [
        CampaignRatio(ratio=each.ratio, interval=each.interval, size=min(each.n_a, each.n_b))
        for each in known
        if each.ratio and each.interval
    ]
    if not ratios:
        return found[0]
    ratio, interval = combined(ratios, spread.half_width(weights, ratios[0].interval.coverage))
    return replace(
        known[0], ratio=ratio, interval=interval, p_value=None, correlation_known=True,
        n_a=sum(each.n_a for each in known), n_b=sum(each.n_b for each in known),
    )  # fmt: skip
