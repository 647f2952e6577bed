"""The emulated PBS: what was recorded of a running OpenPBS, command by command."""

from __future__ import annotations

import json
import time

import pytest
from emulated_commands import Answer, Commands, recorded
from waiting import limit

SILENCE = Answer(0, "", "")


def submit(pbs: Commands, *words: str, user: str = "alice", runtime: float = 1000) -> str:
    """A job's id; it runs for so many seconds."""
    return pbs.ok("qsub", *words, "--", "sleep", str(runtime), user=user).strip()


def jobs(pbs: Commands, *options: str) -> dict[str, dict]:
    return pbs("qstat", *options, "-f", "-F", "json").json.get("Jobs", {})


def state(pbs: Commands, job_id: str) -> tuple[str, int]:
    record = jobs(pbs, "-x", "-t")[job_id]
    return record["job_state"], record["substate"]


def vnode(pbs: Commands, name: str) -> dict:
    return pbs("pbsnodes", "-av", "-F", "json").json["nodes"][name]


@pytest.fixture
def morning(pbs: Commands) -> Commands:
    """The jobs of the recorded morning, in the states that they had."""
    submit(pbs, "-N", "j1", "-l", "select=2:ncpus=4", "-l", "walltime=00:10:00")
    submit(pbs, "-N", "j2", "-l", "select=1:ncpus=8", "-l", "walltime=00:05:00")
    submit(pbs, "-N", "j3", "-l", "select=1:ncpus=8", "-h", "-l", "walltime=00:05:00")
    submit(pbs, "-N", "arr", "-J", "1-3", "-l", "select=1:ncpus=1")
    submit(pbs, "-N", "gone")
    submit(pbs, "-N", "gone too")
    submit(pbs, "-N", "k1", "-l", "select=1:ncpus=2", "-l", "walltime=00:01:00")
    submit(pbs, "-N", "k2", "-l", "select=1:ncpus=2", "-l", "place=exclhost")
    submit(pbs, "-N", "k3", "-l", "select=64:ncpus=8")
    submit(pbs, "-N", "dep", "-W", "depend=afterok:6.pbshost")
    submit(pbs, "-N", "late", "-a", time.strftime("%m%d%H%M", time.gmtime(time.time() + 7200)))
    submit(pbs, "-N", "a", "-l", "select=1:ncpus=8")
    submit(pbs, "-N", "b", "-l", "select=1:ncpus=8")
    submit(pbs, "-N", "c", "-l", "select=2:ncpus=2", "-l", "place=scatter")
    for where, job_id in (
        ("(pbshost[2]:ncpus=4)+(pbshost[3]:ncpus=4)", "0"),
        ("(pbshost[2]:ncpus=8)", "1"),
        ("(pbshost[2]:ncpus=8)", "2"),
        ("pbshost[1]", "3[1]"),
        ("pbshost[0]", "6"),
        ("pbshost[0]", "7"),
        ("(pbshost[3]:ncpus=8)", "11"),
        ("(pbshost[3]:ncpus=8)", "12"),
        ("(pbshost[1]:ncpus=2)+(pbshost[0]:ncpus=2)", "13"),
    ):
        pbs.ok("qrun", "-H", where, job_id)
    pbs.ok("qsig", "-s", "suspend", "1")
    pbs.ok("qsig", "-s", "resume", "1")
    pbs.ok("qrerun", "2")
    for job_id in ("0", "3[1]", "6", "7"):
        pbs.ok("emulator-ctl", "finish", job_id)
    pbs.ok("qdel", "8")
    pbs.ok("qalter", "-p", "100", "9")
    return pbs


@pytest.mark.parametrize("name", ["qstat_full_json", "qstat_full_json_subjobs", "qstat_history_json"])
def test_jobs_have_the_recorded_attributes_in_the_recorded_order(morning, name):
    fixture = recorded("pbs", name)
    answer = morning(*fixture["argv"])
    assert answer.rc == fixture["rc"] == 0
    now, then = answer.json, recorded_json(fixture)
    assert list(now) == list(then)
    for job_id, record in then["Jobs"].items():
        mine = now["Jobs"][job_id]
        # A job that was suspended in its first second had used nothing yet.
        extra = {"resources_used"} if record["job_state"] == "S" else set()
        assert [key for key in mine if key not in extra] == list(record), job_id
        for key in ("job_state", "substate", "Hold_Types", "exec_vnode", "schedselect", "depend",
                    "array_state_count", "array_indices_remaining", "Exit_status"):  # fmt: skip
            assert mine.get(key) == record.get(key), (job_id, key)
        assert set(mine["Resource_List"]) >= set(record["Resource_List"]) - {"walltime"}, job_id
        assert set(mine["Variable_List"]) == set(record["Variable_List"]), job_id


