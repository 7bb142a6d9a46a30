"""``fslab claims``: the claims of a study, checked against its published figures and against measured data."""

from fslab.cli.common import JsonOption, StoreOption, console, print_json
from fslab.errors import UsageError

EPILOG = """\b
Examples:
  fslab claims                              the last campaign, claim by claim
  fslab claims last --beside last~1         which results have changed since another campaign
  fslab claims ext-generations --published  what a publication's own tables say; needs no run

\b
Exit codes:
   0  shown, whatever the verdicts are
   2  no such study or campaign, campaigns of two studies, or a mistake in the study
   7  no campaign of the study, or no store
"""


def claims(
    target: str = "last",
    *,
    published: bool = False,
    beside: str | None = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check each claim of a study twice: against the figures that the publication printed, and against trials on this
    machine.

    A printed figure is one number and compared as it is. Trials give intervals: a claim is replicated, contradicted
    (reversed, or different in size), below the margin (the stacks differ by less than the study's smallest difference
    of interest: a tie, or small), or open, with the reason. If the budget
    ended, `fslab run --resume CAMPAIGN --budget 1h` runs more trials where claims are open; `fslab run STUDY
    --until-decided` starts a new campaign without a budget. For the language of claims see docs/claims.md.

    Parameters:
        target [CAMPAIGN|STUDY]: A campaign (its id, the beginning of one, or 'last'), or a study (its id or file): then
            its last campaign and its other ones on this machine, so that intervals contain what changes between them.
        published: Only against the published figures; needs no campaign.
        beside CAMPAIGN: Another campaign of the study: how many results are the same as there, and the claims with
            another one.
    """
    from fslab.api import claims as api
    from fslab.report import claims_terminal

    if beside is not None:
        if published:
            raise UsageError(
                "cannot be combined with --published", where="--beside", hint="give only one of them"
            )
        agreement, names = api.compared(beside, target, store)
        if as_json:
            print_json({"a": names[0], "b": names[1], **agreement.model_dump(mode="json")})
        else:
            claims_terminal.show_agreement(agreement, names, console())
        return
    found = api.verdicts(target, store, published_only=published)
    if as_json:
        document = found.model_dump(mode="json")
        for name, wanted in (("published", True), ("measured", False)):
            document.setdefault("counts", {})[name] = found.counts(published=wanted)
        document["counts"]["tested"] = found.tested
        print_json(document)
        return
    claims_terminal.show(found, console())
