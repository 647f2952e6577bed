"""Preemption by suspension: who is stopped for whom, and when he runs again."""

from __future__ import annotations

import json

import msgspec
import pytest
from building import alike, described, emulate, node_cluster, plugged, traced

from headway import events as ev
from headway.config import parse_config
from headway.daemon.replay import replay
from headway.decisions import Kill, Requeue, Resume, Signal, Start, Suspend
from headway.emulation import emulate as whole_run
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.inquiry import explain
from headway.journal import Journal
from headway.metrics.system import system_metrics
from headway.model import ClusterDescription, NodeDescription, Reservation
from headway.plugins import Catalogue, PluginConfig, make_plugin
from headway.results import RunResult
from headway.scheduler import Scheduler
from headway.state import Status
from headway_plugins.limits.plugin import Limits, LimitsOptions
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy
from headway_plugins.preemption.plugin import Preemption, PreemptionOptions
from headway_plugins.priority.multifactor import Multifactor, MultifactorOptions

RULE = {"who": {"qos": ["high"]}, "whom": {"qos": ["low"]}, "how": "suspend"}
MIB = 2**20


def lending(cluster):
    return msgspec.structs.replace(cluster, suspended_lend=True)


class Site:
    """A scheduler whose cluster does what it is told in the next step."""

    def __init__(
        self, cluster=None, saved=None, *, rule=RULE, policy=None, monitor=False, others=(), **options
    ):
        self.plugin = Preemption(PreemptionOptions(rules=[rule], **options))
        self.scheduler = Scheduler(
            cluster or lending(node_cluster(*alike(1, 4, memory=4000 * MIB))),
            plugged(self.plugin, policy or Easy(), FirstFit(), *others),
            capabilities=frozenset({Start, Requeue, Kill, Signal, Suspend, Resume}), monitor=monitor,
        )  # fmt: skip
        if saved is not None:
            self.plugin.restore(saved)
        self.state = self.scheduler.state

    def step(self, now, *events):
        """The decisions of a step, in short."""
        made = self.scheduler.step(now, events)
        assert self.scheduler.problems == []
        marks = {Start: "", Requeue: "-", Kill: "x", Signal: "~", Suspend: "z", Resume: "!"}
        words = [marks[type(decision)] + decision.job_id for decision in made]
        starts = [ev.JobStarted(now, d.job_id, d.placement) for d in made if isinstance(d, Start)]
        if starts and not self.scheduler.monitors:
            words += self.step(now, *starts)
        return words

    def arrive(self, now, job_id, processors, qos="low", estimate=1000.0, **more):
        job = described(job_id, processors, estimate, now, qos=qos, **more)
        return self.step(now, ev.JobSubmitted(now, job))

    @property
    def notices(self):
        told, self.scheduler.notices[:] = list(self.scheduler.notices), []
        return told


def suspended(site, at=100.0, **more):
    """``a`` with 4 processors was suspended for ``b``, which has 4 for 300 s."""
    assert site.arrive(0, "a", 4, **more) == ["a"]
    assert site.arrive(at, "b", 4, "high", 300.0) == ["za"]
    assert site.step(at + 1) == [], "nothing is said twice while it goes"
    assert site.step(at + 2, ev.JobSuspended(at + 2, "a")) == ["b"]
    return site


# ------------------------------------------------------------------ the way of it


@pytest.mark.parametrize("flat", [True, False])
def test_it_stands_aside_and_runs_again_when_the_other_is_over(flat):
    site = suspended(Site(lending(ClusterDescription.flat(4)) if flat else None))
    assert site.step(250) == []
    assert site.step(302, ev.JobEnded(302, "b", "completed")) == ["!a"]
    assert site.step(303) == []
    assert site.step(304, ev.JobResumed(304, "a")) == []
    job = site.state.jobs["a"]
    assert (job.status, job.paused, job.expected_end) == (Status.RUNNING, 202, 1202)
    assert site.state.domains[job.pool.name].free == 0
    assert site.step(1202, ev.JobEnded(1202, "a", "completed")) == []
    assert site.state.domains[job.pool.name].free == 4


