"""Which database ``--store`` names, and how a store is named to a user. Must open none."""

import contextlib
import os
import shlex
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from fslab.errors import StoreError
from fslab.system import paths

URL_HINT = "give a path, or a URL such as postgresql+psycopg://user@host/database"


def default_path() -> Path:
    """Return ``$XDG_DATA_HOME/fslab/store.sqlite``, by default below ``~/.local/share`` (XDG Base Directory 0.8)."""
    return paths.data() / "store.sqlite"


def store_url(where: str | None) -> URL:
    """Return the URL of the database that ``--store`` names: a path, an SQLAlchemy URL, or None for the default."""
    if where is None:
        return URL.create("sqlite", database=str(default_path()))
    if "://" not in where:
        return URL.create("sqlite", database=str(Path(where).expanduser().absolute()))
    try:
        return make_url(where)
    except (ArgumentError, ValueError):  # ValueError: the port is not a number
        # Do not show the text itself: it may contain a password.
        raise StoreError(
            "not a path or a database URL", where=where.partition("://")[0], hint=URL_HINT
        ) from None


def file_of(url: URL) -> Path | None:
    """Return the file of a store in SQLite; None for one in memory or on a server."""
    is_file = url.get_backend_name() == "sqlite" and url.database not in {None, "", ":memory:"}
    return Path(str(url.database)) if is_file else None


def place_of(url: URL) -> str:
    """Return what to show to a user: the file of an SQLite store, else the URL without its passwords."""
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    secret = dict.fromkeys(_passwords(url), "***")
    return url.update_query_dict(secret).render_as_string(hide_password=True)


def store_option(place: str) -> str:
    """Return what commands need to use the store at ``place``: `` --store PLACE``; empty if they do by themselves.

    Without its password, which libpq finds in ``~/.pgpass``.
    """
    with contextlib.suppress(StoreError):  # what the variable names is no store
        if place == place_of(store_url(os.environ.get("FSLAB_STORE") or None)):
            return ""
    return f" --store {shlex.quote(place.replace(':***@', '@'))}"


def has_password(where: str) -> bool:
    """Return whether the URL of a store contains a password."""
    url = store_url(where)
    return url.password is not None or bool(_passwords(url))


def _passwords(url: URL) -> list[str]:
    return [name for name in url.query if "password" in name.lower()]  # libpq reads them there too