def recorded_json(fixture):
    return json.loads(fixture["stdout"])


def test_vnodes_have_the_recorded_attributes(morning):
    morning.ok("qsig", "-s", "admin-suspend", "11")
    for fixture in (recorded("pbs", "pbsnodes_json"),):
        now, then = morning(*fixture["argv"]).json, recorded_json(fixture)
        assert list(now) == list(then)
        for name, record in then["nodes"].items():
            mine = now["nodes"][name]
            assert list(mine) == list(record), name
            for key in ("state", "resources_assigned", "jobs", "maintenance_jobs"):
                assert mine.get(key) == record.get(key), (name, key)


def test_vnodes_as_text_have_the_recorded_lines(morning):
    morning.ok("qsig", "-s", "admin-suspend", "11")
    fixture = recorded("pbs", "pbsnodes_text")
    mine = morning(*fixture["argv"]).out.splitlines()
    then = fixture["stdout"].splitlines()
    changing = ("last_", "resources_available.mem")

    def kept(lines):
        return [line for line in lines if not line.strip().startswith(changing)]

    assert kept(mine) == kept(then)


def test_server_and_queue_have_the_recorded_attributes(morning):
    for name, key in (("qstat_server_json", "Server"), ("qstat_queue_json", "Queue")):
        fixture = recorded("pbs", name)
        now, then = morning(*fixture["argv"]).json, recorded_json(fixture)
        assert list(now) == list(then)
        first = next(iter(then[key]))
        # The recorded server had no managers but root of its host, which it does not list.
        assert [name for name in now[key][first] if name != "managers"] == list(then[key][first])


def test_putting_a_host_offline_and_back_takes_the_recorded_words(emulated):
    pbs = emulated("pbs", nodes=2, scheduling=False)
    pbs.ok("pbsnodes", "-C", "disk", "-o", "node1")
    for name in ("pbsnodes_C_then_c", "pbsnodes_C_r"):
        fixture = recorded("pbs", name)
        argv = [word.replace("pbsb", "node1") for word in fixture["argv"]]
        done = pbs(*argv)
        assert done.rc == fixture["rc"]
        assert done.err[:12] == fixture["stderr"][:12]
        shown = pbs.ok("pbsnodes", "node1")
        assert ("offline" in shown, "disk" in shown) == (bool(fixture["rc"]), bool(fixture["rc"]))


def test_a_reservation_has_the_recorded_attributes_and_stays_unconfirmed(pbs):
    start = time.strftime("%H%M", time.gmtime(time.time() + 3600))
    said = pbs.ok(
        "pbs_rsub", "-R", start, "-D", "00:30:00", "-l", "select=1:ncpus=8", user="alice"
    )  # fmt: skip
    assert said == "R0.pbshost UNCONFIRMED\n"
    fixture = recorded("pbs", "pbs_rstat_full")

    def keys(text):
        return [line.partition(" =")[0].partition(":")[0] for line in text.splitlines()]

    mine = pbs(*fixture["argv"]).out
    assert keys(mine) == keys(fixture["stdout"])
    assert "reserve_state = RESV_UNCONFIRMED\nreserve_substate = 1\n" in mine


def test_root_may_not_reserve(pbs):
    words = ("-R", "2359", "-D", "00:30:00", "-l", "select=1:ncpus=8")
    assert pbs.refused("pbs_rsub", *words) == (247, "pbs_rsub: Bad effective UID for reservation\n")


