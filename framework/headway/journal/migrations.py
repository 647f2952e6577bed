"""How journals of earlier schemas are carried forward.

:data:`STEPS` has one entry a schema version that was left behind. A writer takes all steps that a journal
lacks in the transaction in which it opens the journal, so an interrupted opening leaves it as it was.
Version 1 is the first that was released; its first journals have no table of the owner, which
:mod:`headway.journal.owner` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import select, update
from sqlalchemy.engine import Connection

from headway.errors import UserError
from headway.journal import schema
from headway.journal.schema import about
from headway.version import __version__

#: Makes the tables and rows of one version those of the next.
Step = Callable[[Connection], None]

#: Version -> the step from it to the next version, for each version below
#: :data:`headway.journal.schema.SCHEMA_VERSION`, from 1 on.
STEPS: Mapping[int, Step] = {}


def version_of(connection: Connection) -> int | None:
    """The schema version that a journal says it has; None if it does not say one."""
    versions = connection.execute(select(about.c.schema_version)).scalars().all()
    return versions[0] if len(versions) == 1 and isinstance(versions[0], int) and versions[0] >= 1 else None


def check_version(connection: Connection, name: str) -> None:
    """Raises :class:`UserError` for a journal of a newer schema, or without a version."""
    expected = schema.SCHEMA_VERSION
    version = version_of(connection)
    if version is not None and version <= expected:
        return
    versions = connection.execute(select(about.c.schema_version)).scalars().all()
    found = ", ".join(map(repr, versions)) or "none"
    raise UserError(
        f"journal {name}: expected schema version {expected}, found {found}: "
        + (
            "the file is damaged, or is no headway journal"
            if version is None
            else f"a newer headway than {__version__} wrote it; use the newer headway, or another journal"
        )
    )


def check_read_only(connection: Connection, name: str) -> None:
    """Raises :class:`UserError` for a journal of an older schema, which a reader cannot carry forward."""
    version = version_of(connection)
    if version is not None and version < schema.SCHEMA_VERSION:
        raise UserError(
            f"journal {name}: expected schema version {schema.SCHEMA_VERSION}, found {version}: an older "
            "headway wrote it. It is in order; `headway run` carries it forward when it opens it"
        )


def carry_forward(connection: Connection) -> None:
    """Make an older journal one of the present schema, in the transaction that is open."""
    version = version_of(connection)
    while version is not None and version < schema.SCHEMA_VERSION:
        STEPS[version](connection)
        version += 1
        connection.execute(update(about).values(schema_version=version))
