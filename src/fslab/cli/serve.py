"""``fslab serve``: serve the reports of the store to a browser, live."""

from typing import Annotated

import typer

from fslab.cli.common import StoreOption, open_store, say
from fslab.errors import InterruptedBySignal, UsageError

EPILOG = """\b
Examples:
  fslab serve                                  http://127.0.0.1:8765/, for all users of this machine
  fslab serve --host 0.0.0.0                   for others too, with a token that it prints
"""


def serve(
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8765,
    name: list[str] | None = None,
    store: StoreOption = None,
) -> None:
    """Show the campaigns of the store in a browser: the same pages as fslab report, updated while
    a campaign runs.

    The server is read-only. It listens on this machine only, where all users can read the pages, unless --host gives
    another address: then the printed URL contains a token, and requests without it are rejected. Connections are not
    encrypted: use a proxy with TLS, or ssh -L.

    Stop it with Ctrl-C.

    Parameters:
        host ADDRESS: The address to listen on.
        port: The port; 0 takes any that is free.
        name HOST: Another host name that browsers may use for this server. Repeatable.
    """
    from fslab.serve import server

    with open_store(store) as opened:
        if not opened.campaigns():
            say(f"{opened.path} has no campaign yet; the first is shown when it starts", err=True)
    try:
        server.run(store, host=host, port=port, names=name or [], announce=say)
    except InterruptedBySignal:
        return  # the normal way to stop it
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "invalid host name"
        hint = "give an address of this machine, such as --host 127.0.0.1, and a free --port"
        raise UsageError(
            f"cannot listen on this address: {why}", where=f"{host}:{port}", hint=hint
        ) from error
