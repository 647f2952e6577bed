"""Batsim's JSON, in and out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import UserError
from headway.workload import CloudTrace, Column, Trace, read_swf, read_trace, write_swf, write_trace
from headway.workload import trace as kinds
from headway.workload.format import installed
from headway.workload.swf import WHOLE

BATSIM = installed()["batsim"]

#: Profiles by the names of Batsim up to 4, and from 5 on.
WORKLOAD = {
    "nb_res": 4,
    "jobs": [
        {"id": "w0!2", "subtime": 10.5, "walltime": 100, "res": 4, "profile": "2"},
        {"id": "w0!1", "subtime": 3, "res": 1, "profile": "twice", "user": 7},
        {"id": "w0!3", "subtime": 32, "walltime": 3.5, "res": 2, "profile": "work"},
    ],
    "profiles": {
        "1": {"type": "delay", "delay": 20.25},
        "2": {"type": "DelayProfile", "delay": 5},
        "twice": {"type": "composed", "repeat": 2, "seq": ["1", "2"]},
        "work": {"type": "parallel_homogeneous", "cpu": 5e6, "com": 0},
    },
}
SEEN = [Column.NUMBER, Column.SUBMIT, Column.RUNTIME, Column.REQUESTED, Column.ALLOCATED, Column.ESTIMATE,
        Column.USER]  # fmt: skip


@pytest.fixture
def file(tmp_path: Path):
    def write(data: object, name: str = "work.json") -> Path:
        path = tmp_path / name
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return path

    return write


@pytest.mark.parametrize("name", ["work.json", "work.txt"])
def test_is_read_whatever_its_name(file, name):
    trace = read_trace(file(WORKLOAD, name))
    assert trace.records[:, SEEN].tolist() == [
        [1, 3, 50.5, 1, 1, -1, 7],
        [2, 10.5, 5, 4, 4, 100, -1],
        [3, 32, -1, 2, 2, 3.5, -1],
    ]
    assert trace.max_processors == 4
    assert [(issue.kind, issue.line_number) for issue in trace.issues] == [(kinds.NO_RUNTIME, 3)]


def test_ids_that_are_no_numbers_are_counted(file):
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": "1"} for name in ("a", "b")]
    assert read_trace(file({**WORKLOAD, "jobs": jobs})).records[:, Column.NUMBER].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"subtime": "soon"}, "subtime: expected a number, found soon"),
        ({"subtime": None}, "subtime: expected a number, found None"),
        ({"res": 1.5}, "res: expected a whole number from 0 on, found 1.5"),
        ({"res": -1}, "res: expected a whole number from 0 on, found -1"),
        ({"res": True}, "res: expected a number, found True"),
        ({"walltime": 1e300}, "walltime: expected a number, found 1e+300"),
        ({"id": None}, "expected a job with an id"),
        ({"profile": "none"}, "profile: expected the name of a profile, found 'none'"),
        ({"profile": "loop"}, "profile 'loop': expected a sequence without itself in it"),
        ({"profile": "bare"}, "delay: expected a number, found None"),
        ({"profile": "seq"}, "profile 'seq': expected the list seq"),
    ],
)
def test_a_broken_job_is_named_and_left_out(file, change, said):
    profiles = {**WORKLOAD["profiles"], "loop": {"type": "composed", "seq": ["loop"]},
                "bare": {"type": "delay"}, "seq": {"type": "composed", "seq": 3}}  # fmt: skip
    first, *others = WORKLOAD["jobs"]
    path = file({"jobs": [{**first, **change}, *others], "profiles": profiles})
    trace = read_trace(path)
    assert len(trace) == 2
    assert [issue.text for issue in trace.issues if issue.kind == kinds.RECORD] == [said]
    with pytest.raises(UserError) as error:
        read_trace(path, strict=True)
    assert str(error.value) == f"{path}, job 1: {said}"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", "null", '{"jobs": 3, "profiles": {}}', '{"jobs": [], "profiles": []}', "[" * 10**5,
     '{"jobs": NaN}', '{"jobs": [], "profiles": {}}'],
)  # fmt: skip
def test_what_is_no_workload_is_refused(file, text):
    with pytest.raises(UserError, match=r"work\.json: expected (Batsim's JSON|jobs)"):
        read_trace(file(text))


def test_what_is_written_is_what_batsim_needs(tmp_path):
    records = np.full((2, 18), -1.0)
    records[:, [Column.NUMBER, Column.SUBMIT, Column.RUNTIME, Column.REQUESTED]] = [
        [1, 0, 5, 2],
        [2, 1, 7.5, 3],
    ]
    records[0, Column.ESTIMATE] = 60
    write_trace(tmp_path / "w.json", Trace("t", records=records))
    found = json.loads((tmp_path / "w.json").read_text())
    assert found["nb_res"] == 3
    assert [{key: job[key] for key in ("id", "subtime", "res", "profile")} for job in found["jobs"]] == [
        {"id": "1", "subtime": 0, "res": 2, "profile": "5"},
        {"id": "2", "subtime": 1, "res": 3, "profile": "7.5"},
    ]
    assert found["jobs"][0]["walltime"] == 60 and "walltime" not in found["jobs"][1]
    assert found["profiles"] == {"5": {"type": "delay", "delay": 5}, "7.5": {"type": "delay", "delay": 7.5}}


def test_what_has_no_place_is_said():
    records = np.full((3, 18), -1.0)
    records[0, [Column.RUNTIME, Column.REQUESTED]] = 5, 2
    records[1, Column.RUNTIME] = 5
    cloud = CloudTrace("t", records=records, requested_start=np.array([-1.0, 4, -1]))
    assert BATSIM.loses(cloud) == "1 requested start and 2 jobs without a known runtime or size"


counts = st.integers(-1, 10**9).map(float)
seconds = st.floats(-1, 1e11, allow_nan=False)
rows = st.lists(
    st.tuples(
        *(
            st.sampled_from([-1.0, 0.0, 1.0, 5.0]) if column is Column.STATUS
            else st.integers(1, 9).map(float) if column is Column.NUMBER
            else st.integers(0, 10**9).map(float) if column is Column.REQUESTED
            else st.floats(0, 1e11) if column is Column.RUNTIME
            else counts if column in WHOLE
            else seconds
            for column in Column
        )
    ).filter(lambda row: row[Column.REQUESTED] > 0 or row[Column.ALLOCATED] > 0),
    min_size=1,
    max_size=8,
).map(lambda rows: sorted(rows, key=lambda row: row[Column.SUBMIT]))  # fmt: skip


@settings(max_examples=30)
@given(rows=rows, packing=st.sampled_from(["", ".gz", ".bz2", ".xz"]))
def test_the_standard_format_survives_the_way_there_and_back(tmp_path_factory, rows, packing):
    place = tmp_path_factory.getbasetemp()
    header = ["; MaxProcs: 64", "; Queue: 1 größe", "; a note"]
    write_swf(place / "a.swf", header, rows)
    there = place / f"there.json{packing}"
    first = read_swf(place / "a.swf")
    write_trace(there, first)
    back = read_trace(there, strict=True)
    assert back.records.tolist() == first.records.tolist() == [list(row) for row in rows]
    assert (back.header, back.fields, back.max_processors) == (header, first.fields, 64)
    write_trace(place / "b.swf", back)
    assert (place / "b.swf").read_bytes() == (place / "a.swf").read_bytes()
