"""The plugin `scopred`: from a job's comment to its prediction, and from its end to the next one's."""

from __future__ import annotations

import json

import pytest
from building import alike, described, node_cluster, plugged

from headway import events as ev
from headway.errors import UserError
from headway.inquiry import explain
from headway.model import ClusterDescription, PoolDescription
from headway.plugins import Catalogue, PluginConfig, make_plugin
from headway.scheduler import Scheduler
from headway_plugins.policies.easy import Easy
from headway_plugins.prediction.recent import Recent, RecentOptions
from headway_plugins.prediction.scopred import Scopred, ScopredOptions

APPLICATIONS = """
applications:
  ft: {formula: N, match: ^ft-}
  par: {formula: N/P, sizes: {P: nodes}}
  wide: {formula: 1/P, sizes: {P: processors}, match: ^wide}
"""


@pytest.fixture
def options(tmp_path):
    path = tmp_path / "applications.yaml"
    path.write_text(APPLICATIONS)

    def make(**more):
        return ScopredOptions(applications=path, **more)

    return make


def scheduler(*plugins, cluster=None):
    return Scheduler(cluster or ClusterDescription.flat(64), plugged(Easy(), *plugins))


def submit(one, job_id, comment, at, processors=1, estimate=7200, **more):
    attributes = {"comment": comment} if comment else None
    job = described(job_id, processors, estimate, at, user="u", attributes=attributes, **more)
    one.step(at, [ev.JobSubmitted(at, job)])
    return one.state.jobs[job_id]


def ran(one, job_id, comment, at, runtime, outcome="completed", **more):
    submit(one, job_id, comment, at, **more)
    one.step(at, [ev.JobStarted(at, job_id, ())])
    one.step(at + runtime, [ev.JobEnded(at + runtime, job_id, outcome, "")])


def history(one, count=6):
    """Runs of ft that take 10 s and 3 for each N, as good as."""
    for n in range(1, count + 1):
        ran(one, f"h{n}", f"scopred:app=ft;N={n}", 1000 * n, 10 + 3 * n + 0.01 * (n % 2))


def told(one, job):
    return "\n".join(explain(one, job.id, str))


def test_a_job_is_predicted_from_the_runs_before_it(options):
    one = scheduler(Scopred(options()))
    history(one)
    job = submit(one, "a", "the big one scopred:app=ft;N=100 please", 10_000)
    assert job.expected_runtime == pytest.approx(310, abs=1)
    assert job.predicted_by == "scopred"
    said = told(one, job)
    assert "regression of N on 6 completed runs of ft in pool, R2 1.0000, 95 % within" in said
    assert "may run for 7200 s" in said


def test_each_run_that_completes_counts_and_no_other(options):
    one = scheduler(Scopred(options()))
    history(one)
    before = submit(one, "a", "scopred:app=ft;N=50", 10_000).expected_runtime
    for at, outcome in enumerate(("failed", "timed out", "cancelled", "vanished")):
        ran(one, outcome, "scopred:app=ft;N=50", 20_000 + 1000 * at, 900, outcome)
    assert submit(one, "b", "scopred:app=ft;N=50", 30_000).expected_runtime == before
    ran(one, "more", "scopred:app=ft;N=50", 31_000, 170)
    assert "7 completed runs" in told(one, submit(one, "c", "scopred:app=ft;N=51", 32_000))


