"""The verdict sees what it is there for: each fault in an otherwise good history."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from waiting import until

from torture import slurm_log
from torture.campaign import lasting, outlived
from torture.history import Asked, History, Struck
from torture.occupation import excesses
from torture.stamps import Run, prepare, runs
from torture.stream import Act, Wanted, stream
from torture.system import Answer, Records, Share
from torture.users import Users
from torture.verdict import Judge

SYSTEM = SimpleNamespace(
    name="slurm",
    nodes={"n1": 4},
    blur=1.0,
    loses_with_node=False,
    resumes=False,
    where=lambda run: {"n1": int(run.where)},
)


class Story:
    """Job t1 ran from second 10 to 20 as it should, and is told otherwise by a test."""

    def __init__(self, directory: Path) -> None:
        self.history = History(directory / "history.jsonl")
        self.runs = {"t1": [Run("t1", 10.0, 20.0, "end", "2")]}
        self.records = Records(starts={"t1": [10.0]}, states={"t1": "done"})
        self.records.shares.append(Share("t1", "n1", 2, 10.0, 20.0))
        self.decided = {"t1": [9.0]}
        self.system = SimpleNamespace(**vars(SYSTEM))
        self.job(1)

    def job(self, number: int, **more: Any) -> None:
        self.history.want(Wanted(number, 0, 1, 2, False, 10.0, **more))
        self.ask("submit", 1.0, number, id=str(number))

    def ask(self, kind: str, at: float, number: int = 1, **more: Any) -> None:
        self.history.ask(Asked(number, kind, (), at, at + 0.1, True, "", **more))

    def ran(self, key: str, *times: tuple[float, float | None]) -> None:
        self.runs[key] = [Run(key, b, e, "end" if e else "", "2") for b, e in times]
        self.records.starts[key] = [begin for begin, _ in times]
        self.decided[key] = [begin - 1 for begin, _ in times]

    def kinds(self) -> list[str]:
        found = Judge(self.system, self.history, self.runs, self.records, self.decided).all()
        return [one.kind for one in found if not one.system]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_a_good_history_is_clean(story: Story) -> None:
    assert story.kinds() == []


def test_a_job_whose_id_was_given_again_is_not_ended_as_the_later_one(story: Story, tmp_path: Path) -> None:
    written = tmp_path / "stamps"
    written.mkdir()
    (written / "t1").write_text("begin 5 10.0 ||\nend 5 20.0 ||\n")
    assert outlived(story.history, written, {"1": "RUNNING"}) == ["1"]
    story.history.want(Wanted(2, 0, 1, 2, False, 10.0))
    story.ask("submit", 30.0, 2, id="1")
    assert (story.history.present_id(1), story.history.present_id(2)) == ("", "1")
    assert outlived(story.history, written, {"1": "RUNNING"}) == []


def _twice(story: Story) -> None:
    story.ran("t1", (10, 20), (30, 40))


def _at_once(story: Story) -> None:
    story.ran("t1", (10, 20), (15, 25))
    story.records.requeues["t1"] = [12.0]
    story.ask("requeue", 12.0)


def _lost(story: Story) -> None:
    story.runs.clear()


def _cut_short(story: Story) -> None:
    story.ran("t1", (10, None))


def _cancelled(story: Story) -> None:
    story.ask("cancel", 2.0)
    story.ran("t1", (30, 40))


def _held(story: Story) -> None:
    story.ask("hold", 2.0)
    story.ran("t1", (30, 40))
    story.ask("release", 50.0)


def _too_early(story: Story) -> None:
    story.job(2, after=1)
    story.ran("t2", (15, 25))


def _failed_before(story: Story) -> None:
    story.job(2, exit_code=1)
    story.job(3, after=2, after_ok=True)
    story.ran("t2", (30, 31))
    story.ran("t3", (40, 41))


def _undecided(story: Story) -> None:
    story.decided = {"t1": [12.0]}


def _by_nobody(story: Story) -> None:
    story.ran("t1", (10, 20), (30, 40))
    story.records.requeues["t1"] = [25.0]


def _immortal(story: Story) -> None:
    story.job(2, overruns=True)
    story.ran("t2", (30, 630))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (_twice, "ran too often"), (_at_once, "ran twice at once"), (_lost, "never ran"),
        (_cut_short, "cut short"), (_cancelled, "ran after it was cancelled"),
        (_held, "began while it was held"), (_too_early, "began before what it depends on was over"),
        (_failed_before, "began although what it depends on failed"),
        (_undecided, "started without headway"), (_by_nobody, "requeued by nobody"),
        (_immortal, "outlived its limit"),
    ],
)  # fmt: skip
def test_each_fault_is_seen(story: Story, fault: Callable[[Story], None], kind: str) -> None:
    fault(story)
    assert kind in story.kinds()


def test_a_requeued_job_may_run_again(story: Story) -> None:
    story.ran("t1", (10, None), (30, 40))
    story.records.requeues["t1"] = [12.0]
    story.ask("requeue", 12.0)
    assert story.kinds() == []


def test_a_job_that_is_started_anew_is_not_ended_before_it_has_said_so() -> None:
    """Slurm says that it runs, its last stamp is of the run before, which was requeued half a minute ago."""
    seen: dict[str, float] = {}
    assert lasting(["9"], seen, 100.0) == [] and lasting([], seen, 101.0) == []
    assert lasting(["9", "3"], seen, 130.0) == [] and lasting(["9", "3"], seen, 149.0) == []
    assert lasting(["3"], seen, 151.0) == ["3"]


def test_a_moment_is_asked_for_again_when_a_signal_ended_the_one_who_knew_it(tmp_path: Path) -> None:
    """What ends a job by its whole group hits the program that tells the time, too."""
    written, once = tmp_path / "stamps", tmp_path / "once"
    script = prepare(written)
    date = tmp_path / "date"
    first = f"[ -e {once} ] || {{ touch {once}; kill -TERM $$; }}"
    date.write_text(f'#!/bin/sh\n{first}\nexec /bin/date "$@"\n')
    date.chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run([script, str(written), "t1", "0", "0"], check=True, env=path)
    [run] = runs(written)["t1"]
    assert once.exists() and run.how == "end" and run.end is not None and run.begin <= run.end


def test_a_node_that_is_too_full_is_seen_in_stamps_and_in_records(story: Story) -> None:
    for number in (2, 3):
        story.job(number)
        story.ran(f"t{number}", (12.0, 18.0))
        story.records.shares.append(Share(f"t{number}", "n1", 2, 12.0, 18.0))
    assert story.kinds() == ["oversubscribed by the jobs' stamps", "oversubscribed by the system's records"]


def test_records_in_whole_seconds_do_not_accuse(story: Story) -> None:
    story.records.shares.append(Share("t2", "n1", 4, 19.0, 30.0))
    assert story.kinds() == []


def test_what_a_killed_server_had_not_saved_is_the_systems(story: Story) -> None:
    _twice(story)
    story.history.strike(Struck("server", 14.0, 15.0, 12.0))
    assert story.kinds() == ["ran too often"], "its first start was saved"
    story.history.strike(Struck("server", 14.0, 15.0, 9.0))
    assert story.kinds() == []
    story.ran("t1", (10, 20), (30, 40), (50, 60))
    assert story.kinds() == ["ran too often"], "once forgotten is once more, not twice"


def test_a_job_that_a_killed_server_does_not_have_any_more_was_lost(story: Story) -> None:
    _lost(story)
    story.history.strike(Struck("server", 1.5, 2.0, 0.5))
    assert story.kinds() == ["never ran"]
    story.records.lost.add("t1")
    assert story.kinds() == []


def test_what_was_forgotten_holds_up_nobody(story: Story) -> None:
    """Its number, which the dependent names, may be another job's by then."""
    story.job(2)
    story.job(3, after=2, after_ok=True)
    story.ran("t3", (40, 41))
    assert story.kinds() == ["never ran", "began although what it depends on failed"]
    story.records.lost.add("t2")
    assert story.kinds() == []


