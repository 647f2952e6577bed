"""Events of one step: by time; at one time completions, changes, arrivals; causes before effects."""

from __future__ import annotations

from building import described
from hypothesis import given
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Start
from headway.model import NodeDescription, PoolDescription, Reservation

END = ev.JobEnded(10, "a")
HELD = ev.JobHeld(10, "b")
BORN = ev.JobSubmitted(10, described("c", submit=10))


def test_at_one_time_completions_come_before_changes_before_arrivals():
    assert list(ev.in_order([BORN, HELD, END])) == [END, HELD, BORN]


def test_earlier_events_come_first_whatever_they_are():
    early = ev.JobSubmitted(9, described("z", submit=9))
    assert list(ev.in_order([END, early])) == [early, END]


def test_arrivals_at_one_time_keep_their_order():
    first, second = (ev.JobSubmitted(10, described(name)) for name in ("x", "y"))
    assert list(ev.in_order([first, second, END])) == [END, first, second]


def test_pools_come_before_what_is_told_of_their_jobs_even_of_an_earlier_time():
    pool = ev.PoolChanged(10, PoolDescription("late"))
    early = ev.JobSubmitted(4, described("z", submit=4, pool="late"))
    assert list(ev.in_order([early, END, pool])) == [pool, early, END]


def test_what_is_in_order_is_handed_back_as_it_is():
    events = [ev.JobEnded(1, "a"), ev.JobHeld(2, "b"), BORN]
    assert ev.in_order(events) is events


def test_what_happened_at_the_second_of_submission_comes_after_the_submission():
    started, ended = ev.JobStarted(10, "c"), ev.JobEnded(10, "c")
    assert list(ev.in_order([BORN, started, ended])) == [BORN, started, ended]
    assert list(ev.in_order([started, ended, BORN])) == [BORN, started, ended]


def test_a_change_at_the_second_of_submission_comes_after_the_submission():
    changed = ev.JobChanged(10, described("c", 7))
    assert list(ev.in_order([BORN, changed])) == [BORN, changed]
    assert list(ev.in_order([changed, BORN])) == [BORN, changed]


def test_a_clock_that_is_behind_does_not_start_a_job_before_its_submission():
    started = ev.JobStarted(9, "c")
    assert list(ev.in_order([BORN, started])) == [BORN, started]


def test_every_event_says_when_it_comes_at_its_time():
    completions = {
        ev.JobStarted, ev.JobEnded, ev.JobRequeued, ev.JobReleasing, ev.ReservationEnded, ev.DecisionFailed,
        ev.DatasetCopied, ev.DatasetLost, ev.CopyFailed,
    }  # fmt: skip
    kinds = set(ev.AnyEvent.__args__)
    assert {kind for kind in kinds if kind.phase == 0} == completions
    assert {kind for kind in kinds if kind.phase == 2} == {ev.JobSubmitted}


some_events = st.lists(
    st.builds(
        lambda time, kind, name: {
            0: ev.JobEnded(time, name),
            1: ev.JobHeld(time, name),
            2: ev.JobSubmitted(time, described("new" + name, submit=time)),
            3: ev.NodeUp(time, NodeDescription(name, 1)),
            4: ev.ReservationMade(time, Reservation(name, 0, 1)),
            5: ev.DecisionFailed(time, Start(name), "no"),
        }[kind],
        st.integers(0, 3),
        st.integers(0, 5),
        st.sampled_from("abc"),
    ),
    max_size=8,
)


@given(some_events)
def test_the_order_is_a_stable_sort_by_time_and_phase(events):
    assert list(ev.in_order(events)) == sorted(events, key=lambda e: (e.time, e.phase))
