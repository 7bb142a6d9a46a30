"""``fslab results``: the table of a campaign, again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fslab.cli.common import CampaignArgument, JsonOption, StoreOption, console, print_json

if TYPE_CHECKING:
    from fslab.store.campaign import Campaign
    from fslab.store.store import Store


def results(
    campaign: CampaignArgument = "last",
    everything: Annotated[bool, typer.Option("--all", help="List all campaigns of the store instead.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the table of a campaign: file systems across, workloads down, and what it means in words."""
    from fslab.store.store import Store

    with Store.open(store) as opened:
        if everything:
            _show_campaigns(opened.campaigns(), as_json=as_json)
        elif as_json:
            print_json(_as_json(opened.campaign(campaign), opened))
        else:
            show(opened.campaign(campaign), opened)
