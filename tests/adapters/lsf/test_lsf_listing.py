"""Every recorded output of LSF's commands, and what we understand of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import written_lsf
from hypothesis import given
from hypothesis import strategies as st
from recorded_lsf import FIXTURES, LATER, NOW, at, output, result

from headway.errors import Failure
from headway_adapters.lsf import cluster_listing, documents, listing
from headway_adapters.lsf.client import is_silence
from headway_adapters.lsf.cluster_listing import Booking, Queue, System
from headway_adapters.lsf.listing import Ending, Facts, Row
from headway_adapters.lsf.values import Calendar

MINUTE_OF_SUBMISSION = {6: 37, 4: 37, 1: 37, 5: 37, 2: 37, 3: 37}

#: What ``bjobs -w`` shows: id, state, hosts, name.
WIDE = [
    ("7", "RUN", (("lsfhost", 1),), "run1"),
    ("10[1]", "USUSP", (("lsfhost", 1),), "arr[1]"),
    ("6", "PEND", (), "late"),
    ("4[3]", "PEND", (), "arr[3]"),
    ("1", "PEND", (), "j1"),
    ("8", "PEND", (), "pend two"),
    ("9", "PSUSP", (), "held"),
    ("11", "PEND", (), "dep"),
    ("10[2]", "PEND", (), "arr[2]"),
    ("10[3]", "PEND", (), "arr[3]"),
    ("5", "DONE", (("lsfhost", 1),), "dep"),
    ("2", "EXIT", (("lsfhost", 2),), "j2"),
    ("4[2]", "DONE", (("lsfhost", 1),), "arr[2]"),
    ("4[1]", "DONE", (("lsfhost", 1),), "arr[1]"),
    ("13", "EXIT", (("lsfhost", 1),), "bad"),
    ("12", "DONE", (("lsfhost", 1),), "quick"),
    ("3", "DONE", (("lsfhost", 1),), "j3"),
]


def rows(text: str, notes: set[str] | None = None) -> dict[str, Row]:
    return listing.read_wide_rows(text, Calendar(NOW), set() if notes is None else notes)


def long(text: str, notes: set[str] | None = None) -> dict[str, Facts]:
    return listing.read_long(text, Calendar(NOW), set() if notes is None else notes)


def test_the_wide_table() -> None:
    notes: set[str] = set()
    found = rows(output("bjobs_all_wide"), notes)
    assert [(row.job_id, row.stat, row.hosts, row.name) for row in found.values()] == WIDE
    assert {(row.user, row.queue, row.from_host) for row in found.values()} == {
        ("alice", "normal", "lsfhost")
    }
    assert {job_id: row.submitted for job_id, row in found.items()} == {
        job_id: at(6, MINUTE_OF_SUBMISSION.get(int(job_id.partition("[")[0]), 38)) for job_id, *_ in WIDE
    }
    assert (found["4[3]"].array, found["4[3]"].index) == ("4", 3)
    assert (found["8"].array, found["8"].index) == ("", None)
    assert notes == set()


def test_pending_reasons_are_not_rows() -> None:
    notes: set[str] = set()
    found = rows(output("bjobs_pending_reasons").replace("   JOB_NAME", "EXEC_HOST   JOB_NAME"), notes)
    assert notes == {"a line of bjobs -w could not be read"}
    assert set(found) == {"6", "4[3]", "1", "8", "9", "11", "10[2]", "10[3]"}


def test_the_unwrapped_details() -> None:
    notes: set[str] = set()
    found = long(output("bjobs_UF"), notes)
    local = "select[type == local] order[r15s:pg]"
    submitted, early = at(6, 38, 58), at(6, 37, 44)
    full = "Job slot limit reached: 1 host"
    assert found == {
        "7": Facts(least=1, most=1, run_limit=600.0, requirement=local, submitted=submitted,
                   started=submitted),
        "10[1]": Facts(least=1, most=1, requirement=local, submitted=submitted, started=submitted,
                       reason="The job was suspended by user"),
        "6": Facts(least=1, most=1, requirement=local, begin=at(23, 50), submitted=early, reason=full),
        "4[3]": Facts(least=1, most=1, requirement=local, submitted=early, reason=full),
        "1": Facts(least=1, most=1, run_limit=600.0, requirement=local, submitted=early, reason=full),
        "8": Facts(least=2, most=2, run_limit=3900.0, requirement=local + " rusage[mem=10.00]",
                   submitted=submitted, reason=full),
        "9": Facts(least=1, most=1, requirement=local, submitted=submitted, reason=full),
        "11": Facts(least=1, most=1, requirement=local, dependency='done("run1")', submitted=submitted,
                    reason=full),
        "10[2]": Facts(least=1, most=1, requirement=local, submitted=submitted, reason=full),
        "10[3]": Facts(least=1, most=1, requirement=local, submitted=submitted, reason=full),
    }  # fmt: skip
    assert notes == set()


def test_the_wrapped_details_are_the_same() -> None:
    assert long(listing.unwrapped(output("bjobs_long"))) == long(output("bjobs_UF"))


def test_volclavas_json() -> None:
    notes: set[str] = set()
    found, facts = listing.read_json_rows(output("bjobs_o_json").encode(), Calendar(LATER), notes)
    states = {job_id: stat for job_id, stat, *_ in WIDE} | {"7": "DONE"}
    assert {job_id: row.stat for job_id, row in found.items()} == states
    assert found["2"] == Row(
        "2", "alice", "EXIT", "normal", "j2", from_host="lsfhost", hosts=(("lsfhost", 1),),
        submitted=at(6, 37), started=at(6, 37, 58), ended=at(6, 38, 15), project="default",
    )  # fmt: skip
    assert found["10[2]"].index == 2 and found["8"].name == "pend two"
    assert set(facts) == set(found) and notes == set()


def ibm(**fields: str) -> dict[str, str]:
    """A record as IBM Spectrum LSF's manual describes it."""
    return {
        "JOBID": "101", "JOBINDEX": "0", "STAT": "PEND", "USER": "alice", "USER_GROUP": "-",
        "QUEUE": "normal", "JOB_NAME": "x", "JOB_DESCRIPTION": "-", "PROJ_NAME": "p1",
        "FROM_HOST": "login", "EXEC_HOST": "-", "ALLOC_SLOT": "-", "NALLOC_SLOT": "-", "ASK_HOSTS": "-",
        "SUBMIT_TIME": "Nov 21 06:38", "START_TIME": "-", "FINISH_TIME": "-",
        "SPECIFIED_START_TIME": "-", "MIN_REQ_PROC": "-", "MAX_REQ_PROC": "-", "NREQ_SLOT": "1",
        "RUNTIMELIMIT": "-", "COMBINED_RESREQ": "-", "DEPENDENCY": "-", "EXCLUSIVE": "N", "RSVID": "-",
        "EXIT_CODE": "-", "EXIT_REASON": "-", "PEND_REASON": "-", **fields,
    }  # fmt: skip


