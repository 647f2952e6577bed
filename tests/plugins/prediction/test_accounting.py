"""Accounting as a history: which runs and which of a user's jobs it has."""

from __future__ import annotations

from pathlib import Path

import pytest
from accounting_texts import PBS, SACCT, in_seconds
from click.testing import CliRunner

from headway.workload.accounting import is_accounting
from headway_plugins.prediction.applications import Application
from headway_plugins.prediction.commands import fit
from headway_plugins.prediction.recent import Recent, RecentOptions
from headway_plugins.prediction.run_lists import parse_runs

FT = Application(formula="N", sizes={})


@pytest.mark.parametrize(("text", "sizes"), [(SACCT, [(4, 40), (8, 80)]), (PBS, [(4, 40)])])
def test_jobs_that_say_so_are_runs_of_their_application(text, sizes):
    assert is_accounting(text) and not is_accounting("N,P,runtime\n1,2,3\n")
    runs = parse_runs(text, "a", "ft", FT)
    assert [(one.run.parameters["N"], one.run.values["runtime"]) for one in runs] == sizes
    assert parse_runs(text, "a", "other", FT) == []


def test_sizes_come_from_accounting_and_names_count_where_nothing_is_said():
    text = SACCT.replace("scopred:app=ft;N=8", "").replace("scopred:app=ft;N=4", "")
    by_name = Application(formula="1/P", sizes={"P": "nodes"}, match="^ft")
    runs = parse_runs(text, "a", "ft", by_name)
    assert [(one.run.parameters, one.pool) for one in runs] == [({"P": 1.0}, "batch"), ({"P": 2.0}, "batch")]


def test_fit_takes_accounting(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text(SACCT)
    found = CliRunner().invoke(fit, ["ft", "--formula", "N", "--runs", str(path)])
    assert found.exit_code == 0 and "ft: 2 runs" in found.output


def test_recent_begins_with_what_accounting_tells(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text(in_seconds(SACCT))
    assert Recent(RecentOptions(history=path)).checkpoint()["last"] == {"ann": [40, 80], "bob": [7, 9]}
    path.write_text(in_seconds(SACCT.replace("|80|", "|-80|")))
    assert Recent(RecentOptions(history=path)).checkpoint()["last"] == {"ann": [40], "bob": [7, 9]}
    with pytest.raises(ValueError, match=r"history: .* cannot be read"):
        RecentOptions(history=tmp_path / "none.txt")


def test_a_history_whose_times_have_no_zone_is_refused(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text(SACCT)
    with pytest.raises(ValueError, match=r"line 2: End: expected seconds since 1970, .*, found '\d{4}-"):
        RecentOptions(history=path)


def test_what_was_learned_since_counts_more_than_accounting(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text(in_seconds(SACCT))
    recent = Recent(RecentOptions(history=path))
    recent.restore({"last": {"ann": [1.0, 2.0]}, "jobs": {}})
    assert recent.checkpoint()["last"] == {"ann": [1.0, 2.0], "bob": [7, 9]}


LSF = Path(__file__).parents[2] / "framework" / "workload" / "fixtures" / "lsb.acct"


def test_lsfs_accounting_is_a_history_too():
    runs = parse_runs(LSF.read_text(), "lsb.acct", "ft", FT)
    assert [(one.run.parameters["N"], one.run.values["runtime"], one.pool) for one in runs] == [
        (3, 2, "normal"), (1, 3, "normal"), (2, 4, "normal"), (1, 10, "normal"),
    ]  # fmt: skip
    last = Recent(RecentOptions(history=LSF, jobs=3)).checkpoint()["last"]
    assert {user: len(seconds) for user, seconds in last.items()} == {"alice": 3, "bob": 1}