def test_what_is_known_outlives_a_restart_and_a_run_that_ends_after_it_counts(options):
    first = Scopred(options())
    one = scheduler(first)
    history(one)
    submit(one, "runs", "scopred:app=ft;N=7", 9_000)
    one.step(9_000, [ev.JobStarted(9_000, "runs", ())])
    saved = json.loads(json.dumps(first.checkpoint()))
    again = Scopred(options())
    again.restore(saved)
    assert again.checkpoint() == saved
    later = scheduler(again)
    # It is told of the job and its start once more, and of what ended before.
    job = described("runs", 1, 7200, 9_000, user="u", attributes={"comment": "scopred:app=ft;N=7"})
    later.step(9_010, [ev.JobSubmitted(9_000, job), ev.JobStarted(9_000, "runs", ())])
    assert later.state.jobs["runs"].expected_runtime == pytest.approx(31, abs=0.1)
    later.step(9_031, [ev.JobEnded(9_031, "runs", "completed", "")])
    assert len(again.model("ft", "pool")) == 7
    ran(later, "h6", "scopred:app=ft;N=6", 6000, 28)
    assert len(again.model("ft", "pool")) == 7


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        ("scopred:app=ft", "its parameter N is not known"),
        ("scopred:app=ft;N=big", "expected a number for N, found 'big'"),
        ("scopred:app=ft;N=1;log=2", "expected a parameter's name, found 'log'"),
        ("scopred:app=ft;N=-100", "which is no runtime"),
        ("scopred:app=par;N=3", "no run is recorded"),
    ],
)
def test_what_cannot_be_predicted_says_why_and_the_next_is_asked(options, comment, why):
    one = scheduler(Scopred(options()), Recent(RecentOptions()))
    history(one)
    job = submit(one, "a", comment, 10_000)
    assert job.predicted_by == "recent"
    said = told(one, job)
    assert "Plugin 'scopred' does not predict it: " in said and why in said
    assert "Plugin 'recent' predicts" in said


@pytest.mark.parametrize(
    "comment", ["", "scopred:", "scopred:app=nobody;N=3", "about scopred", "scopred:N=3"]
)
def test_jobs_that_are_no_runs_of_an_application_are_nobodys_affair(options, comment):
    one = scheduler(Scopred(options()))
    job = submit(one, "a", comment, 0)
    assert (job.predicted_by, job.expected_runtime) == ("", 7200)
    assert "scopred" not in told(one, job)


def test_too_few_runs_and_no_prediction_beyond_the_limit(options):
    one = scheduler(Scopred(options()))
    history(one, count=2)
    assert "2 runs are too few for 2 coefficients" in told(one, submit(one, "a", "scopred:app=ft;N=9", 9_000))
    history(one)
    assert submit(one, "b", "scopred:app=ft;N=100", 9_500, estimate=50).expected_runtime == 50


def test_acceptance_12_histories_of_two_kinds_of_nodes_are_never_mixed_unless_said_to_be_alike(options):
    pools = tuple(PoolDescription(name, 8) for name in ("old", "new"))
    cluster = ClusterDescription("two", pools)
    for classes, basis in (
        ({}, "no run is recorded (ft in new"),
        ({"old": "x", "new": "x"}, "6 completed runs"),
    ):
        one = scheduler(Scopred(options(classes=classes)), cluster=cluster)
        for n in range(1, 7):
            ran(one, f"h{n}", f"scopred:app=ft;N={n}", 1000 * n, 10 + 3 * n + 0.01 * (n % 2), pool="old")
        assert basis in told(one, submit(one, "a", "scopred:app=ft;N=9", 9_000, pool="new"))


def test_sizes_are_those_of_the_allocation(options):
    cluster = node_cluster(*alike(8, 4))
    plugin = Scopred(options())
    one = scheduler(plugin, cluster=cluster)
    for at, nodes in enumerate((1, 2, 3, 4, 6, 8)):
        job_id, time = f"h{at}", 1000.0 * at
        submit(one, job_id, "scopred:app=par;N=240", time, 4 * nodes, nodes=nodes)
        placement = tuple((f"n{node}", 4) for node in range(nodes))
        one.step(time, [ev.JobStarted(time, job_id, placement)])
        end = time + 10 + 240 / nodes + 0.1 * (at % 2)
        one.step(end, [ev.JobEnded(end, job_id, "completed", "")])
    job = submit(one, "a", "scopred:app=par;N=240", 9_000, 20, nodes=5)
    assert job.expected_runtime == pytest.approx(58, abs=1)
    open_ = submit(one, "b", "scopred:app=par;N=240", 9_000, 20)
    assert "its number of nodes P is not known" in told(one, open_)


