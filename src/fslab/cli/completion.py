"""What a shell completes: values of arguments and options, by what help calls them. Only reads, and prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import typer

from fslab.errors import FslabError


def of(metavar: str) -> Callable[[typer.Context, str], list[str]] | None:
    """Return what completes a value that help calls ``metavar``; None if that is unknown: then the shell completes
    names of files."""
    sources = [source for name, source in _SOURCES.items() if name in metavar.split("|")]
    if not sources:
        return None

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        for source in sources:
            try:
                found += source(context)
            except FslabError:  # such as a store that does not exist: the command says so
                continue
        return [each for each in found if each.startswith(incomplete)]

    return complete


def _studies(_: typer.Context) -> Iterable[str]:
    from fslab import shipped_studies

    return shipped_studies()


def _campaigns(context: typer.Context) -> Iterable[str]:
    from fslab.cli.common import open_store

    with open_store(context.params.get("store")) as opened:
        return ["last", *(campaign.name or campaign.id for campaign in reversed(opened.campaigns()))]


def _listed(kind: str, *more: str) -> Callable[[typer.Context], Iterable[str]]:
    """Return what ``fslab list`` has of this kind."""

    def names(_: typer.Context) -> Iterable[str]:
        from fslab.api import capabilities

        return *more, *(entry["name"] for entry in capabilities.entries(kind))

    return names


_SOURCES: dict[str, Callable[[typer.Context], Iterable[str]]] = {
    "CAMPAIGN": _campaigns,
    "FILESYSTEM": _listed("filesystems"),
    "MACHINE": _listed("machines", "auto"),
    "MECHANISM": _listed("mechanisms"),
    "STUDY": _studies,
}
