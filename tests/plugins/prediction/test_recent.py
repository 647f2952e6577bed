"""Predictions from the user's last jobs: the specification's vector, then what they do to backfilling."""

from __future__ import annotations

import pytest
from building import described, emulate, plugged, traced

from headway import events as ev
from headway.emulation import emulate as emulated
from headway.hookspecs import hookimpl
from headway.metrics import summarise
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.scheduler import Scheduler
from headway_plugins.policies.easy import Easy, EasyOptions
from headway_plugins.prediction.recent import Recent, RecentOptions


def scheduler(recent=None, processors=8):
    return Scheduler(ClusterDescription.flat(processors), plugged(Easy(), recent or Recent(RecentOptions())))


def ran(one, job_id, start, runtime, **more):
    """A job of user "u" that starts at once and runs so long."""
    one.step(start, [ev.JobSubmitted(start, described(job_id, 1, 7200, start, user="u", **more))])
    one.step(start, [ev.JobStarted(start, job_id, ())])
    one.step(start + runtime, [ev.JobEnded(start + runtime, job_id, "completed", "")])


def expected(one, job_id):
    return one.state.jobs[job_id].expected_runtime


def wait(one, time):
    """Jobs of user "w" come: one that needs everything, and one that is small but would delay it."""
    for job_id, processors, walltime in (("wide", 8, 50), ("narrow", 1, 9_000)):
        one.step(time, [ev.JobSubmitted(time, described(job_id, processors, walltime, time, user="w"))])


def test_the_vector_the_mean_of_the_last_two_and_the_ladder():
    one = scheduler()
    ran(one, "old", 0, 5_000)
    ran(one, "first", 5_000, 100)
    ran(one, "second", 6_000, 300)
    one.step(7_000, [ev.JobSubmitted(7_000, described("a", 1, 7200, 7_000, user="u"))])
    assert expected(one, "a") == 200
    one.step(7_000, [ev.JobStarted(7_000, "a", ())])
    # Somebody waits for it, and somebody behind him fits now but would delay him.
    wait(one, 7_000)
    seen = []
    for end in (200, 260, 560, 1460, 3260, 6860):
        # There is a look at just that moment.
        assert one.next_wakeup() == 7_000 + end
        one.step(7_000 + end, [])
        seen.append(one.state.jobs["a"].expected_end - 7_000)
    assert seen == [260, 560, 1460, 3260, 6860, 7200]


def test_a_prediction_costs_no_look_that_came_true_was_corrected_or_helps_nobody():
    one = scheduler()
    ran(one, "first", 0, 100)
    ran(one, "second", 200, 100)
    one.step(400, [ev.JobSubmitted(400, described("a", 7, 7200, 400, user="u"))])
    one.step(400, [ev.JobStarted(400, "a", ())])
    assert one.next_wakeup() is None  # nobody waits
    one.step(405, [ev.JobSubmitted(405, described("wider", 8, 50, 405, user="w"))])
    assert one.next_wakeup() is None  # who waits is larger than what is free
    one.step(406, [ev.JobEnded(406, "wider", "cancelled", "")])
    wait(one, 410)
    assert one.next_wakeup() == 500
    one.step(420, [ev.JobSubmitted(420, described("filler", 1, 20, 420, user="w"))])
    assert one.state.jobs["filler"].start_time == 420
    assert one.next_wakeup() is None  # nothing is free
    one.step(425, [ev.JobEnded(425, "filler", "completed", "")])
    assert one.next_wakeup() == 500
    one.step(430, [ev.JobEnded(430, "a", "completed", "")])
    assert one.state.jobs["wide"].start_time == 430
    assert one.next_wakeup() is None  # its end was predicted for 500