@pytest.mark.parametrize("name", ["qstat_unknown_job", "qrun_unknown_job"])
def test_an_unknown_job_is_told_as_recorded(pbs, name):
    fixture = recorded("pbs", name)
    answer = pbs(*fixture["argv"])
    assert (answer.rc, answer.err) == (fixture["rc"], fixture["stderr"])
    if fixture["stdout"]:
        assert list(answer.json) == list(recorded_json(fixture))


class TestStart:
    def test_on_the_vnodes_given(self, pbs):
        job = submit(pbs, "-l", "select=2:ncpus=4")
        assert pbs("qrun", "-H", "(pbshost[0]:ncpus=4)+(pbshost[1]:ncpus=4)", job) == SILENCE
        record = jobs(pbs)[job]
        assert (record["job_state"], record["substate"]) == ("R", 42)
        assert record["exec_vnode"] == "(pbshost[0]:ncpus=4)+(pbshost[1]:ncpus=4)"
        assert record["exec_host"] == "pbshost/0*4+pbshost/1*4"

    def test_a_vnode_without_resources_gets_those_of_the_chunk(self, pbs):
        job = submit(pbs, "-l", "select=1:ncpus=3")
        pbs.ok("qrun", "-H", "pbshost[1]", job)
        assert jobs(pbs)[job]["exec_vnode"] == "(pbshost[1]:ncpus=3)"

    def test_a_full_vnode_is_oversubscribed_without_a_word(self, pbs):
        first, second = (submit(pbs, "-l", "select=1:ncpus=8") for _ in range(2))
        for job in (first, second):
            pbs.ok("qrun", "-H", "(pbshost[3]:ncpus=8)", job)
        assert vnode(pbs, "pbshost[3]")["resources_assigned"] == {"ncpus": 16}
        assert vnode(pbs, "pbshost[3]")["state"] == "job-busy"

    def test_a_held_job_starts(self, pbs):
        job = submit(pbs, "-h")
        assert state(pbs, job) == ("H", 20)
        pbs.ok("qrun", "-H", "pbshost[0]", job)
        assert state(pbs, job) == ("R", 42)

    def test_an_element_is_named_without_the_server(self, pbs):
        submit(pbs, "-J", "1-3")
        pbs.ok("qrun", "-H", "(pbshost[0]:ncpus=1)", "0[2]")
        assert state(pbs, "0[2].pbshost") == ("R", 42)
        assert state(pbs, "0[].pbshost") == ("B", 70)

    @pytest.mark.parametrize("way", ["unmet dependency", "future begin", "too few chunks"])
    def test_what_cannot_be_is_refused(self, pbs, way):
        submit(pbs)
        later = time.strftime("%m%d%H%M", time.gmtime(time.time() + 7200))
        words = {"unmet dependency": ("-W", "depend=afterok:0"), "future begin": ("-a", later)}
        job = submit(pbs, *words.get(way, ("-l", "select=2:ncpus=1")))
        said = pbs.refused("qrun", "-H", "(pbshost[0]:ncpus=1)", job)
        assert said == (2, f"qrun: Resource temporarily unavailable {job}\n")

    def test_an_unknown_vnode_is_named(self, pbs):
        job = submit(pbs)
        said = pbs.refused("qrun", "-H", "(nowhere:ncpus=1)", job)
        assert said == (2, "qrun: Unknown node  (nowhere:ncpus=1)\n")

    @pytest.mark.parametrize("ended", [False, True])
    def test_a_running_or_finished_job_is_in_the_wrong_state(self, pbs, ended):
        job = submit(pbs)
        pbs.ok("qrun", "-H", "pbshost[0]", job)
        if ended:
            pbs.ok("emulator-ctl", "finish", job)
        said = pbs.refused("qrun", "-H", "pbshost[0]", job)
        assert said == (2, f"qrun: Request invalid for state of job {job}\n")

    def test_a_user_may_not(self, pbs):
        job = submit(pbs)
        said = pbs.refused("qrun", "-H", "pbshost[0]", job, user="alice")
        assert said == (2, f"qrun: Unauthorized Request  {job}\n")

    def test_without_vnodes_the_scheduler_is_asked_and_is_not_there(self, pbs):
        job = submit(pbs)
        assert pbs.refused("qrun", job) == (2, f"qrun: Could not contact Scheduler {job}\n")

    def test_with_a_it_says_nothing_of_a_job_that_does_not_start(self, pbs):
        later = time.strftime("%m%d%H%M", time.gmtime(time.time() + 7200))
        job = submit(pbs, "-a", later)
        pbs.ok("qrun", "-a", "-H", "pbshost[0]", job)
        assert state(pbs, job) == ("W", 30)