def test_a_name_can_say_what_it_is(options):
    one = scheduler(Scopred(options()))
    for processors in (1, 2, 4, 8, 16):
        ran(
            one,
            f"h{processors}",
            "",
            1000 * processors,
            100 / processors + 5,
            processors=processors,
            name="wide-1",
        )
    assert submit(one, "a", "", 90_000, 32, name="wide-2").expected_runtime == pytest.approx(8.125, abs=0.1)


def test_who_outlives_his_prediction_is_expected_by_the_upper_end_and_then_by_his_limit(options):
    plugin = Scopred(options())
    one = scheduler(plugin)
    for n in range(1, 9):
        ran(one, f"h{n}", f"scopred:app=ft;N={n}", 1000 * n, 100 + 10 * n + 5 * (-1) ** n)
    job = submit(one, "a", "scopred:app=ft;N=5", 9_000, 60, estimate=1000)
    mean = job.expected_runtime
    upper = plugin.model("ft", "pool").predict({"N": 5}).upper
    assert mean < upper < 200
    one.step(9_000, [ev.JobStarted(9_000, "a", ())])
    submit(one, "wide", "", 9_001, 64, estimate=50)
    submit(one, "narrow", "", 9_001, 4, estimate=5_000)
    one.step(9_000 + mean, [])
    assert job.expected_end == pytest.approx(9_000 + upper)
    assert "ran longer than the mean" in told(one, job)
    one.step(9_000 + upper, [])
    assert job.expected_end == 10_000
    assert "it ran longer than its predicted interval" in told(one, job)


def test_planning_with_the_upper_end(options):
    plugin = Scopred(options(plan_with="upper"))
    one = scheduler(plugin)
    for n in range(1, 9):
        ran(one, f"h{n}", f"scopred:app=ft;N={n}", 1000 * n, 100 + 10 * n + 5 * (-1) ** n)
    job = submit(one, "a", "scopred:app=ft;N=5", 9_000)
    assert job.expected_runtime == pytest.approx(plugin.model("ft", "pool").predict({"N": 5}).upper)


def test_the_oldest_runs_are_given_up(options):
    plugin = Scopred(options(keep=4))
    one = scheduler(plugin)
    history(one, count=9)
    assert len(plugin.model("ft", "pool")) == 4
    assert [run["job"] for run in plugin.checkpoint()["runs"][0]["runs"]] == ["h6", "h7", "h8", "h9"]


def test_runs_from_before_and_files_beside_the_configuration(tmp_path):
    (tmp_path / "apps.yaml").write_text(APPLICATIONS)
    lines = [f"ft,pool,{n},{10 + 3 * n + 0.01 * (n % 2)}" for n in range(1, 7)]
    (tmp_path / "runs.csv").write_text("\n".join(["application,pool,N,runtime", *lines]))
    config = PluginConfig("scopred", {"applications": "apps.yaml", "runs": "runs.csv"}, "site.yaml", tmp_path)
    one = scheduler(make_plugin(Catalogue().get("scopred"), config))
    assert "6 completed runs" in told(one, submit(one, "a", "scopred:app=ft;N=9", 0))
    for options, message in (
        ({"applications": "none.yaml"}, "applications: none.yaml cannot be read"),
        ({"applications": "runs.csv"}, "runs.csv"),
        ({"applications": "apps.yaml", "runs": "apps.yaml"}, "apps.yaml: expected one column 'N'"),
        ({}, "applications: expected a value, found none"),
    ):
        with pytest.raises(UserError, match=message):
            make_plugin(Catalogue().get("scopred"), PluginConfig("scopred", options, "site.yaml", tmp_path))


