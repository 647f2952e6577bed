"""What-if of a policy: what is told, who may ask, and a process of its own that is bounded and ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import psutil
import pytest
from building import alike, described, node_cluster
from waiting import HANG, until
from what_if_site import ROOT, Site, asked, found

from headway.events import JobStarted, JobSubmitted
from headway.inquiry.course import Course
from headway.inquiry.reports import ForeseenJob, WhatIfReport
from headway.inquiry.what_if import compared
from headway.model import ClusterDescription, SitePolicy
from headway.service.peer import Peer
from headway.service.protocol import Reply, WhatIf
from headway.service.what_if import WhatIfs

FLAT = ClusterDescription.flat(8)
NODES = node_cluster(*alike(4, 2))
#: Plugins of a file.
FILE = '''
import os
import time

from headway.decisions import Hold
from headway.hookspecs import hookimpl


class Raises:
    """Raises once time goes on."""

    name = "raises"

    @hookimpl
    def schedule(self, view):
        if view.now > 50:
            raise ValueError("<script>it went wrong</script>")
        view.serve(())


class Hangs:
    """Never comes back."""

    name = "hangs"

    @hookimpl
    def schedule(self, view):
        while True:
            try:
                time.sleep(0.01)
            except BaseException:
                if view.now < 0:
                    raise


class Slow:
    """Takes its time, and lets itself be ended."""

    name = "slow"

    @hookimpl
    def schedule(self, view):
        time.sleep(1000)


class Eats:
    """Takes all memory."""

    name = "eats"

    @hookimpl
    def schedule(self, view):
        self.eaten = [bytes(1 << 20) for _ in range(1 << 16)]


class Dies:
    """Takes its process with it."""

    name = "dies"

    @hookimpl
    def schedule(self, view):
        os._exit(3)


class Holds:
    """Decides something else than a start."""

    name = "holds"

    @hookimpl
    def schedule(self, view):
        view.serve(())

    @hookimpl
    def control(self, state):
        if state.now > 50:
            yield Hold("4")
'''


@pytest.fixture
def what_ifs() -> Iterator[WhatIfs]:
    made = WhatIfs(seconds=HANG)
    yield made
    made.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policies.py"
    path.write_text(FILE)
    return path


def using(site: Site, seconds: float = HANG, memory: int = 1 << 30) -> WhatIfs:
    return WhatIfs(site.policies, seconds=seconds, memory=memory)


def busy(site: Site) -> Site:
    """One job runs for 100 s; a wide one waits for it, and a narrow one that could be backfilled."""
    jobs = [("1", 6, 100), ("2", 8, 50), ("3", 2, 60)]
    for name, size, seconds in jobs:
        site.step(site.now, JobSubmitted(site.now, described(name, size, seconds, user=f"u{name}")))
    return site


def test_both_courses_are_told_beside_each_other() -> None:
    site = busy(Site(FLAT, "[fcfs, first-fit]"))
    told = found(using(site), site, "easy", options=json.dumps({"bookings": 1}))
    assert told.jobs == (
        ForeseenJob("2", "pool", "u2", 8, 0.0, 100.0, 100.0),
        ForeseenJob("3", "pool", "u3", 2, 0.0, 150.0, 0.0),
    )
    assert (told.waiting, told.earlier, told.later, told.same, told.unknown) == (2, 1, 0, 1, 0)
    assert told.present.plugins == ("fcfs", "first-fit")
    assert told.other.plugins == ("easy", "first-fit")
    assert (told.present.mean_wait, told.other.mean_wait) == (125.0, 50.0)
    assert (told.present.median_wait, told.other.median_wait) == (125.0, 50.0)
    # Up to the last start: 600 and 400 of 1200 processor seconds; 120 more in the other course.
    assert told.until == 150.0
    assert told.present.use == pytest.approx(1000 / 1200, abs=1e-3)
    assert told.other.use == pytest.approx(1120 / 1200, abs=1e-3)
    assert len(told.use.times) == len(told.use.present) == len(told.use.other) == 120
    assert (told.present.known_until, told.present.ended, told.other.ended) == (None, "", "")


def test_the_scheduler_sees_nothing_of_it() -> None:
    site, other = (busy(Site(NODES, "[conservative, first-fit]")) for _ in range(2))
    found(using(site), site, "fcfs")
    assert site.scheduler.cycles == other.scheduler.cycles
    names = ["2", "3"]
    assert site.run_until_they_start(names) == other.run_until_they_start(names)


def test_jobs_that_are_left_out_are_counted_and_added_up() -> None:
    site = Site(FLAT, "[fcfs, first-fit]")
    site.step(0.0, *(JobSubmitted(0.0, described(str(at), 8, 10)) for at in range(1, 21)))
    told = found(using(site), site, "easy", most=3)
    assert ([job.id for job in told.jobs], told.left_out) == (["2", "3", "4"], 16)
    assert (told.waiting, told.same, told.present.starts) == (19, 19, 19)


def test_a_daemon_that_only_watches_tells_what_it_would_do() -> None:
    site = Site(FLAT, "[fcfs, first-fit]", monitor=True)
    busy(site)
    site.step(1.0, JobStarted(1.0, "1"))
    told = found(using(site), site, "easy")
    assert {job.id: (job.present, job.other) for job in told.jobs} == {"2": (101.0, 101.0), "3": (151.0, 1.0)}


def test_what_the_batch_system_says_of_its_policy_is_told_to_the_other_scheduler(file: Path) -> None:
    from headway.events import SitePolicyChanged
    from headway.state.retold import told_anew

    site = Site(FLAT, "[fcfs, first-fit]")
    said = SitePolicy(weights={"age": 5.0})
    site.step(0.0, SitePolicyChanged(0.0, said))
    first = told_anew(site.scheduler.state)[0]
    assert isinstance(first, SitePolicyChanged) and first.policy == said


# ---------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("policy", "options", "said"),
    [
        ("eazy", "", "what-if: policy: no plugin is called 'eazy'. Did you mean 'easy'"),
        ("<script>alert(1)</script>", "", "no plugin is called '<script>alert(1)</script>'"),
        ("first-fit", "", "what-if: policy: expected a plugin that starts jobs (hook `schedule`), such as "
         "easy; found 'first-fit', which starts none"),
        ("easy", '{"boookings": 2}', "what-if: policy: easy: boookings: unknown key."),
        ("easy", '{"bookings": -2}', "what-if: policy: easy: bookings:"),
        ("easy", '{"bookings": "' + "x" * 12_000 + '"}', "what-if: policy: easy: bookings:"),
        ("fcfs", '{"x": 1}', "what-if: policy: plugin 'fcfs' has no options, found {'x': 1}"),
        ("easy", "[1]", "what-if: options: expected an object in JSON"),
        ("easy", "[" * 12_000, "what-if: options: expected an object in JSON"),
        ("sareg", '{"profile": "/etc/passwd"}', "a what-if reads only files that the daemon's configuration "
         "names"),
        ("moldable", "", "needs"),
    ],
)  # fmt: skip
def test_a_policy_that_a_configuration_could_not_have_is_named(policy: str, options: str, said: str) -> None:
    site = busy(Site(FLAT, "[fcfs, first-fit]"))
    reply = asked(using(site), site, WhatIf(policy, options))
    assert reply.outcome == "unknown"
    assert said in reply.reason


def test_others_than_operators_are_refused(what_ifs: WhatIfs) -> None:
    site = busy(Site(FLAT, "[fcfs, first-fit]"))
    reply = asked(what_ifs, site, WhatIf("easy"), Peer("ann"))
    assert reply.outcome == "refused"
    assert "for operators (service.operators)" in reply.reason


def test_a_policy_that_raises_ends_its_course_and_says_so(file: Path) -> None:
    site = busy(Site(FLAT, "[fcfs, first-fit]", files=[file]))
    told = found(using(site), site, "raises")
    assert told.other.ended == (
        "plugin raises failed in its hook schedule: ValueError: <script>it went wrong</script>"
    )
    assert told.other.known_until == 100.0
    assert {job.id: job.other for job in told.jobs} == {"2": None, "3": None}
    assert told.unknown == 2
    assert site.scheduler.problems == []


def test_a_decision_that_is_no_start_ends_a_course(file: Path) -> None:
    site = busy(Site(FLAT, "[fcfs, first-fit]", files=[file]))
    site.step(0.0, JobSubmitted(0.0, described("4", 8, 100)))
    told = found(using(site), site, "holds")
    assert told.other.ended == ("the decision Hold for job 4 is made then, and what follows is not foreseen")
    assert told.present.ended == ""


@pytest.mark.waits
@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("slow", "a step took longer than there was time for the answer"),
        ("hangs", "its process did not answer in time, or broke off"),
        ("dies", "its process did not answer in time, or broke off"),
        ("eats", "memory"),
    ],
)
def test_a_policy_that_takes_too_much_costs_its_own_course(policy: str, said: str, file: Path) -> None:
    site = busy(Site(FLAT, "[fcfs, first-fit]", files=[file]))
    told = found(using(site, seconds=10.0, memory=200 << 20), site, policy)
    assert said.lower() in told.other.ended.lower()
    assert told.other.starts == 0 and told.other.known_until == 0.0
    assert {job.id: job.present for job in told.jobs} == {"2": 100.0, "3": 150.0}
    assert no_process_is_left()


# ---------------------------------------------------------------------- the process


def no_process_is_left() -> bool:
    until(lambda: not psutil.Process().children(recursive=True), "all processes have ended")
    return True


@pytest.mark.waits
def test_one_at_a_time_and_the_process_ends_with_its_asker(file: Path) -> None:
    site = busy(Site(FLAT, "[fcfs, first-fit]", files=[file]))
    what_ifs = using(site)
    first: Future[Reply] = Future()
    what_ifs.ask(WhatIf("slow"), ROOT, site.scheduler, first)
    until(lambda: len(psutil.Process().children(recursive=True)) == 2, "the course is followed")
    assert asked(what_ifs, site, WhatIf("easy")) == Reply(
        "failed", "another what-if is being worked out; try again when it is done"
    )
    assert first.cancel()
    assert no_process_is_left()
    until(lambda: what_ifs._running is None, "it is known to be over")
    assert found(what_ifs, site, "easy").earlier == 1


@pytest.mark.waits
def test_the_process_ends_with_the_daemon(file: Path) -> None:
    site = busy(Site(FLAT, "[fcfs, first-fit]", files=[file]))
    what_ifs = using(site)
    future: Future[Reply] = Future()
    what_ifs.ask(WhatIf("slow"), ROOT, site.scheduler, future)
    what_ifs.close()
    assert future.result(HANG).reason.startswith("the daemon ended, or read its configuration again")
    assert no_process_is_left()


KILLED = """
import sys, time
from concurrent.futures import Future
from pathlib import Path
import psutil
from test_what_if import FLAT, busy, using
from what_if_site import ROOT, Site
from headway.service.protocol import WhatIf