class TestSuspend:
    @pytest.fixture
    def job(self, pbs):
        job = submit(pbs, "-l", "select=1:ncpus=8")
        pbs.ok("qrun", "-H", "(pbshost[2]:ncpus=8)", job)
        return job

    def test_frees_the_vnode_and_keeps_its_name(self, pbs, job):
        pbs.ok("qsig", "-s", "suspend", job)
        assert state(pbs, job) == ("S", 43)
        assert jobs(pbs)[job]["exec_vnode"] == "(pbshost[2]:ncpus=8)"
        assert vnode(pbs, "pbshost[2]")["resources_assigned"] == {}

    def test_resume_only_asks_the_scheduler(self, pbs, job):
        pbs.ok("qsig", "-s", "suspend", job)
        pbs.ok("qsig", "-s", "resume", job)
        assert state(pbs, job) == ("S", 45)
        assert pbs.refused("qrun", job) == (2, f"qrun: Could not contact Scheduler {job}\n")

    def test_the_scheduler_resumes_once_it_is_on(self, pbs, job):
        pbs.ok("qsig", "-s", "suspend", job)
        pbs.ok("qsig", "-s", "resume", job)
        pbs.ok("qmgr", "-c", "set server scheduling = True")
        assert state(pbs, job) == ("R", 42)

    def test_admin_suspend_puts_the_vnode_in_maintenance_and_admin_resume_ends_both(self, pbs, job):
        pbs.ok("qsig", "-s", "admin-suspend", job)
        assert state(pbs, job)[0] == "S"
        assert vnode(pbs, "pbshost[2]")["state"] == "job-busy,maintenance"
        assert vnode(pbs, "pbshost[2]")["maintenance_jobs"] == job
        other = submit(pbs)
        assert pbs.refused("qrun", "-H", "(pbshost[2]:ncpus=1)", other)[0] == 2
        pbs.ok("qsig", "-s", "admin-resume", job)
        assert state(pbs, job) == ("R", 42)
        assert vnode(pbs, "pbshost[2]")["state"] == "job-busy"

    def test_a_user_may_not(self, pbs, job):
        assert pbs.refused("qsig", "-s", "suspend", job, user="alice")[0] == 159


class TestAlter:
    def test_an_owner_changes_a_queued_jobs_walltime(self, pbs):
        job = submit(pbs, "-l", "walltime=00:10:00")
        pbs.ok("qalter", "-l", "walltime=00:20:00", job, user="alice")
        assert jobs(pbs)[job]["Resource_List"]["walltime"] == "00:20:00"

    def test_only_a_manager_raises_a_running_jobs_walltime(self, pbs):
        job = submit(pbs, "-l", "walltime=00:10:00")
        pbs.ok("qrun", "-H", "pbshost[0]", job)
        said = pbs.refused("qalter", "-l", "walltime=00:20:00", job, user="alice")
        assert said == (159, f"qalter: Unauthorized Request  {job}\n")
        pbs.ok("qalter", "-l", "walltime=00:05:00", job, user="alice")
        pbs.ok("qalter", "-l", "walltime=00:20:00", job)
        assert jobs(pbs)[job]["Resource_List"]["walltime"] == "00:20:00"

    def test_a_walltime_that_is_over_ends_the_job(self, pbs):
        job = submit(pbs, "-l", "walltime=00:10:00")
        pbs.ok("qrun", "-H", "pbshost[0]", job)
        time.sleep(1.1)
        pbs.ok("qalter", "-l", "walltime=1", job)
        assert jobs(pbs, "-x")[job]["job_state"] == "F"
        assert jobs(pbs, "-x")[job]["Exit_status"] == -29

    def test_a_running_jobs_select_stays(self, pbs):
        job = submit(pbs)
        pbs.ok("qrun", "-H", "pbshost[0]", job)
        said = pbs.refused("qalter", "-l", "select=2:ncpus=1", job)
        text = f"qalter: Cannot modify attribute while job running  Resource_List.select {job}\n"
        assert said == (167, text)

    def test_a_waiting_jobs_select_changes_and_so_does_what_it_asks_for(self, pbs):
        job = submit(pbs, "-l", "select=4:ncpus=1:mem=1gb")
        pbs.ok("qalter", "-l", "select=2:ncpus=1:mem=1gb", job)
        listed = jobs(pbs)[job]["Resource_List"]
        assert (listed["select"], listed["ncpus"], listed["nodect"]) == ("2:ncpus=1:mem=1gb", 2, 2)

    def test_somebody_elses_job_is_not_touched(self, pbs):
        job = submit(pbs)
        for argv in (("qalter", "-p", "5", job), ("qdel", job), ("qhold", job)):
            assert pbs.refused(*argv, user="bob") == (159, f"{argv[0]}: Unauthorized Request  {job}\n")

    def test_an_unknown_job_is_153(self, pbs):
        for argv in (("qdel", "77"), ("qhold", "77"), ("qalter", "-p", "1", "77"), ("qsig", "77")):
            assert pbs.refused(*argv) == (153, f"{argv[0]}: Unknown Job Id 77\n")


