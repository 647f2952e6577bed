"""The bridge to an emulated machine of partitions: the dossier's sequences (acceptance 2), faults, restarts
(10)."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count, permutations

import pytest

from headway.model.wiring import PartitionTimes, Torus
from headway.partitions.bridge import JobSpec, JobState, PartitionSpec, PartitionState, Status
from headway.partitions.cycle import BOOT_FAILED, ENDED, PRESETS, PROXY_DIED, JobManager, reconcile
from headway.partitions.torus import Geometry
from headway_adapters.emulated.control import KILLED, ControlSystem

AT_ONCE = PartitionTimes(load=((512, 0.0),))
P1 = PartitionSpec("P1", ("m0-0-0", "m0-0-1"), "mesh")
P2 = PartitionSpec("P2", ("m0-0-1",), "mesh")
P3 = PartitionSpec("P3", ("m1-0-0",), "mesh")
OK, CONFLICT, NOT_FOUND = Status.OK, Status.CONFLICT, Status.NOT_FOUND
INCOMPATIBLE = Status.INCOMPATIBLE_STATE


class World:
    """A control system and its clock."""

    def __init__(self, times=AT_ONCE, *, twice=False, **options):
        self.now, self._agenda, self._number, self._twice = 0.0, [], count(), twice
        self.states: list[tuple[float, str, str]] = []
        self.control = ControlSystem(
            Geometry(Torus((2, 2, 2), times=times)), self.later, changed=self._changed, **options
        )
        self.control.watch = lambda p: self.states.append((self.now, p.spec.id, str(p.state)))
        self.manager: JobManager | None = None

    def later(self, seconds, happens, argument):
        heappush(self._agenda, (self.now + seconds, next(self._number), happens, argument))

    def _changed(self, partition):
        if self.manager is not None:
            self.manager.advance_on(partition)

    def until(self, time=float("inf")):
        while self._agenda and self._agenda[0][0] <= time:
            self.now, _, happens, argument = heappop(self._agenda)
            happens(argument)
        if time != float("inf"):
            self.now = time

    def call(self, name, *arguments, **options):
        """The status of a call; where every call is made twice the second has no other effect."""
        bridge = self.control
        reply = getattr(bridge, name)(*arguments, **options)
        if self._twice:
            before = bridge.get_machine()
            again = getattr(bridge, name)(*arguments, **options)
            assert bridge.get_machine() == before
            removed = name.startswith("remove") and reply.ok
            assert again.status is (NOT_FOUND if removed else reply.status)
            assert not again.changed or name == "signal_job"
        return reply.status

    def state(self, name):
        return self.control.get_partition(name).state

    def job(self, name):
        found = self.control.get_job(name)
        return found.state if found else None


@pytest.fixture(params=[False, True], ids=["once", "every call twice"])
def world(request):
    return World(twice=request.param)


def test_2_conflicting_partitions_one_after_the_other(world):
    call = world.call
    assert [call("add_partition", P1), call("add_partition", P2), call("create_partition", "P1")] == [OK] * 3
    assert world.state("P1") is PartitionState.CONFIGURING
    world.until()
    assert world.state("P1") is PartitionState.READY
    assert call("create_partition", "P2") is CONFLICT
    assert call("destroy_partition", "P1") is OK
    assert call("create_partition", "P2") is CONFLICT, "what halts still holds its hardware"
    world.until()
    assert world.state("P1") is PartitionState.FREE
    assert call("create_partition", "P2") is OK


def test_2_partitions_that_share_nothing_are_active_together(world):
    for spec in (P1, P3):
        assert world.call("add_partition", spec) is OK
        assert world.call("create_partition", spec.id) is OK
    world.until()
    assert [world.state("P1"), world.state("P3")] == [PartitionState.READY] * 2


def test_2_destroying_what_was_never_created_changes_nothing(world):
    world.call("add_partition", P1)
    reply = world.control.destroy_partition("P1")
    assert (reply.status, reply.changed, world.state("P1")) == (OK, False, PartitionState.FREE)


def test_2_nothing_is_known_before_it_was_added(world):
    assert world.control.get_partition("P1") is None
    assert world.call("create_partition", "P1") is NOT_FOUND
    assert world.call("start_job", "J") is NOT_FOUND
    assert world.call("add_job", JobSpec("J", "P1")) is NOT_FOUND


@pytest.mark.parametrize("order", list(permutations(("start", "create"))))
def test_2_a_job_runs_at_the_instant_at_which_its_partition_is_ready(order, world):
    world.call("add_partition", P1)
    world.call("add_job", JobSpec("J", "P1"))
    for step in order:
        assert world.call(*(("start_job", "J") if step == "start" else ("create_partition", "P1"))) is OK
    assert world.job("J") is JobState.STARTING
    world.until(35.9)
    assert world.job("J") is JobState.STARTING
    world.until(36.0)
    assert (world.job("J"), world.state("P1")) == (JobState.RUNNING, PartitionState.BUSY)


def test_2_an_active_partition_is_not_removed(world):
    world.call("add_partition", P1)
    world.call("create_partition", "P1")
    assert world.call("remove_partition", "P1") is INCOMPATIBLE
    assert world.state("P1") is PartitionState.CONFIGURING


def test_2_a_pending_job_is_removed_and_not_cancelled_and_an_idle_one_not_signalled(world):
    world.call("add_partition", P1)
    world.call("add_job", JobSpec("J", "P1"))
    assert world.call("signal_job", "J", 15) is INCOMPATIBLE
    world.call("start_job", "J")
    assert world.call("cancel_job", "J") is INCOMPATIBLE
    assert world.call("remove_job", "J") is OK
    assert world.job("J") is None


def test_a_second_job_and_a_busy_partition_are_refused(world):
    world.call("add_partition", P1)
    world.call("create_partition", "P1")
    for job in ("J", "K"):
        world.call("add_job", JobSpec(job, "P1"))
    world.until()
    assert world.call("start_job", "J") is OK
    assert world.call("start_job", "K") is INCOMPATIBLE
    assert world.call("destroy_partition", "P1") is INCOMPATIBLE
    assert world.call("signal_job", "J", 15) is OK
    assert world.call("destroy_partition", "P1", force=True) is OK
    assert (world.job("J"), world.control.get_job("J").exit_code) == (JobState.TERMINATED, KILLED)


def test_a_partition_that_is_not_there_or_cannot_be_wired_is_refused(world):
    assert world.call("add_partition", PartitionSpec("X", ("m9-0-0",), "mesh")) is NOT_FOUND
    assert world.call("add_partition", PartitionSpec("X", ("m0-0-0", "m1-1-0"), "mesh")) is INCOMPATIBLE
    world.call("add_partition", P1)
    assert world.control.add_partition(PartitionSpec("P1", ("m1-0-0",), "mesh")).status is Status.EXISTS


def test_an_error_of_the_database_leaves_only_to_free(world):
    world.call("add_partition", P1)
    world.call("create_partition", "P1")
    world.until()
    world.control.database_error("P1")
    assert world.call("create_partition", "P1") is INCOMPATIBLE
    assert world.call("destroy_partition", "P1") is OK
    assert world.state("P1") is PartitionState.FREE


# ---------------------------------------------------------------------- courses


def managed(times=None, stages="loadleveler", **options):
    """A world with a job manager."""
    world = World(times or PartitionTimes(), **options)
    world.ended = {}

    def changed(course):
        if course.done:
            world.ended[course.job] = (course.outcome, course.code, world.now)

    torus = world.control.geometry.torus

    def later(seconds, happens, argument):
        """A manager that was killed does nothing any more."""
        world.later(seconds, lambda it: happens(it) if world.manager is not None else None, argument)

    world.manager = JobManager(
        world.control,
        later,
        lambda spec: world.control.seconds(torus.times.prepare, spec),
        PRESETS[stages],
        changed,
    )
    return world


@pytest.mark.parametrize(
    ("nodes", "row"),
    [
        (("m0-0-0",), (1, 26, 14, 10, 51)),
        (("m0-0-0", "m0-0-1"), (1, 36, 15, 11, 63)),
        (("m0-0-0", "m0-0-1", "m0-1-0", "m0-1-1"), (2, 38, 19, 11, 70)),
    ],
)
def test_3_table_1_is_reproduced(nodes, row):
    began = []
    world = managed(launched=lambda job: began.append(world.now))
    world.manager.begin("J", PartitionSpec("P", nodes, "mesh"))
    while not began:
        world.until(world.now + 1)
    world.control.job_ended("J", 0)
    world.manager.advance_on("P")
    world.until()
    moments = {state: time for time, _, state in world.states}
    parts = (
        moments["configuring"],
        moments["busy"] - moments["configuring"],
        began[0] - moments["busy"],
        moments["free"] - began[0],
        world.ended["J"][2],
    )
    assert parts == row and sum(row[:4]) == row[4], "E1"


def test_2_a_proxy_returns_the_code_of_its_job_and_everything_is_gone():
    world = managed(AT_ONCE)
    world.manager.begin("J", P3)
    world.until()
    world.control.job_ended("J", 7)
    world.manager.advance_on("P3")
    world.until()
    assert world.ended["J"][:2] == (ENDED, 7)
    assert world.control.get_machine().partitions == world.control.get_machine().jobs == ()


@pytest.mark.parametrize("moment", [0.5, 10, 26.5, 30, 41, 60, 145])
@pytest.mark.parametrize("stages", PRESETS)
def test_a_proxy_that_dies_takes_its_job_along_and_nothing_leaks(moment, stages):
    """Before its partition is ordered, while it boots, is loaded, runs, and after the job's end at 141."""
    world = managed(stages=stages)
    world.manager.begin("J", P3)
    world.manager.begin("K", PartitionSpec("P4", ("m1-0-1",), "mesh"))
    if moment > 141:
        world.until(141)
        world.control.job_ended("J", 0)
        world.manager.advance_on("P3")
    world.until(moment)
    world.control.proxy_died("J")
    world.manager.stop("J", PROXY_DIED)
    world.until()
    assert world.ended["J"][0] == (PROXY_DIED if moment < 141 else ENDED)
    assert world.job("K") is JobState.RUNNING
    assert [p.spec.id for p in world.control.get_machine().partitions] == ["P4"]


