"""``headway replay``: a recorded run again."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from commandline import Headway


@pytest.fixture
def journal(headway: Headway, trace: Path, tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    ran = headway("dry-run", "--trace", trace, "--journal", path)
    assert ran.code == 0
    assert f"journal: {path} (`headway replay {path}`)".replace("\n", "") in ran.out.replace("\n", " ")
    return path


def change(journal: Path, sequel: int, **fields: object) -> None:
    """Change what is recorded of the first decision of a cycle."""
    with sqlite3.connect(journal) as database:
        where = "where run_id = 1 and seq = ? and position = 0"
        (text,) = database.execute(f"select payload from decisions {where}", (sequel,)).fetchone()
        payload = {**json.loads(text), **fields}
        database.execute(f"update decisions set payload = ? {where}", (json.dumps(payload), sequel))


def test_a_run_again_is_the_same(headway: Headway, journal: Path) -> None:
    ran = headway("replay", journal)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("run 1 (dry-run): ")
    assert "40 decisions; all decisions are the same" in ran.out.replace("\n", " ")


@pytest.mark.parametrize("policy", ["fcfs", "conservative"])
def test_a_policy_given_on_the_command_line_is_remembered(
    headway: Headway, journal: Path, trace: Path, policy: str
) -> None:
    assert headway("dry-run", "--trace", trace, "--journal", journal, "--policy", policy).code == 0
    ran = headway("replay", journal)
    assert ran.code == 0 and ran.out.startswith("run 2 ")
    assert headway("replay", journal, "--run", 1).out.startswith("run 1 ")


FEDERATION = """
mode: dry-run
clusters:
  a: {emulation: {processors: 4, trace: a.swf}, site: {store: {}}}
  b: {emulation: {processors: 4, trace: b.swf}, site: {store: {capacity: 1200}}}
links: [{between: [a, b], bandwidth: 10}]
datasets: {d: {size: 600, at: [a]}, e: {size: 700, at: [a]}}
plugins: [easy, PLUGIN]
journal: runs.db
"""


@pytest.mark.parametrize("plugin", ["staging", "follow", "data-ga: {movable: all, cycle_evaluations: 1}"])
def test_copies_and_removals_of_a_federation_are_repeated(
    headway: Headway, tmp_path: Path, plugin: str
) -> None:
    job = "{} {} -1 50 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 -1\n"
    (tmp_path / "a.swf").write_text(job.format(1, 0))
    (tmp_path / "b.swf").write_text("".join(job.format(at, 100 * (at // 2)) for at in range(1, 13)))
    needs = [f"b:{at},{'de'[at // 2 % 2]}" for at in range(1, 13)]
    (tmp_path / "data.csv").write_text("\n".join(["job_id,datasets", *needs, ""]))
    config = tmp_path / "site.yaml"
    config.write_text(FEDERATION.replace("PLUGIN", "{" + plugin + "}" if ":" in plugin else plugin))
    ran = headway("dry-run", "-c", config, "--data", tmp_path / "data.csv", "--journal", tmp_path / "runs.db")
    assert ran.code == 0, ran.err
    with sqlite3.connect(tmp_path / "runs.db") as database:
        kinds = {kind for (kind,) in database.execute("select distinct kind from decisions")}
    assert ("Drop" in kinds) == ("data" not in plugin) and "Start" in kinds
    assert headway("replay", tmp_path / "runs.db").code == 0


LAST_FIRST = """
from headway.hookspecs import Plugin, hookimpl


class LastFirst(Plugin):
    @hookimpl
    def schedule(self, view):
        return [start for job in reversed(list(view.queue)) if (start := view.start(job))]
"""


def test_a_run_with_a_plugin_of_a_file_is_repeated_with_it_only(
    headway: Headway, journal: Path, trace: Path, tmp_path: Path
) -> None:
    file = tmp_path / "last_first.py"
    file.write_text(LAST_FIRST)
    assert headway("dry-run", "--trace", trace, "--journal", journal, "--plugin", file).code == 0
    for words in (("replay", journal), ("explain", "1", "--journal", journal)):
        ran = headway(*words)
        assert ran.code == 2
        assert f"give each file again: --plugin {file}" in " ".join(ran.err.split())
        again = headway(*words, "--plugin", file)
        assert again.code == 0, again.err
    assert "all decisions are the same" in headway("replay", journal, "--plugin", file).out.replace("\n", " ")
    assert headway("replay", journal, "--run", 1).code == 0


def test_a_decision_that_differs_is_named_with_its_cycle(headway: Headway, journal: Path) -> None:
    change(journal, 1, job_id="2")
    ran = headway("replay", journal)
    assert ran.code == 1
    assert "1 cycle differs" in ran.out.replace("\n", " ")
    assert "cycle 1 at 20:" in ran.out
    assert "  recorded: Start(job_id='2'" in ran.out
    assert "  repeated: Start(job_id='1'" in ran.out


def test_a_difference_in_a_run_of_an_older_version_may_be_its_rule(headway: Headway, journal: Path) -> None:
    change(journal, 1, job_id="2")
    assert "was recorded by headway" not in headway("replay", journal).out
    with sqlite3.connect(journal) as database:
        database.execute("update runs set version = '0.1.0'")
    told = headway("replay", journal).out.replace("\n", " ")
    assert "run 1 was recorded by headway 0.1.0; since 0.2 limits" in told


def test_a_decision_that_is_not_recorded_is_a_difference(headway: Headway, journal: Path) -> None:
    with sqlite3.connect(journal) as database:
        database.execute("delete from outcomes where seq = 1")
        database.execute("delete from decisions where seq = 1")
    ran = headway("replay", journal)
    assert ran.code == 1 and "  recorded: nothing" in ran.out


def test_a_reason_in_other_words_is_no_difference(headway: Headway, journal: Path) -> None:
    change(journal, 1, reason="because")
    assert headway("replay", journal).code == 0