def test_a_users_hold_and_the_operators_are_two(pbs):
    job = submit(pbs, "-h")
    pbs.ok("qhold", "-h", "s", job)
    assert jobs(pbs)[job]["Hold_Types"] == "su"
    assert pbs.refused("qrls", "-h", "s", job, user="alice")[0] == 159
    pbs.ok("qrls", "-h", "u", job, user="alice")
    assert state(pbs, job) == ("H", 20)
    pbs.ok("qrls", "-h", "s", job)
    assert state(pbs, job) == ("Q", 10)


def test_a_requeued_job_that_was_started_while_held_is_held_again(pbs):
    job = submit(pbs, "-h")
    pbs.ok("qrun", "-H", "pbshost[0]", job)
    pbs.ok("qrerun", job)
    assert state(pbs, job) == ("H", 20)
    assert jobs(pbs)[job]["Exit_status"] == -11


def test_vnodes_of_the_primary_host_cannot_be_released(emulated):
    pbs = emulated("pbs", nodes=2, vnodes=2, scheduling=False)
    job = submit(pbs, "-l", "select=3:ncpus=2")
    pbs.ok("qrun", "-H", "(node1[0]:ncpus=2)+(node1[1]:ncpus=2)+(node2[0]:ncpus=2)", job)
    said = pbs.refused("pbs_release_nodes", "-j", job, "node1[1]")
    text = "pbs_release_nodes: Can't free 'node1[1]' since it's on a primary execution host\n"
    assert said == (162, text)
    pbs.ok("pbs_release_nodes", "-j", job, "node2[0]")
    assert jobs(pbs)[job]["exec_vnode"] == "(node1[0]:ncpus=2)+(node1[1]:ncpus=2)"
    assert vnode(pbs, "node2[0]")["resources_assigned"] == {}


def test_all_vnodes_of_a_host_go_offline_and_come_back(emulated):
    pbs = emulated("pbs", nodes=2, vnodes=2, scheduling=False)
    pbs.ok("pbsnodes", "-o", "node1")
    assert [vnode(pbs, name)["state"] for name in ("node1[0]", "node1[1]", "node2[0]")] == [
        "offline", "offline", "free",
    ]  # fmt: skip
    pbs.ok("pbsnodes", "-c", "node1")
    assert vnode(pbs, "node1[1]")["state"] == "free"


def test_the_server_that_is_down_is_told_in_milliseconds(pbs):
    pbs.ok("emulator-ctl", "fault", "down")
    text = "Connection refused\n{}: cannot connect to server pbshost (errno=15010)\n"
    assert pbs.refused("qstat") == (255, text.format("qstat"))
    assert pbs.refused("qrun", "0") == (2, text.format("qrun"))
    pbs.ok("emulator-ctl", "fault", "none")
    assert pbs("qstat").rc == 0


