"""A site's book and its policies: G15, G16, acceptance 7 and 8, and the order of refusals."""

from __future__ import annotations

import random
from math import inf

import pytest
from gur_sites import random_queue, site

from headway.resources.profile import Profile
from headway_plugins.coscheduling.calls import Call, Carried, Denied, Failed, Found, Granted
from headway_plugins.coscheduling.queue_plan import Busy, Queued, in_order, place, plan
from headway_plugins.coscheduling.site_book import SiteBook
from headway_plugins.coscheduling.site_policy import SitePolicy, node_seconds

#: A day in which 100 nodes have 864,000 node-seconds for users' reservations.
POLICY = SitePolicy(
    max_per_account=5, max_nodes=25, max_duration=43200, window=86400, budget=864_000, horizon=86400
)


def wish(nodes, duration, earliest=0, latest=10**6, *, name="r", exact=True, account="a"):
    return Call(
        "set", name=name, nodes=nodes, duration=duration, earliest=earliest, latest=latest, exact=exact,
        account=account,
    )  # fmt: skip


# ---------------------------------------------------------------------- policies


def test_g15_the_budget_counts_what_lies_in_the_window():
    spans = [(0, 3600, 10), (7200, 10800, 5), (3600, 7200, 8)]
    assert node_seconds(spans, 0, 86400) == 82_800
    assert node_seconds(spans, 0, 5400) == 50_400
    assert node_seconds([(0, 3600, 10)], 1800, 86400) == 18_000