def test_what_was_not_looked_at_is_corrected_at_the_next_look():
    one = scheduler()
    ran(one, "first", 0, 100)
    ran(one, "second", 200, 100)
    one.step(400, [ev.JobSubmitted(400, described("a", 7, 7200, 400, user="u"))])
    one.step(400, [ev.JobStarted(400, "a", ())])
    # It was to end at 500, then at 560, and nobody was there to care.
    wait(one, 590)
    assert one.state.jobs["a"].expected_end == 860
    assert one.next_wakeup() == 860


def booked(one):
    """When the only job that is booked is to start."""
    (booking,) = one.views["pool"].bookings
    return booking.start


class Counted(Easy):
    """EASY that counts how often it is asked."""

    asked = 0

    @hookimpl
    def schedule(self, view):
        self.asked += 1
        return super().schedule(view)


def test_a_correction_asks_the_policy_again():
    policy = Counted()
    one = Scheduler(ClusterDescription.flat(8), plugged(policy, Recent(RecentOptions())))
    ran(one, "first", 0, 100)
    ran(one, "second", 200, 100)
    # "a" is predicted to end at 500, and "wide" is booked for the end of "holds".
    for job_id, processors, walltime, user in (("a", 1, 7200, "u"), ("holds", 6, 300, "h")):
        one.step(400, [ev.JobSubmitted(400, described(job_id, processors, walltime, 400, user=user))])
        one.step(400, [ev.JobStarted(400, job_id, ())])
    wait(one, 400)
    found = []
    for time in (500, 560):
        before = policy.asked
        assert one.next_wakeup() == time
        one.step(time, [])
        found.append((policy.asked - before, one.state.jobs["a"].expected_end, booked(one)))
    assert found == [(1, 560, 700), (1, 860, 860)]


def test_with_fewer_jobs_the_estimate_counts_and_no_prediction_is_beyond_it():
    one = scheduler()
    one.step(0, [ev.JobSubmitted(0, described("a", 1, 50, 0, user="u"))])
    assert expected(one, "a") == 50
    ran(one, "first", 100, 900)
    one.step(1_100, [ev.JobSubmitted(1_100, described("b", 1, 500, 1_100, user="u"))])
    assert expected(one, "b") == 500
    ran(one, "second", 1_200, 1_100)
    for job_id, user, seconds in (("c", "u", 500), ("d", "other", 500)):
        one.step(2_400, [ev.JobSubmitted(2_400, described(job_id, 1, 500, 2_400, user=user))])
        assert expected(one, job_id) == seconds


def test_what_never_ran_does_not_count_and_what_was_suspended_counts_without_that():
    one = scheduler()
    ran(one, "first", 0, 100)
    one.step(200, [ev.JobSubmitted(200, described("never", 1, 100, 200, user="u", held=True))])
    one.step(300, [ev.JobEnded(300, "never", "cancelled", "")])
    one.step(400, [ev.JobSubmitted(400, described("paused", 1, 900, 400, user="u"))])
    for time, event in (
        (400, ev.JobStarted(400, "paused", ())),
        (450, ev.JobSuspended(450, "paused")),
        (550, ev.JobResumed(550, "paused")),
        (750, ev.JobEnded(750, "paused", "completed", "")),
    ):
        one.step(time, [event])
    one.step(800, [ev.JobSubmitted(800, described("a", 1, 7200, 800, user="u"))])
    # 100 s, and 350 s less 100 s of them.
    assert expected(one, "a") == 175


def test_what_is_known_of_users_is_kept_over_a_restart():
    recent = Recent(RecentOptions())
    one = scheduler(recent)
    ran(one, "first", 0, 100)
    ran(one, "second", 200, 300)
    one.step(600, [ev.JobSubmitted(600, described("runs", 1, 900, 600, user="u"))])
    one.step(600, [ev.JobStarted(600, "runs", ())])
    again = Recent(RecentOptions())
    again.restore(recent.checkpoint())
    assert again.checkpoint() == recent.checkpoint()
    later = scheduler(again)
    later.step(700, [ev.JobSubmitted(700, described("a", 1, 7200, 700, user="u"))])
    assert expected(later, "a") == 200