def test_what_the_manager_has_printed_makes_the_queues_again_and_sets_what_can_be_set(pbs):
    pbs.ok("qmgr", "-c", "create queue p_day")
    pbs.ok("qmgr", "-c", "set queue p_day Priority = 50")
    pbs.ok("qmgr", "-c", "set queue p_day resources_max.walltime = 01:00:00")
    submit(pbs)
    printed = pbs.ok("qmgr", "-c", "print server").splitlines()
    for line in ("create queue workq", "set queue workq queue_type = Execution", "create queue p_day",
                 "set queue p_day Priority = 50", "set queue p_day resources_max.walltime = 01:00:00",
                 "set server scheduling = False", "set server resources_default.ncpus = 1"):  # fmt: skip
        assert line in printed
    assert not [line for line in printed if "state" in line or "total_jobs" in line or "assigned" in line]
    queue = pbs.ok("qmgr", "-c", "print queue p_day").splitlines()
    assert "create queue p_day" in queue and not [line for line in queue if "workq" in line]


class TestScheduling:
    def test_off_jobs_stay_queued_and_on_everything_that_waits_is_started_in_order(self, pbs):
        first, second, third = (submit(pbs, "-l", "select=3:ncpus=8") for _ in range(3))
        assert {record["job_state"] for record in jobs(pbs).values()} == {"Q"}
        pbs.ok("qmgr", "-c", "set server scheduling = True")
        assert [state(pbs, job)[0] for job in (first, second, third)] == ["R", "Q", "Q"]
        pbs.ok("emulator-ctl", "finish", first)
        assert [state(pbs, job)[0] for job in (second, third)] == ["R", "Q"]

    def test_only_a_manager_switches_it(self, pbs):
        assert pbs("qmgr", "-c", "set server scheduling = True", user="alice").rc != 0
        shown = pbs.ok("qmgr", "-c", "list server scheduling", user="alice")
        assert shown == "Server pbshost\n    scheduling = False\n\n"

    def test_on_a_full_vnode_is_not_given_twice(self, emulated):
        pbs = emulated("pbs", nodes=1, processors=2)
        states = [state(pbs, submit(pbs, "-l", "select=1:ncpus=2"))[0] for _ in range(2)]
        assert states == ["R", "Q"]

    def test_on_reservations_are_confirmed_and_kept(self, emulated):
        pbs = emulated("pbs", nodes=1, processors=2)
        start = time.strftime("%m%d%H%M", time.gmtime(time.time() + 3600))
        said = pbs.ok("pbs_rsub", "-R", start, "-D", "1:00:00", "-l", "select=1:ncpus=2", user="alice")
        assert said == "R0.pbshost CONFIRMED\n"
        longer = submit(pbs, "-l", "walltime=3:00:00")
        assert state(pbs, longer)[0] == "Q"
        # First come, first served: the longer one is in the way.
        pbs.ok("qdel", longer)
        shorter = submit(pbs, "-l", "walltime=0:30:00")
        assert state(pbs, shorter)[0] == "R"

    def test_on_a_reservation_is_moved_and_removed(self, emulated):
        pbs = emulated("pbs", nodes=2, processors=2)
        hours = [time.strftime("%m%d%H%M", time.gmtime(time.time() + 3600 * hour)) for hour in (1, 2, 3)]
        select = "select=1:ncpus=2:vnode=node2"
        said = pbs.ok("pbs_rsub", "-R", hours[0], "-E", hours[1], "-l", select, user="headway:manager")
        assert said == "R0.pbshost CONFIRMED\n"
        assert "resv_nodes = (node2:ncpus=2)" in pbs.ok("pbs_rstat", "-F")
        assert pbs.refused("pbs_ralter", "-E", hours[2], "R0", user="bob")[0] == 159
        altered = "pbs_ralter: R0.pbshost CONFIRMED\n"
        assert pbs.ok("pbs_ralter", "-I", "5", "-R", hours[1], "-E", hours[2], "R0") == altered
        assert "reserve_duration = 3600" in pbs.ok("pbs_rstat", "-F")
        # A refusal is no failure of the command.
        other = ("-R", hours[1], "-E", hours[2], "-l", select)
        assert pbs.ok("pbs_rsub", "-I", "-5", *other, user="headway:manager") == "R1.pbshost DENIED\n"
        assert "R1" not in pbs.ok("pbs_rstat", "-F")
        pbs.ok("pbs_rdel", "R0")
        assert pbs.ok("pbs_rstat", "-F") == ""


