"""``fslab schema``: print the schema of study files, for editors (JSON Schema) or for people (Markdown)."""

import sys

from fslab.cli.common import print_json


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
