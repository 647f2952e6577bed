"""Tables of claims are up to date, stale, or cannot be checked; nothing is run for that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.errors import UserError
from headway.experiment import Campaign, Row, Scenario, Variant
from headway.experiment.campaign import Task, select
from headway.experiment.claims_page import Call, Claim, claims_page, claims_table
from headway.experiment.judging import verdict
from headway.experiment.reproduction import Context
from headway.experiment.stale import State, check_page, check_results, check_tables, refreshed
from headway.experiment.statistics import interval
from headway.plugins import PluginConfig


def gain(seed):
    return [Row("small", 0.5, "ours", seed, {"gain": 1 / 3 + seed / 7})]


class Paper:
    """An experiment, what is said of it, and a judge."""

    title = "A paper"
    published = None

    def __init__(self, jobs=5, judge=verdict):
        self.jobs, self.judge = jobs, judge

    def run(self, context):
        tasks = [Task((("small", 0.5, "ours", seed),), gain, (seed,)) for seed in context.seeds]
        rows = context.collect("gains", tasks, {"jobs": self.jobs})
        found = interval(select(rows, "gain"))
        return [Claim("Figure 1", "ours gains", f"{found}", self.judge([found]))]


def context(out: Path, traces=None, **options) -> Context:
    return Context(out, (1, 2, 3), 1, traces, lambda name, count: None, lambda count: None, [], **options)


@pytest.fixture
def results(tmp_path):
    """A directory of results, as a run leaves it."""
    folder = tmp_path / "papers" / "small"
    folder.mkdir(parents=True)
    call = str(Call("small", 3))
    claims = Paper().run(context(folder, call=call))
    (folder / "claims.md").write_text(claims_page(Paper.title, call, claims, None, {}))
    return folder


def checked(folder, paper=None, traces=None):
    return check_results(folder, traces, lambda call: paper or Paper())


def test_a_page_that_its_rows_say_today_is_up_to_date(results):
    found = checked(results)
    assert (found.state, found.why) == (State.FRESH, "1 claims")


def test_a_verdict_that_was_written_by_hand_is_stale_and_known(results):
    page = results / "claims.md"
    before = page.read_text()
    page.write_text(before.replace("| yes |", "| surely |"))
    found = checked(results)
    assert found.state is State.STALE and found.today == before
    assert "1 lines; found '| Figure 1 | ours gains" in found.why


def test_a_page_of_an_older_rule_is_stale(results):
    found = checked(results, Paper(judge=lambda points: "in part"))
    assert found.state is State.STALE and "| in part |" in found.today


def test_rows_that_somebody_changed_are_not_those_of_the_page(results):
    rows = results / "gains.csv"
    rows.write_text(rows.read_text().replace("0.47619", "0.57619"))
    assert checked(results).state is State.STALE


def test_missing_rows_are_named_and_not_run(results):
    rows = results / "gains.csv"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
    before = rows.read_bytes()
    found = checked(results)
    assert (found.state, found.today) == (State.STALE, None)
    assert found.why == f"{rows}: expected 3 rows, of which 1 are missing"
    assert rows.read_bytes() == before


def test_rows_of_other_parameters_are_stale(results):
    found = checked(results, Paper(jobs=6))
    assert found.state is State.STALE and "they were made with other parameters" in found.why
    (results / "parameters.json").unlink()
    assert "parameters.json does not name their parameters" in checked(results).why


def test_rows_with_other_columns_are_stale(results):
    rows = results / "gains.csv"
    rows.write_text(rows.read_text().replace(",gain", ",loss"))
    found = checked(results)
    assert (found.state, found.today) == (State.STALE, None)
    assert "its rows cannot be judged today" in found.why and "KeyError: 'gain'" in found.why


def test_a_page_that_is_no_text_is_refused(results):
    (results / "claims.md").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="expected text in UTF-8"):
        checked(results)


def test_a_command_that_is_not_there_any_more_is_stale(results):
    def nothing(call):
        raise UserError(f"no {call.name}")

    found = check_results(results, None, nothing)
    assert (found.state, found.why) == (State.STALE, "no small")


def test_results_of_real_traces_are_not_checked_without_them(results, tmp_path):
    page = results / "claims.md"
    page.write_text(page.read_text().replace("--seeds 3`", "--seeds 3 --traces DIR`"))
    assert checked(results).state is State.UNKNOWN
    assert checked(results, traces=tmp_path).state is State.FRESH


def test_a_table_in_a_page_is_that_of_its_results(results):
    page = results.parent / "small.md"
    table = claims_table(Paper().run(context(results, keep=True)))
    page.write_text(f"# A page\n\n<!-- claims: small -->\n{table}<!-- /claims -->\n")
    (found,) = check_page(page)
    assert (found.state, found.line) == (State.FRESH, 3)
    good = page.read_text()
    page.write_text(good.replace("| yes |", "| nearly |"))
    (found,) = check_page(page)
    assert found.state is State.STALE and found.today == good == refreshed(page)


def test_a_table_that_is_not_there_yet_is_filled_in(results):
    page = results.parent / "small.md"
    page.write_text("<!-- claims: small -->\n<!-- /claims -->\n")
    assert "| Figure 1 | ours gains |" in refreshed(page)
    page.write_text("<!-- claims: other -->\n<!-- /claims -->\n")
    (found,) = check_page(page)
    assert found.state is State.STALE and "there is no table of claims in" in found.why
    assert refreshed(page) == page.read_text()


def test_a_table_of_no_results_is_stale(results):
    page = results.parent / "other.md"
    page.write_text(
        f"# By hand\n\n{claims_table([Claim('a', 'b', 'c', 'yes')])}\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    found = list(check_tables(results.parent, None, lambda call: Paper()))
    assert [(one.page.name, one.line, one.state) for one in found] == [
        ("claims.md", None, State.FRESH), ("other.md", 3, State.STALE),
    ]  # fmt: skip


def test_what_the_rule_book_says_of_a_campaign_is_kept_with_its_rows(tmp_path):
    """Rows in a file have no facts of their workloads, by which most rules go."""
    month = Scenario("month", 0.5, 64, model="month", options={"processors": 64, "days": 1, "load": 0.5})
    campaign = Campaign((Variant("fcfs", (PluginConfig("fcfs"),)),), (month,), (1, 2, 3))
    first, again = context(tmp_path), context(tmp_path, keep=True, may_run=False)
    first.run("figure-1", campaign)
    again.run("figure-1", campaign)
    assert again.broken == first.broken
    assert {"3", "28"} <= {one.rule for one in again.broken["figure-1"]}
    # Of rows of an older version nobody noted it: only the definition is judged, and nothing is made up.
    noted = json.loads((tmp_path / "parameters.json").read_text())
    del noted["figure-1"]["broken"]
    (tmp_path / "parameters.json").write_text(json.dumps(noted))
    older = context(tmp_path, keep=True, may_run=False)
    older.run("figure-1", campaign)
    assert {one.rule for one in older.broken["figure-1"]} == {"3", "19"}