class TestRuntime:
    @pytest.fixture
    def pbs(self, emulated):
        return emulated("pbs", nodes=1, speed=1000)

    def ended(self, pbs, job):
        deadline = time.monotonic() + limit()
        while state(pbs, job)[0] != "F":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return jobs(pbs, "-x")[job]

    def test_is_that_of_the_sleep(self, pbs):
        record = self.ended(pbs, submit(pbs, "-l", "walltime=1:00:00", runtime=500))
        assert record["resources_used"]["walltime"] == "00:08:20"
        assert record["Exit_status"] == 0

    def test_is_that_of_the_sleep_in_the_script_and_the_exit_too(self, pbs, tmp_path):
        script = tmp_path / "job.sh"
        script.write_text(
            "#!/bin/sh\n#PBS -N from_script -l walltime=1:00:00\necho hello\nsleep 60\nexit 3\n"
        )
        record = self.ended(pbs, pbs.ok("qsub", str(script)).strip())
        assert record["Job_Name"] == "from_script"
        assert record["resources_used"]["walltime"] == "00:01:00"
        assert record["Exit_status"] == 3

    def test_is_what_the_script_says(self, pbs):
        job = pbs.ok("qsub", "-l", "walltime=1:00:00", stdin="# runtime: 90\n./solver\n").strip()
        assert self.ended(pbs, job)["resources_used"]["walltime"] == "00:01:30"

    def test_is_what_the_environment_says(self, pbs):
        job = pbs.ok("qsub", "-l", "walltime=1:00:00", "--", "./solver", HEADWAY_RUNTIME="30").strip()
        assert self.ended(pbs, job)["resources_used"]["walltime"] == "00:00:30"

    def test_else_half_of_the_walltime(self, pbs):
        job = pbs.ok("qsub", "-l", "walltime=0:10:00", "--", "./solver").strip()
        assert self.ended(pbs, job)["resources_used"]["walltime"] == "00:05:00"

    def test_ends_at_the_walltime(self, pbs):
        record = self.ended(pbs, submit(pbs, "-l", "walltime=0:01:00", runtime=10_000))
        assert record["resources_used"]["walltime"] == "00:01:00"
        assert record["Exit_status"] == -29


@pytest.mark.parametrize(
    "name", ["two words", "it's", 'quo"te', "semi;colon $(id) `id`", "ümlaut", "new\nline"]
)
def test_a_name_is_a_name(pbs, name):
    job = submit(pbs, "-N", name, "-A", name)
    record = jobs(pbs)[job]
    assert (record["Job_Name"], record["Account_Name"]) == (name, name)


def test_who_depends_on_a_job_that_fails_is_deleted(pbs):
    first = submit(pbs)
    then = submit(pbs, "-W", f"depend=afterok:{first}")
    always = submit(pbs, "-W", f"depend=afterany:{first}")
    assert state(pbs, then) == ("H", 22)
    assert jobs(pbs)[first]["depend"] == f"beforeok:{then}@pbshost,beforeany:{always}@pbshost"
    pbs.ok("qrun", "-H", "pbshost[0]", first)
    pbs.ok("emulator-ctl", "finish", first, "1")
    assert state(pbs, then) == ("F", 91)
    assert state(pbs, always) == ("Q", 10)


def test_a_finished_job_needs_x(pbs):
    job = submit(pbs)
    pbs.ok("qdel", job)
    text = f"qstat: {job} Job has finished, use -x or -H to obtain historical job information\n"
    assert pbs("qstat", job).err == text
    assert pbs("qstat", "-x", job).rc == 0


def test_the_table_is_that_of_qstat(pbs):
    submit(pbs, "-N", "a name that is long")
    assert pbs.ok("qstat").splitlines() == [
        "Job id            Name             User              Time Use S Queue",
        "----------------  ---------------- ----------------  -------- - -----",
        "0.pbshost         a name that is * alice                    0 Q workq           ",
    ]
    assert pbs.ok("qstat", "-a").splitlines()[-1].startswith("0.pbshost       alice    workq    a name th* ")
