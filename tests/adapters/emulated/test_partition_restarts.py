"""The bridge to an emulated machine, where the acceptance list asks for more than single sequences: calls in
any order (2), a manager that dies at any instant (10)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_partition_bridge import P1, P3, World

from headway.model.wiring import PartitionTimes
from headway.partitions.bridge import JobSpec, JobState, PartitionSpec, Status
from headway.partitions.cycle import PRESETS, PROXY_DIED, JobManager, reconcile

CALLS = [
    ("add_partition", P1), ("add_partition", P3), ("create_partition", "P1"), ("create_partition", "P3"),
    ("add_job", JobSpec("J", "P1")), ("add_job", JobSpec("K", "P3")), ("start_job", "J"), ("start_job", "K"),
]  # fmt: skip


@given(st.permutations(CALLS), st.booleans())
@settings(max_examples=60)
def test_2_calls_may_come_in_any_order(order, twice):
    """What comes before its object was added is NOT_FOUND, has no effect, and can be repeated later."""
    world, left = World(twice=twice), list(order)
    while left:
        early = [(name, said) for name, said in left if world.call(name, said) is not Status.OK]
        assert len(early) < len(left)
        assert {world.call(name, said) for name, said in early} <= {Status.NOT_FOUND, Status.OK}
        left = early
    world.until()
    assert [world.job("J"), world.job("K")] == [JobState.RUNNING] * 2


# ---------------------------------------------------------------------- a manager that dies

#: Job, its midplanes, and how long it runs.
JOBS = {
    "J1": (("m0-0-0",), 100), "J2": (("m0-1-0", "m0-1-1"), 100),
    "J3": (("m1-0-0", "m1-0-1", "m1-1-0", "m1-1-1"), 100), "J4": (("m0-0-1",), 50),
}  # fmt: skip


class Site:
    """A machine, its clock, and a job manager that can be killed."""

    def __init__(self):
        self.launched, self.ended = Counter(), {}
        self.world = World(PartitionTimes(), launched=self._launch)
        self.manager, self.orphans = None, []

    def _launch(self, job):
        self.launched[job] += 1
        self.world.later(JOBS[job][1], self._program_ends, job)

    def _program_ends(self, job):
        self.world.control.job_ended(job, 0)
        self.look()

    def look(self):
        """What polling sees."""
        if self.manager is None:
            return
        for course in [*self.manager.courses.values(), *self.orphans]:
            if course.job in self.manager.courses:
                self.manager.advance(course)
            else:
                course.advance(self.world.control)

    def begin(self):
        """A manager that knows nothing yet."""
        torus = self.world.control.geometry.torus
        manager: list[JobManager] = []

        def later(seconds, happens, argument):
            self.world.later(
                seconds, lambda it: happens(it) if self.manager is manager[0] else None, argument
            )

        manager.append(
            JobManager(
                self.world.control, later,
                lambda spec: self.world.control.seconds(torus.times.prepare, spec),
                PRESETS["loadleveler"], self._changed,
            )
        )  # fmt: skip
        self.manager = manager[0]

    def _changed(self, course):
        """Its queue forgets a job once its record is removed (stage 8)."""
        if course.stage > 8 and course.job:
            self.ended[course.job] = (course.outcome, course.code)

    def submit(self, job):
        self.manager.begin(job, PartitionSpec(f"P-{job}", JOBS[job][0], "mesh"))

    def restart(self, proxies):
        """Begin again from the snapshot; what it does not know, and has not ended, begins anew."""
        self.begin()
        for course in reconcile(self.world.control, proxies):
            if course.job and course.job in proxies:
                self.manager.adopt(course)
            else:
                self.orphans.append(course)
        killed = {job.spec.id for job in self.world.control.get_machine().jobs} - set(proxies)
        for job in sorted(JOBS.keys() - self.manager.courses.keys() - self.ended.keys() - killed):
            self.submit(job)

    def run(self, until=600.0):
        while self.world.now < until:
            self.world.until(self.world.now + 3)
            self.look()


def killed(moment):
    """A site with all jobs, whose manager was killed at a moment."""
    site = Site()
    site.begin()
    for job in JOBS:
        site.submit(job)
    site.run(moment)
    site.manager = None
    return site


@pytest.mark.parametrize("moment", range(0, 190, 7))
def test_10_a_manager_that_is_killed_at_any_instant_ends_as_if_it_was_not(moment):
    site = killed(moment)
    site.world.until(site.world.now + 1)
    site.restart([job.spec.id for job in site.world.control.get_machine().jobs])
    site.run()
    assert site.launched == dict.fromkeys(JOBS, 1), "nobody is run twice, and nobody is lost"
    assert site.ended == dict.fromkeys(JOBS, ("ended", 0))
    snapshot = site.world.control.get_machine()
    assert snapshot.partitions == snapshot.jobs == ()


@pytest.mark.parametrize("moment", range(0, 190, 21))
def test_10_only_the_jobs_whose_proxies_died_end_otherwise(moment):
    site = killed(moment)
    known = [job.spec.id for job in site.world.control.get_machine().jobs]
    site.restart([job for job in known if job != "J2"])
    site.run()
    others = JOBS.keys() - ({"J2"} if "J2" in known else set())
    assert {job: site.ended[job] for job in others} == dict.fromkeys(others, ("ended", 0))
    assert all(site.launched[job] == 1 for job in others) and site.launched["J2"] <= 1
    assert all(course.outcome == PROXY_DIED for course in site.orphans if course.job == "J2")
    snapshot = site.world.control.get_machine()
    assert snapshot.partitions == snapshot.jobs == ()


# ---------------------------------------------------------------------- several courses of one name

P5 = PartitionSpec("P5", ("m1-1-1",), "mesh")


def left_behind(*specs):
    """A site whose manager begins again and finds booted partitions without a job."""
    site = Site()
    for spec in specs:
        site.world.control.add_partition(spec)
        site.world.control.create_partition(spec.id)
    site.world.until(60)
    site.begin()
    site.world.manager = site.manager
    return site


def test_10_several_partitions_without_a_job_are_all_given_back():
    """Their courses have no job, so none may take the place of another."""
    site = left_behind(P1, P3, P5)
    for course in reconcile(site.world.control, []):
        site.manager.adopt(course)
    site.world.until()
    assert site.world.control.get_machine().partitions == ()


def running_then_dying(kill):
    """A job that runs on P3 and begins again elsewhere as soon as ``kill`` was done to it."""
    site = Site()
    site.begin()
    site.world.manager = site.manager
    site.manager.begin("J4", P3)
    site.world.until(60)
    assert site.world.job("J4") is JobState.RUNNING
    kill(site)
    site.manager.begin("J4", P5)
    return site


@pytest.mark.parametrize(
    "kill",
    [
        lambda site: site.manager.stop("J4"),
        lambda site: (site.world.control.job_ended("J4", 0), site.manager.advance_on("P3")),
    ],
    ids=["stopped", "ended"],
)
def test_a_job_that_begins_again_while_its_last_partition_is_given_back(kill):
    site = running_then_dying(kill)
    again = site.manager.courses["J4"]
    site.world.until(200)
    assert again.code is None or again.outcome == "ended"
    assert site.launched["J4"] == 2, "it runs again, on its new partition"
    site.world.control.job_ended("J4", 0)
    site.manager.advance_on("P5")
    site.world.until()
    snapshot = site.world.control.get_machine()
    assert snapshot.partitions == snapshot.jobs == () and site.manager.courses == {}