def ibm_json(*records: dict[str, Any]) -> bytes:
    return json.dumps({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": list(records)}).encode()


def test_ibms_json_says_everything() -> None:
    record = ibm(
        JOBID="101", JOBINDEX="7", STAT="RUN", JOB_NAME="a [b]", EXEC_HOST="2*h1:h2", ALLOC_SLOT="2*h1:1*h2",
        ASK_HOSTS="h1 h2", START_TIME="Nov 21 06:39", FINISH_TIME="Nov 21 07:39 L", MIN_REQ_PROC="3",
        MAX_REQ_PROC="6", NREQ_SLOT="3", RUNTIMELIMIT="60.0/h1", COMBINED_RESREQ="span[ptile=2]",
        DEPENDENCY="done(5)", EXCLUSIVE="Y", RSVID="headway_r1", EXIT_CODE="3", EXIT_REASON="TERM_OWNER: x",
        SPECIFIED_START_TIME="Nov 22 06:00", JOB_DESCRIPTION="headway:malleable", PEND_REASON="Why not;",
        USER_GROUP="physics", RUN_TIME="83 second(s)",
    )  # fmt: skip
    found, facts = listing.read_json_rows(ibm_json(record), Calendar(NOW), set())
    assert found == {
        "101[7]": Row(
            "101[7]", "alice", "RUN", "normal", "a [b]", "101", 7, "login", (("h1", 2), ("h2", 1)),
            at(6, 38), at(6, 39), at(7, 39), "p1", "physics", ran=83.0,
        )
    }  # fmt: skip
    assert facts["101[7]"] == Facts(
        3, 6, 3600.0, "span[ptile=2]", "done(5)", at(6, 0, day=22), True, ("h1", "h2"), "headway_r1",
        "headway:malleable", exit_code=3, exit_reason="TERM_OWNER: x", reason="Why not",
    )  # fmt: skip


def test_a_name_with_brackets_is_no_array_where_the_index_has_a_column() -> None:
    found, _ = listing.read_json_rows(ibm_json(ibm(JOB_NAME="run[3]")), Calendar(NOW), set())
    assert set(found) == {"101"}


def test_no_job_is_an_empty_listing_and_not_an_outage() -> None:
    assert listing.read_json_rows(ibm_json(), Calendar(NOW), set()) == ({}, {})
    assert rows("") == {} and long("") == {}
    for said in ("No job found\n", "No unfinished job found", "No matching job found"):
        assert listing.nothing_found(said)
    assert not listing.nothing_found("LSF is down. Please wait ...")


@pytest.mark.parametrize("cut", [1, 30, 500, 3000, 5000])
def test_a_json_listing_that_is_cut_off_is_an_outage(cut: int) -> None:
    with pytest.raises(Failure, match="bjobs"):
        listing.read_json_rows(output("bjobs_o_json").encode()[:cut], Calendar(NOW), set())


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"RECORDS": 3}', b"<html>", b'{"JOBS": 2, "RECORDS": []}', b"[" * 100_000]
)
def test_nonsense_in_the_place_of_json_is_a_failure(data: bytes) -> None:
    with pytest.raises(Failure):
        listing.read_json_rows(data, Calendar(NOW), set())


