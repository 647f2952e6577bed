"""The emulated LSF: what was recorded of a running volclava, and what IBM Spectrum LSF has beyond it."""

from __future__ import annotations

import json
import re
import subprocess
import time

import pytest
from emulated_commands import Commands, recorded
from waiting import until


def submit(lsf: Commands, *words: str, user: str = "alice", runtime: float = 1000) -> str:
    """A job's id; it runs for so many seconds."""
    said = lsf.ok("bsub", *words, "sleep", str(runtime), user=user)
    return re.fullmatch(r"Job <(\d+)> is submitted to (?:default )?queue <\S+>\.\n", said)[1]


def stats(lsf: Commands, *ids: str) -> list[str]:
    """States of jobs (array elements in their order)."""
    answer = lsf("bjobs", "-u", "all", "-a", "-o", "jobid job_name stat", "-json")
    found: dict[str, list[str]] = {}
    for record in answer.json["RECORDS"]:
        found.setdefault(record["JOBID"], []).append(record["STAT"])
    return [found[job_id][0] for job_id in ids]


def run(lsf: Commands, job_id: str, *hosts: str) -> None:
    lsf.ok("brun", "-m", " ".join(hosts or ("lsfhost",)), job_id)
    until(lambda: stats(lsf, job_id) == ["RUN"])


def until_pending(lsf: Commands, job_id: str) -> None:
    """A requeued job is back in its queue after a while."""
    end = time.monotonic() + 60
    while stats(lsf, job_id) != ["PEND"]:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def morning(lsf: Commands) -> Commands:
    """The jobs of the recorded morning, in the states that they had."""
    lsf.ok("bsub", "-J", "j1", "-W", "10", "sleep", "60", user="alice")
    lsf.ok("bsub", "-J", "j2", "-n", "2", "-W", "5", "sleep", "60", user="alice")
    lsf.ok("bsub", "-J", "j3", "-H", "sleep", "60", user="alice")
    lsf.ok("bsub", "-J", "arr[1-3]", "sleep", "20", user="alice")
    lsf.ok("bsub", "-J", "dep", "-w", "done(1)", "sleep", "5", user="alice")
    later = time.strftime("%m:%d:%H:%M", time.gmtime(time.time() + 7200))
    lsf.ok("bsub", "-J", "late", "-b", later, "sleep", "5", user="alice")
    lsf.ok("bsub", "-J", "run1", "-W", "10", "sleep", "90", user="alice")
    lsf.ok(
        "bsub", "-J", "pend two", "-n", "2", "-W", "1:05", "-R", "rusage[mem=10]", "sleep", "5", user="alice"
    )  # fmt: skip
    lsf.ok("bsub", "-J", "held", "-H", "sleep", "5", user="alice")
    lsf.ok("bsub", "-J", "arr[1-3]", "sleep", "60", user="alice")
    lsf.ok("bsub", "-J", "dep", "-w", 'done("run1")', "sleep", "5", user="alice")
    lsf.ok("bsub", "-J", "quick", "sleep", "1", user="alice")
    lsf.ok("bsub", "-J", "bad", "exit 3", user="alice")
    for job_id in ("2", "3", "4[1]", "4[2]", "5", "7", "10[1]", "12", "13", "1"):
        lsf.ok("brun", "-m", "lsfhost", job_id)
    time.sleep(0.15)
    lsf.ok("brequeue", "1")
    lsf.ok("bstop", "10[1]", user="alice")
    for job_id in ("3", "4[1]", "4[2]", "5", "12"):
        lsf.ok("emulator-ctl", "finish", job_id)
    lsf.ok("emulator-ctl", "finish", "13", "3")
    lsf.ok("bkill", "2", user="alice")
    until_pending(lsf, "1")
    return lsf


def rows(text: str) -> set[str]:
    """A table's lines without the times of submission."""
    return {re.sub(r"[A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d$", "", line) for line in text.splitlines()}


