"""Planned starts in a real Slurm's own commands."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driven_slurm import Driven
from live_daemon import Daemon

from headway import decisions as d
from headway import events as ev
from headway.service import protocol as p
from headway.service.client import ask
from headway_adapters.slurm import marker, writer

pytestmark = [pytest.mark.slurm, pytest.mark.both_slurms]

#: What Slurm changes of a job by itself, and the hold that give-back ends.
_MOVES = {
    "accrue_time", "admin_comment", "eligible_time", "hold", "last_sched_evaluation", "preempt_time",
    "preemptable_time", "priority", "scheduled_nodes", "start_time", "state_description", "state_reason",
    "submit_line", "priority_by_partition", "end_time", "nodes", "estimated_start_time",
}  # fmt: skip


@pytest.fixture
def daemon(slurm_cluster: Any, tmp_path: Path) -> Iterator[Daemon]:
    options = {"show_starts": True}
    made = Daemon(slurm_cluster, tmp_path, options=options, plugins=["conservative", "first-fit"])
    yield made
    made.clean_up()


def give_back(cluster: Any) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "headway_adapters.slurm.give_back", "batch"],
        env={**os.environ, **cluster.env}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shown(cluster: Any) -> dict[str, float]:
    """What ``squeue --start`` says of each waiting job or array: absolute seconds."""
    env = {**cluster.env, "TZ": "UTC"}
    command = ["squeue", "--start", "-h", "-o", "%i %S"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found = {}
    for line in done.stdout.splitlines():
        job, at = line.split()
        if at != "N/A":
            found[job] = time.mktime(time.strptime(at + " UTC", "%Y-%m-%dT%H:%M:%S %Z")) - time.timezone
    return found


def plan(daemon: Daemon) -> dict[str, float]:
    """The daemon's planned starts."""
    page = ask(Path(f"{daemon.config['journal']}.sock"), p.Bookings()).found
    assert isinstance(page, p.BookingPage)
    return {each.job: each.start for each in page.bookings if each.start is not None}


def agrees(daemon: Daemon) -> bool:
    """Whether each planned start that is further ahead than a minute or two is shown."""
    planned, told, now = plan(daemon), shown(daemon.cluster), time.time()
    arrays: dict[str, float] = {}
    for job, start in planned.items():
        name = job.partition("_")[0]
        arrays[name] = min(start, arrays.get(name, start))
    by_number = {job.partition("_")[0]: at for job, at in told.items()}
    later = {job: at for job, at in arrays.items() if at > now + 90}
    return bool(later) and all(
        job in by_number and abs(by_number[job] - at) <= 300 for job, at in later.items()
    )


def test_squeue_agrees_with_the_plan_and_give_back_leaves_no_difference(daemon: Daemon) -> None:
    cluster = daemon.cluster
    running = [cluster.submit(4, 3600, nodes=1, minutes=10 + n) for n in range(4)]
    waiting = [cluster.submit(1 + n % 4, 600, nodes=1, minutes=5 + 3 * n) for n in range(22)]
    waiting += [cluster.submit(8, 600, nodes=2, minutes=30) for _ in range(2)]
    array = cluster.submit(4, 60, nodes=1, array="1-3")
    begins = cluster.submit(1, 60, begin="now+5hours")
    before = cluster.jobs()
    daemon.start()
    daemon.until(lambda: all(cluster.state(job) == "RUNNING" for job in running), what="the first run")
    daemon.until(lambda: agrees(daemon), what="squeue --start agrees with the plan")
    told = shown(cluster)
    assert sum(job in told for job in waiting) > 20
    assert any(job.startswith(array) for job in told)
    # The user's time is the earliest, and the mark keeps it.
    user_s = before[begins]["eligible_time"]
    assert told[begins] >= user_s
    mark = marker.shown(cluster.jobs()[begins]["admin_comment"])
    assert mark is None or mark.begin == user_s
    # One that ends early brings others forward, which are shown so.
    cluster.run("scancel", running[0], running[1])
    daemon.until(lambda: agrees(daemon), what="it agrees with the new plan")
    daemon.assert_replays()
    # Killed without a word.
    daemon.kill()
    held = {key: each for key, each in cluster.jobs().items() if each["job_state"] == "PENDING"}
    assert any(marker.shown(each["admin_comment"]) for each in held.values())
    give_back(cluster)
    after = cluster.jobs()
    assert after[begins]["eligible_time"] == user_s
    compared = 0
    for key in held.keys() & before.keys():
        if after[key]["job_state"] != "PENDING":
            continue
        compared += 1
        names = before[key].keys() - _MOVES
        assert {n: after[key][n] for n in names} == {n: before[key][n] for n in names}
        assert after[key]["admin_comment"] == ""
        assert after[key]["eligible_time"] <= max(time.time(), user_s if key == begins else 0)
    assert compared > 5