def test_a_partition_that_never_boots_is_given_up_after_four_tries():
    world = managed(boot_fails=lambda: True)
    world.manager.begin("J", P3)
    world.until()
    assert world.ended["J"][0] == BOOT_FAILED
    assert sum(state == "configuring" for _, _, state in world.states) == 4
    assert world.control.get_machine().partitions == ()


def test_a_boot_that_fails_once_is_tried_again():
    fails = iter([True, False])
    world = managed(boot_fails=lambda: next(fails))
    world.manager.begin("J", P3)
    world.until()
    assert world.job("J") is JobState.RUNNING


def test_a_bridge_that_fails_inside_is_asked_again_and_given_up_in_the_end():
    from headway.partitions.bridge import Reply
    from headway.partitions.cycle import BRIDGE_FAILED, CALL_RETRIES, Course

    world = World()
    works, broken = world.control.create_partition, Reply(Status.INTERNAL_ERROR)
    course = Course("J", P3)
    world.control.create_partition = lambda partition: broken
    for _ in range(3):
        course.advance(world.control)
    assert course.stage == 3 and not course.outcome
    world.control.create_partition = works
    course.advance(world.control)
    assert course.stage == 4

    hopeless = Course("K", P1)
    world.control.create_partition = lambda partition: broken
    for _ in range(CALL_RETRIES + 2):
        hopeless.advance(world.control)
    assert hopeless.done and hopeless.outcome == BRIDGE_FAILED
    assert world.control.get_partition("P1") is None


