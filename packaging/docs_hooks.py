"""What the site gets when it is built: every command's help, files that lie outside ``docs``, the list of tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).parents[1]
# A link from docs/ to a file of the source tree: it becomes a part of the site.
OUTSIDE = re.compile(r"\]\(\.\./([\w./-]+\.(?:md|py))")
# Pages by the texts beside docs/ that they are made of.
BESIDE = {"index.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "CONTRIBUTING.md": "CONTRIBUTING.md"}


def on_config(config: Any) -> None:
    """List the page of each tool in the navigation."""
    (reference,) = (part["Reference"] for part in config.nav if "Reference" in part)
    (entry,) = (entry for entry in reference if "Tools" in entry)
    pages = sorted((ROOT / "docs/tools").glob("*.md"))
    entry["Tools"] = [{page.stem: f"tools/{page.name}"} for page in pages]


def on_files(files: Any, *, config: Any) -> Any:
    """Add the made pages."""
    from mkdocs.structure.files import File

    linked = set[str]()
    for page in (ROOT / "docs").glob("*.md"):
        linked |= set(OUTSIDE.findall(page.read_text()))
    for path in sorted(linked):
        files.append(File.generated(config, path, content=(ROOT / path).read_text()))
    for path, text in BESIDE.items():
        content = (ROOT / text).read_text().replace("](docs/", "](")
        files.append(File.generated(config, path, content=content))
    files.append(File.generated(config, "commands.md", content=commands()))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links to the source tree lead to what the site has of it. In a folder of docs/, ``../`` is docs/ itself."""
    return markdown if "/" in page.file.src_uri else OUTSIDE.sub(r"](\1", markdown)


def commands() -> str:
    """``fslab --help`` of every command, as one page."""
    from fslab.cli import app

    return "\n".join(["# Commands\n", *_page(typer.main.get_command(app), "fslab", "#")])


def _page(command: Any, path: str, level: str) -> list[str]:
    """A command's help, and that of each of its own commands below a heading."""
    parts = [_help(command, path)]
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        own = command.get_command(None, name)
        parts += [f"{level}# {path} {name}\n", *_page(own, f"{path} {name}", f"{level}#")]
    return parts


def _help(command: Any, path: str) -> str:
    with command.make_context(path, [], resilient_parsing=True, terminal_width=100) as context:
        return f"```text\n{command.get_help(context)}\n```\n"