def test_a_command_hits_whoever_has_the_id_by_then(story: Story) -> None:
    """Job 1 was forgotten, job 2 got its id, and then the user of job 1 cancelled it."""
    _lost(story)
    story.records.lost.add("t1")
    story.history.want(Wanted(2, 0, 1, 2, False, 10.0))
    story.ask("submit", 3.0, 2, id="1")
    assert story.kinds() == ["never ran"]
    story.ask("cancel", 4.0)
    assert story.kinds() == []


def test_a_launch_on_a_dead_node_is_requeued_by_slurm() -> None:
    log = [(9.9, "sched: Allocate JobId=7 NodeList=node[1-2] #CPUs=2"), (10.0, "Requeuing JobId=7")]
    assert not list(slurm_log.own_requeues(log, [("node3", 9.0, 11.0), ("node2", 12.0, 13.0)]))
    assert len(list(slurm_log.own_requeues(log, [("node2", 9.0, 11.0)]))) == 1


def test_a_run_that_a_forgotten_requeue_ended_was_cut_short_by_slurm(story: Story) -> None:
    story.runs["t1"] = [Run("t1", 10.0, 14.2, "killed", "2")]
    story.history.strike(Struck("server", 16.0, 17.0, 13.0))
    assert "cut short" in story.kinds()
    story.ask("requeue", 14.0)
    assert "cut short" not in story.kinds()