def test_after_a_restart_nobody_is_predicted_again_from_what_is_known_since():
    recent = Recent(RecentOptions())
    one = scheduler(recent)
    one.step(0, [ev.JobSubmitted(0, described("new", 1, 900, 0, user="new"))])
    one.step(0, [ev.JobStarted(0, "new", ())])
    ran(one, "first", 0, 100)
    ran(one, "second", 200, 300)
    here = [ev.JobSubmitted(600, described(name, 1, 7200, 600, user="u")) for name in ("runs", "over")]
    here.append(ev.JobSubmitted(600, described("waits", 8, 7200, 600, user="u")))
    one.step(600, here)
    one.step(600, [ev.JobStarted(600, "runs", ())])
    one.step(600, [ev.JobSubmitted(600, described("narrow", 1, 9_000, 600, user="w"))])
    assert one.next_wakeup() == 800
    one.step(800, [])  # "runs" and "over", who were started at once, are given another minute
    assert [expected(one, name) for name in ("runs", "over", "waits")] == [260, 260, 200]
    one.step(850, [ev.JobStarted(600, "over", ())])
    one.step(850, [ev.JobEnded(850, "over", "completed", "")])
    ran(one, "later", 850, 1)

    again = Recent(RecentOptions())
    again.restore(recent.checkpoint())
    after = scheduler(again)
    new = ev.JobSubmitted(900, described("new", 1, 900, 0, user="new"))
    after.step(900, [here[0], here[2], new, ev.JobStarted(600, "runs", ()), ev.JobStarted(0, "new", ())])
    # The ladder goes on where it stopped.
    assert [expected(after, name) for name in ("runs", "waits", "new")] == [560, 200, 900]
    # Who comes now is predicted from what is known now.
    after.step(910, [ev.JobSubmitted(910, described("a", 1, 7200, 910, user="u"))])
    assert expected(after, "a") == 125.5


def test_after_a_restart_the_job_of_another_user_with_an_old_number_is_a_new_one():
    recent = Recent(RecentOptions())
    one = scheduler(recent)
    ran(one, "first", 0, 100)
    ran(one, "second", 200, 300)
    one.step(600, [ev.JobSubmitted(600, described("a", 1, 7200, 600, user="other"))])
    again = Recent(RecentOptions())
    again.restore(recent.checkpoint())
    after = scheduler(again)
    after.step(900, [ev.JobSubmitted(900, described("a", 1, 7200, 900, user="u"))])
    assert expected(after, "a") == 200


def test_another_limit_of_a_running_job_leaves_its_prediction_as_it_is():
    one = scheduler()
    ran(one, "first", 0, 100)
    ran(one, "second", 200, 300)
    one.step(600, [ev.JobSubmitted(600, described("a", 1, 7200, 600, user="u"))])
    one.step(600, [ev.JobStarted(600, "a", ())])
    ran(one, "third", 610, 10)
    one.step(630, [ev.JobChanged(630, described("a", 1, 3600, 600, user="u"))])
    assert expected(one, "a") == 200


def history(user="u"):
    """Two jobs of 10 s, so that the user's next ones are predicted to run for 10 s."""
    return [traced("h1", 1, 100, 0, runtime=10, user=user), traced("h2", 1, 100, 0, runtime=10, user=user)]


def test_backfilling_plans_with_predictions_and_corrects_the_booking_of_a_job_that_outlives_one():
    jobs = [
        *history(),
        # Predicted: 10 s. It runs for 200 s and would be allowed 300 s.
        traced("long", 6, 300, 100, runtime=200, user="u"),
        # Is booked at 110, then at 170 (a minute more) and at 470, its limit's 400.
        traced("wide", 8, 50, 101, user="w"),
        # Fits before that only once the booking is corrected.
        traced("narrow", 2, 40, 102, user="n"),
    ]
    run = emulate(ClusterDescription.flat(8), jobs, Easy(), Recent(RecentOptions()))
    assert run.starts == {"h1": 0, "h2": 0, "long": 100, "narrow": 110, "wide": 300}
    assert set(run.states.values()) == {"completed"}
    # With the estimates alone it is started at once, because the head's booking is not before 400.
    assert emulate(ClusterDescription.flat(8), jobs, Easy()).starts["narrow"] == 102


