"""``fslab clean``: undo what a crash left behind."""

from fslab.cli.common import JsonOption, print_json, say


def clean(as_json: JsonOption = False) -> None:
    """Undo what a killed campaign left behind: tools, mounts, loop devices, images, settings.

    Touches only what fslab's own journals name. Running campaigns are not touched. Results in the store stay; finish
    the campaign with: fslab run --resume.
    """
    from fslab.campaign import cleanup

    done, failures = cleanup.clean_all()
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
        say(f"{len(done)} things undone" if done else "nothing to undo")
    if failures:
        raise failures[0]