@pytest.mark.parametrize(("call", "rule"), [
    (wish(25, 43200 // 2), None),
    (wish(26, 600), "size"),
    (wish(1, 43201), "duration"),
    (wish(25, 43200), "budget"),
    # Beside five reservations of a node and a minute, so much is exactly the budget.
    (wish(20, 43185), None),
    (wish(20, 43186), "budget"),
    (wish(1, 600, earliest=86000), "horizon"),
    (wish(1, 600, earliest=0, latest=599), "place"),
    (wish(1, 600, account="full"), "count"),
    (wish(0, 600), "request"),
    (wish(1, 0), "request"),
    # The first rule counts.
    (wish(0, 99_999), "request"),
    (wish(26, 99_999, account="full"), "size"),
    (wish(25, 99_999, account="full"), "duration"),
    (wish(25, 43200, latest=1, account="full"), "count"),
    (wish(25, 43200, latest=1), "place"),
    (wish(25, 43200, earliest=80_000), "horizon"),
])  # fmt: skip
def test_each_rule_refuses_by_its_name(call, rule):
    book = site(100, policy=POLICY)
    for number in range(5):
        assert isinstance(book.set(wish(1, 60, name=f"f{number}", account="full"), 0), Granted)
    answer = book.set(call, 0)
    assert answer == (Denied(rule) if rule else Granted(0, call.nodes))


def test_the_sixth_reservation_of_an_account_is_too_many_until_one_is_over():
    book = site(100, policy=POLICY)
    for number in range(5):
        book.set(wish(1, 600 + number, name=f"r{number}"), 0)
    assert book.set(wish(1, 600), 0) == Denied("count")
    assert book.set(wish(1, 600, account="b", name="other"), 0) == Granted(0, 1)
    assert book.set(wish(1, 600), 600) == Granted(600, 1)


def test_without_exact_a_wish_is_cut_and_filled_with_what_is_free_throughout():
    book = site(100, (0, 50, 80), (60, 90, 95), policy=POLICY)
    assert book.set(wish(60, 50, exact=False), 0) == Granted(0, 20)
    assert book.set(wish(60, 50, 60, exact=False, name="s"), 0) == Granted(60, 5)
    assert book.set(wish(60, 50, 500, exact=False, name="t"), 0) == Granted(500, 25)
    full = site(4, (0, 100, 4))
    assert full.set(wish(9, 50, exact=False), 0) == Granted(100, 4)


def test_the_usual_policy():
    usual = SitePolicy.usual(100)
    assert (usual.max_per_account, usual.max_nodes, usual.max_duration) == (5, 25, 43200)
    assert (usual.budget, usual.seconds_ahead, usual.last_end) == (6_048_000, 604_800, 604_800)
    assert (SitePolicy().last_end, SitePolicy(window=60).last_end) == (inf, 60)


# ---------------------------------------------------------------------- the interface


def test_a_name_that_is_there_is_the_same_reservation():
    book = site(4)
    assert book.set(wish(4, 10), 0) == book.set(wish(4, 10), 0) == Granted(0, 4)
    assert book.show(0) == [Found("r", 4, 0, 10, "HELD", "a")]
    book.cancel("r")
    book.cancel("r")
    assert book.show(0) == []


def test_a_site_that_refuses_answers_no_set_more_not_even_a_repeated_set():
    book = SiteBook(4, refuse_after=2)
    assert book.set(wish(4, 10), 0) == book.set(wish(4, 10), 0) == Granted(0, 4)
    assert book.set(wish(4, 10), 0) == Denied("refused")


def test_bind_admits_one_job_and_may_be_repeated():
    book = site(8)
    book.set(wish(4, 10, 5), 0)
    assert book.bind("x", "j", 0) == Failed("there is no reservation 'x'")
    assert book.bind("r", "j", 0) == book.bind("r", "j", 0) == Carried()
    assert book.bind("r", "k", 0) == Failed("reservation 'r' is bound to job 'j'")
    states = [[one.state for one in book.show(now)] for now in (0, 5, 6, 15)]
    assert states == [["BOUND"], ["BOUND"], ["ACTIVE"], []]


def test_lost_nodes_degrade():
    book = site(8)
    book.set(wish(4, 10), 0)
    book.lose("r", 3)
    assert [(one.state, one.nodes) for one in book.show(0)] == [("DEGRADED", 3)]


def test_fixed_starts():
    book = site(4, (100, 200, 4), fixed=True)
    assert book.set(wish(4, 50, 80), 0) == Denied("place")
    assert book.set(wish(4, 50, 200), 0) == Granted(200, 4)


# ---------------------------------------------------------------------- grains


def clock(hours, minutes):
    return 3600 * hours + 60 * minutes


def test_g16_reservations_take_whole_grains():
    book = SiteBook(4, [Busy(clock(1, 20), clock(4, 30), 4)], grain=600, min_duration=600)
    assert book.set(wish(1, 9 * 60), 0) == Denied("request")
    assert book.set(wish(1, 600, clock(4, 25), name="s"), 0) == Granted(clock(4, 30), 1)
    # From 1:10 to 1:20 there is a grain, from 1:11 on there is none before 4:30.
    assert book.set(wish(1, 600, clock(1, 10), name="t"), 0) == Granted(clock(1, 10), 1)
    assert book.set(wish(1, 600, clock(1, 11), name="u"), 0) == Granted(clock(4, 30), 1)


def test_the_rest_of_a_grain_is_taken_but_the_end_is_the_true_one():
    book = SiteBook(4, grain=600)
    assert book.set(wish(4, 700, latest=700), 0) == Granted(0, 4)
    assert book.set(wish(1, 60, name="s"), 0) == Granted(1200, 1)
    assert [one.end for one in book.show(0)] == [700, 1260]


@pytest.mark.parametrize("seed", range(100))
def test_a_place_is_the_first_that_brute_force_finds(seed):
    rng = random.Random(seed)
    profile = Profile(0, 6)
    for _ in range(6):
        start = rng.randint(0, 50)
        profile.reserve(start, start + rng.randint(1, 20), rng.randint(1, 4))
    grain, nodes, duration = rng.choice([0, 1, 5]), rng.randint(1, 6), rng.randint(1, 15)
    earliest, latest = rng.randint(0, 20), rng.randint(20, 90)
    step = grain or 1
    good = (
        start
        for start in range(earliest, latest - duration + 1)
        if start % step == 0 and profile.minimum(start, -(-(start + duration) // step) * step) >= nodes
    )
    assert place(profile, nodes, duration, earliest, latest, grain) == next(good, None)


# ---------------------------------------------------------------------- queue first


def plain_plan(book, now, queue):
    """The same plan in the obvious way: each job at the first second that has room."""
    taken = [(one.start, one.end, one.nodes) for one in book.busy]
    starts = {}
    for job in queue:
        moments = sorted({now, *(end for _, end, _ in taken if end > now)})
        for start in moments:
            inside = {start, *(s for s, _, _ in taken if start <= s < start + job.limit)}
            if all(sum(n for s, e, n in taken if s <= t < e) + job.nodes <= book.nodes for t in inside):
                taken.append((start, start + job.limit, job.nodes))
                starts[job.id] = start
                break
    return starts


@pytest.mark.parametrize(("weight", "order"), [
    (0, "p b a d c"), (1, "c b p a d"), (0.1, "p c b a d"),
])  # fmt: skip
def test_the_order_of_the_queue(weight, order):
    """By priority and expansion factor, then by submission, then by id. The factors of a, b, c, d, p are
    2, 4, 6, 2 and 1 at 100 s."""
    queue = [
        Queued("a", 1, 100, 0), Queued("d", 1, 100, 0), Queued("c", 1, 10, 50), Queued("b", 1, 60, -80),
        Queued("p", 1, 10, 100, 3),
    ]  # fmt: skip
    assert " ".join(job.id for job in in_order(queue, 100, weight)) == order


@pytest.mark.parametrize("seed", range(150))
def test_the_plan_is_that_of_the_obvious_way(seed):
    rng = random.Random(seed)
    book = random_queue(rng)
    queue = in_order(book.queue, 0, rng.choice([0, 1]))
    expected = plain_plan(book, 0, queue)
    profile, starts = plan(book.nodes, 0, book.busy, queue)
    assert starts == expected
    assert min(profile.free) >= 0


@pytest.mark.parametrize("count", [150, pytest.param(500, marks=pytest.mark.slow)])
def test_a_reservation_delays_no_job_that_was_queued_before_it(count):
    """E3, with a fixed order; also with jobs that arrive later and go behind."""
    accepted = 0
    for seed in range(count):
        rng = random.Random(seed)
        book = random_queue(rng)
        before = book.starts(0)
        call = wish(rng.randint(1, book.nodes), rng.randint(1, 40), rng.randint(0, 60), 400)
        if not isinstance(book.set(call, 0), Granted):
            continue
        accepted += 1
        # Planned anew, and not from what was left.
        again = SiteBook(book.nodes, [*book.busy, _as_busy(book)], book.queue)
        assert again.starts(0) == before, seed
        last = Queued("last", rng.randint(1, book.nodes), rng.randint(1, 60), 1, -9)
        again.enqueue(last)
        assert {job: start for job, start in again.starts(0).items() if job != "last"} == before, seed
    assert accepted > count / 2


def _as_busy(book):
    (one,) = book.show(0)
    return Busy(one.start, one.end, one.nodes)


def test_with_a_weight_of_the_expansion_factor_a_reservation_can_delay_a_job():
    """The smallest example: in time the order changes."""
    queue = [Queued("0", 6, 34, -3), Queued("1", 4, 50, -31), Queued("2", 6, 4, -20)]
    book = SiteBook(6, [Busy(0, 54, 6)], queue, policy=SitePolicy(xf_weight=1))
    assert book.starts(0) == {"2": 54, "1": 58, "0": 108}
    assert book.set(wish(1, 24, 58, 82), 0) == Granted(58, 1)


@pytest.mark.parametrize("seed", range(60))
def test_a_book_that_plans_step_by_step_answers_as_a_new_book(seed):
    """Sets, cancels and arrivals in any order, and time that passes."""
    rng = random.Random(seed)
    book, now, names = random_queue(rng), 0, []
    for number in range(25):
        what = rng.random()
        fresh = SiteBook(
            book.nodes,
            [*book.busy, *(Busy(one.start, one.end, one.nodes) for one in book.show(now))],
            book.queue,
        )
        if what < 0.5:
            call = wish(rng.randint(1, 6), rng.randint(1, 30), now + rng.randint(0, 40), now + 200)
            call = type(call)(
                **{f: getattr(call, f) for f in call.__struct_fields__} | {"name": f"r{number}"}
            )
            assert book.set(call, now) == fresh.set(call, now)
            names.append(call.name)
        elif what < 0.8 and names:
            book.cancel(names.pop(rng.randrange(len(names))))
        elif what < 0.9:
            job = Queued(f"j{number}", rng.randint(1, book.nodes), rng.randint(1, 40), now)
            fresh.queue = list(book.queue)
            book.enqueue(job)
            fresh.enqueue(job)
            assert book.starts(now) == fresh.starts(now)
        else:
            now += rng.randint(1, 20)