def test_the_wide_listing_is_that_which_was_recorded(morning):
    fixture = recorded("lsf", "bjobs_all_wide")
    answer = morning(*fixture["argv"])
    assert (answer.rc, answer.err) == (0, "")
    assert rows(answer.out) == rows(fixture["stdout"])


def test_the_json_listing_is_that_which_was_recorded(morning):
    fixture = recorded("lsf", "bjobs_o_json")
    answer, then = morning(*fixture["argv"]), json.loads(fixture["stdout"])
    assert list(answer.json) == list(then)
    assert answer.json["JOBS"] == len(answer.json["RECORDS"])

    def known(records):
        # The recorded job 7 ended between two recordings.
        return {
            (r["JOBID"], r["JOB_NAME"]): {
                key: re.sub(r"\d", "0", value) if "TIME" in key else value
                for key, value in r.items()
                if key != "MEM"
            }
            for r in records
            if r["JOBID"] not in ("1", "7")
        }

    assert known(answer.json["RECORDS"]) == known(then["RECORDS"])
    assert [list(record) for record in answer.json["RECORDS"]] == [list(r) for r in then["RECORDS"]]


@pytest.mark.parametrize("name", ["bjobs_UF", "bjobs_long"])
def test_the_long_listings_have_the_recorded_lines(morning, name):
    fixture = recorded("lsf", name)
    answer = morning(*fixture["argv"])

    def jobs(text):
        found = {}
        for block in re.split(r"^-{78}$", text, flags=re.MULTILINE):
            text = re.sub(r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d", "TIME", block)
            text = re.sub(r"CWD <[^>]*>", "CWD <>", text).replace("[mem=10.00]", "[mem=10]")
            text = re.sub(r" PENDING REASONS:\n.*\n", " PENDING REASONS:\n", text)
            text = re.sub(r" MEMORY USAGE:\n.*\n\n", "", text)
            found[re.search(r"Job <([^>]*)>", text)[1]] = text.strip("\n")
        return found

    mine, then = jobs(answer.out), jobs(fixture["stdout"])
    assert set(mine) == set(then)
    for job_id in then:
        assert mine[job_id] == then[job_id], job_id


def test_why_jobs_wait_is_told_under_each(morning):
    fixture = recorded("lsf", "bjobs_pending_reasons")
    lines, then = morning(*fixture["argv"]).out.splitlines(), fixture["stdout"].splitlines()
    assert lines[0] == then[0]
    assert rows("\n".join(lines[1::2])) == rows("\n".join(then[1::2]))
    assert all(line.startswith(" ") and line.endswith(";") for line in lines[2::2])


def test_the_history_has_the_recorded_lines(morning):
    fixture = recorded("lsf", "bhist")
    answer = morning(*fixture["argv"])

    def lines(text, job_id):
        block = next(b for b in re.split(r"^-{78}$", text, flags=re.MULTILINE) if f"\nJob <{job_id}>," in b)
        block = block.partition("Summary")[0]
        block = re.sub(r"<\n {21}|\n {21}", lambda m: "<" if m[0][0] == "<" else "", block)
        block = re.sub(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d", "TIME", block)
        block = re.sub(r"CWD <[^>]*>|Pid <?\d+>?|<(volclava|root|alice)>", "", block)
        return [line for line in block.splitlines() if "Post job process" not in line]

    for job_id in ("2", "3", "4[2]", "4[3]", "7", "9"):
        assert lines(answer.out, job_id) == lines(fixture["stdout"], job_id), job_id


@pytest.mark.parametrize(
    "name", ["bhosts_wide", "lsid", "bparams", "bjobs_none", "brun_unknown", "bjobs_o_bad_field"]
)
def test_other_commands_print_what_was_recorded(lsf, name):
    if name == "bhosts_wide":
        # One job runs, one is suspended.
        for job_id in (submit(lsf), submit(lsf)):
            run(lsf, job_id)
        lsf.ok("bstop", "2")
        until(lambda: stats(lsf, "2") == ["USUSP"])
    fixture = recorded("lsf", name)
    answer = lsf(*fixture["argv"])
    assert (answer.rc, answer.out, answer.err) == (fixture["rc"], fixture["stdout"], fixture["stderr"])


@pytest.mark.parametrize("name", ["bqueues_wide", "lshosts", "lsload", "bhosts_long", "bqueues_long"])
def test_tables_have_the_recorded_columns(lsf, name):
    fixture = recorded("lsf", name)
    mine, then = lsf(*fixture["argv"]).out, fixture["stdout"]

    def shape(text):
        """The words of the titles, and where the first row's cells begin and end."""
        return [re.findall(r"\b[A-Z][A-Za-z_/]+", line) for line in text.splitlines() if "  --" not in line]

    assert shape(mine)[:1] == shape(then)[:1]
    assert [len(words) for words in shape(mine)] == [len(words) for words in shape(then)]
    assert {len(line) for line in mine.splitlines()[-2:]} == {len(line) for line in then.splitlines()[-2:]}


class TestStart:
    def test_only_an_administrator(self, lsf):
        submit(lsf)
        said = lsf.refused("brun", "-m", "lsfhost", "1", user="alice")
        assert said == (255, "Failed to run the job: User permission denied\n")

    def test_it_runs_a_little_later(self, emulated):
        lsf = emulated("lsf", nodes=1, scheduling=False, start_delay=3.0)
        submit(lsf)
        assert lsf.ok("brun", "-m", "node1", "1") == "Job <1> is being forced to run.\n"
        assert stats(lsf, "1") == ["PEND"]
        until(lambda: stats(lsf, "1") == ["RUN"])

    def test_a_full_host_takes_more_without_a_word(self, lsf):
        ids = [submit(lsf) for _ in range(6)]
        for job_id in ids:
            run(lsf, job_id)
        assert "closed_Full        -      2      6      6" in lsf.ok("bhosts", "-w")

    @pytest.mark.parametrize("words", [("-H",), ("-w", "done(1)"), ("-b", "23:59")])
    def test_held_jobs_unmet_dependencies_and_later_jobs_start(self, lsf, words):
        submit(lsf)
        job = submit(lsf, *words)
        run(lsf, job)

    def test_an_element(self, lsf):
        submit(lsf, "-J", "arr[1-3]")
        lsf.ok("brun", "-m", "lsfhost", "1[2]")
        until(
            lambda: "RUN   normal     lsfhost     lsfhost     arr[2]" in lsf("bjobs", "-u", "all", "-w").out
        )

    def test_a_started_job_is_refused(self, lsf):
        job = submit(lsf)
        run(lsf, job)
        assert lsf.refused("brun", "-m", "lsfhost", job) == (
            255, "Failed to run the job: Job has already started\n",
        )  # fmt: skip

    @pytest.mark.parametrize("sign", ["#", "*"])
    def test_slots_for_each_host_with_ibm(self, ibm, sign):
        job = submit(ibm, "-n", "5")
        run(ibm, job, f"node1{sign}3", f"node2{sign}2")
        answer = ibm("bjobs", "-u", "all", "-o", "alloc_slot exec_host nalloc_slot", "-json").json
        record = answer["RECORDS"][0]
        assert record == {"ALLOC_SLOT": "3*node1:2*node2", "EXEC_HOST": "3*node1:2*node2", "NALLOC_SLOT": "5"}

    def test_hosts_are_filled_one_after_the_other_however_full_they_are(self, emulated):
        lsf = emulated("lsf", flavour="volclava", nodes=3, processors=4, scheduling=False, start_delay=0.0)
        first, second = submit(lsf, "-n", "3"), submit(lsf, "-n", "5")
        run(lsf, first, "node1")
        run(lsf, second, "node1", "node2")
        listed = lsf.ok("bhosts", "-w").splitlines()[1:]
        assert [line.split()[4] for line in listed] == ["7", "1", "0"]
        assert lsf.refused("brun", "-m", "node1#2", submit(lsf))[0] == 255


class TestHoldAndSuspend:
    def test_a_pending_job_is_held_and_released(self, lsf):
        job = submit(lsf)
        assert lsf.ok("bstop", job, user="alice") == f"Job <{job}> is being stopped\n"
        assert stats(lsf, job) == ["PSUSP"]
        assert lsf.ok("bresume", job, user="alice") == f"Job <{job}> is being resumed\n"
        assert stats(lsf, job) == ["PEND"]

    def test_a_running_job_is_suspended_and_resumed_a_little_later(self, emulated):
        lsf = emulated("lsf", nodes=1, scheduling=False, start_delay=3.0)
        job = submit(lsf)
        run(lsf, job, "node1")
        lsf.ok("bstop", job)
        assert stats(lsf, job) == ["RUN"]
        until(lambda: stats(lsf, job) == ["USUSP"])
        lsf.ok("bresume", job)
        assert stats(lsf, job) == ["SSUSP"]
        until(lambda: stats(lsf, job) == ["RUN"])

    def test_what_an_administrator_stopped_its_user_does_not_resume(self, lsf):
        job = submit(lsf)
        lsf.ok("bstop", job)
        said = lsf.refused("bresume", job, user="alice")
        assert said == (255, f"Job <{job}>: User permission denied\n")
        lsf.ok("bresume", job)
        assert stats(lsf, job) == ["PEND"]


class TestLimits:
    @pytest.mark.parametrize("flavour", ["ibm", "volclava"])
    def test_of_a_pending_job(self, emulated, flavour):
        lsf = emulated("lsf", flavour=flavour, scheduling=False)
        job = submit(lsf, "-W", "10")
        lsf.ok("bmod", "-W", "0:20", job, user="alice")
        assert " 20.0 min" in lsf.ok("bjobs", "-u", "all", "-UF")

    def test_of_a_running_job_not_with_volclava(self, lsf):
        job = submit(lsf, "-W", "10")
        run(lsf, job)
        rc, said = lsf.refused("bmod", "-W", "20", job)
        assert rc == 255
        assert "Job parameters cannot be changed now; non-repetitive job is running." in said

    def test_of_a_running_job_with_ibm(self, ibm):
        job = submit(ibm, "-W", "10")
        run(ibm, job, "node1")
        ibm.ok("bmod", "-W", "20", job)
        answer = ibm("bjobs", "-u", "all", "-o", "runtimelimit", "-json").json
        assert answer["RECORDS"] == [{"RUNTIMELIMIT": "20.0"}]

    def test_end_a_job(self, emulated):
        lsf = emulated("lsf", speed=1000, start_delay=0.0)
        job = submit(lsf, "-W", "1", runtime=10_000)
        until(lambda: stats(lsf, job) == ["EXIT"])
        answer = lsf("bjobs", "-a", "-u", "all", "-o", "exit_code exit_reason", "-json").json
        assert answer["RECORDS"][0]["EXIT_CODE"] == "140"
        assert answer["RECORDS"][0]["EXIT_REASON"].startswith("TERM_RUNLIMIT")


def test_jobs_move_in_the_queue(lsf):
    first, second, third = (submit(lsf) for _ in range(3))
    said = lsf.ok("btop", third)
    assert said == f"Job <{third}> has been moved to position 1 from top.\n"
    lsf.ok("bbot", first)
    listed = lsf.ok("bjobs", "-u", "all", "-w").splitlines()[1:]
    assert [line.split()[0] for line in listed] == [third, second, first]


def test_a_requeued_job_looks_ended_and_then_waits_again(lsf):
    job = submit(lsf)
    assert lsf.refused("brequeue", job)[1] == f"Job <{job}> : Job has not started yet\n"
    run(lsf, job)
    lsf.ok("brequeue", job)
    # As the real one: nothing but bhist tells that this is no end.
    assert stats(lsf, job) == ["EXIT"]
    assert re.match(
        rf"{job} +alice +EXIT +normal +\S+ +\S+ ", lsf.ok("bjobs", "-a", "-w", job).splitlines()[1]
    )
    assert "Exited with exit code 130" in lsf.ok("bjobs", "-a", "-UF", job)
    history = lsf.ok("bhist", "-l", job)
    assert "Signal <REQUEUE_PEND> requested" in history and "Pending: Job has been requeued" not in history
    until_pending(lsf, job)
    assert "Pending: Job has been requeued" in lsf.ok("bhist", "-l", job)


def test_a_job_on_its_way_back_can_be_started_and_not_ended(lsf):
    job = submit(lsf)
    run(lsf, job)
    lsf.ok("brequeue", job)
    lsf.ok("bkill", job)
    assert stats(lsf, job) == ["EXIT"]
    run(lsf, job)


def test_a_killed_job_has_its_exit_code(ibm):
    job = submit(ibm)
    run(ibm, job, "node1")
    assert ibm.ok("bkill", job, user="alice") == f"Job <{job}> is being terminated\n"
    answer = ibm("bjobs", "-a", "-u", "all", "-o", "stat exit_code", "-json").json
    assert answer["RECORDS"] == [{"STAT": "EXIT", "EXIT_CODE": "130"}]
    assert ibm.refused("bkill", "99")[0] == 255


def test_hosts_are_closed_and_opened(ibm):
    assert ibm.ok("badmin", "hclose", "-C", "for repair", "node2") == "Close <node2> ...... done\n"
    answer = ibm("bhosts", "-o", "host_name status comments", "-json").json
    assert answer["HOSTS"] == 3
    assert answer["RECORDS"][1] == {"HOST_NAME": "node2", "STATUS": "closed_Adm", "COMMENTS": "for repair"}
    ibm.ok("badmin", "hopen", "node2")
    assert ibm("bhosts", "-o", "status", "-json").json["RECORDS"][1] == {"STATUS": "ok"}
    assert ibm("badmin", "hclose", "node2", user="alice").rc == 255


class TestQueue:
    def test_inactive_accepts_and_starts_none_and_active_starts_what_fits(self, ibm):
        wide, other = submit(ibm, "-n", "12"), submit(ibm)
        assert stats(ibm, wide, other) == ["PEND", "PEND"]
        assert "The queue is inactivated by the administrator" in ibm.ok("bjobs", "-u", "all", "-p")
        assert ibm.ok("badmin", "qact", "normal") == "Queue <normal> is activated\n"
        until(lambda: stats(ibm, wide, other) == ["RUN", "PEND"])

    def test_only_an_administrator_switches_it(self, ibm):
        assert ibm.refused("badmin", "qact", "normal", user="alice")[0] == 255
        assert "Open:Inact" in ibm.ok("bqueues", "-w")

    def test_another(self, emulated):
        lsf = emulated("lsf", queues=("normal", "night"), scheduling=False)
        job = submit(lsf, "-q", "night")
        lsf.ok("bswitch", "normal", job)
        assert "normal" in lsf.ok("bjobs", "-u", "all", "-w")
        assert lsf("bsub", "-q", "nowhere", "sleep", "1").rc == 255


class TestVolclavaHasNot:
    @pytest.mark.parametrize("name", ["brsvadd", "brsvdel", "brsvs", "bresize"])
    def test_commands(self, lsf, name):
        assert not (lsf.emulator.bin / name).exists()

    @pytest.mark.parametrize("name", ["bhosts", "bqueues"])
    def test_json_of_hosts_and_queues(self, lsf, name):
        assert lsf.refused(name, "-o", "status", "-json")[0] == 255


class TestReservation:
    @pytest.fixture
    def window(self):
        now = time.time()
        return [time.strftime("%m:%d:%H:%M", time.gmtime(now + after)) for after in (3600, 7200)]

    def test_is_made_listed_and_removed(self, ibm, window):
        words = ("brsvadd", "-n", "6", "-m", "node1 node2", "-u", "alice", "-b", window[0], "-e", window[1])
        assert ibm.ok(*words) == "Reservation alice#0 is created\n"
        head, first, second = ibm.ok("brsvs", "-w").splitlines()
        assert head.split() == ["RSVID", "TYPE", "USER", "NCPUS", "RSV_HOSTS", "TIME_WINDOW"]
        assert first.split()[:5] == ["alice#0", "user", "alice", "0/6", "node1:0/4"]
        assert second.split() == ["node2:0/2"]
        assert ibm.ok("brsvdel", "alice#0") == "Reservation alice#0 is being deleted\n"
        assert ibm("brsvs").rc == 255

    def test_only_an_administrator(self, ibm, window):
        words = ("brsvadd", "-m", "node1", "-b", window[0], "-e", window[1])
        assert ibm.refused(*words, user="alice")[0] == 255

    def test_keeps_hosts_free_for_its_jobs(self, ibm, window):
        ibm.ok("brsvadd", "-m", "node1 node2 node3", "-u", "alice", "-b", window[0], "-e", window[1])
        long = submit(ibm, "-W", "3:00")
        ibm.ok("badmin", "qact", "normal")
        time.sleep(0.2)
        assert stats(ibm, long) == ["PEND"]
        ibm.ok("bmod", "-W", "0:30", long)
        until(lambda: stats(ibm, long) == ["RUN"])


def test_a_job_releases_slots(ibm):
    job = submit(ibm, "-n", "6", "-ar")
    run(ibm, job, "node1", "node2")
    ibm.ok("bresize", "release", "1*node1 2*node2", job)
    answer = ibm("bjobs", "-u", "all", "-o", "alloc_slot", "-json").json
    assert answer["RECORDS"] == [{"ALLOC_SLOT": "3*node1"}]


@pytest.mark.parametrize("name", ["two words", "it's", 'quo"te', "semi;colon $(id) `id`", "ümlaut", "a[b"])
def test_a_name_is_a_name(ibm, name):
    submit(ibm, "-J", name, "-P", name)
    answer = ibm("bjobs", "-u", "all", "-o", "job_name proj_name", "-json").json
    assert answer["RECORDS"] == [{"JOB_NAME": name, "PROJ_NAME": name}]


def test_no_job_at_all(ibm):
    assert ibm.refused("bjobs", "-u", "all") == (255, "No unfinished job found\n")
    answer = ibm("bjobs", "-u", "all", "-o", "jobid", "-json")
    assert (answer.rc, answer.json) == (255, {"COMMAND": "bjobs", "JOBS": 0, "RECORDS": []})


def test_a_daemon_that_does_not_answer_is_waited_for(lsf):
    fixture = recorded("lsf", "bjobs_mbatchd_down")
    lsf.ok("emulator-ctl", "fault", "down")
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        lsf("bjobs", "-u", "all", "-w", timeout=0.7)
    assert caught.value.stderr.decode() == fixture["stderr"]


def test_times_are_written_in_the_callers_zone(ibm):
    submit(ibm)
    words = ("bjobs", "-u", "all", "-o", "submit_time", "-json")
    here = ibm(*words, environment={"TZ": "UTC"}).json["RECORDS"][0]["SUBMIT_TIME"]
    there = ibm(*words, environment={"TZ": "UTC-5"}).json["RECORDS"][0]["SUBMIT_TIME"]
    assert re.fullmatch(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d", here)
    assert ibm(*words, environment={"TZ": "Asia/Tokyo"}).json["RECORDS"][0]["SUBMIT_TIME"] != here
    assert there


def test_a_script_brings_its_own_options(ibm):
    ibm.ok("bsub", stdin="#!/bin/sh\n#BSUB -J scripted\n#BSUB -n 3\nsleep 60\n")
    answer = ibm("bjobs", "-u", "all", "-o", "job_name min_req_proc", "-json").json
    assert answer["RECORDS"] == [{"JOB_NAME": "scripted", "MIN_REQ_PROC": "3"}]