def test_a_table_that_is_cut_off_in_a_row_is_an_outage() -> None:
    text = output("bjobs_all_wide")
    with pytest.raises(Failure, match="middle of a row"):
        rows(text[:-30])
    with pytest.raises(Failure, match="expected a table"):
        rows("Cannot open file\n")


def test_a_field_that_bjobs_does_not_know() -> None:
    assert listing.bad_field(result("bjobs_o_bad_field").stderr) == "slots"
    assert listing.bad_field("anything else") == ""
    assert not is_silence(result("bjobs_o_bad_field"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bjobs_none", "nosuch: Illegal job ID."),
        ("brun_unknown", "Failed to run the job: No matching job found"),
        ("bparams", "bparams: invalid option -- 'a'; Usage: bparams [-h] [-V] [-l]"),
    ],
)
def test_refusals_are_answers(name: str, said: str) -> None:
    refused = result(name)
    assert not refused.ok and not is_silence(refused)
    assert refused.complaint() == said


def test_a_daemon_that_is_down_is_silence() -> None:
    # It was ended by `timeout`; the transport's own time-out looks the same.
    assert is_silence(result("bjobs_mbatchd_down"))
    assert is_silence(result("bjobs_mbatchd_down", stderr="", timed_out=True))


def test_hosts() -> None:
    expected = {"lsfhost": cluster_listing.HostState("lsfhost", "closed_Full", 2, 2)}
    assert cluster_listing.read_hosts(output("bhosts_wide")) == expected
    assert cluster_listing.read_hosts(output("bhosts_long")) == expected
    document = {
        "COMMAND": "bhosts", "HOSTS": 1,
        "RECORDS": [{"HOST_NAME": "lsfhost", "STATUS": "closed_Adm", "MAX": "-", "NJOBS": "0",
                     "COMMENTS": '"headway: asleep"'}],
    }  # fmt: skip
    assert cluster_listing.read_hosts_json(json.dumps(document).encode()) == {
        "lsfhost": cluster_listing.HostState("lsfhost", "closed_Adm", 0, 0, "headway: asleep")
    }


