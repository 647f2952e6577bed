"""Jobs that enter their queue together leave it, and what is known of it, as one by one."""

from __future__ import annotations

from building import described
from hypothesis import given
from hypothesis import strategies as st

from headway.model import ClusterDescription
from headway.state import Job, State, Status
from headway.state.barred import Barred
from headway.state.by_size import JobsBySize
from headway.state.news import News
from headway.state.queues import TOGETHER, enqueue, enqueue_together, give_order

PLACES = st.lists(st.integers(0, 5), max_size=8)
SIZES = st.lists(st.integers(1, 4), min_size=16, max_size=16)


def after(
    there: list[int],
    come: list[int],
    sizes: list[int],
    *,
    fresh: bool,
    indexed: bool,
    keyed: bool,
    together: bool,
) -> list:
    """A pool's queue and what is known of it, once jobs with these places have come to those there.

    ``keyed``: their keys became others while they were in no queue."""
    state = State(ClusterDescription.flat(3))
    pool = state.domains["pool"]
    jobs = [
        Job.arrived(described(str(at), size, submit=float(place)), pool.pools[0], at)
        for at, (place, size) in enumerate(zip((*there, *come), sizes, strict=False))
    ]
    for job in jobs[: len(there)]:
        enqueue(state, job)
    pool.news = News(fresh=0, arrivals=[]) if fresh else News()
    pool.by_size, pool.least = JobsBySize(pool.queue) if indexed else None, 5
    new = jobs[len(there) :]
    if keyed:
        state.queue_key = lambda job: (-job.submit_time,)
        for job in jobs:
            rank, *rest = job.order
            job.order = (rank, (job.submit_time,), *rest)
        state.outdate_keys()
    if together and new:
        enqueue_together(state, new)
    else:
        if keyed:
            for job in new:
                give_order(state, job)
        # Several that come together come in the order of their places.
        for job in sorted(new, key=lambda job: job.order) if len(new) >= TOGETHER else new:
            enqueue(state, job)
    assert all(job.status is Status.PENDING for job in jobs)
    index = None if pool.by_size is None else [job.id for job in pool.by_size.soonest(lambda: 4)]
    news = pool.news
    arrivals = news.arrivals and [job.id for job in news.arrivals]
    return [[job.id for job in pool.queue], news.fresh, news.due, arrivals, pool.least, index]


@given(there=PLACES, come=PLACES, sizes=SIZES, known=st.tuples(*[st.booleans()] * 3))
def test_jobs_that_come_together_take_their_places_as_one_by_one(
    there: list[int], come: list[int], sizes: list[int], known: tuple[bool, bool, bool]
) -> None:
    fresh, indexed, keyed = known
    one, many = (
        after(there, come, sizes, fresh=fresh, indexed=indexed, keyed=keyed, together=together)
        for together in (False, True)
    )
    assert one == many


def test_a_barred_job_whose_size_has_changed_is_found() -> None:
    pool = State(ClusterDescription.flat(3)).pools["pool"]
    barred, job = Barred(), Job.arrived(described("a", 3), pool, 1)
    barred.put(job)
    job.processors = 1
    assert barred.take(1) == []
    assert barred.drop(job)
    assert not barred
    assert not barred.drop(job)