def test_whose_pace_was_told_does_nothing_meanwhile():
    """As of one that was moved before."""
    site = Site()
    assert site.arrive(0, "a", 4) == ["a"]
    site.step(10, ev.JobPaceChanged(10, "a", 10.0, 1.0))
    assert site.arrive(100, "b", 4, "high", 300.0) == ["za"]
    assert site.step(102, ev.JobSuspended(102, "a")) == ["b"]
    assert site.step(302, ev.JobEnded(302, "b", "completed")) == ["!a"]
    job = site.state.jobs["a"]
    assert job.expected_end == 302 + 898
    site.step(304, ev.JobResumed(304, "a"))
    assert (job.expected_end, job.done(404)) == (304 + 898, 202)


def test_nobody_is_let_in_before_it_who_would_keep_it_waiting():
    """What becomes free is booked for it from the end of who has it."""
    site = suspended(Site())
    assert site.arrive(110, "long", 1, estimate=900.0) == []
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == ["!a"]


def test_who_is_over_by_then_has_what_is_left():
    site = Site()
    assert site.arrive(0, "a", 4) == ["a"]
    assert site.arrive(100, "b", 2, "high", 300.0) == ["za"]
    assert site.arrive(101, "short", 2, estimate=200.0) == []
    assert site.arrive(101, "long", 1, estimate=900.0) == []
    assert site.step(102, ev.JobSuspended(102, "a")) == ["b", "short"]


def test_it_keeps_its_memory():
    """Who does not fit beside it takes nobody's place."""
    site = Site()
    assert site.arrive(0, "a", 4, memory_per_node=3000 * MIB) == ["a"]
    assert site.arrive(100, "b", 4, "high", memory_per_node=2000 * MIB) == []
    assert site.arrive(101, "c", 4, "high", memory_per_node=1000 * MIB) == ["za"]
    assert site.step(102, ev.JobSuspended(102, "a")) == ["c"]
    assert site.state.nodes.free.memory[0] == 0
    site.step(103, ev.JobEnded(103, "c", "completed"), ev.JobEnded(103, "a", "cancelled"))
    assert site.state.nodes.free.memory[0] >= 2000 * MIB


# ------------------------------------------------------------------ when it does not run again


def test_not_on_a_node_that_is_down():
    site = suspended(Site())
    site.step(200, ev.NodeDown(200, "n0", "dead"), ev.JobEnded(200, "b", "node failure"))
    assert site.step(300) == []
    node = site.state.nodes.descriptions["n0"]
    assert site.step(400, ev.NodeUp(400, node)) == ["!a"]


def test_not_beside_what_somebody_else_started_there():
    site = suspended(Site())
    strange = described("x", 1, 500.0, 150, qos="none")
    site.step(
        200, ev.JobEnded(200, "b", "completed"), ev.JobSubmitted(200, strange),
        ev.JobStarted(200, "x", (("n0", 1),)),
    )  # fmt: skip
    assert site.step(300) == []
    assert site.step(400, ev.JobEnded(400, "x", "completed")) == ["!a"]


def test_not_into_a_reservation():
    site = suspended(Site())
    kept = Reservation("r", 500.0, 900.0, nodes=("n0",))
    assert site.step(150, ev.ReservationMade(150, kept)) == []
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == []
    assert site.step(900, ev.ReservationEnded(900, "r")) == ["!a"]


def test_a_refused_resumption_is_tried_again_later():
    site = suspended(Site())
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == ["!a"]
    failed = ev.DecisionFailed(201, Resume("a"), "no")
    assert site.step(201, failed) == []
    assert site.state.domains["pool"].free == 4
    assert site.step(202) == []
    assert site.step(261) == ["!a"]