@pytest.mark.parametrize("moment", [0.5, 10, 26.5, 30, 41, 60])
@pytest.mark.parametrize("alive", [True, False])
def test_10_a_manager_that_begins_again_finds_everything_in_the_snapshot(moment, alive):
    """A job whose proxy lives is seen to its end; of the others nothing is left, nor of partitions without
    jobs."""
    world = managed()
    world.manager.begin("J", P3)
    world.until(moment)
    world.manager = None
    jobs = [job.spec.id for job in world.control.get_machine().jobs]
    courses = reconcile(world.control, jobs if alive else [])

    def settle():
        for _ in range(20):
            world.until(world.now + 10)
            for course in courses:
                course.advance(world.control)

    settle()
    if alive and jobs:
        assert world.job("J") is JobState.RUNNING
        world.control.job_ended("J", 0)
        settle()
        assert [(c.outcome, c.code) for c in courses] == [(ENDED, 0)]
    snapshot = world.control.get_machine()
    assert snapshot.partitions == snapshot.jobs == ()


def test_10_prepared_partitions_without_a_job_are_kept():
    world = World()
    world.call("add_partition", P1)
    world.call("create_partition", "P1")
    world.until()
    assert reconcile(world.control, [], keep=["P1"]) == []
    assert world.state("P1") is PartitionState.READY
