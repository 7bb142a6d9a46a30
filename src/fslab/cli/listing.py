"""``fslab list`` and ``schema``: what studies can use (file systems, media, …), and the keys of their files."""

import sys
from enum import StrEnum
from typing import Any

from fslab.cli.common import JsonOption, console, print_json, say


class Kind(StrEnum):
    """The lists that can be printed."""

    STUDIES = "studies"
    FILESYSTEMS = "filesystems"
    LAYOUTS = "layouts"
    MEDIA = "media"
    MACHINES = "machines"
    WORKLOADS = "workloads"
    PROBES = "probes"
    FEATURES = "features"
    APPLICATIONS = "applications"
    FAULTS = "faults"
    MECHANISMS = "mechanisms"
    VALIDITY_RULES = "validity-rules"
    CAMPAIGN_RULES = "campaign-rules"


# Listed by default, because studies use them. The other kinds are listed only on request.
USED_BY_STUDIES = (
    Kind.STUDIES, Kind.FILESYSTEMS, Kind.LAYOUTS, Kind.MEDIA, Kind.MACHINES, Kind.WORKLOADS, Kind.APPLICATIONS,
    Kind.FAULTS, Kind.PROBES, Kind.FEATURES,
)  # fmt: skip


def listing(kind: Kind | None = None, *, as_json: JsonOption = False) -> None:
    """List what studies can use, and the plug-ins that add to it.

    A list on its own has details: `fslab list filesystems` has the options of mkfs and mount that studies may use,
    `fslab list media` the profiles of disks. For every key of a study: fslab schema --markdown. An entry of a plug-in
    is followed by the name of its package. With the environment variable FSLAB_PLUGINS=off, no plug-in is used.

    Parameters:
        kind: List only these; default: everything that studies use.
    """
    from fslab.api import capabilities

    kinds = [kind] if kind else list(USED_BY_STUDIES)
    problems = [why for each in kinds for why in capabilities.problems(each.value)]
    entries = {each.value: capabilities.entries(each.value) for each in kinds}
    if as_json:
        print_json(entries)
    else:
        _show(entries)
    for problem in (*problems, *capabilities.unknown_groups()):
        say(problem, err=True)


def _show(entries: dict[str, list[dict[str, Any]]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from fslab.api.capabilities import BUILT_IN

    screen = console(markup=True)
    for title, rows in entries.items():
        table = Table(
            title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, show_header=False
        )
        details = len(entries) == 1
        for row in rows:
            plugin = "" if row["from"] == BUILT_IN else f" \\[{escape(row['from'])}]"
            table.add_row(f"  {row['name']}", f"[dim]{escape(row['summary'])}[/dim]{plugin}")
            for name, options in row.get("options", {}).items() if details else ():
                table.add_row(f"    {name}", f"[dim]{escape(', '.join(options) or 'none')}[/dim]")
            for profile in row.get("profiles", ()) if details else ():
                about = f"[dim]{escape(profile['about'])}\nSource: {escape(profile['sources'])}[/dim]"
                table.add_row(f"    {profile['name']}", about)
            for name, values in row.get("settings", {}).items() if details else ():
                table.add_row(f"    {name}", f"[dim]{', '.join(values)}; default: {values[0]}[/dim]")
        screen.print(table)


def schema(*, markdown: bool = False) -> None:
    """Print the JSON Schema of study files, for completion and checking in an editor.

    For VS Code (YAML extension), save it as study.schema.json, and start a study with the line `# yaml-language-server:
    $schema=study.schema.json`.

    Parameters:
        markdown: Print a description of every key in Markdown instead.
    """
    from fslab.study import reference_pages
    from fslab.study import schema as schemas

    if markdown:
        sys.stdout.write(reference_pages.markdown())
    else:
        print_json(schemas.schema())