def test_nobody_is_killed_before_his_limit():
    jobs = [*history(), traced("long", 1, 300, 100, runtime=299, user="u")]
    jobs.append(traced("late", 1, 300, 100, runtime=900, user="u"))
    run = emulate(ClusterDescription.flat(8), jobs, Easy(), Recent(RecentOptions()))
    assert run.results["long"].end_time == 399
    assert run.states["long"] == "completed"
    assert (run.results["late"].end_time, run.states["late"]) == (400, "timed out")


@pytest.mark.parametrize(("backfill", "first"), [("in-order", "slow"), ("shortest-first", "quick")])
def test_the_shortest_is_backfilled_first(backfill, first):
    jobs = [
        traced("runs", 6, 100, 0),
        traced("wide", 8, 100, 1),
        traced("slow", 2, 90, 1),
        traced("quick", 2, 20, 1),
    ]
    run = emulate(ClusterDescription.flat(8), jobs, Easy(EasyOptions(backfill=backfill)))
    assert run.starts[first] == 1
    assert run.starts["wide"] == 100


def test_of_equally_long_jobs_the_first_in_the_queue_is_backfilled():
    jobs = [traced("runs", 6, 100, 0), traced("wide", 8, 100, 1)]
    jobs += [traced(name, 2, 90, 1) for name in ("b", "a")]
    run = emulate(ClusterDescription.flat(8), jobs, Easy(EasyOptions(backfill="shortest-first")))
    assert run.starts["b"] == 1


@pytest.mark.parametrize("preset", ["easy-sjbf", "easy++"])
def test_the_presets_run_a_generated_month(preset):
    catalogue = Catalogue()
    model = catalogue.get("month")().register_workloads()["month"]
    import numpy as np

    jobs = model.generate(np.random.default_rng(1), model.Options(processors=64, days=2)).jobs
    enabled = catalogue.expanded([PluginConfig(preset)])
    result = emulated(ClusterDescription.flat(64), jobs, enabled, catalogue, label=preset)
    assert len(result.jobs) == len(jobs)
    assert all(job.starts == 1 and job.end_time is not None for job in result.jobs)
    for job in result.jobs:
        allowed = min(job.job.request.walltime, next(j.runtime for j in jobs if j.job.id == job.job.id))
        assert job.runtime == pytest.approx(allowed)


def test_how_good_the_predictions_were_is_counted_by_how_many_of_the_users_jobs_had_ended():
    recent = Recent(RecentOptions())
    one = scheduler(recent)
    for number, runtime in enumerate((100, 300, 400, 200)):
        ran(one, f"job{number}", 10_000 * number, runtime)
    # Nothing for the first two; 200 s for 400 s; 350 s for 200 s; the estimates were 7,200 s.
    found = recent.figures()
    assert (found["jobs"], found["answered"]) == (4, 0.5)
    assert found["accuracy"] == pytest.approx((200 / 400 + 200 / 350) / 2)
    assert found["estimate_accuracy"] == pytest.approx((400 + 200) / 7200 / 2)
    assert found["mean_error_percent"] == pytest.approx((50 + 75) / 2)
    assert "inside_interval" not in found
    by_history = [(part["runs_from"], part["jobs"], part["answered"]) for part in found["by_history"]]
    assert by_history == [(0, 1, 0), (1, 1, 0), (2, 2, 1)]
    assert recent.register_metrics()["recent"](None) == found
    assert Recent(RecentOptions()).figures()["accuracy"] is None


