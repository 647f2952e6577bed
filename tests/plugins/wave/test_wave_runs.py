"""Scripted runs: what a job does under each policy, hour by hour (all of them by hand)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from headway.errors import UserError
from headway_plugins.wave.draws import Draws
from headway_plugins.wave.hosts import Hosts
from headway_plugins.wave.jobs import Job, Outcome
from headway_plugins.wave.metrics import measured
from headway_plugins.wave.network import Network
from headway_plugins.wave.options import Clock, LingerCheck, Options, Order, Retry, Search, Start
from headway_plugins.wave.overlay import Overlay
from headway_plugins.wave.policies import POLICIES, policy

ZONES = [0, 5, 8, 13, 17, 20]
NIGHTS = [True] * 6 + [False] * 18
LATE = [hour < 8 for hour in range(24)]
EVENING = [hour < 6 or hour == 18 for hour in range(24)]


def run(name, *, zones=ZONES, calendars=None, claimed=(), jobs=((1.5, 12),), numbers=(), overlay=None,
        **options):  # fmt: skip
    """An exact run in which the lowest host that satisfies wins, and a wait takes two hours."""
    settings = {"discovery": Search.LOWEST, "linger": 2, "order": Order.NUMBER, **options}
    hosts = Hosts(zones, calendars or [NIGHTS] * len(zones), claimed=claimed)
    draws = Draws(numbers, exact=True)
    network = Network(hosts, overlay, POLICIES[name], Options(**settings), draws, traced=True)
    return network.run(
        [Job(Fraction(submit), Fraction(runtime), *client) for submit, runtime, *client in jobs]
    )


def story(found, job=0):
    """``a@H`` for each time at which the job goes on to run, then its end."""
    course = found.courses[job]
    steps = [f"{float(time):g}@{host}" for time, host in course.placements]
    end = f"{'ends' if course.outcome is Outcome.DONE else course.outcome} {float(course.end or 0):g}"
    return " ".join([*steps, end])


NONE = "1.5@0 24@0 48@0 ends 49.5"
ALL_FREE = "1.5@0 6@1 11@2 ends 13.5"
CASES = {
    "all free": ({}, {
        "no-migration": (NONE, 4.0, 0), "migration-immediate": (ALL_FREE, 1.0, 2),
        "migration-linger": ("1.5@0 8@1 13@2 16@3 21@4 ends 21.5", 5 / 3, 4),
        "migration-adaptive": (ALL_FREE, 1.0, 2), "wave-immediate": (ALL_FREE, 1.0, 2),
        "wave-linger": ("1.5@0 8@2 failed 16", None, 1), "wave-adaptive": (ALL_FREE, 1.0, 2),
    }),
    "H2 is claimed": ({"claimed": [2]}, {
        "no-migration": (NONE, 4.0, 0), "migration-immediate": ("1.5@0 6@1 failed 11", None, 1),
        "migration-linger": ("1.5@0 8@1 13@3 ends 17.5", 4 / 3, 2),
        "migration-adaptive": ("1.5@0 6@1 13@3 ends 15.5", 7 / 6, 2),
        "wave-immediate": ("1.5@0 6@1 failed 11", None, 1), "wave-linger": ("1.5@0 failed 8", None, 0),
        "wave-adaptive": ("1.5@0 6@1 13@3 ends 15.5", 7 / 6, 2),
    }),
    "H1, H2 and H3 are claimed": ({"claimed": [1, 2, 3]}, {
        "no-migration": (NONE, 4.0, 0), "migration-immediate": ("1.5@0 failed 6", None, 0),
        "migration-linger": ("1.5@0 failed 8", None, 0),
        "migration-adaptive": ("1.5@0 18@4 23@5 ends 25.5", 2.0, 2),
        "wave-immediate": ("1.5@0 failed 6", None, 0), "wave-linger": ("1.5@0 failed 8", None, 0),
        "wave-adaptive": ("1.5@0 18@4 23@5 ends 25.5", 2.0, 2),
    }),
    "H1 is idle until 8, H3 in the evening": (
        {"calendars": [NIGHTS, LATE, NIGHTS, EVENING, NIGHTS, NIGHTS]}, {
        "no-migration": (NONE, 4.0, 0), "migration-immediate": ("1.5@0 6@1 13@2 ends 13.5", 1.0, 2),
        "migration-linger": ("1.5@0 8@1 15@3 ends 17.5", 4 / 3, 2),
        "migration-adaptive": ("1.5@0 6@1 13@2 ends 13.5", 1.0, 2),
        "wave-immediate": ("1.5@0 6@1 13@3 ends 13.5", 1.0, 2),
        "wave-linger": ("1.5@0 8@2 failed 16", None, 1),
        "wave-adaptive": ("1.5@0 6@1 13@3 ends 13.5", 1.0, 2),
    }),
    "two hosts, submitted by day": ({"zones": [0, 17], "jobs": [(7.25, 12)]}, {
        "no-migration": ("24@0 48@0 ends 54", 2.5, 0),
        **{f"{where}-{when}": ("failed-placement 7.25", None, 0)
           for where in ("migration", "wave") for when in ("immediate", "linger")},
        **{f"{where}-adaptive": ("17.25@1 25@0 42@1 ends 43.25", 13 / 6, 3)
           for where in ("migration", "wave")},
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("case", CASES)
def test_scripted_runs(case, name):
    settings, expected = CASES[case]
    steps, slowdown, migrations = expected[name]
    found = run(name, **settings)
    assert story(found) == steps
    assert measured(found).slowdown == (None if slowdown is None else pytest.approx(slowdown))
    assert found.courses[0].migrations == migrations


def test_a_job_that_ends_exactly_at_the_loss_is_done():
    assert story(run("migration-immediate", jobs=[("1.5", "4.5")])) == "1.5@0 ends 6"


def test_work_that_is_lost_with_a_job():
    found = measured(run("migration-immediate", claimed=[2]))
    assert (found.failure, found.placement, found.lost_work) == (1.0, 0.0, 9.5)
    assert found.slowdown is None and found.migrations is None and not found.telling


def test_a_host_that_is_never_idle_leaves_the_job_unfinished():
    found = run("no-migration", zones=[0], calendars=[[False] * 24])
    assert found.courses[0].outcome is Outcome.UNFINISHED and found.courses[0].end is None
    assert measured(found).unfinished == 1 and measured(found).failure == 0


def test_the_end_of_the_run_counts_work_that_is_under_way():
    found = run("no-migration", until=Fraction(25))
    assert found.courses[0].outcome is Outcome.UNFINISHED
    assert found.courses[0].done == Fraction("5.5")


# ---------------------------------------------------------------------- one instant

TWO_LOSE = {"zones": [0, 0, 6], "jobs": [(1, 12), (2, 12)]}


def test_jobs_that_lose_their_hosts_together_search_in_the_order_of_their_numbers_or_a_random_one():
    assert story(run("migration-immediate", **TWO_LOSE), 1) == "2@1 failed 6"
    shuffled = run("migration-immediate", order=Order.SHUFFLED, numbers=[0.0], **TWO_LOSE)
    assert story(shuffled, 0) == "1@0 failed 6" and story(shuffled, 1) == "2@1 6@2 failed 12"


def test_what_ends_frees_its_host_before_others_search_and_submissions_come_last():
    """At 7 job 0 is done on H1, job 1 loses H0 (idle until 7) and takes H1; the job submitted at 7 fails."""
    calendars = [[hour < 7 for hour in range(24)], [hour < 9 for hour in range(24)]]
    found = run("migration-immediate", zones=[0, 0], calendars=calendars, claimed=[],
                jobs=[(2, 5), (1, 8), (7, 1)])  # fmt: skip
    assert story(found, 1) == "1@0 7@1 ends 9"
    assert story(found, 0) == "2@1 ends 7"
    assert story(found, 2) == "failed-placement 7"


def test_a_resumption_at_the_end_of_a_wait_comes_first():
    calendars = [[hour not in (6, 7) for hour in range(24)], NIGHTS]
    found = run("migration-linger", zones=[0, 8], calendars=calendars)
    assert story(found) == "1.5@0 8@0 ends 15.5"


def test_a_resumption_takes_no_part_in_the_random_order_of_losses():
    """At 8 job 0 goes on, as its wait ends, and job 1 loses its host: a single loss needs no draw."""
    calendars = [[hour not in (6, 7) for hour in range(24)], [hour < 8 for hour in range(24)]]
    found = run("migration-linger", zones=[0, 0], calendars=calendars, order=Order.SHUFFLED,
                jobs=[("1.5", 12), (2, 7)])  # fmt: skip
    assert story(found, 0) == "1.5@0 8@0 ends 15.5"
    assert found.courses[1].placements == [(2, 1)]


# ---------------------------------------------------------------------- options


def test_a_host_of_the_wavezone_in_the_day_is_good_enough_unless_strict():
    """At 1.5 the target is wavezone 0; H0, zone 2, has no night before 2 but is idle at local 23."""
    calendars = [[hour < 6 or hour == 23 for hour in range(24)]]
    strict = {"zones": [2], "calendars": calendars, "jobs": [("1.5", 3)]}
    assert story(run("wave-immediate", **strict)) == "failed-placement 1.5"
    assert story(run("wave-immediate", strict=False, **strict)) == "1.5@0 ends 4.5"


def test_lingering_jobs_that_look_at_the_end_alone_waste_idle_time():
    calendars = [[hour not in (6,) for hour in range(24)], NIGHTS]
    settings = {"zones": [0, 8], "calendars": calendars}
    assert story(run("migration-linger", **settings)) == "1.5@0 7@0 ends 14.5"
    assert story(run("migration-linger", linger_check=LingerCheck.END, **settings)) == "1.5@0 8@0 ends 15.5"


def test_a_search_ahead_of_the_loss_moves_early_or_waits_for_the_loss():
    ahead = run("migration-immediate", lead=Fraction("0.5"))
    assert story(ahead) == "1.5@0 5.5@1 10.5@2 ends 13.5"
    # At 5.5 no host is there, at the loss there is none either.
    assert story(run("migration-immediate", lead=Fraction("0.5"), claimed=[1, 2])) == "1.5@0 failed 6"
    # At 5.5 H1 is not idle yet, at the loss it is.
    late = {"zones": [0, 6]}
    assert story(run("migration-adaptive", lead=Fraction("0.5"), **late)).startswith("1.5@0 6@1")


def test_a_lead_longer_than_the_rest_of_the_idle_time_waits_for_the_loss():
    assert story(run("migration-immediate", lead=Fraction(5))) == "1.5@0 6@1 11@2 ends 13.5"


@pytest.mark.parametrize(
    ("retry", "steps", "lost"),
    [
        (Retry.SCRATCH, "1.5@0 6@1 13@3 19@4 23@5 ends 25", 9.5),
        (Retry.CHECKPOINT, "1.5@0 6@1 13@3 ends 15.5", 0),
    ],
)
def test_a_failed_job_is_submitted_again(retry, steps, lost):
    """It fails at 11 and comes again two hours later, with all of its work or with what is left."""
    found = run("migration-immediate", claimed=[2], retry=retry, numbers=[0.5] * 9)
    assert story(found) == steps
    assert (found.courses[0].retries, found.courses[0].lost) == (1, lost)
    assert measured(found).failure == 0 and measured(found).retries == 1


def test_with_all_calendars_known_the_job_goes_where_it_can_stay_longest():
    found = run("migration-immediate", discovery=Search.GLOBAL)
    # At 6 H1 (5 h left) and H2 is not idle yet; at 1.5 H5 had 1 h left, H0 5 h.
    assert story(found) == "1.5@0 6@1 11@2 ends 13.5"
    found = run("migration-immediate", discovery=Search.GLOBAL, zones=[0, 2, 5, 6])
    assert story(found) == "1.5@0 6@3 failed 12"


def test_a_ring_may_begin_at_the_clients_own_place():
    overlay = Overlay.of([(0.1, 1), (0.6, 1), (0.1, 13), (0.6, 13)])
    settings = {"zones": [0] * 4, "overlay": overlay, "discovery": Search.RING, "hops": 0}
    found = run("no-migration", jobs=[(1, 2, 3)], start=Start.OWN, **settings)
    assert story(found) == "1@3 ends 3"
    drawn = run("no-migration", jobs=[(1, 2, 3)], numbers=[0.1, 0.1], **settings)
    assert story(drawn) == f"1@{overlay.owner(0.1, 2.4)} ends 3"
    # A job whose client is not known begins at a random point.
    unknown = run("no-migration", jobs=[(1, 2)], start=Start.OWN, numbers=[0.1, 0.1], **settings)
    assert story(unknown) == story(drawn)


def test_random_points_count_a_host_as_often_as_it_is_asked():
    overlay = Overlay.of([(0.1, 1), (0.6, 1)])
    found = run("no-migration", zones=[0, 0], overlay=overlay, discovery=Search.RANDOM, claimed=[0],
                numbers=[0.1, 0.5, 0.2, 0.5, 0.7, 0.5])  # fmt: skip
    assert (found.searches, found.asked) == (1, 3)
    assert found.courses[0].placements[0] == (Fraction("1.5"), 1)
    failed = run("no-migration", zones=[0, 0], overlay=overlay, discovery=Search.RANDOM, claimed=[0], tries=2,
                 numbers=[0.1, 0.5, 0.2, 0.5])  # fmt: skip
    assert story(failed) == "failed-placement 1.5"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: run("wave-linger", clock=Clock.SHARED), "expected clock zones, found clock shared"),
        (lambda: run("no-migration", discovery=Search.RING), "discovery ring: expected an overlay"),
        (lambda: Options(tries=0), "tries: expected at least 1, found 0"),
        (lambda: Options(hops=-1), "hops: expected at least 0, found -1"),
        (lambda: Options(lead=-1), "lead: expected at least 0, found -1"),
        (lambda: Options(linger=0), "linger: expected more than 0 hours, found 0"),
        (lambda: Options(wavezones=5), "expected a divisor of 24, found 5"),
        (lambda: policy("wave-imediate"), "policy 'wave-imediate' does not exist"),
    ],
)
def test_what_cannot_be_says_why(make, message):
    with pytest.raises(UserError, match=message):
        make()
