"""``fslab clean``: remove what a crashed or killed campaign left behind."""

from fslab.cli.common import JsonOption, print_json, say


def clean(as_json: JsonOption = False) -> None:
    """Remove what a killed campaign left behind: tools, mounts, loop devices, images; and restore system settings.

    Only what fslab's own journals name is removed, and its directories for temporary files that no process uses;
    nothing of running campaigns. Results in the store are kept; finish the campaign with: fslab run --resume.
    """
    from fslab import clean as clean_all

    done, failures = clean_all()
    if as_json:
        print_json(
            {
                "undone": [
                    {"campaign": campaign, "kind": entry.kind, "target": entry.target}
                    for campaign, entry in done
                ],
                "failed": [str(error) for error in failures],
            }
        )
    else:
        for campaign, entry in done:
            say(f"{campaign}: {entry.kind} {entry.target}")
        say(f"{len(done)} removed or restored" if done else "nothing to remove")
    if failures:
        raise failures[0]