def test_a_resumption_that_was_vetoed_was_not_told():
    class Veto:
        @hookimpl
        def veto(self, decision, state):
            return "not now" if isinstance(decision, Resume) and state.now < 350 else None

    site = Site(others=[Veto()])
    suspended(site)
    assert site.step(302, ev.JobEnded(302, "b", "completed")) == []
    assert "was resumed at" not in said(site)
    assert site.step(362) == ["!a"]
    assert site.notices == []


def test_news_of_where_it_is_leaves_others_what_it_lends():
    site = suspended(Site())
    job = site.state.jobs["a"]
    assert site.step(150, ev.JobMigrated(150, "a", job.placement)) == []
    assert (job.lends, site.state.domains["pool"].free) == (True, 0)
    assert site.step(302, ev.JobEnded(302, "b", "completed")) == ["!a"]


def test_a_node_that_becomes_known_later_is_lent_too():
    site = Site()
    started = ev.JobStarted(0, "a", (("n0", 4), ("n9", 4)))
    site.step(0, ev.JobSubmitted(0, described("a", 8, 1000)), started, ev.JobSuspended(0, "a"))
    assert site.state.lend(site.state.jobs["a"])
    site.step(6, ev.NodeUp(6, NodeDescription("n9", 4, pools=("pool",))))
    assert (site.state.jobs["a"].lends, site.state.domains["pool"].free) == (True, 8)


def test_one_that_is_told_and_does_not_run_is_told_again():
    site = suspended(Site())
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == ["!a"]
    assert site.step(261) == ["!a"]
    assert "resumed again" in site.notices[-1]


@pytest.mark.parametrize("order", ["submission", "priority"])
@pytest.mark.parametrize("flat", [True, False])
def test_a_limit_that_it_has_reached_itself_does_not_bar_the_place_that_is_kept_for_it(flat, order):
    """The place is booked under its name, and it counts already."""
    others = [Limits(LimitsOptions(of={"qos": {"low": {"jobs": 1}}}))]
    if order == "priority":
        others.append(Multifactor(MultifactorOptions(weights={"age": 10})))
    site = suspended(Site(lending(ClusterDescription.flat(4)) if flat else None, others=others))
    assert site.arrive(110, "other", 4, estimate=10.0) == []
    assert site.step(302, ev.JobEnded(302, "b", "completed")) == ["!a"]
    assert site.step(304, ev.JobResumed(304, "a")) == []
    assert site.step(900, ev.JobEnded(900, "a", "completed")) == ["other"]


# ------------------------------------------------------------------ whose it is


def test_somebody_elses_is_left_alone():
    """It keeps its processors, as he may resume it at any moment."""
    site = Site()
    assert site.arrive(0, "a", 4) == ["a"]
    assert site.step(50, ev.JobSuspended(50, "a")) == []
    assert site.arrive(100, "b", 4, "high") == []
    assert site.step(1000) == []
    assert site.step(1100, ev.JobResumed(1100, "a")) == ["za"]


def test_who_was_resumed_by_somebody_else_is_left_alone():
    site = suspended(Site())
    assert site.step(150, ev.JobResumed(150, "a")) == []
    assert "resumed or cancelled by another program or user" in site.notices[-1]
    assert site.step(160, ev.JobSuspended(160, "a")) == []
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == []
    assert site.state.jobs["a"].status is Status.SUSPENDED


def test_one_that_is_cancelled_is_forgotten():
    site = suspended(Site())
    assert site.step(150, ev.JobEnded(150, "a", "cancelled")) == []
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == []
    assert site.state.domains["pool"].free == 4


