"""Output of sacct in every layout: order and width of columns, separators, what users write."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway.workload import Column
from headway.workload import trace as kinds
from headway.workload.accounting import accounted_trace, is_accounting

NAMES = ("JobID", "JobName", "User", "Account", "Submit", "Start", "End", "Elapsed", "NCPUS", "State")
ROWS = [
    ("7", "sim", "ann", "chem", "2026-11-20T08:59:00", "2026-11-20T09:00:00", "2026-11-20T09:01:00",
     "00:01:00", "4", "COMPLETED"),
    ("8", "größe", "bob", "phys", "2026-11-20T09:00:00", "2026-11-20T09:00:00", "2026-11-21T09:01:00",
     "1-00:01:00", "1", "CANCELLED by 1000"),
    ("9", "sim", "ann", "chem", "2026-11-20T09:01:00", "2026-11-20T09:01:30", "2026-11-20T09:03:00",
     "00:01:30", "2", "TIMEOUT"),
]  # fmt: skip
EXPECTED = [
    [7, 0, 60, 60, 4, 1, 1, 1],
    [8, 60, 0, 86460, 1, 5, 2, 2],
    [9, 120, 30, 90, 2, 0, 1, 1],
]
SEEN = [Column.NUMBER, Column.SUBMIT, Column.WAIT, Column.RUNTIME, Column.ALLOCATED, Column.STATUS,
        Column.USER, Column.GROUP]  # fmt: skip


def separated(rows: Sequence[Sequence[str]], separator: str = "|", end: str = "") -> str:
    return "".join(separator.join(row) + end + "\n" for row in rows)


def in_widths(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """Columns as sacct prints them without -P: widths count bytes, and what is longer is cut."""

    def cell(text: str, width: int) -> str:
        data = text.encode()
        if len(data) > width:
            text = data[: width - 1].decode("utf-8", "ignore") + "+"
            data = text.encode()
        return " " * (width - len(data)) + text

    lines = [" ".join(map(cell, row, widths)) + " " for row in rows]
    lines.insert(1, " ".join("-" * width for width in widths) + " ")
    return "\n".join(lines) + "\n"


def seen(text: str, **more) -> list[list[float]]:
    return accounted_trace(text, "a", **more).records[:, SEEN].tolist()


@given(order=st.permutations(range(len(NAMES))), data=st.data())
def test_columns_may_be_in_any_order_and_layout(order, data):
    table = [[row[at] for at in order] for row in (NAMES, *ROWS)]
    layout = data.draw(st.sampled_from(["-P", "-p", "delimiter", "widths"]))
    if layout == "widths":
        least = [max(len(row[at].encode()) for row in table) for at in range(len(NAMES))]
        text = in_widths(table, [data.draw(st.integers(width, width + 9)) for width in least])
    else:
        separator = data.draw(st.sampled_from([",", ";", "\t", "~~"])) if layout == "delimiter" else "|"
        text = separated(table, separator, separator if layout == "-p" else "")
    assert is_accounting(text)
    assert seen(text) == EXPECTED


def test_a_state_that_is_cut_to_its_width_is_known():
    widths = [5, 7, 4, 7, 19, 19, 19, 10, 5, 10]
    assert "CANCELLED+" in in_widths((NAMES, *ROWS), widths)
    assert seen(in_widths((NAMES, *ROWS), widths)) == EXPECTED


def test_a_time_that_is_cut_to_its_width_is_named():
    text = in_widths((NAMES, *ROWS), [5, 7, 4, 7, 10, 19, 19, 10, 5, 10])
    with pytest.raises(UserError, match=r"a, line 3: Submit: expected a time such as .* found '2026-11-2"):
        seen(text)


def test_outputs_may_follow_each_other_with_columns_of_their_own():
    backwards = [tuple(reversed(row)) for row in (NAMES, *ROWS[1:])]
    assert seen(separated((NAMES, ROWS[0])) + separated(backwards)) == EXPECTED


def test_what_stands_before_the_header_is_left_out_and_named():
    trace = accounted_trace("sacct: error: slow\n" + separated((NAMES, *ROWS)), "a", strict=False)
    assert len(trace) == 3
    assert trace.describe_issues() == [
        "a: 1 line skipped: broken record (line 1: expected the header of sacct, found 'sacct: error: slow')"
    ]


@pytest.mark.parametrize("name", ["a|b", "|", "||||", "7|root|phys", "x|" + "|".join(ROWS[1][2:])])
def test_a_name_with_separators_cannot_tell_anything_else(name):
    rows = [NAMES, (ROWS[0][0], name, *ROWS[0][2:]), *ROWS[1:]]
    assert seen(separated(rows)) == EXPECTED
    assert seen(separated(rows, end="|")) == EXPECTED


def test_a_line_that_two_names_let_be_read_in_two_ways_is_left_out():
    names = ("JobID", "JobName", "NCPUS", "Comment", "Start", "End", "State")
    times = ("2026-11-20T09:00:00", "2026-11-20T09:01:00", "COMPLETED")
    forged, honest = ("1", "x|64", "4", "y", *times), ("2", "x", "4", "y|z", *times)
    trace = accounted_trace(separated((names, forged, honest)), "a", strict=False)
    assert trace.records[:, [Column.NUMBER, Column.ALLOCATED]].tolist() == [[2, 4]]
    (issue,) = trace.issues
    assert (issue.kind, issue.line_number) == (kinds.RECORD, 2)
    assert issue.text.endswith("which can be read in 2 ways: a name has the separator in it")


def test_a_line_of_which_all_readings_agree_counts():
    names = ("JobID", "JobName", "Comment", "Start", "End", "State")
    row = ("1", "a|b", "c|d", "2026-11-20T09:00:00", "2026-11-20T09:01:00", "COMPLETED")
    assert len(accounted_trace(separated((names, row)), "a")) == 1


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("JobName|State|End|Elapsed", None),
        ("JobID|End|Elapsed", "State"),
        ("JobID|State|Elapsed", "End"),
        ("JobID|State|End", "Elapsed"),
        ("JobID|State|Start", "End"),
    ],
)
def test_a_column_that_is_needed_is_named(columns, said):
    if said is None:
        assert not is_accounting(columns + "\n")
        return
    with pytest.raises(UserError, match=f"a, line 1: expected the column {said} of sacct, found"):
        accounted_trace(columns + "\n1|COMPLETED|x|y\n", "a", strict=False)


def test_when_a_job_ended_may_be_told_by_its_start_and_how_long_it_ran():
    text = "JobID|State|Start|ElapsedRaw\n1|COMPLETED|2026-11-20T09:00:00|60\n"
    assert accounted_trace(text, "a").records[0, Column.RUNTIME] == 60
    text = "JobID|State|Start|End\n1|COMPLETED|2026-11-20T09:00:00|2026-11-20T09:02:00\n"
    assert accounted_trace(text, "a").records[0, Column.RUNTIME] == 120


@pytest.mark.parametrize(
    ("column", "text", "processors"),
    [("NCPUS", "1K", 1024), ("AllocCPUS", "1.50K", 1536), ("AllocTRES", "billing=9,cpu=12,mem=4G", 12),
     ("ReqTRES", "cpu=3", 3), ("NCPUS", "", -1)],
)  # fmt: skip
def test_processors_by_another_column(column, text, processors):
    row = f"1|COMPLETED|2026-11-20T09:00:00|2026-11-20T09:02:00|{text}\n"
    (record,) = accounted_trace(f"JobID|State|Start|End|{column}\n{row}", "a").records
    assert record[Column.ALLOCATED] == processors


def test_steps_and_jobs_that_go_on_are_counted():
    step = ("7.batch", "batch", "", *ROWS[0][3:])
    on = ("10", "x", "bob", "phys", *ROWS[0][4:6], "Unknown", "00:01:00", "1", "RUNNING")
    trace = accounted_trace(separated((NAMES, *ROWS, step, on)), "a")
    assert trace.summary() == {kinds.STEP: 1, kinds.GOES_ON: 1}
    assert len(trace) == 3


def test_a_file_without_one_good_line_says_what_is_wrong_with_the_first():
    text = separated((NAMES, (*ROWS[0][:6], "soon", *ROWS[0][7:])))
    with pytest.raises(UserError) as error:
        accounted_trace(text, "a", strict=False)
    assert str(error.value) == (
        "a: expected jobs that ran and ended, found none; "
        "line 2: End: expected a time such as 2026-11-22T09:30:00, found 'soon'"
    )


def test_a_line_of_blanks_is_no_line_of_dashes():
    header, _, *rows = in_widths((NAMES, *ROWS), [19] * len(NAMES)).splitlines()
    with pytest.raises(UserError, match="expected columns with a separator"):
        seen("\n".join([header, " " * 40, *rows]))