def test_queues() -> None:
    (queue,) = cluster_listing.read_queues(output("bqueues_long")).values()
    assert queue == Queue("normal", "Open:Inact_Adm", ("all",), priority=30)
    assert queue.inactive and not queue.window_closed
    (row,) = documents.table(output("bqueues_wide"))
    assert (row["QUEUE_NAME"], row["STATUS"], row["PEND"], row["SUSP"]) == ("normal", "Open:Inact", "9", "1")


def test_limits_and_hosts_of_queues() -> None:
    text = (
        "\nQUEUE: short\n  -- QUEUE: not one\n\nPARAMETERS/STATISTICS\n"
        "PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV PJOBS\n"
        " 30   20  Open:Active       -    -    -    -     0     0     0     0     0    0     0\n\n"
        "DEFAULT LIMITS:\n RUNLIMIT                \n 10.0 min of hostA\n\n"
        "MAXIMUM LIMITS:\n CPULIMIT                 RUNLIMIT                \n"
        " 20.0 min of hostA        60.0 min of hostA\n\nUSERS:  all\nHOSTS:  group1/ hostC+2 ~hostD\n"
        "------------------------------------------------------------------------------\n"
        "\nQUEUE: night\nPRIO NICE STATUS\n 40   20  Open:Inact_Win\n"
        "MAXIMUM LIMITS:\n RUNLIMIT                \n 480.0 min\nHOSTS:  none\n"
    )
    short, night = cluster_listing.read_queues(text).values()
    assert short == Queue("short", "Open:Active", ("group1/", "hostC+2", "~hostD"), 600, 3600, priority=30)
    assert night == Queue("night", "Open:Inact_Win", ("none",), None, 28800.0, priority=40)
    assert not short.inactive and night.window_closed


def test_tables_of_load_and_hosts() -> None:
    (row,) = documents.table(output("lsload"))
    assert (row["HOST_NAME"], row["status"], row["mem"]) == ("lsfhost", "ok", "22G")
    (row,) = documents.table(output("lshosts"))
    assert (row["maxmem"], row["ncpus"], row["RESOURCES"]) == ("24105M", "2", "()")


def test_groups() -> None:
    text = "GROUP_NAME    HOSTS                     \ngroup1/       hostA hostB \nempty \n"
    assert cluster_listing.read_groups(text) == {"group1": ("hostA", "hostB"), "empty": ()}


