"""``headway results``: campaigns in a database, asked, plotted and exported."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path

import pytest
from commandline import Headway

from headway.experiment.campaign import read_rows
from headway.experiment.folder import read_results
from headway.experiment.results_database import ResultsDatabase, metadata

CAMPAIGN = """
processors: 64
policies: [fcfs, easy]
workloads: [{label: month, model: month, options: {days: 2}, loads: [0.5, 0.8]}]
seeds: 2
"""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a small campaign; nothing in it is changed."""
    from headway.cli import main

    folder = tmp_path_factory.mktemp("campaign")
    (folder / "campaign.yaml").write_text(CAMPAIGN)
    main(["compare", str(folder / "campaign.yaml"), "--out", str(folder / "nights"), "--workers", "1"])
    return folder / "nights"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file; or, where there is one, an empty PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "results.db")
    url: str = request.getfixturevalue("postgres")
    there = ResultsDatabase(url, create=True)
    metadata.drop_all(there._engine)
    there.close()
    return url


def test_what_is_stored_comes_back(headway: Headway, campaign: Path, database: str) -> None:
    ran = headway("results", "--db", database, "add", campaign)
    assert (ran.code, ran.out) == (0, f"{campaign}: campaign 1\n"), ran.err
    assert headway("results", "--db", database, "add", campaign).out.endswith("was there already\n")
    there = ResultsDatabase(database)
    # As text, because a metric without a value is NaN, which equals nothing.
    assert repr([(row.key, row.values) for row in there.rows(1)]) == repr(
        [(row.key, row.values) for row in read_results(campaign)[1]]
    )
    assert [row.seed for row in there.rows(1, {"policy": ["easy"], "x": [0.5, 0.7]})] == [1, 2]
    there.close()
    listed = headway("results", "--db", database, "list").out
    assert "nights" in listed and " 8 " in listed
    shown = headway("results", "--db", database, "show", 1).out
    assert "policies: [fcfs, easy]" in shown and '"command"' in shown


def test_it_is_asked_by_factors(headway: Headway, campaign: Path, tmp_path: Path) -> None:
    assert headway("results", "add", campaign).code == 0
    ran = headway("results", "table", 1, "--where", "policy=easy", "--metric", "mean wait")
    assert ran.code == 0, ran.err
    assert "fcfs" not in ran.out and ran.out.count("easy") == 2 and "±" in ran.out
    ran = headway(
        "results", "table", 1, "--where", "x=0.5", "--where", "policy=easy", "--where", "policy=fcfs",
        "--csv", "--metric", "jobs",
    )  # fmt: skip
    lines = list(csv.DictReader(ran.out.splitlines()))
    assert len(lines) == 4 and lines[0].keys() == {"scenario", "x", "variant", "seed", "jobs"}
    assert headway("results", "export", 1, "--out", "rows.csv").code == 0
    assert (tmp_path / "rows.csv").read_bytes() == (campaign / "rows.csv").read_bytes()
    assert headway("results", "plot", 1, "--out", "wait.png", "--metric", "mean wait").code == 0
    assert (tmp_path / "wait.png").read_bytes().startswith(b"\x89PNG")


def test_parquet(headway: Headway, campaign: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert headway("results", "add", campaign).code == 0
    assert headway("results", "export", 1, "--out", "rows.parquet").code == 0
    table = parquet.read_table(tmp_path / "rows.parquet")
    rows = read_rows(campaign / "rows.csv")
    assert table.column_names == ["workload", "x", "policy", "seed", *rows[0].values]
    assert table.column("mean wait").to_pylist() == [row.values["mean wait"] for row in rows]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table", "7"], "expected the number of a campaign (1), found 7"),
        (
            ["table", "1", "--where", "load=0.5"],
            "expected FACTOR=VALUE with one of workload, x, policy, seed",
        ),
        (["table", "1", "--where", "x=many"], "--where x: expected a number, found 'many'"),
        (["table", "1", "--where", "policy=los"], "campaign 1: no emulation has policy=los"),
        (["table", "1", "--metric", "mean wat"], "Did you mean 'mean wait'"),
        (["export", "1", "--out", "rows.xls"], "expected a name that ends with .csv or .parquet"),
        (["add", "nowhere"], "nowhere: expected the results of headway compare"),
    ],
)
def test_mistakes(headway: Headway, campaign: Path, words: list[str], message: str) -> None:
    assert headway("results", "add", campaign).code == 0
    ran = headway("results", *words)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("database", "message"),
    [
        ("none.db", "expected a database of results, found no such file"),
        ("other.db", "expected a database of results, found no table"),
        ("mysql://host/db", "expected a file's path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"),
        ("none/results.db", "found no such file"),
    ],
)
def test_what_is_no_database_of_results(
    headway: Headway, tmp_path: Path, database: str, message: str
) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("create table x (y)")
    ran = headway("results", "--db", database, "list")
    assert ran.code == 2
    assert message in " ".join(ran.err.split())
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at as if it were one")
    assert headway("results", "--db", "text.db", "list").code == 1


def test_an_interrupted_store_leaves_nothing(
    headway: Headway, campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert headway("results", "add", campaign).code == 0
    with sqlite3.connect("results.db") as database:
        before = database.execute("select count(*) from headway_figures").fetchone()
        database.execute("delete from headway_figures where emulation > 0")
        database.execute("delete from headway_emulations")
        database.execute("delete from headway_campaigns")
        database.execute("create trigger full before insert on headway_figures when new.emulation = 5 "
                         "begin select raise(abort, 'the disk is full'); end")  # fmt: skip
    ran = headway("results", "add", campaign)
    assert ran.code == 1 and "the disk is full" in ran.err
    with sqlite3.connect("results.db") as database:
        assert database.execute("select count(*) from headway_emulations").fetchone() == (0,)
        database.execute("drop trigger full")
    assert headway("results", "add", campaign).code == 0
    with sqlite3.connect("results.db") as database:
        assert database.execute("select count(*) from headway_figures").fetchone() == before