site = busy(Site(FLAT, "[fcfs, first-fit]", files=[Path(sys.argv[1])]))
what_ifs = using(site)
what_ifs.ask(WhatIf("slow"), ROOT, site.scheduler, Future())
while len(found := psutil.Process().children(recursive=True)) < 2:
    time.sleep(0.01)
print(*[one.pid for one in found], flush=True)
time.sleep(1000)
"""


@pytest.mark.waits
def test_no_process_is_left_of_a_daemon_that_was_killed(file: Path) -> None:
    places = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    daemon = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(file)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
    )  # fmt: skip
    assert daemon.stdout is not None
    pids = [int(word) for word in daemon.stdout.readline().split()]
    assert len(pids) == 2
    daemon.send_signal(signal.SIGKILL)
    daemon.wait(HANG)
    daemon.stdout.close()
    until(lambda: not any(map(psutil.pid_exists, pids)), "its processes have ended")


# ---------------------------------------------------------------------- what is compared


def test_what_is_known_of_one_course_alone_is_compared_as_far_as_it_is_certain() -> None:
    jobs = [ForeseenJob(name, "p", "u", 1, 0.0) for name in "abcdef"]
    present = Course(("x",), {"a": 10.0, "b": 90.0, "c": 20.0}, reached=100.0)
    other = Course(("y",), {"a": 10.5, "d": 60.0, "c": 5.0}, reached=70.0)
    told = compared("y", 0.0, jobs, present, other, 10)
    # "b" starts at 90, or before it: that is not known; "d" starts before all that is known of it.
    assert (told.same, told.earlier, told.later, told.unknown) == (1, 2, 0, 3)
    assert (told.present.known_until, told.other.known_until, told.until) == (100.0, 70.0, 70.0)
    told = compared("y", 0.0, jobs, present, Course(("y",), {}, 70.0, complete=True), 10)
    assert (told.later, told.unknown) == (3, 3)


def test_an_answer_has_a_size_whatever_names_are_long() -> None:
    jobs = [ForeseenJob(f"{at}", "p", "<" * 10_000, 1, 0.0) for at in range(1000)]
    told = compared("y", 0.0, jobs, Course(), Course(), 5000)
    assert isinstance(told, WhatIfReport)
    assert 250 < len(told.jobs) < 400 and told.left_out == 1000 - len(told.jobs)