def test_a_cancellation_of_a_run_that_its_node_had_lost_may_be_lost_with_it(story: Story) -> None:
    story.system.loses_with_node = True
    story.ran("t1", (10, 12), (40, 50))
    story.ask("cancel", 13.0)
    story.records.requeues["t1"] = [14.0]
    assert "ran after it was cancelled" in story.kinds()
    story.history.strike(Struck("node:n1", 11.0, 11.5))
    assert "ran after it was cancelled" not in story.kinds()
    story.records.requeues["t1"] = [30.0]
    assert "ran after it was cancelled" in story.kinds()


@pytest.mark.parametrize(("asked", "resumes", "faults"), [(10.4, True, 0), (13.0, True, 1), (10.4, False, 1)])
def test_what_is_requeued_before_headway_saw_it_run_may_begin_again(
    story: Story, asked: float, resumes: bool, faults: int
) -> None:
    story.system.resumes = resumes
    story.ran("t1", (10, asked), (asked + 1, 20))
    story.decided["t1"] = [9.0]
    story.records.requeues["t1"] = [asked]
    story.ask("requeue", asked)
    assert story.kinds().count("started without headway") == faults


def test_a_requeue_that_slurm_knew_of_ends_no_run_for_good(story: Story) -> None:
    story.runs["t1"] = [Run("t1", 10.0, 14.2, "killed", "2")]
    story.history.strike(Struck("server", 20.0, 21.0, 18.0))
    story.ask("requeue", 14.0)
    assert "cut short" in story.kinds()


def test_what_begins_while_slurm_is_dead_was_decided_just_before() -> None:
    kill = Struck("server", 14.0, 17.0, 13.8)
    assert [kill.forgets(at) for at in (12.0, 13.0, 14.5, 16.0, 18.0)] == [False, True, True, True, False]


def test_a_requeue_that_was_not_finished_when_slurm_was_killed_is_done_again() -> None:
    again = (20.0, "Requeuing JobId=7")
    assert not list(slurm_log.own_requeues([again]))
    completing = "_sync_nodes_to_comp_job: JobId=7 in completing state"
    assert [job for job, _, _ in slurm_log.own_requeues([(19.9, completing), again])] == ["7"]
    assert not list(slurm_log.own_requeues([(15.0, completing), again]))
    assert not list(slurm_log.own_requeues([(19.9, completing.replace("=7", "=8")), again]))


def test_a_requeue_is_the_systems_by_its_own_word_only(story: Story) -> None:
    _by_nobody(story)
    story.records.own["t1"] = [(25.0, "its node had no such job")]
    assert story.kinds() == []
    story.ran("t1", (10, 20), (30, 40), (50, 60))
    story.records.requeues["t1"] = [25.0, 45.0]
    assert story.kinds() == ["requeued by nobody"]


def test_a_run_counts_until_its_node_lost_it(story: Story) -> None:
    """A second job beside a run that the system took for gone; before that it is headway's fault."""
    story.system.loses_with_node = True
    story.runs["t1"] = [Run("t1", 10.0, 20.0, "end", "4")]
    story.job(2)
    story.ran("t2", (15.0, 18.0))
    fault = "oversubscribed by the jobs' stamps"
    assert story.kinds() == [fault]
    story.history.strike(Struck("node:n1", 16.0, 17.0))
    assert fault in story.kinds()
    story.history.strike(Struck("node:n1", 12.0, 13.0))
    assert story.kinds() == []


def test_records_that_tell_an_end_of_which_the_server_forgot_do_not_accuse(story: Story) -> None:
    story.records.shares.append(Share("t1", "n1", 4, 10.0, 600.0))
    assert story.kinds() == ["oversubscribed by the system's records"]
    story.history.strike(Struck("server", 21.0, 22.0, 19.5))
    assert story.kinds() == []