def test_switched_off_the_times_are_taken_away_and_jobs_start(daemon: Daemon) -> None:
    cluster = daemon.cluster
    (blocker, *_) = [cluster.submit(4, 3600, nodes=1, minutes=30) for _ in range(4)]
    job = cluster.submit(4, 60, nodes=1)
    begins = cluster.submit(1, 60, begin="now+2hours")
    user_s = cluster.jobs()[begins]["eligible_time"]
    daemon.start()
    daemon.until(lambda: marker.shown(cluster.jobs()[job]["admin_comment"]), what="a time is shown")
    daemon.kill()
    options = daemon.config["cluster"]["options"]
    daemon.configure(
        cluster={"adapter": "slurm", "options": {**options, "show_starts": False}},
        journal=str(daemon.config_path.with_name("another.sqlite")),
    )
    daemon.start()
    daemon.until(
        lambda: not any(marker.shown(each["admin_comment"]) for each in cluster.jobs().values()),
        what="none is shown",
    )
    assert cluster.jobs()[job]["eligible_time"] <= time.time()
    assert cluster.jobs()[begins]["eligible_time"] == user_s
    cluster.run("scancel", blocker)
    daemon.until(lambda: cluster.state(job) == "RUNNING", what="the job starts")


@pytest.fixture
def driven(slurm_cluster: Any) -> Iterator[Any]:
    """Makes adapters, each as if the one before had been killed."""
    made: list[Driven] = []

    def make(**options: Any) -> Driven:
        made.append(Driven(slurm_cluster, show_starts=True, **options))
        return made[-1]

    yield make
    for each in made:
        each.adapter.close()


def show(driven: Driven, job: str, at: float) -> marker.Shown:
    """Have a planned start shown; what the mark says."""
    driven.adapter.show_starts([(job, at)])

    def said() -> marker.Shown | None:
        detail = driven.adapter.overlay.detail(job)
        return detail.shown if detail is not None else None

    driven.meanwhile(said, "it is shown")
    found = said()
    assert found is not None
    return found


def begin_of(driven: Driven, job: str) -> float | None:
    known = driven.adapter.overlay.known(job)
    assert known is not None
    return known.job.begin_time


def test_a_job_that_shows_a_time_starts_at_once(driven: Any, slurm_cluster: Any) -> None:
    job, other = slurm_cluster.submit(1, 60), slurm_cluster.submit(1, 60)
    first = driven()
    first.wait(0.1)
    show(first, job, time.time() + 3000)
    assert begin_of(first, job) is None
    began = first.start(job, (("node2", 1),))
    assert began.placement == (("node2", 1),)
    # It is started while no look shows what was written.
    detail = first.adapter.overlay.detail(other)
    slurm_cluster.run(*writer.show(detail, marker.Shown(int(time.time()) + 3000)))
    first.adapter._shown._written[other] = marker.Shown(int(time.time()) + 3000)
    first.start(other, (("node3", 1),))


def test_killed_between_any_two_commands(driven: Any, slurm_cluster: Any) -> None:
    job = slurm_cluster.submit(1, 60, begin="now+1hour")
    user_s = slurm_cluster.jobs()[job]["eligible_time"]
    first = driven()
    first.wait(0.1)
    assert show(first, job, user_s + 600.0).begin == user_s
    # After the time was shown.
    second = driven()
    second.wait(0.1)
    assert begin_of(second, job) == user_s
    # Its user wants it now: that counts.
    slurm_cluster.scontrol("update", f"JobId={job}", "StartTime=now")
    second.meanwhile(lambda: begin_of(second, job) is None, "the user's word counts")
    show(second, job, time.time() + 2000)
    # After the pin, before the release.
    detail = second.adapter.overlay.detail(job)
    assert detail is not None
    steps = writer.start(d.Start(job, (("node1", 1),)), detail, "batch", shown=detail.shown).steps
    slurm_cluster.run(*steps[0])
    third = driven()
    third.wait(0.1)
    third.meanwhile(lambda: slurm_cluster.jobs()[job]["required_nodes"] == "", "the pin is taken away")
    assert begin_of(third, job) is None
    third.wait(1.0)
    third.start(job, (("node4", 1),))


def test_a_user_s_begin_time_and_words_count_as_they_do_without(driven: Any, slurm_cluster: Any) -> None:
    job = slurm_cluster.submit(1, 60)
    first = driven()
    first.wait(0.1)
    show(first, job, time.time() + 3000)
    later = int(time.time()) + 7200
    slurm_cluster.run("scontrol", "update", f"JobId={job}", f"Comment=headway:held;shown={later}")
    slurm_cluster.run("env", "TZ=UTC", "scontrol", "update", f"JobId={job}", f"StartTime={writer.utc(later)}")
    first.meanwhile(lambda: begin_of(first, job) == later, "the user's begin time counts")
    # What headway shows then is not before it, and takes nothing away.
    assert show(first, job, later + 900.0).begin == later
    assert begin_of(first, job) == later


def test_arrays_and_heterogeneous_jobs(driven: Any, slurm_cluster: Any) -> None:
    array = slurm_cluster.submit(1, 60, array="1-4")
    first = driven()
    first.wait(0.1)
    at = time.time() + 3000
    show(first, f"{array}_3", at)
    assert len(slurm_cluster.jobs()) == 1
    first.start(f"{array}_2", (("node2", 1),))
    # What is left of it shows it still, by its own numbers.
    first.wait(0.5)
    assert {begin_of(first, f"{array}_{task}") for task in (1, 3, 4)} == {None}
    first.adapter.show_starts([(f"{array}_3", at + 1000)])
    first.meanwhile(
        lambda: first.adapter.overlay.detail(f"{array}_4").shown.time > at + 900, "the rest is shown anew"
    )
    assert not any(
        isinstance(event, ev.JobChanged) and event.job.begin_time is not None for event in first.events
    )
    first.start(f"{array}_3", (("node3", 1),))
