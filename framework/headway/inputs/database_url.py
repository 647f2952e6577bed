"""Where a database is: a SQLite file's path, or the URL of a SQLite file or a PostgreSQL database."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from headway.errors import UserError


def database_url(url_or_path: str | Path, place: str) -> URL:
    """The database there, whose drivers are ours; a file's path is absolute and without links.

    ``place`` is what a message begins with, such as ``--db``. Raises :class:`UserError` for anything else,
    also for SQLite without a file, which would not outlive its process.
    """
    text = os.fspath(url_or_path)
    if "://" not in text:
        return URL.create("sqlite", database=os.path.realpath(text))
    expected = "expected a file's path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError):
        # The error has parts of the address in it, perhaps its password.
        raise UserError(f"{place}: {expected}, found an address that cannot be read") from None
    shown = url.render_as_string(hide_password=True)
    if backend == "sqlite":
        if not url.database or url.database == ":memory:":
            raise UserError(f"{place} {shown}: {expected}, found no file, so nothing would be kept")
        return URL.create("sqlite", database=os.path.realpath(url.database))
    if backend != "postgresql":
        raise UserError(f"{place} {shown}: {expected}, found {backend!r}")
    return url.set(drivername="postgresql+psycopg")