def test_slurmctlds_log_says_what_it_had_forgotten_and_requeued() -> None:
    day = "[2026-11-22T07:48"
    text = f"""{day}:00.000] slurmctld version 22.05.8 started on cluster tc
{day}:00.100] Recovered information about 0 jobs
{day}:04.841] sched: Allocate JobId=107_4(111) NodeList=node[2-3] #CPUs=2 Partition=batch
{day}:04.842] sched: Allocate JobId=108 NodeList=node4 #CPUs=1 Partition=batch
{day}:04.848] Requeuing JobId=107_4(111)
{day}:04.850] Requeuing JobId=108
{day}:04.857] drain_nodes: node node3 state set to DRAIN
{day}:04.857] error: Duplicate jobid on nodes node3, set to state DRAIN
{day}:05.840] sched: Allocate JobId=109 NodeList=node[1-4] #CPUs=16 Partition=batch
{day}:05.857] error: Duplicate jobid on nodes node1, set to state DRAIN
{day}:05.858] Requeuing JobId=109
{day}:10.000] slurmctld version 22.05.8 started on cluster tc
{day}:10.100] Recovered JobId=107_4(111) Assoc=0
{day}:10.100] Recovered JobId=78_*
{day}:10.100] Recovered information about 2 jobs
{day}:39.470] Batch JobId=78_5(78) missing from batch node node4 (not found BatchStartTime), Requeuing job
{day}:39.471] _job_complete: requeue JobId=78_5(78) due to node failure
{day}:39.474] Requeuing JobId=78_5(78)
{day}:50.000] slurmctld version 22.05.8 started on cluster tc
{day}:50.100] Recovered JobId=107_4(111) Assoc=0
"""
    log = list(slurm_log.lines(text))
    assert [known for _, known in slurm_log.recoveries(log)] == [set(), {"107", "78"}]
    assert [job for job, _, _ in slurm_log.own_requeues(log)] == ["107_4", "109", "78_5"]


def test_an_end_comes_before_a_beginning() -> None:
    shares = [Share("a", "n1", 4, 0.0, 5.0), Share("b", "n1", 4, 5.0, 9.0), Share("c", "n1", 1, 8.0, 9.0)]
    [excess] = excesses(shares, {"n1": 4})
    assert (excess.at, excess.processors, excess.keys) == (8.0, 5, ("b", "c"))


def test_the_stream_is_the_same_for_the_same_seed() -> None:
    from torture.slurm import Slurm

    first, again = (stream(7, Slurm.shapes) for _ in range(2))
    jobs = [next(first) for _ in range(200)]
    assert jobs == [next(again) for _ in range(200)]
    kinds = {act.kind for job in jobs for act in job.acts}
    assert kinds == {"cancel", "cancel-elements", "hold", "release", "requeue"}
    assert any(job.after for job in jobs) and any(job.elements for job in jobs)
    assert any(job.overruns for job in jobs) and any(job.exit_code for job in jobs)


def test_jobs_write_down_when_they_ran(tmp_path: Path) -> None:
    written = tmp_path / "stamps"
    script = prepare(written)
    assert subprocess.run([script, written, "t1", "0.1", "3"], env={}).returncode == 3
    again = subprocess.Popen(
        [script, written, "t1", "60", "0"], env={"LSB_JOBINDEX": "0", "LSB_MCPU_HOSTS": "a 2"}
    )
    third = subprocess.Popen([script, written, "t3", "60", "0"], env={})
    element = [script, written, "t2", "0", "0"]
    assert subprocess.run(element, env={"SLURM_ARRAY_TASK_ID": "4"}).returncode == 0
    while len((written / "t1").read_text().splitlines()) < 3:
        assert again.poll() is None
    until(lambda: psutil.Process(third.pid).children(), "the third waits")
    again.send_signal(signal.SIGTERM)
    assert again.wait(60) == 143
    # What the job waits for may get the signal first.
    (sleeper,) = psutil.Process(third.pid).children()
    sleeper.terminate()
    assert third.wait(60) == 143
    found = runs(written)
    assert [run.how for run in found["t1"]] == ["end", "killed"]
    assert [run.how for run in found["t3"]] == ["killed"]
    assert found["t1"][1].where == "||a 2"
    assert [run.key for run in found["t2.4"]] == ["t2.4"]


def test_an_element_that_was_over_hides_no_cancellation_of_the_others(tmp_path: Path) -> None:
    """A command for several answers with an error if one of them was over."""
    history = History(tmp_path / "history.jsonl")
    system = SimpleNamespace(act=lambda job, job_id, act: Answer(3 not in act.elements, ""))
    job = Wanted(1, 0, 1, 1, False, 1.0, elements=4)
    history.want(job)
    history.ask(Asked(1, "submit", (), 1.0, 1.1, True, "", id="18"))
    users = Users(system, iter(()), history, tmp_path, tmp_path / "job.sh")  # type: ignore[arg-type]
    users.act_now(job, Act("cancel-elements", 0.0, (2, 3, 4)))
    said = {one.elements: one.accepted for one in history.about(1, "cancel-elements")}
    assert said == {(2,): True, (3,): False, (4,): True}
    told = {"t1.1": [Run("t1.1", 2.0, 3.0, "end", "1")], "t1.3": [Run("t1.3", 2.0, 3.0, "end", "1")]}
    decided = {"t1.1": [1.5], "t1.3": [1.5]}
    assert Judge(SimpleNamespace(**vars(SYSTEM)), history, told, Records(), decided).all() == []
