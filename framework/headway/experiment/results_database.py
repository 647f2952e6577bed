"""A database of results: the campaigns of a group of people in one place, to be asked.

SQLite (a file) or PostgreSQL (a URL). Three tables: ``headway_campaigns``, ``headway_emulations`` (a line an
emulation: workload, x, policy, seed) and ``headway_figures`` (its metrics; null where one has no value). A
campaign is there whole or not at all, and once: the same results again are the same campaign.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    create_engine,
    func,
    insert,
    inspect,
    select,
)
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from headway.errors import Failure, UserError
from headway.experiment.campaign import Row
from headway.experiment.folder import CAMPAIGN, METHOD, ROWS, read_record, read_results
from headway.inputs.database_url import database_url

metadata = MetaData()

campaigns = Table(
    "headway_campaigns",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("stored", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("method", Text, nullable=False),
)
emulations = Table(
    "headway_emulations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("campaign", ForeignKey("headway_campaigns.id"), nullable=False, index=True),
    Column("workload", Text, nullable=False),
    Column("x", Double, nullable=False),
    Column("policy", Text, nullable=False),
    Column("seed", Integer, nullable=False),
)
figures = Table(
    "headway_figures",
    metadata,
    Column("emulation", ForeignKey("headway_emulations.id"), primary_key=True),
    Column("metric", Text, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("value", Double),
)

#: Factors that emulations can be chosen by -> what their values are.
FACTORS = {"workload": str, "x": float, "policy": str, "seed": int}


@dataclass(frozen=True)
class Stored:
    """A campaign that is there."""

    id: int
    name: str
    #: When it was stored, ISO 8601 in UTC.
    stored: str
    version: str
    emulations: int
    definition: str
    #: JSON: ``record.json`` and ``method.json`` of its folder.
    record: str
    method: str


class ResultsDatabase:
    """The database at a path or URL (sqlite:///PATH, postgresql://USER@HOST/DATABASE).

    Raises :class:`UserError` for what is no such address, or if it is to be there and is not;
    :class:`Failure` if it cannot be reached, read or written.
    """

    def __init__(self, url_or_path: str, *, create: bool = False) -> None:
        url = database_url(url_or_path, "--db")
        self.name = url.render_as_string(hide_password=True)
        if url.get_backend_name() == "sqlite":
            self.name = str(url.database)
            if not create and not Path(self.name).is_file():
                raise UserError(f"{self.name}: expected a database of results, found no such file")
            if not Path(self.name).parent.is_dir():
                raise UserError(f"{self.name}: expected its directory to exist, found none")
        try:
            self._engine = create_engine(url)
        except ModuleNotFoundError as error:
            raise UserError(
                f"{self.name}: needs psycopg: install headway with its extra `postgres`"
            ) from error
        with self._connected() as connection:
            if create:
                metadata.create_all(connection)
            elif not inspect(connection).has_table(campaigns.name):
                raise UserError(
                    f"{self.name}: expected a database of results, found no table {campaigns.name}"
                )

    def add(self, folder: Path) -> tuple[int, bool]:
        """Store the results in a folder; the campaign's number, and whether it is new."""
        _, rows = read_results(folder)
        record = json.dumps(read_record(folder), ensure_ascii=False)
        texts = [(folder / name).read_text(encoding="utf-8") for name in (CAMPAIGN, ROWS, METHOD)]
        digest = hashlib.sha256("\0".join(texts[:2]).encode()).hexdigest()
        with self._connected() as connection:
            there = connection.execute(select(campaigns.c.id).where(campaigns.c.digest == digest)).scalar()
            if there is not None:
                return int(there), False
            made = connection.execute(
                insert(campaigns).values(
                    digest=digest,
                    name=folder.resolve().name,
                    stored=datetime.now(UTC).isoformat(timespec="seconds"),
                    version=json.loads(record)["version"],
                    definition=texts[0],
                    record=record,
                    method=texts[2],
                )
            ).inserted_primary_key
            assert made is not None
            for row in rows:
                one = connection.execute(
                    insert(emulations).values(
                        campaign=made[0], workload=row.scenario, x=row.x, policy=row.variant, seed=row.seed
                    )
                ).inserted_primary_key
                assert one is not None
                values = [
                    {
                        "emulation": one[0],
                        "metric": name,
                        "place": place,
                        "value": None if math.isnan(value) else value,
                    }
                    for place, (name, value) in enumerate(row.values.items())
                ]
                connection.execute(insert(figures), values)
        return int(made[0]), True

    def campaigns(self) -> list[Stored]:
        """All that are there, in order of their numbers."""
        count = func.count(emulations.c.id)
        wanted = [campaigns.c[name] for name in ("id", "name", "stored", "version")]
        texts = [campaigns.c[name] for name in ("definition", "record", "method")]
        query = (
            select(*wanted, count, *texts)
            .join(emulations, emulations.c.campaign == campaigns.c.id, isouter=True)
            .group_by(campaigns.c.id)
            .order_by(campaigns.c.id)
        )
        with self._connected() as connection:
            lines: Any = connection.execute(query)
            return [Stored(*line) for line in lines]

    def campaign(self, number: int) -> Stored:
        """A campaign; :class:`UserError` names the campaigns that are there if it is not."""
        found = {one.id: one for one in self.campaigns()}
        if number not in found:
            there = ", ".join(map(str, found)) or "none"
            raise UserError(f"{self.name}: expected the number of a campaign ({there}), found {number}")
        return found[number]

    def rows(self, number: int, where: Mapping[str, Sequence[str | float | int]] | None = None) -> list[Row]:
        """Emulations of a campaign, in their order; ``where``: factor -> values of which it must have one."""
        self.campaign(number)
        query = (
            select(emulations, figures.c.metric, figures.c.value)
            .join(figures, figures.c.emulation == emulations.c.id)
            .where(emulations.c.campaign == number)
            .order_by(emulations.c.id, figures.c.place)
        )
        for factor, values in (where or {}).items():
            query = query.where(emulations.c[factor].in_(values))
        found: dict[int, Row] = {}
        with self._connected() as connection:
            for one, _, workload, x, policy, seed, metric, value in connection.execute(query):
                row = found.setdefault(one, Row(workload, x, policy, seed, {}))
                row.values[metric] = math.nan if value is None else value
        return list(found.values())

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """A transaction, kept if the block ends well."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise Failure(f"{self.name}: {str(error.orig).strip()}") from error


def condition(text: str) -> tuple[str, str | float | int]:
    """``policy=easy`` as a factor and its value; :class:`UserError` if it is none."""
    factor, equals, value = text.partition("=")
    kind = FACTORS.get(factor)
    if not equals or kind is None:
        raise UserError(f"--where: expected FACTOR=VALUE with one of {', '.join(FACTORS)}, found {text!r}")
    try:
        found: str | float | int = kind(value)
    except ValueError:
        raise UserError(f"--where {factor}: expected a number, found {value!r}") from None
    return factor, found
