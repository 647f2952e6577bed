"""Jobs that limits keep out are asked about only where room came: the same as asking everybody each time."""

from __future__ import annotations

from building import described, plugged
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Start
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway.state import State
from headway.state.records import ON_NODES, Job, Status
from headway_plugins.limits.plugin import Limits, LimitsOptions
from headway_plugins.policies.easy import Easy

TOTAL = 12
USERS, GROUPS = "uv", "gh"
JOBS, PROCESSORS, NODES = {"u": 2, "v": 3}, {"g": 6, "h": 4}, 5
OF = {
    "user": {user: {"jobs": most} for user, most in JOBS.items()},
    "group": {group: {"processors": most} for group, most in PROCESSORS.items()},
    "all": {"*": {"nodes": NODES}},
}
SIZES = st.integers(1, 7)
#: What happens next: somebody arrives, or something becomes of one of those who are there.
HISTORIES = st.lists(
    st.tuples(st.just("submit"), st.sampled_from(USERS), st.sampled_from(GROUPS), SIZES)
    | st.tuples(
        st.sampled_from(["end", "requeue", "hold", "release", "change", "taken"]), st.integers(0, 30),
        st.sampled_from(GROUPS), SIZES,
    ),
    min_size=5, max_size=40,
)  # fmt: skip


def over(job: Job, state: State) -> bool:
    """Whether a limit keeps the job out, counted anew."""
    running = [other for other in state.jobs.values() if other.status in ON_NODES]
    user = sum(other.user == job.user for other in running)
    group = sum(o.processors for o in running if o.description.group == job.description.group)
    nodes = sum(max(other.request.nodes, 1) for other in running)
    most = PROCESSORS[job.description.group]
    return user + 1 > JOBS[job.user] or group + job.processors > most or nodes + 1 > NODES


def event_of(now: float, number: int, step: tuple, state: State) -> ev.Event | None:
    """What happens, if it can."""
    what, which, group, size = step
    if what == "submit":
        return ev.JobSubmitted(now, described(str(number), size, 50, now, user=which, group=group))
    jobs = sorted(state.jobs.values(), key=lambda job: job.seq)
    if not jobs:
        return None
    job = jobs[which % len(jobs)]
    runs = job.status in ON_NODES
    if what == "end":
        return ev.JobEnded(now, job.id)
    if what == "requeue" and runs:
        return ev.JobRequeued(now, job.id)
    if what == "change" and not runs:
        return ev.JobChanged(now, described(job.id, size, 50, job.submit_time, user=job.user, group=group))
    if what == "hold" and not runs:
        return ev.JobHeld(now, job.id)
    if what == "release":
        return ev.JobReleased(now, job.id)
    if what == "taken" and not runs and job.processors <= state.domains["pool"].free:
        # Somebody else started it, whatever the limits say.
        return ev.JobStarted(now, job.id)
    return None


@settings(max_examples=150, deadline=None)
@given(HISTORIES)
def test_who_waits_for_a_limit_is_who_would_break_one(history: list[tuple]) -> None:
    scheduler = Scheduler(ClusterDescription.flat(TOTAL), plugged(Limits(LimitsOptions(of=OF)), Easy()))
    state = scheduler.state
    for number, step in enumerate(history):
        event = event_of(float(number), number, step, state)
        made = scheduler.step(float(number), [event] if event is not None else [])
        scheduler.step(
            float(number), [ev.JobStarted(float(number), d.job_id) for d in made if isinstance(d, Start)]
        )
        assert scheduler.problems == []
        waiting = [job for job in state.jobs.values() if job.status in (Status.PENDING, Status.WAITING)]
        for job in waiting:
            if not job.held:
                assert (job.barrier is not None) == over(job, state), job


class OneByOne(Limits):
    """Limits that are asked about each job by itself."""

    bar_jobs = None  # type: ignore[assignment]


def waits(state: State) -> list[tuple]:
    """Everything that is known of who waits where."""
    pool = state.domains["pool"]
    jobs = [(job.id, job.status, job.barrier and job.barrier.key) for job in state.jobs.values()]
    return [[job.id for job in pool.queue], pool.free, pool.news.fresh, pool.least, jobs]


@settings(max_examples=150, deadline=None)
@given(HISTORIES)
def test_jobs_that_are_asked_about_together_wait_where_each_by_itself_does(history: list[tuple]) -> None:
    options = LimitsOptions(of={**OF, "user": {"*": {"jobs": 2, "processors": 7}}, "all": {}})
    one, many = (
        Scheduler(ClusterDescription.flat(TOTAL), plugged(kind(options), Easy()))
        for kind in (OneByOne, Limits)
    )
    for number, step in enumerate(history):
        now = float(number)
        event = event_of(now, number, step, many.state)
        events = [event] if event is not None else []
        made = many.step(now, events)
        assert one.step(now, events) == made
        assert waits(one.state) == waits(many.state)
        begun = [ev.JobStarted(now, d.job_id) for d in made if isinstance(d, Start)]
        assert one.step(now, begun) == many.step(now, begun)
        assert waits(one.state) == waits(many.state)
        assert one.problems == many.problems == []