def test_it_is_the_first_prediction_that_is_judged_not_what_a_correction_made_of_it():
    recent = Recent(RecentOptions())
    one = scheduler(recent)
    ran(one, "first", 0, 100)
    ran(one, "second", 200, 100)
    one.step(400, [ev.JobSubmitted(400, described("a", 7, 7200, 400, user="u"))])
    one.step(400, [ev.JobStarted(400, "a", ())])
    wait(one, 450)
    one.step(500, [])
    assert expected(one, "a") == 160
    one.step(550, [ev.JobEnded(550, "a", "completed", "")])
    assert recent.figures()["accuracy"] == pytest.approx(100 / 150)


def test_what_never_ran_is_not_judged():
    recent = Recent(RecentOptions())
    one = scheduler(recent)
    one.step(0, [ev.JobSubmitted(0, described("never", 1, 100, 0, user="u", held=True))])
    one.step(10, [ev.JobEnded(10, "never", "cancelled", "")])
    assert recent.figures()["jobs"] == 0


def test_a_run_has_the_measures_among_its_metrics():
    jobs = [*history(), traced("long", 6, 300, 100, runtime=200, user="u")]
    run = emulated(ClusterDescription.flat(8), jobs, [PluginConfig("easy++")], Catalogue(), label="x")
    found = summarise(run)["extra"]["recent"]
    assert (found["jobs"], found["answered"], found["accuracy"]) == (3, pytest.approx(1 / 3), 10 / 200)


def test_a_job_of_an_unknown_user_is_judged_as_one_without_an_answer():
    recent = Recent(RecentOptions())
    one = scheduler(recent)
    one.step(40, [ev.JobSubmitted(40, described("whose", 1, 100, 40, user=""))])
    one.step(40, [ev.JobStarted(40, "whose", ())])
    one.step(50, [ev.JobEnded(50, "whose", "completed", "")])
    assert (recent.figures()["jobs"], recent.figures()["answered"]) == (1, 0)


def test_how_good_the_predictions_were_is_kept_over_a_restart_with_what_is_under_way():
    recent = Recent(RecentOptions())
    one = scheduler(recent)
    for number in range(10):
        ran(one, f"job{number}", 500 * number, 100)
    here = ev.JobSubmitted(5_000, described("here", 1, 7200, 5_000, user="u"))
    one.step(5_000, [here])
    one.step(5_000, [ev.JobStarted(5_000, "here", ())])
    again = Recent(RecentOptions())
    again.restore(recent.checkpoint())
    assert again.figures() == recent.figures()
    after = scheduler(again)
    after.step(5_100, [here, ev.JobStarted(5_000, "here", ())])
    after.step(5_200, [ev.JobEnded(5_200, "here", "completed", "")])
    ran(after, "later", 6_000, 300)
    # "here" ran for 200 s where 100 were predicted, "later" for 300 s where 150 were.
    *_, found = again.figures()["by_history"]
    assert (found["runs_from"], found["jobs"], found["answered"]) == (10, 2, 1)
    assert found["accuracy"] == pytest.approx((100 / 200 + 150 / 300) / 2)


def test_with_another_number_of_jobs_after_a_restart_nobody_is_predicted_from_too_few():
    recent = Recent(RecentOptions())
    one = scheduler(recent)
    for number in range(4):
        ran(one, f"job{number}", 1_000 * number, 100)
    again = Recent(RecentOptions(jobs=3))
    again.restore(recent.checkpoint())
    after = scheduler(again)
    # Two were kept.
    after.step(5_000, [ev.JobSubmitted(5_000, described("a", 1, 7200, 5_000, user="u"))])
    assert expected(after, "a") == 7200
    ran(after, "third", 5_000, 100)
    after.step(6_000, [ev.JobSubmitted(6_000, described("b", 1, 7200, 6_000, user="u"))])
    assert expected(after, "b") == 100
