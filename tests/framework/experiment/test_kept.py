"""Rows are on disk as each task ends; a later call goes on from there, or says why it cannot."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from headway.errors import UserError
from headway.experiment import Campaign, Row, Scenario, Variant
from headway.experiment.campaign import Task, append_rows, read_rows, write_rows
from headway.experiment.kept import KeptRows, digest
from headway.experiment.reproduction import Context
from headway.model import ClusterDescription
from headway.plugins import PluginConfig

RAN: list[int] = []


def run(seed, ends_at):
    """A task's rows; the process "ends" at one of the seeds."""
    if seed == ends_at:
        raise KeyboardInterrupt
    RAN.append(seed)
    values = {"mean wait": 1 / (3 * seed), "slowdown": math.nan}
    return [Row("small", 0.1, name, seed, values) for name in ("easy", "fcfs")]


def tasks(seeds, ends_at=0):
    return [
        Task(tuple(("small", 0.1, name, seed) for name in ("easy", "fcfs")), run, (seed, ends_at))
        for seed in seeds
    ]


@pytest.fixture(autouse=True)
def nothing_ran():
    RAN.clear()


def context(out, call="reproduce it", keep=True, done=None):
    note = (lambda n: None) if done is None else done.append
    return Context(out, (1, 2), 1, None, lambda *_: None, note, [], call=call, keep=keep)