def first_look(site, now, since, *more):
    """What a daemon is told that begins while ``a`` is suspended and ``b`` runs."""
    a, b = described("a", 4, 1000.0, 0, qos="low"), described("b", 4, 300.0, 100, qos="high")
    return site.step(
        now, ev.JobSubmitted(0, a), ev.JobSubmitted(100, b), ev.JobStarted(0, "a", (("n0", 4),)),
        ev.JobSuspended(since, "a"), ev.JobStarted(102, "b", (("n0", 4),)), *more,
    )  # fmt: skip


def test_a_restart_knows_whose_it_is():
    site = Site(saved=suspended(Site()).plugin.checkpoint())
    assert first_look(site, 150, 102) == []
    assert site.state.domains["pool"].free == 0
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == ["!a"]


def test_killed_before_the_order_had_its_effect():
    before = Site()
    before.arrive(0, "a", 4)
    before.arrive(100, "b", 4, "high", 300.0)
    saved = before.plugin.checkpoint()
    site = Site(saved=saved)
    assert first_look(site, 150, 102) == []
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == ["!a"]


def test_suspended_anew_by_somebody_else_while_nobody_looked():
    site = Site(saved=suspended(Site()).plugin.checkpoint())
    assert first_look(site, 150, 130) == []
    assert "by another program or user" in site.notices[-1]
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == []


def test_without_a_journal_it_is_nobodys():
    site = Site()
    assert first_look(site, 150, 102) == []
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == []


# ------------------------------------------------------------------ how often, how long


def test_not_for_a_job_that_may_run_for_longer_than_it_may_be_suspended():
    site = Site(rule={**RULE, "longest": 600})
    assert site.arrive(0, "a", 4) == ["a"]
    assert site.arrive(10, "b", 4, "high", 601.0) == []
    assert site.arrive(20, "c", 4, "high", 600.0) == ["za"]


def test_another_may_go_before_it_while_that_is_not_too_long():
    site = suspended(Site(rule={**RULE, "longest": 600}))
    assert site.arrive(110, "c", 4, "high", 300.0) == []
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == ["c"]
    assert site.arrive(210, "d", 4, "high", 300.0) == []
    assert site.step(450, ev.JobEnded(450, "c", "completed")) == ["!a"]


def test_who_was_resumed_runs_for_a_while():
    site = suspended(Site(rule={**RULE, "again": 60}))
    assert site.step(200, ev.JobEnded(200, "b", "completed")) == ["!a"]
    site.step(201, ev.JobResumed(201, "a"))
    assert site.arrive(210, "c", 4, "high", 300.0) == []
    assert site.step(261) == ["za"]


def test_one_that_is_suspended_for_too_long_is_told_once():
    site = suspended(Site(rule={**RULE, "longest": 400}))
    site.step(150, ev.NodeDown(150, "n0", "dead"))
    site.step(600)
    assert [line for line in site.notices if "longer than" in line and "n0" in line]
    site.step(700)
    assert site.notices == []


def test_of_one_that_runs_again_in_that_very_step_it_is_not_told_that_it_waits_too_long():
    site = suspended(Site(rule={**RULE, "longest": 400}))
    assert site.step(510, ev.JobEnded(510, "b", "completed")) == ["!a"]
    assert site.notices == []


# ------------------------------------------------------------------ words


def test_a_cluster_that_keeps_processors_for_suspended_jobs_is_refused():
    with pytest.raises(UserError, match=r"rules.0: how: suspend: expected a cluster where others may have"):
        Site(node_cluster(*alike(1, 4)))


def test_its_options_belong_to_it():
    with pytest.raises(UserError, match="longest: expected how: suspend beside it, found how: requeue"):
        options = {"rules": [{**RULE, "how": "requeue", "longest": 5}]}
        make_plugin(Preemption, PluginConfig("preemption", options, "site.yaml: plugins"))


def test_whoever_only_watches_tells_it_and_nothing_else():
    site = Site(monitor=True)
    a = described("a", 4, 1000.0, 0, qos="low")
    site.step(0, ev.JobSubmitted(0, a), ev.JobStarted(0, "a", (("n0", 4),)))
    assert site.arrive(100, "b", 4, "high", 300.0) == ["za"]
    assert site.step(101) == []
    assert "a" not in site.plugin._suspended


