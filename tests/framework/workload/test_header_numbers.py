"""The size of a machine as headers of traces have it."""

from __future__ import annotations

import io

import pytest

from headway.errors import UserError
from headway.workload import read_swf
from headway.workload import trace as kinds
from headway.workload.trace import whole_number

JOB = "1 10 0 50 16 -1 -1 16 100 -1 1 1 1 1 1 1 -1 -1\n"


def read(header: str, **more):
    return read_swf(io.BytesIO((header + "\n" + JOB).encode()), **more)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1152", 1152), ("1,152", 1152), ("1 152", 1152), ("1'152", 1152), ("1_152", 1152),
        ("1\u202f152", 1152), ("1,152,000 processors", 1152000), ("64.0", 64), ("64;", 64), (" 64 ", 64),
        ("128 (of 130)", 128), ("12 per node", 12), ("-1", -1),
        ("1.152", None), ("1,15", None), ("1 15", None), ("64K", None), ("1e3", None), ("0x40", None),
        ("128-256", None), ("", None), ("٦٤", None), ("many", None),
    ],
)  # fmt: skip
def test_a_number_is_read_whole_or_not_at_all(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize("header", ["; MaxProcs: 64", ";MaxProcs:64", ";MAXPROCS : 64", ";; \n; maxprocs:64"])
def test_blanks_and_capitals_do_not_matter(header):
    assert read(header, strict=True).max_processors == 64


def test_a_size_that_is_no_number_is_named():
    trace = read("; MaxProcs: 1.152")
    assert trace.max_processors is None
    assert trace.describe_issues() == [
        "trace: 1 line skipped: header value that is no number "
        "(line 1: MaxProcs: expected a whole number, found '1.152')"
    ]
    with pytest.raises(UserError, match=r"trace:1: MaxProcs: expected a whole number, found '1\.152'"):
        read("; MaxProcs: 1.152", strict=True)


def test_an_address_is_no_header_field():
    assert read("; http://example.org\n; MaxProcs: 3").fields == {"MaxProcs": "3"}


@pytest.mark.parametrize("separator", [";", ",", "|"])
def test_numbers_that_are_not_separated_by_blanks_are_told_by_what_does(separator):
    text = separator.join(JOB.split())
    with pytest.raises(UserError, match=f"separated by '[{separator}]', expected blanks"):
        read_swf(io.BytesIO(text.encode()))


def test_so_is_a_line_of_such_in_the_middle():
    (issue,) = read_swf(io.BytesIO((JOB + ",".join(JOB.split()) + "\n" + JOB).encode())).issues[:1]
    assert (issue.kind, issue.line_number) == (kinds.TOO_FEW, 2)
    assert issue.text.endswith("its numbers are separated by ',', expected blanks")