def test_an_ended_call_is_gone_on_with(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        context(tmp_path).collect("figure", tasks([1, 2, 3, 4], ends_at=3), {"batch": 5})
    assert [row.seed for row in read_rows(tmp_path / "figure.csv")] == [1, 1, 2, 2]
    # Killed while it wrote: the last line is not whole.
    with open(tmp_path / "figure.csv", "a", encoding="utf-8") as stream:
        stream.write("small,0.1,easy,3,0.11")
    done: list[int] = []
    rows = context(tmp_path, done=done).collect("figure", tasks([1, 2, 3, 4]), {"batch": 5})
    assert RAN == [1, 2, 3, 4]
    assert done == [4, 2, 2]
    (tmp_path / "whole").mkdir()
    whole = context(tmp_path / "whole").collect("figure", tasks([1, 2, 3, 4]), {"batch": 5})
    # As text, because NaN equals nothing.
    assert repr(rows) == repr(whole)
    assert (tmp_path / "figure.csv").read_bytes() == (tmp_path / "whole" / "figure.csv").read_bytes()


def test_a_task_of_which_rows_are_missing_is_run_again(tmp_path):
    context(tmp_path).collect("figure", tasks([1, 2]), None)
    write_rows(tmp_path / "figure.csv", read_rows(tmp_path / "figure.csv")[:3])
    RAN.clear()
    assert len(context(tmp_path).collect("figure", tasks([1, 2]), None)) == 4
    assert RAN == [2]


def test_a_file_that_ends_in_its_head_is_begun_again(tmp_path):
    context(tmp_path).collect("figure", tasks([1]), None)
    (tmp_path / "figure.csv").write_text("scenario,x,var", encoding="utf-8")
    rows = context(tmp_path).collect("figure", tasks([1]), None)
    assert repr(read_rows(tmp_path / "figure.csv")) == repr(rows)
    assert "mean wait" in rows[0].values


def test_without_keep_everything_is_run(tmp_path):
    context(tmp_path).collect("figure", tasks([1, 2]), None)
    context(tmp_path, keep=False).collect("figure", tasks([1]), "other")
    assert RAN == [1, 2, 1]
    assert [row.seed for row in read_rows(tmp_path / "figure.csv")] == [1, 1]


def test_further_seeds_are_added_and_fewer_leave_the_others_there(tmp_path):
    context(tmp_path).collect("figure", tasks([1, 2]), None)
    context(tmp_path).collect("figure", tasks([1, 2, 3]), None)
    assert RAN == [1, 2, 3]
    rows = context(tmp_path).collect("figure", tasks([2]), None)
    assert [row.seed for row in rows] == [2, 2]
    assert [row.seed for row in read_rows(tmp_path / "figure.csv")] == [2, 2, 1, 1, 3, 3]


def test_rows_of_other_parameters_are_refused_and_left_alone(tmp_path):
    context(tmp_path, "reproduce it --set batch=5").collect("figure", tasks([1]), {"batch": 5})
    before = (tmp_path / "figure.csv").read_bytes()
    with pytest.raises(
        UserError, match=r"figure\.csv.*expected the parameters of `reproduce it --set batch=7`"
    ) as info:
        context(tmp_path, "reproduce it --set batch=7").collect("figure", tasks([1]), {"batch": 7})
    assert "found the parameters of `reproduce it --set batch=5`" in str(info.value)
    assert "without --keep" in str(info.value)
    assert (tmp_path / "figure.csv").read_bytes() == before
    # Another experiment in the same directory is none of its business.
    context(tmp_path).collect("other", tasks([1]), {"batch": 7})
    assert set(json.loads((tmp_path / "parameters.json").read_text())) == {"figure", "other"}


def test_rows_of_unknown_parameters_are_refused(tmp_path):
    write_rows(tmp_path / "figure.csv", [Row("small", 0.1, "easy", 1, {"a": 1.0})])
    with pytest.raises(UserError, match=r"parameters\.json does not name their parameters"):
        context(tmp_path).collect("figure", tasks([1]), None)


@pytest.mark.parametrize("text", ["{", "[1]", '{"figure": 3}'])
def test_a_damaged_list_of_parameters_is_refused(tmp_path, text):
    (tmp_path / "parameters.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"parameters\.json: expected"):
        KeptRows(tmp_path).begin("figure", None)


def test_rows_that_came_about_otherwise_are_written_whatever_is_there(tmp_path):
    one = [Row("KTH", 0.0, "all", 1, {"jobs": 3.0})]
    context(tmp_path).record("table", one, 5)
    made = context(tmp_path)
    made.record("table", one, 6)
    assert read_rows(tmp_path / "table.csv") == one
    assert made.rows == [("table", one)]


def test_keys_of_a_definition_may_be_numbers_and_names():
    assert digest({"of": {0: "debug", "batch": "b"}}) == digest({"of": {"batch": "b", 0: "debug"}})


def test_a_definition_has_one_digest():
    campaign = Campaign(
        (Variant("easy", (PluginConfig("easy", {"b": 1, "a": 2.0}),)),),
        (Scenario("month", 0.5, 8, model="month", cluster=ClusterDescription.flat(8)),),
        (1,),
    )
    same = replace(campaign, variants=(Variant("easy", (PluginConfig("easy", {"a": 2.0, "b": 1}),)),))
    assert digest(campaign) == digest(same)
    assert digest(campaign) != digest(replace(campaign, seeds=(2,)))


def test_a_trace_may_lie_elsewhere(tmp_path):
    paths = [tmp_path / name / "one.swf" for name in ("here", "there")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("; MaxProcs: 4\n1 0 -1 10 4 -1 -1 4 10 -1 1 1 1 1 -1 -1 -1 -1\n", encoding="utf-8")
    easy = (Variant("easy", (PluginConfig("easy"),)),)
    first, again = (
        context(tmp_path).run("log", Campaign(easy, (Scenario("one", 1.0, 4, trace=str(path)),), (1, 2)))
        for path in paths
    )
    assert repr(first) == repr(again)
    assert len(first) == 1


def test_x_and_values_are_read_as_they_were(tmp_path):
    rows = [Row("s", x, "easy", 1, {"v": 1 / 3}) for x in (1234567.0, 0.1 + 0.2, 20.0)]
    write_rows(tmp_path / "a.csv", rows[:1])
    append_rows(tmp_path / "a.csv", rows[1:])
    append_rows(tmp_path / "a.csv", [])
    assert read_rows(tmp_path / "a.csv") == rows
    assert "s,20,easy" in (tmp_path / "a.csv").read_text()
