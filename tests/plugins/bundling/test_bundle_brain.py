"""What a bundle's manager decides, in a world that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plugins.bundling.bundle_world import HOUR, World, specification

from headway.adapter.migration import Reported


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def begun(world: World) -> World:
    """The application runs on the two processors that are free, four processes on each."""
    world.until(lambda: world.running() == {1: list(range(8))})
    return world


def grown(world: World) -> World:
    """Two more became free, and it was spread over all four."""
    begun(world)
    world.step(60.0, times=10)
    world.free += 2
    world.until(lambda: world.state.migrations == 1)
    return world


def test_the_original_request_is_submitted_first_and_a_subjob_into_what_is_free(world: World) -> None:
    begun(world)
    first, second = world.jobs.values()
    assert (first.number, first.processors, first.walltime) == (0, 8, HOUR)
    # Four processes on each processor: four hours; the placeholder claims all in forty.
    assert (second.number, second.processors, second.walltime) == (1, 2, 1.05 * 4 * HOUR)
    assert world.state.layout == {"1/node1/0": (1, 3, 5, 7), "1/node1/1": (2, 4, 6, 8)}


def test_why_it_waits_is_known_until_it_starts(world: World) -> None:
    world.free = 0
    world.until(lambda: world.state.subjobs and world.state.subjobs[0].reason)
    placeholder = world.state.subjobs[0]
    assert (placeholder.state, placeholder.reason) == ("queued", "Priority")
    world.step(times=5)
    assert world.said() == (
        "the bundle waits: 0 processors are free for any time; with at most 8 processes on each it would not "
        "be complete in time"
    )
    world.start(0)
    world.step(times=2)
    assert (placeholder.state, placeholder.reason) == ("ready", "")


def test_it_spreads_when_more_becomes_free(world: World) -> None:
    grown(world)
    assert world.signals[0] == "USR1"
    assert world.running() == {1: [0, 1, 2, 3], 2: [4, 5, 6, 7]}
    assert world.state.executions == 2
    # The plan goes on from what the checkpoint holds: ten minutes and a bit of four hours.
    assert world.state.saved == pytest.approx(600 / (4 * HOUR), rel=0.1)
    assert world.state.completion < 1000 + 2.2 * HOUR


def test_a_program_that_dumps_processes_moves_it_too(world: World) -> None:
    world.handler.saves = "dump"
    grown(world)
    assert world.signals == [] and world.running() == {1: [0, 1, 2, 3], 2: [4, 5, 6, 7]}


def test_nothing_is_stopped_before_the_checkpoint_is_complete(world: World) -> None:
    world.handler.answers["confirm"] = Reported("confirm", False, "not yet", again=True)
    begun(world)
    world.free += 2
    world.until(lambda: "USR1" in world.signals)
    launch = world.state.launch
    world.step(times=20)
    assert (world.state.status, world.state.launch) == ("moving", launch)
    assert world.running() == {1: list(range(8))}
    del world.handler.answers["confirm"]
    world.until(lambda: world.state.migrations == 1)


def test_a_move_that_fails_leaves_it_running_and_after_three_the_new_processors_are_given_back(
    world: World,
) -> None:
    world.handler.answers["confirm"] = Reported("confirm", False, "damaged")
    begun(world)
    world.free += 2
    world.until(lambda: world.job(2).state == "ended" if 2 in _numbers(world) else False, seconds=30.0)
    assert world.running() == {1: list(range(8))} and world.state.executions == 1
    assert world.said().count("stayed") == 3


def _numbers(world: World) -> set[int]:
    return {job.number for job in world.jobs.values()}


def test_a_damaged_image_costs_what_was_done_and_no_more(world: World) -> None:
    world.handler.answers["verify"] = Reported("verify", False, "another checksum")
    grown(world)
    assert world.state.saved == 0.0 and world.state.base == 0.0
    assert world.running() == {1: [0, 1, 2, 3], 2: [4, 5, 6, 7]}


def test_what_leaves_is_left_before_its_limit(tmp_path: Path) -> None:
    world = World(tmp_path, free=4)
    # The placeholder leaves two processors over for good; the other two are its in an hour.
    world.others = [(world.now + HOUR, 6)]
    world.until(lambda: world.running() == {1: [0, 1, 4, 5], 2: [2, 3, 6, 7]})
    assert (world.job(1).processors, world.job(2).processors) == (2, 2)
    limit = world.job(2).start + world.job(2).walltime
    assert limit <= 1000 + HOUR + 2
    world.until(lambda: world.running() == {1: list(range(8))}, seconds=10.0)
    world.until(lambda: world.job(2).state == "ended")
    assert limit - 121 <= world.now <= limit and world.state.executions == 2
    assert world.state.migrations == 1


def test_a_subjob_that_dies_costs_the_work_since_the_last_checkpoint(world: World) -> None:
    grown(world)
    saved = world.state.saved
    world.step(60.0, times=10)
    world.free = 0
    world.end(2)
    world.free = 0
    world.until(lambda: world.running() == {1: list(range(8))})
    assert world.state.base == saved == world.state.saved
    assert world.state.executions == 3 and "subjob 2 ended" in world.said()


def test_with_no_subjob_left_it_waits_with_what_was_saved(world: World) -> None:
    grown(world)
    saved = world.state.saved
    world.end(1)
    world.end(2)
    world.free = 0
    world.until(lambda: world.state.status == "waiting")
    world.free = 2
    world.until(lambda: 3 in _numbers(world))
    assert world.job(3).walltime == pytest.approx((1 - saved) * 1.05 * 4 * HOUR, abs=60)
    world.until(world.running)
    assert world.state.base == saved


def test_processes_are_launched_again_only_once_the_lost_subjob_is_known_to_be_gone(world: World) -> None:
    grown(world)
    # Its worker is silent, its job is still there.
    world.workers.pop(world.job(2).id)
    world.job(2).state = "suspended"
    world.end = lambda number: None  # type: ignore[method-assign]
    world.step(10.0, times=20)
    assert world.state.status == "halting" and not world.running()


@pytest.mark.parametrize(("minutes", "option"), [(0, "restart"), (60, "move"), (239, "continue")])
def test_the_original_request_starts_after_all(world: World, minutes: int, option: str) -> None:
    begun(world)
    world.step(60.0, times=minutes)
    world.start(0)
    if option == "continue":
        world.until(lambda: world.held)
        assert world.running() == {1: list(range(8))} and world.job(0).state == "pending"
    else:
        world.until(lambda: world.running() == {0: list(range(8))})
        world.until(lambda: world.job(1).state == "ended")
        assert (world.state.migrations == 1) == (option == "move")
    assert f"started: {option}" in world.said()


def postponed(world: World) -> World:
    """The original request started too late to be of use, and was put back."""
    begun(world)
    world.step(60.0, times=239)
    world.start(0)
    world.until(lambda: world.held)
    return world


def test_what_depends_on_the_original_request_waits_for_the_applications_end(world: World) -> None:
    postponed(world)
    world.new_manager()
    world.step(times=5)
    assert world.job(0).state == "pending" and world.running()
    world.finish_all()
    world.until(lambda: world.state.status == "done")
    assert world.shrunk == [world.job(0).id] and world.job(0).state == "pending"


def test_a_postponed_request_is_wanted_again_when_nothing_else_is_left(world: World) -> None:
    postponed(world)
    world.free = -2
    world.end(1)
    world.until(lambda: not world.held)
    world.start(0)
    world.until(lambda: world.running() == {0: list(range(8))})


def test_who_cancels_a_postponed_request_ends_all(world: World) -> None:
    postponed(world)
    world.end(0)
    world.until(lambda: world.state.status == "done")
    assert world.state.exit_code == 130 and world.job(1).state == "ended"


def test_where_users_cannot_put_jobs_back_it_is_cancelled_and_that_is_said(world: World) -> None:
    world.postpones = False
    begun(world)
    world.step(60.0, times=239)
    world.start(0)
    world.until(lambda: world.job(0).state == "ended")
    assert world.running() == {1: list(range(8))}
    assert "cannot be kept for the jobs that depend on it: users cannot" in world.said()


def test_the_original_request_starts_while_nothing_else_runs(tmp_path: Path) -> None:
    world = World(tmp_path, free=0)
    world.step(times=3)
    world.start(0)
    world.until(lambda: world.running() == {0: list(range(8))})
    world.finish_all()
    world.until(lambda: world.state.status == "done")
    assert world.result is not None and world.result.exit_code == 0
    assert not world.shrunk


def test_at_the_end_the_original_request_is_made_small_to_tell_the_exit_code(world: World) -> None:
    begun(world)
    world.finish_all()
    world.until(lambda: world.state.status == "done")
    assert world.result is not None and world.result.exit_code == 0
    assert world.shrunk == [world.job(0).id] and world.job(0).state == "pending"
    assert world.job(1).state == "ended"


def test_a_process_that_fails_ends_the_bundle_with_its_exit_code(world: World) -> None:
    begun(world)
    world.finish_all(3)
    world.until(lambda: world.state.status == "done")
    assert world.result is not None and world.result.exit_code == 3


def test_a_process_that_its_dying_subjob_takes_with_it_has_not_failed(world: World) -> None:
    begun(world)
    world.finish_all(143)
    world.step(0.5)
    world.end(1)
    world.free = 0
    world.until(lambda: world.state.status == "waiting")
    assert world.state.exit_code is None


def test_who_cancels_the_original_request_ends_all(world: World) -> None:
    begun(world)
    world.end(0)
    world.until(lambda: world.state.status == "done")
    assert world.state.exit_code == 130 and world.job(1).state == "ended"


def test_a_cancelled_bundle_leaves_nothing(world: World) -> None:
    begun(world)
    world.brain.cancel(world.now)
    world.until(lambda: world.state.status == "done")
    assert {job.state for job in world.jobs.values()} == {"ended"} and not world.shrunk


def test_a_subjob_that_does_not_start_is_taken_back_and_the_next_is_asked_for_later(world: World) -> None:
    world.starts_at_once = False
    world.until(lambda: 1 in _numbers(world))
    world.until(lambda: world.job(1).state == "ended", steps=70)
    world.until(lambda: 2 in _numbers(world))
    asked = [world.state.subjob(number).asked for number in (1, 2)]
    assert asked[1] - asked[0] >= 60 + 5


def test_a_checkpoint_now_and_then(tmp_path: Path) -> None:
    world = World(tmp_path, specification(checkpoint_every=600.0))
    begun(world)
    world.step(60.0, times=25)
    assert world.said().count("checkpoint: saved") == 2
    assert world.state.executions == 1 and world.state.saved > 0


def test_a_launcher_runs_once_on_the_first_processor(tmp_path: Path) -> None:
    world = World(tmp_path, specification(launch="once"))
    world.until(lambda: world.running() == {1: [0]})
    orders = world.brain.orders(world.job(1).id, "node1")
    assert orders.launch.hosts == (("node1", 8),)
    world.finish_all()
    world.until(lambda: world.state.status == "done")


def test_a_worker_that_is_not_known_yet_waits_and_a_stranger_is_sent_away(world: World) -> None:
    assert world.brain.orders("7", "node1").leave == 0
    begun(world)
    world.state.subjobs[1].job, world.state.subjobs[1].state = "", "asked"
    assert world.brain.orders(world.job(1).id, "node1").leave is None


def test_a_submission_that_its_manager_did_not_live_to_write_down_is_found_by_its_name(world: World) -> None:
    begun(world)
    world.state.subjobs[1].job, world.state.subjobs[1].state = "", "asked"
    world.step()
    assert world.state.subjob(1).job == world.job(1).id


GIB = 2**30


@pytest.mark.parametrize(
    ("room", "processors", "load"),
    [
        # Four processes on each of two processors; memory for three; spread over four it fits.
        (((2, 8 * GIB),), 2, 4),
        (((2, 6 * GIB), (2, 6 * GIB)), 4, 2),
        # A node without much memory offers fewer of its processors, to more processes each.
        (((4, 8 * GIB),), 4, 2),
        (((1, None), (3, 0)), 1, 8),
    ],
)  # fmt: skip
def test_processes_go_where_there_is_memory_for_them(
    tmp_path: Path, room: tuple[tuple[int, int | None], ...], processors: int, load: int
) -> None:
    world = World(tmp_path, specification(memory=GIB), free=sum(count for count, _ in room))
    world.room = room
    world.until(lambda: len(world.state.subjobs) == 2)
    first, second = world.state.subjobs
    assert (first.load, second.processors, second.load) == (1, processors, load)


def test_without_memory_for_all_processes_it_waits_and_says_so_once(tmp_path: Path) -> None:
    world = World(tmp_path, specification(memory=GIB), free=2)
    world.room = ((2, 7 * GIB),)
    world.step(times=30)
    assert len(world.state.subjobs) == 1
    said = "2 processors are free, of which 2 have the 1024 MiB of one process: too few for all processes"
    assert world.said().count(said) == 1
    world.room = ((2, 8 * GIB),)
    world.until(world.running)


def test_what_is_left_must_have_the_memory_for_those_that_come_back(tmp_path: Path) -> None:
    world = World(tmp_path, specification(memory=GIB), free=4)
    world.room = ((4, 8 * GIB),)
    world.until(lambda: world.running() == {1: list(range(8))})
    assert world.state.subjob(1).load == 2
    # It grows; what joins bears as few. Without the first one the second does not suffice.
    world.room = ((2, 2 * GIB),)
    world.free = 4
    world.room = ((4, 4 * GIB),)
    world.until(lambda: world.state.migrations == 1)
    assert world.state.subjob(2).load == 1
    world.end(1)
    world.free = 0
    world.until(lambda: world.state.status == "waiting")
    assert "do not suffice" in world.said()


def test_a_submission_that_nobody_answered_is_looked_for_and_repeated(world: World) -> None:
    world.silent = True
    world.step(times=30)
    assert not world.jobs and world.state.status == "waiting" and len(world.state.subjobs) == 1
    world.silent = False
    begun(world)
    assert [job.number for job in world.jobs.values()] == [0, 1]


def test_a_result_that_cannot_be_written_down_is_written_down_later(world: World) -> None:
    begun(world)
    world.full = True
    world.finish_all(3)
    world.step(times=30)
    assert world.state.status == "ending" and world.result is None
    world.full = False
    world.until(lambda: world.state.status == "done")
    assert world.result is not None and world.result.exit_code == 3


def test_the_original_request_is_made_small_once_somebody_answers(world: World) -> None:
    begun(world)
    world.silent = True
    world.finish_all()
    world.step(times=30)
    assert world.state.status == "ending" and not world.shrunk
    world.silent = False
    world.until(lambda: world.state.status == "done")
    assert world.shrunk == [world.job(0).id]


def happens(world: World, what: str) -> None:
    """Something befalls the bundle; a "step" is nothing."""
    if what == "minute":
        world.step(60.0)
    elif what == "manager":
        world.new_manager()
    elif what == "end":
        running = [job.number for job in world.jobs.values() if job.state == "running" and job.number]
        if running:
            world.end(running[0])
    elif what == "free":
        world.free = min(8, world.free + 2)
    elif what == "take":
        world.free = max(0, world.free - 2)
    elif what == "original":
        if any(job.number == 0 and job.state == "pending" for job in world.jobs.values()):
            world.start(0)
    elif what == "damage":
        world.handler.answers["confirm"] = Reported("confirm", False, "damaged")
    elif what == "whole":
        world.handler.answers.clear()


@settings(max_examples=40)
@given(
    steps=st.lists(
        st.sampled_from(["step", "minute", "manager", "end", "free", "take", "original", "damage", "whole"]),
        min_size=10, max_size=80,
    )
)  # fmt: skip
@example([*["step"] * 5, "end", "free", "free", "end", "free"])
def test_no_process_ever_runs_twice_and_it_always_comes_to_its_end(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Whoever is killed, at any moment, the manager included."""
    world = World(tmp_path_factory.mktemp("world"))
    saved = 0.0
    for what in steps:
        happens(world, what)
        world.step()
        # What is saved is never given up while images are whole.
        assert world.state.saved >= saved
        saved = world.state.saved
        if world.state.status == "done":
            break
    world.handler.answers.clear()
    world.free = max(world.free, 4)
    if world.free == 8 and world.job(0).state == "pending":
        # There is room for the job itself, which nobody is in front of.
        world.start(0)
    world.until(lambda: world.running() or world.state.status == "done", steps=800, seconds=5.0)
    if world.state.status != "done":
        world.until(lambda: world.state.status == "running", steps=300)
        world.until(lambda: sum(map(len, world.running().values())) == 8, steps=300)
        world.finish_all()
        world.until(lambda: world.state.status == "done", steps=300)
        assert world.state.exit_code == 0
