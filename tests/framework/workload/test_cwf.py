"""The Cloud Workload Format: reading, writing, and the jobs and commands of an emulation."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway.model import JobDescription, Request
from headway.workload import (
    CloudTrace,
    Column,
    CommandRow,
    TraceCommand,
    TraceJob,
    cwf_jobs,
    drop_larger_than,
    first,
    read_cwf,
    read_swf,
    scale_arrivals,
    scale_runtimes,
    to_cloud_records,
    trace_jobs,
    write_cwf,
    write_swf,
)
from headway.workload import trace as kinds
from headway.workload.swf import WHOLE

UNSET = " ".join(["-1"] * 17)

#: Two batch jobs, a dedicated one, and what their users ask for later.
EXAMPLE = f"""\
; MaxProcs: 320
1 0 -1 100 64 -1 -1 64 120 -1 1 7 -1 -1 -1 -1 -1 -1 -1 S -1
2 10 -1 500 32 -1 -1 32 500 -1 1 8 -1 -1 -1 -1 -1 -1 3600 S -1
1 20 {UNSET} ET 60
3 30 -1 50 320 -1 -1 320 60 -1 1 7 -1 -1 -1 -1 -1 -1 -1 S -1
2 30 {UNSET} RP 16
2 45 {UNSET} RT 30
"""


def read(text: str | bytes, *, strict: bool = False) -> CloudTrace:
    data = text.encode() if isinstance(text, str) else text
    return read_cwf(io.BytesIO(data), strict=strict)


def job_line(number: int = 1, submit: int = 0, tail: str = "-1 S -1") -> str:
    return f"{number} {submit} -1 100 4 -1 -1 4 200 -1 1 -1 -1 -1 -1 -1 -1 -1 {tail}\n"


def command_line(tail: str, number: str = "1", submit: str = "5", rest: str = UNSET) -> str:
    return f"{number} {submit} {rest} {tail}\n"


# ------------------------------------------------------------------------------------ reading


def test_gives_jobs_requested_starts_and_commands() -> None:
    trace = read(EXAMPLE, strict=True)
    assert trace.issues == []
    assert trace.max_processors == 320
    assert trace.records[:, Column.NUMBER].tolist() == [1, 2, 3]
    assert trace.requested_start.tolist() == [-1, 3600, -1]
    assert trace.dedicated == 1
    assert trace.commands == (
        CommandRow(20, 1, "ET", 60, row=0, line_number=4),
        CommandRow(30, 2, "RP", 16, row=1, line_number=6),
        CommandRow(45, 2, "RT", 30, row=1, line_number=7),
    )


def test_a_file_of_the_standard_format_is_one_of_batch_jobs(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 8\n1 0 -1 5 4 -1 -1 4 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n2 3 -1 5.5 4 -1 -1 4 9\n")
    cloud, standard = read_cwf(path), read_swf(path)
    assert cloud.records.tolist() == standard.records.tolist()
    assert cloud.header == standard.header
    assert [issue.kind for issue in cloud.issues] == [issue.kind for issue in standard.issues]
    assert cloud.requested_start.tolist() == [-1, -1]
    assert cloud.commands == ()


def test_both_widths_may_stand_in_one_file() -> None:
    trace = read(job_line(1, 0, "50 S -1") + job_line(2, 1, "") + job_line(3, 2, "60 S -1"), strict=True)
    assert trace.requested_start.tolist() == [50, -1, 60]


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        (
            job_line(2, 9, "-1 X -1"),
            kinds.REQUEST_TYPE,
            "expected S, ET, EP, RT or RP in field 20, found 'X'",
        ),
        (
            job_line(2, 9, "-1 et 5"),
            kinds.REQUEST_TYPE,
            "expected S, ET, .* found 'et'",
        ),
        (job_line(2, 9, "-1 7 -1"), kinds.REQUEST_TYPE, r"expected S, .* found '7'"),
        (job_line(2, 9, "noon S -1"), kinds.NO_NUMBER, r"expected a number in field 19, found 'noon'"),
        (command_line("ET 0"), kinds.NO_AMOUNT, r"expected a positive amount in field 21 of ET, found '0'"),
        (command_line("RT -1"), kinds.NO_AMOUNT, r"expected a positive amount in field 21 of RT, found '-1'"),
        (
            command_line("EP 0.5"),
            kinds.NO_AMOUNT,
            r"expected a positive amount .* of EP, found '0.5'",
        ),
        (command_line("RP x"), kinds.NO_AMOUNT, r"expected a positive amount in field 21 of RP, found 'x'"),
        (command_line("RP"), kinds.NO_AMOUNT, r"expected a positive amount in field 21 of RP, found '-1'"),
        (command_line("ET 5", submit="x"), kinds.NO_NUMBER, r"expected a number in field 2, found 'x'"),
        (command_line("ET 5", number="nan"), kinds.NO_NUMBER, r"expected a number in field 1, found 'nan'"),
    ],
)
def test_a_line_that_says_nothing_certain_is_skipped_or_with_strict_an_error(
    line: str, kind: str, text: str
) -> None:
    trace = read(job_line() + line)
    issue = next(issue for issue in trace.issues if issue.skipped)
    assert (issue.line_number, issue.kind) == (2, kind)
    assert (len(trace), len(trace.commands)) == (1, 0)
    if len(line.split()) == 21:
        with pytest.raises(UserError, match=f"^trace:2: {text}"):
            read(job_line() + line, strict=True)


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        (job_line(2, 9, "-5 S -1"), kinds.NO_START, "expected a requested start from 0 on, or -1, found -5"),
        (job_line(2, 9, "-1 S 30"), kinds.IGNORED, "expected -1 in field 21 of a submission, found '30'"),
        (job_line(2, 9, "-1"), kinds.PADDED, "expected 21 fields, found 19"),
        (job_line(2, 9, "-1 S"), kinds.PADDED, "expected 21 fields, found 20"),
        (job_line(2, 9, "-1 S -1 8"), kinds.CUT, "expected 21 fields, found 22"),
    ],
)
def test_a_job_that_is_clear_all_the_same_is_mended(line: str, kind: str, text: str) -> None:
    trace = read(job_line() + line)
    assert [(issue.line_number, issue.kind, issue.text) for issue in trace.issues] == [(2, kind, text)]
    assert trace.requested_start.tolist() == [-1, -1]
    with pytest.raises(UserError, match=text):
        read(job_line() + line, strict=True)


@pytest.mark.parametrize(
    ("line", "kind", "amount"),
    [
        (command_line("EP 2.5"), kinds.FRACTION, 2),
        (command_line("EP 2", number="1.5"), kinds.FRACTION, 2),
        (command_line("ET 5", rest=UNSET[:-2] + "77"), kinds.IGNORED, 5),
        (command_line("ET 5 6"), kinds.CUT, 5),
    ],
)
def test_a_command_that_is_clear_all_the_same_is_mended(line: str, kind: str, amount: float) -> None:
    trace = read(job_line() + line)
    assert trace.summary() == {kind: 1}
    assert [(c.number, c.amount, c.row) for c in trace.commands] == [(1, amount, 0)]
    with pytest.raises(UserError, match=r"^trace:2: expected"):
        read(job_line() + line, strict=True)


def test_seconds_may_have_a_fraction() -> None:
    trace = read(job_line(tail="12.5 S -1") + command_line("ET 2.5", submit="5.5"), strict=True)
    assert trace.requested_start.tolist() == [12.5]
    assert trace.commands[0][:4] == (5.5, 1, "ET", 2.5)


def test_lines_out_of_order_are_sorted_and_counted() -> None:
    trace = read(job_line(1, 50) + command_line("ET 5", submit="20") + job_line(2, 30) + job_line(3, 60))
    assert [issue.line_number for issue in trace.issues if issue.kind == kinds.OUT_OF_ORDER] == [2, 3]
    assert trace.records[:, Column.NUMBER].tolist() == [2, 1, 3]
    assert trace.commands[0].row == 1


def test_a_file_that_ends_within_a_line_loses_that_line_only() -> None:
    whole = job_line(1, 0, "50 S -1")
    for cut in (" S -1\n", " -1\n", " -1 50 S -1\n", " 50 S -1\n"):
        trace = read(whole + job_line(2, 5, "50 S -1").removesuffix(cut))
        assert len(trace) == 1
        assert [issue.kind for issue in trace.issues] == [kinds.TOO_FEW]


def test_a_command_for_a_job_that_is_not_there_is_kept_and_counted() -> None:
    trace = read(job_line() + command_line("ET 5", number="9"))
    assert trace.describe_issues() == [f"trace: 1 line {kinds.UNKNOWN_JOB}"]
    assert trace.commands == (CommandRow(5, 9, "ET", 5, row=-1, line_number=2),)


def test_a_command_is_for_the_last_job_of_its_number_submitted_by_then() -> None:
    text = (
        command_line("ET 1", submit="2")
        + job_line(1, 10)
        + command_line("ET 2", submit="10")
        + job_line(1, 20)
        + command_line("ET 3", submit="20")
    )
    assert [(c.amount, c.row) for c in read(text).commands] == [(1, 0), (2, 0), (3, 1)]


# ------------------------------------------------------------------------------------ writing

times = st.integers(0, 10**9).map(float)
numbers = st.integers(1, 9).map(float)
amounts = st.integers(1, 10**6).map(float)
records = st.lists(
    st.tuples(
        *(
            st.sampled_from([-1.0, 0.0, 1.0, 5.0])
            if column is Column.STATUS
            else st.integers(-1, 10**12).map(float)
            if column in WHOLE
            else st.floats(-1, 1e12, allow_nan=False)
            for column in Column
        )
    ),
    min_size=1,
    max_size=8,
)
commands = st.lists(
    st.one_of(
        st.builds(CommandRow, times, numbers, st.sampled_from(["EP", "RP"]), amounts),
        st.builds(CommandRow, times, numbers, st.sampled_from(["ET", "RT"]), st.floats(1e-3, 1e9)),
    ),
    max_size=8,
)


@given(rows=records, asked=commands, packed=st.booleans(), data=st.data())
def test_reading_what_was_written_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[float, ...]],
    asked: list[CommandRow],
    packed: bool,
    data: st.DataObject,
) -> None:
    start = data.draw(
        st.lists(st.just(-1.0) | st.floats(0, 1e12), min_size=len(rows), max_size=len(rows)), "starts"
    )
    path = tmp_path_factory.getbasetemp() / ("round.cwf.gz" if packed else "round.cwf")
    write_cwf(path, ["; MaxProcs: 7"], rows, start, asked)
    trace = read_cwf(path)
    order = sorted(range(len(rows)), key=lambda row: rows[row][Column.SUBMIT])
    assert trace.records.tolist() == [list(rows[row]) for row in order]
    assert trace.requested_start.tolist() == [start[row] for row in order]
    assert [c[:4] for c in trace.commands] == [c[:4] for c in sorted(asked, key=lambda c: c.time)]
    assert not set(trace.summary()) & (kinds.BROKEN | {kinds.OUT_OF_ORDER})

    again = path.with_name("again.cwf")
    write_cwf(again, trace.header, trace.records, trace.requested_start, trace.commands)
    written = path.read_bytes()
    assert again.read_bytes() == (gzip.decompress(written) if packed else written)


def test_writes_the_example_as_it_stands(tmp_path: Path) -> None:
    trace = read(EXAMPLE)
    path = tmp_path / "log.cwf"
    write_cwf(path, trace.header, trace.records, trace.requested_start, trace.commands)
    assert path.read_text() == EXAMPLE


def test_sorts_by_time_with_jobs_before_commands(tmp_path: Path) -> None:
    trace = read(job_line(1, 0) + job_line(2, 5))
    path = tmp_path / "log.cwf"
    write_cwf(path, [], trace.records[::-1], None, [CommandRow(5, 2, "ET", 1), CommandRow(0, 1, "RT", 1)])
    assert [line.split()[0] + line.split()[19] for line in path.read_text().splitlines()] == [
        "1S",
        "1RT",
        "2S",
        "2ET",
    ]


@pytest.mark.parametrize(
    ("start", "asked"),
    [
        ([-2.0], []),
        ([np.nan], []),
        ([1.0, 2.0], []),
        (None, [CommandRow(0, 1, "S", 1)]),
        (None, [CommandRow(0, 1, "ET", 0)]),
        (None, [CommandRow(0, 1, "EP", 1.5)]),
        (None, [CommandRow(np.inf, 1, "ET", 1)]),
    ],
)
def test_refuses_what_could_not_be_read_back(
    tmp_path: Path, start: list[float] | None, asked: list[CommandRow]
) -> None:
    with pytest.raises(ValueError, match=r"^expected "):
        write_cwf(tmp_path / "log.cwf", [], read(job_line()).records, start, asked)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------- the emulation's jobs


def test_a_dedicated_job_carries_its_requested_start() -> None:
    jobs, commands, refused = cwf_jobs(read(EXAMPLE), 320, pool="p")
    assert [job.job.attributes for job in jobs] == [None, {"requested_start": 3600.0}, None]
    assert [job.job.request for job in jobs] == [Request(64, 120), Request(32, 500), Request(320, 60)]
    assert {job.job.pool for job in jobs} == {"p"}
    assert commands == [
        TraceCommand(20, "1", "ET", 60),
        TraceCommand(30, "2", "RP", 16),
        TraceCommand(45, "2", "RT", 30),
    ]
    assert refused == []


def test_a_requested_start_in_the_past_is_kept() -> None:
    jobs, _, _ = cwf_jobs(read(job_line(1, 100, "40 S -1")), 4)
    assert jobs[0].job.attributes == {"requested_start": 40.0}


def test_commands_of_refused_jobs_are_dropped_and_counted() -> None:
    jobs, commands, refused = cwf_jobs(read(EXAMPLE), 40)
    assert [job.job.id for job in jobs] == ["2"]
    assert [command.command for command in commands] == ["RP", "RT"]
    assert [(one.job_id, one.reason) for one in refused] == [
        ("1", "larger than the pool (64 of 40 processors); with it 1 elastic command"),
        ("3", "larger than the pool (320 of 40 processors)"),
    ]


def test_commands_of_unknown_jobs_and_of_those_behind_the_limit_are_dropped() -> None:
    trace = read(EXAMPLE + command_line("ET 5", number="9", submit="60"))
    jobs, commands, _ = cwf_jobs(trace, None, limit=1)
    assert [job.job.id for job in jobs] == ["1"]
    assert commands == [TraceCommand(20, "1", "ET", 60)]


def test_commands_follow_the_ids_of_jobs_that_share_a_number() -> None:
    trace = read(job_line(1, 0) + job_line(1, 10) + command_line("ET 5", submit="12"))
    jobs, commands, _ = cwf_jobs(trace, None)
    assert [job.job.id for job in jobs] == ["1", "1#2"]
    assert commands[0].job_id == "1#2"


def test_a_trace_without_extensions_gives_the_jobs_of_the_standard_format(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(path, [], read(EXAMPLE).records)
    jobs, refused = trace_jobs(read_swf(path), 100)
    assert cwf_jobs(read_swf(path), 100) == (jobs, [], refused)
    assert cwf_jobs(read_cwf(path), 100) == (jobs, [], refused)


def test_jobs_and_commands_survive_the_way_through_a_file(tmp_path: Path) -> None:
    jobs = [
        TraceJob(JobDescription("a", 0, Request(4, 60)), 50),
        TraceJob(JobDescription("b", 5, Request(8, 90), attributes={"requested_start": 70}), 90),
    ]
    given = [TraceCommand(6, "b", "ET", 10), TraceCommand(7, "a", "EP", 2)]
    write_cwf(tmp_path / "log.cwf", [], *to_cloud_records(jobs, given))
    back, commands, _ = cwf_jobs(read_cwf(tmp_path / "log.cwf"), None)
    assert [(j.job.submit_time, j.job.request, j.job.attributes, j.runtime) for j in back] == [
        (0, Request(4, 60), None, 50),
        (5, Request(8, 90), {"requested_start": 70}, 90),
    ]
    assert commands == [TraceCommand(6, "2", "ET", 10), TraceCommand(7, "1", "EP", 2)]


# ------------------------------------------------------------------------------------- filters


def test_a_part_keeps_requested_starts_and_commands_with_their_jobs() -> None:
    part = drop_larger_than(read(EXAMPLE), 40)
    assert isinstance(part, CloudTrace)
    assert part.requested_start.tolist() == [3600]
    assert [(c.command, c.row) for c in part.commands] == [("RP", 0), ("RT", 0)]
    shorter = first(read(EXAMPLE), 1)
    assert isinstance(shorter, CloudTrace)
    assert [(c.command, c.row) for c in shorter.commands] == [("ET", 0)]


def test_requested_starts_and_commands_move_with_their_jobs_submission() -> None:
    moved = scale_arrivals(read(EXAMPLE), 3)
    assert isinstance(moved, CloudTrace)
    assert moved.records[:, Column.SUBMIT].tolist() == [0, 30, 90]
    assert moved.requested_start.tolist() == [-1, 3620, -1]
    assert [(c.time, c.command) for c in moved.commands] == [(20, "ET"), (50, "RP"), (65, "RT")]


def test_commands_are_stretched_with_the_runtimes() -> None:
    longer = scale_runtimes(read(EXAMPLE), 2)
    assert isinstance(longer, CloudTrace)
    assert longer.requested_start.tolist() == [-1, 3600, -1]
    assert [c[:4] for c in longer.commands] == [(40, 1, "ET", 120), (50, 2, "RP", 16), (80, 2, "RT", 60)]