def test_how_good_the_predictions_were_is_counted_by_the_size_of_the_history(options):
    plugin = Scopred(options())
    one = scheduler(plugin)
    # Two come before there is anything to go by, and the third sees two runs, too few for two coefficients.
    history(one, count=6)
    ran(one, "off", "scopred:app=ft;N=7", 10_000, 62)
    ran(one, "failed", "scopred:app=ft;N=7", 11_000, 900, "failed")
    found = plugin.figures()
    assert (found["jobs"], found["answered"]) == (7, pytest.approx(4 / 7))
    # It is 31 s that were predicted for 62; the others were met.
    assert found["mean_error_percent"] == pytest.approx(50 / 4, abs=0.5)
    assert found["inside_interval"] == pytest.approx(3 / 4)
    assert found["accuracy"] == pytest.approx(3.5 / 4, abs=0.005)
    for n in range(8, 14):
        ran(one, f"h{n}", f"scopred:app=ft;N={n}", 20_000 + 1000 * n, 10 + 3 * n)
    by_history = plugin.figures()["by_history"]
    assert [(part["runs_from"], part["jobs"]) for part in by_history] == [(0, 10), (10, 3)]
    again = Scopred(options())
    again.restore(plugin.checkpoint())
    assert again.figures() == plugin.figures()
    assert plugin.register_metrics()["scopred"](None) == plugin.figures()
    assert Scopred(options()).figures()["answered"] is None


def test_of_a_chain_each_predictor_is_judged_by_the_jobs_that_it_was_asked_about(options):
    scopred, recent = Scopred(options()), Recent(RecentOptions())
    one = scheduler(scopred, recent)
    # Three that scopred cannot answer, three that it does, and two that are no runs of an application.
    history(one, count=6)
    ran(one, "other", "", 20_000, 100)
    ran(one, "another", "", 21_000, 100)
    assert [(of.figures()["jobs"], of.figures()["answered"]) for of in (scopred, recent)] == [
        (6, 3 / 6),
        (5, 3 / 5),
    ]


def restarted(plugin, options):
    """The plugin as the next run of the daemon has it."""
    again = Scopred(options())
    again.restore(json.loads(json.dumps(plugin.checkpoint())))
    return again


def test_acceptance_9_after_a_restart_nobody_is_predicted_again_from_what_is_known_since(options):
    first = Scopred(options())
    one = scheduler(first)
    early = submit(one, "early", "scopred:app=ft;N=9", 0)
    history(one)
    waits = submit(one, "waits", "scopred:app=ft;N=100", 9_000, 64)
    runs = submit(one, "runs", "scopred:app=ft;N=50", 9_000, 60)
    other = submit(one, "other", "scopred:app=ft;N=50", 9_000, 60)
    one.step(9_000, [ev.JobStarted(9_000, "runs", ())])
    said = {job.id: told(one, job) for job in (early, waits, runs)}
    expected = {job.id: job.expected_runtime for job in (early, waits, runs)}
    # Half as fast from now on.
    for n in range(7, 14):
        ran(one, f"h{n}", f"scopred:app=ft;N={n}", 1000 * n + 3_000, 10 + 6 * n)

    later = scheduler(restarted(first, options))
    back = [early.description, waits.description, runs.description]
    # Somebody changed it meanwhile.
    back.append(described("other", 60, 7200, 9_000, user="u", attributes={"comment": "scopred:app=ft;N=60"}))
    later.step(20_000, [*(ev.JobSubmitted(20_000, job) for job in back), ev.JobStarted(9_000, "runs", ())])
    jobs = later.state.jobs
    assert {name: jobs[name].expected_runtime for name in expected} == expected
    for name in ("early", "waits"):
        assert "13 completed runs" not in (now := told(later, jobs[name]))
        assert [line for line in now.splitlines() if "scopred" in line] == [
            line for line in said[name].splitlines() if "scopred" in line
        ]
    assert "no run is recorded" in said["early"] and "on 6 completed runs" in said["waits"]
    assert jobs["other"].expected_runtime != other.expected_runtime
    assert "13 completed runs" in told(later, jobs["other"])
    assert "13 completed runs" in told(later, submit(later, "new", "scopred:app=ft;N=50", 20_010, 60))


def test_another_limit_of_a_running_job_leaves_its_prediction_as_it_is(options):
    one = scheduler(Scopred(options()))
    history(one)
    job = submit(one, "a", "scopred:app=ft;N=50", 9_000)
    one.step(9_000, [ev.JobStarted(9_000, "a", ())])
    before = job.expected_runtime
    changed = described("a", 1, 3600, 9_000, user="u", attributes={"comment": "scopred:app=ft;N=50"})
    one.step(9_010, [ev.JobChanged(9_010, changed)])
    assert job.expected_runtime == before