@pytest.mark.parametrize(
    ("text", "system"),
    [
        (output("lsid"), System("volclava 2.2", "volclava", False)),
        (
            "IBM Spectrum LSF Standard 10.1.0.13, Apr 15 2022\nCopyright IBM Corp.\n\n"
            "My cluster name is c1\nMy master name is hosta\n",
            System("IBM Spectrum LSF 10.1.0.13", "c1", True),
        ),
        ("Platform LSF 9.1.3.0\n\nMy cluster name is c2\nMy master name is m\n",
         System("IBM Spectrum LSF 9.1.3.0", "c2", True)),
        ("openlava project 4.0, Mar 1 2016\n\nMy cluster name is o\nMy master name is m\n",
         System("openlava 4.0", "o", False)),
        ("lsid: LIM is down; try later\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_which_lsf_it_is(text: str, system: System | None) -> None:
    assert cluster_listing.read_system(text) == system


def test_how_jobs_ended_from_history() -> None:
    found = listing.read_history(output("bhist"), Calendar(NOW))
    one, two = (("lsfhost", 1),), (("lsfhost", 2),)
    alive = {"1", "4[3]", "6", "7", "8", "9", "10[1]", "10[2]", "10[3]", "11"}
    assert {job_id for job_id, ending in found.items() if ending.state == "alive"} == alive
    assert {job_id: ending for job_id, ending in found.items() if job_id not in alive} == {
        "2": Ending("ended", False, 130, "", at(6, 37, 58), at(6, 38, 15), two),
        "3": Ending("ended", True, 0, "", at(6, 37, 58), at(6, 38, 58), one),
        "4[1]": Ending("ended", True, 0, "", at(6, 38, 32), at(6, 38, 52), one),
        "4[2]": Ending("ended", True, 0, "", at(6, 37, 58), at(6, 38, 18), one),
        "5": Ending("ended", True, 0, "", at(6, 37, 58), at(6, 38, 3), one),
        "12": Ending("ended", True, 0, "", at(6, 38, 58), at(6, 38, 58), one),
        "13": Ending("ended", False, 1, "", at(6, 38, 58), at(6, 38, 58), one),
    }


def test_an_exit_on_the_way_back_to_the_queue_is_told_by_the_history_only() -> None:
    now = at(2, 38, 33, day=22)
    (row,) = listing.read_wide_rows(output("bjobs_requeue_exit_wide"), Calendar(now), set()).values()
    facts = listing.read_long(output("bjobs_requeue_exit_UF"), Calendar(now), set())["180"]
    assert (row.stat, facts.exit_code, facts.exit_reason) == ("EXIT", 130, "")
    (ending,) = listing.read_history(output("bhist_requeue_exit"), Calendar(now)).values()
    assert (ending.state, ending.exit_code, ending.hosts) == ("requeued", 130, (("lsfb", 2),))
    (ending,) = listing.read_history(output("bhist_requeued"), Calendar(now)).values()
    assert ending.state == "alive"
    back = listing.read_long(output("bjobs_requeued_pend_UF"), Calendar(now), set())["180"]
    assert back.reason == "Requeue the job for the next run: 1 host"


def test_what_had_ended_while_it_waited_and_was_started_all_the_same() -> None:
    assert listing.started_again(output("bhist_started_again")) == {"1[2]", "2"}


@pytest.mark.parametrize(
    ("put", "where"),
    [
        # It had run, and was sent back to the queue while it did.
        ("Mon Nov 23 16:08:19: Dispatched to <lsfb>;\n", "Mon Nov 23 16:08:19: Signal <KILL>"),
        # Somebody sent it back before its start.
        ("Mon Nov 23 16:08:23: Pending: Job has been requeued;\n", "Mon Nov 23 16:08:21: Job is forced"),
    ],
)
def test_what_was_sent_back_to_the_queue_was_not_started_by_mistake(put: str, where: str) -> None:
    told = output("bhist_started_again")
    assert where in told and listing.started_again(told.replace(where, put + where)) == set()


def test_a_job_that_reached_its_limit_ends_without_a_word_about_it() -> None:
    now = at(4, 52, 30, day=22)
    (row,) = listing.read_wide_rows(output("bjobs_run_limit_wide"), Calendar(now), set()).values()
    facts = listing.read_long(output("bjobs_run_limit_UF"), Calendar(now), set())["39"]
    assert (row.stat, facts.run_limit, facts.exit_code, facts.exit_reason) == ("EXIT", 60.0, 140, "")
    assert facts.started is not None and facts.ended == facts.started + 64
    assert listing.read_history(output("bhist_run_limit"), Calendar(now))["39"].exit_code == 140


def test_a_job_that_ended_after_an_earlier_requeue_has_ended() -> None:
    end = "Sun Nov 22 02:40:00: Dispatched to <lsfb>;\nSun Nov 22 02:40:09: Exited with exit code 130.\n"
    text = output("bhist_requeued").replace("has been requeued;\n", f"has been requeued;\n{end}")
    assert text.count("Exited") == 2
    (ending,) = listing.read_history(text, Calendar(at(3, 0, day=22))).values()
    assert (ending.state, ending.started) == ("ended", at(2, 40, day=22))


@pytest.mark.parametrize(
    ("line", "code", "reason"),
    [
        ("Done successfully. The CPU time used is 0.0 seconds.", 0, ""),
        ("Exited with exit code 7. The CPU time used is 0.0 seconds.", 7, ""),
        ("Exited by signal 9. The CPU time used is 0.0 seconds.", 137, ""),
        ("Exited; TERM_RUNLIMIT: job killed after reaching LSF run time limit.", None, "TERM_RUNLIMIT"),
        ("Exited. The CPU time used is unknown.", None, ""),
        ("Completed <done>.", 0, ""),
        ("Completed <exit>; TERM_OWNER: job killed by owner.", None, "TERM_OWNER"),
    ],
)
def test_how_a_job_ended_from_its_details(line: str, code: int | None, reason: str) -> None:
    head = "\nJob <5>, User <a>, Project <p>, Status <EXIT>, Queue <q>, Command <c>\n"
    text = f"{head}{SUBMITTED}Sat Nov 21 06:38:59: {line}\n"
    facts = long(text)["5"]
    assert (facts.ended, facts.exit_code, facts.exit_reason) == (at(6, 38, 59), code, reason)


SUBMITTED = "Sat Nov 21 06:38:58: Submitted from host <h>, CWD </tmp>;\n"


@pytest.mark.parametrize(
    ("asked", "facts"),
    [
        (", 2 Processors Requested", {"least": 2, "most": 2}),
        (", 2-4 Task(s)", {"least": 2, "most": 4}),
        (", 2,4 Processors Requested", {"least": 2, "most": 4}),
        (", Output File <a, 3 Task(s)>, 5 Task(s)", {"least": 5, "most": 5}),
        (", Exclusive Execution", {"exclusive": True}),
        (", Requested Resources <select[mem>100 && ut<0.5] span[hosts=1]>",
         {"requirement": "select[mem>100 && ut<0.5] span[hosts=1]"}),
        (', Dependency Condition <exit(5,>3) && done("a b")>', {"dependency": 'exit(5,>3) && done("a b")'}),
        (", Specified Hosts <h1>, <h2+2>, <g1>", {"asked_hosts": ("h1", "h2+2", "g1")}),
        (", Advance Reservation <headway_7>", {"reservation": "headway_7"}),
    ],
)  # fmt: skip
def test_what_a_job_asks_for(asked: str, facts: dict[str, Any]) -> None:
    text = f"\nJob <5>, User <a>, Command <c>\n{SUBMITTED.replace(';', asked + ';')}"
    assert long(text)["5"] == Facts(**{"least": 1, "most": 1, "submitted": at(6, 38, 58), **facts})


def test_a_limit_among_others() -> None:
    text = (
        f"\nJob <5>, User <a>, Command <c>\n{SUBMITTED}\n CPULIMIT                 RUNLIMIT                \n"
        " 1.0 min                  30.0 min of hostA         \n"
    )
    assert long(text)["5"].run_limit == 1800.0


def test_reservations() -> None:
    text = (
        "RSVID       TYPE      USER      NCPUS       RSV_HOSTS     TIME_WINDOW\n"
        "user1#0     user      user1     0/4         h1:0/2        11/22/14/0-11/22/18/30\n"
        "                                            h2:0/2\n"
        "headway_7   sys       -         0/2         h1:0/2        2026/12/31/23/0-2027/1/1/1/0\n"
        "weekly#1    group     staff     0/2         h2:0/2        3:3:0-3:3:30 *\n"
    )
    notes: set[str] = set()
    assert cluster_listing.read_reservations(text, Calendar(NOW), notes) == {
        "user1#0": Booking("user1#0", "user", "user1", ("h1", "h2"), at(14, 0, day=22), at(18, 30, day=22)),
        "headway_7": Booking("headway_7", "sys", "-", ("h1",), at(23, 0, day=61), at(1, 0, day=62)),
    }
    assert notes == {"reservation weekly#1 has no single time or no hosts and is left out"}


def test_every_fixture_is_read_here() -> None:
    here = FIXTURES.parent
    text = "".join(path.read_text(encoding="utf-8") for path in here.glob("test_lsf_*.py"))
    for path in FIXTURES.glob("*.json"):
        assert f'"{path.stem}"' in text, path.name


# ---------------------------------------------------------------------- hostile names

HEADER = "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n"


def line(number: int, name: str, stat: str = "PEND", hosts: str = "-") -> str:
    return f"{number:<7} alice   {stat:<5} normal     lsfhost     {hosts:<11} {name:<10} Nov 21 06:38\n"


def test_a_name_may_look_like_the_columns() -> None:
    name = "a  b RUN normal h1 [3] Nov 21 06:37 x"
    (row,) = rows(HEADER + line(5, name)).values()
    assert (row.job_id, row.name, row.stat, row.hosts) == ("5", name, "PEND", ())
    (row,) = rows(HEADER + line(5, name, "RUN", "h1:h1")).values()
    assert (row.name, row.hosts) == (name, (("h1", 2),))


def test_a_job_without_a_host_may_have_a_blank_column() -> None:
    text = HEADER + "5       alice   PEND  normal     lsfhost                 x y        Nov 21 06:38\n"
    text += "6       alice   EXIT  normal     lsfhost                 x y        Nov 21 06:38\n"
    assert [(row.name, row.hosts) for row in rows(text).values()] == [("x y", ()), ("x y", ())]


def test_a_name_with_a_newline_that_imitates_another_job_is_part_of_the_name_or_doubtful() -> None:
    spoof = "x\n6       bob     DONE  normal     lsfhost     h1          y"
    notes: set[str] = set()
    found = rows(HEADER + line(5, spoof) + line(6, "mine", "RUN", "h1"), notes)
    assert found["5"].name == spoof and found["6"].stat == "RUN" and not found["6"].doubtful
    told_twice = rows(HEADER + line(6, "mine", "RUN", "h1") + line(6, "y", "DONE", "h1"), notes)
    assert told_twice["6"].doubtful and told_twice["6"].stat == "RUN"
    assert "job 6 is listed twice; headway does not touch it" in notes


def test_details_that_imitate_another_job_make_it_doubtful() -> None:
    separator = "-" * 78
    fake = f"x>\n{separator}\n\nJob <6>, User <bob>, Command <y>\n{SUBMITTED}"
    text = f"\nJob <5>, User <eve>, Command <{fake}>\n{SUBMITTED}{separator}\n"
    text += f"\nJob <6>, User <bob>, Command <z>\n{SUBMITTED}"
    notes: set[str] = set()
    found = long(text, notes)
    assert found["5"].doubtful and found["6"].doubtful
    assert "job 6 is described twice; headway does not touch it" in notes


HOSTILE = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40) | st.sampled_from(
    ["'; rm -rf / #", '"quoted"', "$(reboot)", "a\nb", "> /etc/passwd", "-", "[1]", "\t", "%s%n",
     "Nov 21 06:38", "\x00", "\x1b[2J", "ü\ufffd", "a  b", "\n", "|&;<>()$`\\"]
)  # fmt: skip


@given(st.lists(HOSTILE, min_size=1, max_size=5))
def test_hostile_names_in_json_come_back_as_they_are(names: list[str]) -> None:
    records = [ibm(JOBID=str(100 + at), JOB_NAME=name) for at, name in enumerate(names)]
    found, _ = listing.read_json_rows(ibm_json(*records), Calendar(NOW), set())
    # A lone hyphen is LSF's word for nothing.
    assert [row.name for row in found.values()] == ["" if name == "-" else name for name in names]
    assert set(found) == {str(100 + at) for at in range(len(names))}


@given(
    st.lists(HOSTILE, max_size=4), st.lists(st.sampled_from(["PEND", "RUN", "EXIT"]), min_size=5, max_size=5)
)
def test_hostile_names_in_the_table_never_invent_a_job(names: list[str], stats: list[str]) -> None:
    given_ids = {str(100 + at) for at in range(len(names))} | {"999"}
    text = HEADER
    for at_, (name, stat) in enumerate(zip(names, stats, strict=False)):
        text += line(100 + at_, name, stat, "h1" if stat == "RUN" else "-")
    text += line(999, "last", "RUN", "2*h2")
    try:
        found = rows(text)
    except Failure:
        # An outage is a safe answer.
        return
    assert {row.job_id.partition("[")[0] for row in found.values()} <= given_ids
    for job_id, row in found.items():
        number = int(job_id.partition("[")[0])
        expected = "RUN" if number == 999 else stats[number - 100]
        assert row.stat == expected


@given(HOSTILE, HOSTILE)
def test_hostile_names_and_commands_in_the_details_never_invent_a_job(name: str, command: str) -> None:
    text = (
        f"\nJob <5>, Job Name <{name}>, User <a>, Project <p>, Status <PEND>, Queue <q>, "
        f"Command <{command}>\n{SUBMITTED.replace(';', ', 3 Task(s);')} PENDING REASONS:\n New job;\n"
    )
    found = long(text)
    assert set(found) == {"5"}
    assert found["5"].doubtful or (found["5"].least, found["5"].reason) == (3, "New job")


@given(st.binary(max_size=200))
def test_bytes_that_are_no_text_are_an_outage_or_nothing(data: bytes) -> None:
    text = documents.text_of(data)
    of_cluster = (cluster_listing.read_hosts, cluster_listing.read_queues, cluster_listing.read_groups)
    for read in (rows, long, *of_cluster):
        try:
            read(text)
        except Failure:
            continue
    listing.read_history(text, Calendar(NOW))
    cluster_listing.read_reservations(text, Calendar(NOW), set())
    cluster_listing.read_system(text)
    with pytest.raises(Failure):
        listing.read_json_rows(b"\xff" + data, Calendar(NOW), set())


def test_a_name_that_is_no_utf8_is_read_with_replacements() -> None:
    data = ibm_json(ibm(JOB_NAME="coffee")).replace(b"coffee", b"caf\xe9")
    found, _ = listing.read_json_rows(data, Calendar(NOW), set())
    assert found["101"].name == "caf\ufffd"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('headway:malleable it\'s "mine"', 'headway:malleable it\'s "mine"'),
        # Whoever would write this again must see that it is not all.
        ("a->b", "a->b>"),
        ("a>, User <root", "a>, User <root>"),
    ],
)
def test_a_description_is_read_as_it_was_written_or_with_what_is_odd(written: str, read: str) -> None:
    job = written_lsf.Job(7, "ann", description=written)
    assert long(written_lsf.record(job))["7"].description == read


@pytest.mark.parametrize(
    "said", ["headway:malleable", "headway:malleable headway-a:x=B/1", "headway-a:x=B/1"]
)
def test_words_and_notes_of_ours_are_read_before_others(said: str) -> None:
    record = written_lsf.record(written_lsf.Job(7, "ann"))
    text = record.replace(", Command <", f", Job Description <{said}>, Command <")
    assert long(text)["7"].description == said


def test_the_words_of_a_description_may_have_values() -> None:
    job = written_lsf.Job(7, "ann", description="headway:job=film7,stage=2,reward=1.5")
    assert long(written_lsf.record(job))["7"].description == "headway:job=film7,stage=2,reward=1.5"
