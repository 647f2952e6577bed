"""Accounting of Slurm, PBS and LSF: what counts, what is wrong with a text, and the trace that it is.

``fixtures/lsb.acct`` and ``fixtures/lsb.events`` were written by a volclava 2.2, on which two users ran jobs.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from accounting_texts import HEADER, LIMITED, PBS, SACCT, in_seconds
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from headway.errors import UserError
from headway.workload import Column, read_swf, read_trace, write_swf
from headway.workload import trace as kinds
from headway.workload.accounting import accounted_trace, history_of, is_accounting, parse_accounting
from headway.workload.filters import queue

FIXTURES = Path(__file__).parent / "fixtures"
LSF = (FIXTURES / "lsb.acct").read_text()
EVENTS = (FIXTURES / "lsb.events").read_text()


def test_of_slurm_those_that_ended_count_by_their_ends():
    found = parse_accounting(SACCT, "acct")
    assert [(one.job_id, one.seconds, one.completed) for one in found] == [
        ("11", 40, True), ("13", 7, False), ("15", 9, True), ("12", 80, True),
    ]  # fmt: skip
    assert (found[3].user, found[3].nodes, found[3].processors, found[3].pool) == ("ann", 2, 32, "batch")


def test_of_pbs_the_records_of_ends_count():
    found = parse_accounting(PBS, "log")
    assert [(one.user, one.seconds, one.completed) for one in found] == [("ann", 40, True), ("bob", 7, False)]
    assert (found[0].comment, found[0].pool, found[0].processors) == ("scopred:app=ft;N=4", "workq", 16)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("JobIDRaw|State\n", "a, line 1: expected the column End of sacct, found JobIDRaw, State"),
        (f"{HEADER}\n1|a|b\n", "a, line 2: expected 10 fields, found 3"),
        (
            SACCT.replace("|80|", "|-80|"),
            "a, line 2: ElapsedRaw: expected whole seconds from 0 on, found '-80'",
        ),
        (
            SACCT.replace("|80|", "|99999999999|"),
            "a, line 2: ElapsedRaw: expected whole seconds from 0 on, found '99999999999'",
        ),
        (
            SACCT.replace("2026-11-20T10:00:00", "20.11.2026 10:00"),
            "a, line 2: End: expected a time such as 2026-11-22T09:30:00, found '20.11.2026 10:00'",
        ),
        (SACCT.replace("|32|", "|zwei|"), "a, line 2: NCPUS: expected a number from 0 on, found 'zwei'"),
        (
            SACCT.replace("CANCELLED by 1000", "annulé"),
            "a, line 5: State: expected a word such as COMPLETED, found 'annulé'",
        ),
        (
            PBS.replace("end=140", "end=90"),
            "a, line 2: expected an end from its start on, found 10 s before it",
        ),
        (PBS.replace("start=100", ""), "a, line 2: expected start=, found a record of an end without it"),
        (PBS + "20.11.2026 10:00;E;9;\n", "a, line 4: expected MM/DD/YYYY HH:MM:SS;TYPE;JOB;..., found"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, said):
    with pytest.raises(UserError) as error:
        parse_accounting(text, "a")
    assert str(error.value).startswith(said)


@given(st.text(alphabet='|;:=\n0123456789-TEa"é ', max_size=80), st.sampled_from([HEADER, PBS, ""]))
def test_no_text_is_more_than_refused(text, before):
    try:
        parse_accounting(f"{before}\n{text}", "a")
    except UserError as error:
        assert str(error).startswith("a, line ") or "expected" in str(error)


def test_of_pbs_a_job_array_is_its_subjobs():
    text = PBS + PBS.replace("7.server", "9[].server") + PBS.replace("7.server", "9[1].server")
    assert [one.job_id for one in parse_accounting(text, "log")].count("9[].server") == 0
    assert [one.job_id for one in parse_accounting(text, "log")].count("9[1].server") == 1


def test_of_lsf_the_records_of_ends_count():
    found = {one.job_id: one for one in parse_accounting(LSF, "lsb.acct")}
    assert sorted(found) == ["1", "2", "25", "26[1]", "26[2]", "27", "3", "5"]
    one = found["1"]
    assert (one.name, one.user, one.pool) == ('job 1|,"x"', "alice", "normal")
    assert one.comment == "scopred:app=ft;N=1"
    assert (one.nodes, one.processors, one.seconds, one.completed) == (1, 2, 3.0, True)
    assert (one.submit, one.start, one.end, one.limit) == (1795420273, 1795420280, 1795420283, None)
    assert (found["25"].completed, found["26[2]"].name) == (False, "arr[1-2]")


def test_limits_of_lsf_come_from_its_events_in_any_order():
    for text in (LSF + EVENTS, EVENTS + LSF):
        limits = {one.job_id: one.limit for one in parse_accounting(text, "both")}
        assert limits["1"] == 600 and limits["5"] == 1200 and limits["26[1]"] == 600
        assert limits["27"] is None


def test_ibms_record_has_a_field_more_and_counts_slots_by_host():
    record = LSF.splitlines()[0]
    before, _, rest = record.partition(' 0 1 "lsfa" 64 ')
    record = f'{before} 2 "x" "y" 2 "3*lsfa" "lsfb" 64 {rest}'.replace('=3" 0 1 ""', '=3" 0 1 "" "" 7 ""')
    (one,) = parse_accounting(record + "\n", "lsb.acct")
    assert (one.nodes, one.processors) == (2, 4)
    assert one.job_id == f"{LSF.split()[3]}[7]"


def test_a_job_of_lsf_that_never_started_ran_for_no_time():
    text = LSF.splitlines()[0].replace(" 0 0 1795420280 ", " 0 0 0 ")
    (one,) = parse_accounting(text, "lsb.acct")
    assert (one.start, one.seconds) == (None, 0)
    with pytest.raises(UserError, match=r"lsb\.acct: expected jobs that ran and ended, found none"):
        accounted_trace(text, "lsb.acct")


def lsf(old: str, new: str) -> str:
    first, _, rest = LSF.partition("\n")
    assert old in first
    return f"{first.replace(old, new)}\n{rest}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (EVENTS, "a: expected records JOB_FINISH, as lsb.acct has them, found none"),
        (lsf('"alice"', "-1"), "a, line 1: userName: expected a text in quotes, found '-1'"),
        (lsf(" 1795420280 ", " 1799999999 "), "a, line 1: expected an end from its start on, found 4579717"),
        (lsf(" 1795420280 ", " -5 "), "a, line 1: startTime: expected whole seconds from 0 on, found '-5'"),
        (lsf('"sleep 1"', '"sleep 1'), "a, line 1: expected fields in order, found"),
        (lsf(' 64 ', ' 64 "'), "a, line 1: expected fields in order, found"),
        (LSF.split(' 64 ')[0], "a, line 1: expected the field jStatus, found the end of the record"),
        (LSF + "Fertig\n", "a, line 9: expected \"EVENT\" \"VERSION\" TIME ... of lsb.acct, found 'Fertig'"),
        (
            EVENTS.replace(" 60000 ", " 1e999 ") + LSF,
            "a, line 4: run limit: expected a time above 0 s, found '1e999' by '100.00'",
        ),
        (
            EVENTS.replace('"lsfa" 100.00', '"lsfa" 0') + LSF,
            "a, line 4: run limit: expected a time above 0 s, found '60000' by '0'",
        ),
        (
            "\nAccounting information about jobs that are: \n  - submitted by all users.\n",
            "a: expected lsb.acct, found a listing of bacct or bhist, whose times have no years",
        ),
        (
            "JobID           JobName\n------------ ----------\n",
            "a, line 1: expected the column State of sacct, found JobID, JobName",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_lsfs_is_named(text, said):
    assert is_accounting(text)
    with pytest.raises(UserError) as error:
        parse_accounting(text, "a")
    assert str(error.value).startswith(said)


COLUMNS = [Column.NUMBER, Column.SUBMIT, Column.WAIT, Column.RUNTIME, Column.ALLOCATED, Column.ESTIMATE,
           Column.STATUS, Column.USER, Column.QUEUE]  # fmt: skip


def test_accounting_is_a_trace_of_what_ran(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text(LIMITED)
    trace = read_trace(path)
    assert trace.records[:, COLUMNS].tolist() == [
        [7, 0, 60, 60, 4, 600, 1, 1, 2],
        [8, 60, 0, 60, 1, -1, 0, 2, 1],
        [10, 120, 30, 90, 2, 300, 0, 1, 1],
    ]
    assert trace.queue_names == {1: "batch", 2: "long"}
    assert trace.epoch == 1795165140
    assert trace.line_numbers.tolist() == [2, 3, 5]
    assert "; Note: without 1 jobs that never ran" in trace.header
    write_swf(tmp_path / "log.swf", trace.header, trace.records)
    again = read_swf(tmp_path / "log.swf", strict=True)
    assert again.queue_names == trace.queue_names and (again.records == trace.records).all()
    packed = tmp_path / "sacct.gz"
    packed.write_bytes(gzip.compress(LIMITED.encode()))
    assert (read_trace(packed).records == trace.records).all()


def test_a_job_that_ran_while_the_clock_was_set_back_ends_before_its_start():
    header, *_ = LIMITED.splitlines()
    row = "7|ann|2026-10-25T02:49:00|2026-10-25T02:50:00|2026-10-25T02:10:00|1200|60|4|COMPLETED|long"
    (one,) = parse_accounting(f"{header}\n{row}\n", "a")
    assert (one.seconds, one.end - one.start) == (1200, 1200)
    with pytest.raises(UserError, match="expected an end from its start on, found 2400 s before it"):
        parse_accounting(f"{header}\n{row.replace('|1200|', '|1201|')}\n", "a")


@pytest.mark.parametrize("text", [PBS, LSF + EVENTS])
def test_the_others_are_traces_too(text):
    trace = accounted_trace(text, "a")
    assert len(trace) == len(parse_accounting(text, "a"))
    assert (np.diff(trace.records[:, Column.SUBMIT]) >= 0).all()
    assert (trace.records[:, Column.WAIT] >= 0).all()


def test_jobs_with_one_number_are_counted():
    numbers = accounted_trace(LSF, "a").records[:, Column.NUMBER]
    assert numbers.tolist() == list(range(1, 9))


def test_a_queue_by_its_name_or_number():
    trace = accounted_trace(LIMITED, "a")
    assert len(queue(trace, "batch")) == len(queue(trace, "1")) == 2
    with pytest.raises(UserError, match="a: expected one of the queues batch, long; found 'short'"):
        queue(trace, "short")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("|10|4", "|-10|4", "a, line 2: TimelimitRaw: expected whole seconds from 0 on, found '-10'"),
        ("|10|4", "|99999999999|4", "a, line 2: TimelimitRaw: expected whole seconds from 0 on, found '9999"),
        ("T09:00:00|2026-11-20T09:01:00|60|10", "T09:30:00|2026-11-20T09:01:00|60|10",
         "a, line 2: expected an end from its start on, found 1740 s before it"),
        ("2026-11-20T08:59:00", "20 nov. 2026", "a, line 2: Submit: expected a time such as 2026-11"),
        ("2026-11-20T08:59:00", "2026-13-20T08:59:00", "a, line 2: Submit: expected a time such as 2026-11"),
        ("|60|10|", "|1,5|10|", "a, line 2: ElapsedRaw: expected whole seconds from 0 on, found '1,5'"),
        ("|60|10|", "|٦٠|10|", "a, line 2: ElapsedRaw: expected whole seconds from 0 on, found '٦٠'"),
    ],
)  # fmt: skip
def test_times_that_are_no_times_are_named(old, new, said):
    with pytest.raises(UserError) as error:
        accounted_trace(LIMITED.replace(old, new, 1), "a")
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "limit"),
    [("1-12:00:00", 129600), ("01:30:00", 5400), ("05:00", 300), ("90", 90), ("UNLIMITED", -1)],
)
def test_limits_as_clocks(text, limit):
    said = LIMITED.replace("TimelimitRaw", "Timelimit").replace("|10|4", f"|{text}|4").replace("|20|", "||")
    assert accounted_trace(said.replace("|5|2", "|5:00|2"), "a").records[0, Column.ESTIMATE] == limit


def test_a_trace_that_can_be_read_only_once_is_read_whole():
    reads, writes = os.pipe()
    try:
        with open(writes, "wb") as stream:
            stream.write(b"12 0 5 10 1 -1 -1 1 20 -1 1 1 1 -1 1 -1 -1 -1\n")
        trace = read_trace(f"/dev/fd/{reads}", strict=True)
    finally:
        os.close(reads)
    assert trace.records[:, Column.NUMBER].tolist() == [12]


def test_words_in_a_comment_of_the_standard_format_are_no_header_of_sacct():
    assert not is_accounting("; Fields: JobID Submit Wait\n1 0 5\n")
    assert is_accounting("JobID|User|ElapsedRaw|End|State\n")


def test_a_line_of_another_encoding_is_read_and_named(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_bytes(LIMITED.replace("bob", "jos\xe9").encode("latin-1"))
    trace = read_trace(path, strict=True)
    assert len(trace) == 3
    (issue,) = (one for one in trace.issues if one.kind == kinds.ENCODING)
    assert (issue.line_number, issue.text) == (3, "expected UTF-8, found byte 0xe9 at column 6")


def test_a_broken_line_of_a_history_is_left_out_and_logged(tmp_path):
    path = tmp_path / "used.txt"
    path.write_text(in_seconds(LIMITED).replace("|60|10|", "|soon|10|"))
    with capture_logs() as logged:
        assert [job.job_id for job in history_of(path, None)] == ["8", "10", "9"]
    (said,) = logged
    assert (said["event"], said["lines"]) == ("broken lines of a history are left out", 1)
    assert said["first"] == "line 2: ElapsedRaw: expected whole seconds from 0 on, found 'soon'"


def test_a_history_without_one_good_line_is_refused(tmp_path):
    path = tmp_path / "used.txt"
    path.write_text(LIMITED)
    with pytest.raises(ValueError, match=r"line 2: Start: expected seconds since 1970, as SLURM"):
        history_of(path, None)
    path.write_text(in_seconds(PBS).replace("start=", "began="))
    with pytest.raises(ValueError, match=r"expected jobs that ended, found none; line 2: expected start="):
        history_of(path, None)