# ------------------------------------------------------------------ emulation


def test_in_emulation():
    jobs = [traced("a", 4, 1000, 0, qos="low"), traced("b", 4, 300, 100, qos="high")]
    plugin = Preemption(PreemptionOptions(rules=[RULE]))
    run = emulate(node_cluster(*alike(1, 4)), jobs, plugin, Easy(), FirstFit())
    high, low = run.results["b"], run.results["a"]
    assert (high.start_time, high.end_time) == (100, 400)
    assert (low.start_time, low.end_time, low.runtime) == (0, 1300, 1000)


# ------------------------------------------------------------------ what is said of it


def said(site):
    return " ".join(explain(site.scheduler, "a", "{:g}".format))


def test_explain_says_for_whom_and_until_when():
    site = suspended(Site())
    assert "It is suspended on n0, expected to end by 1300." in said(site)
    assert "It was suspended for job b; its place is kept for it from 402 on." in said(site)
    site.step(200, ev.NodeDown(200, "n0", "dead"), ev.JobEnded(200, "b", "node failure"))
    assert "does not run again yet: job a: node n0 is not available." in said(site)


def test_explain_says_what_a_suspended_job_keeps_of_what_another_waits_for():
    site = Site()
    site.arrive(0, "a", 4, memory_per_node=3000 * MIB)
    site.arrive(100, "b", 2, "high", memory_per_node=500 * MIB)
    site.step(101, ev.JobSuspended(101, "a"))
    site.arrive(102, "c", 1, memory_per_node=2000 * MIB)
    site.arrive(102, "d", 1)
    kept = "Suspended job a keeps what this job also asks for: memory."
    assert kept in explain(site.scheduler, "c", "{:g}".format)
    assert kept not in explain(site.scheduler, "d", "{:g}".format)


def test_explain_says_nothing_of_somebody_elses():
    site = Site()
    site.arrive(0, "a", 4)
    site.step(50, ev.JobSuspended(50, "a"))
    assert "suspended for" not in said(site)


def test_in_emulation_nobody_has_a_processor_twice_in_the_figures():
    """``a`` had its processors for 100 s, then ``b`` for 300, then ``a`` again for 900."""
    jobs = [traced("a", 4, 1000, 0, qos="low"), traced("b", 4, 300, 100, qos="high")]
    plugin = Preemption(PreemptionOptions(rules=[RULE]))
    run = emulate(node_cluster(*alike(1, 4)), jobs, plugin, Easy(), FirstFit())
    spans = [(span.start, span.end, span.processors) for span in run.results["a"].spans]
    assert spans == [(0, 100, 4), (400, 1300, 4)]
    figures = system_metrics(RunResult("test", node_cluster(*alike(1, 4)), run.adapter.results()))
    assert (figures.makespan, figures.work, figures.utilisation) == (1300, 5200, 1.0)
    assert (figures.mean_busy_processors, figures.no_demand) == (4, 0)


def test_a_dry_run_with_suspended_jobs_is_replayed(tmp_path):
    text = json.dumps(
        {"mode": "dry-run", "plugins": ["easy", "first-fit", {"preemption": {"rules": [RULE]}}]}
    )
    jobs = [traced("a", 4, 1000, 0, qos="low"), traced("b", 4, 300, 100, qos="high")]
    catalogue = Catalogue()
    with Journal.open(str(tmp_path / "run.db")) as journal:
        ran = whole_run(
            ClusterDescription.flat(4), jobs, parse_config(text, "test").plugin_configs(), catalogue,
            label="x", journal=journal, config_text=text,
        )  # fmt: skip
        found = replay(journal, catalogue)
    assert ran.jobs[0].spans
    assert (found.differences, found.decisions) == ([], 4)
