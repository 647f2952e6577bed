"""Two tiers on random workloads: no processor has two processes of a tier, no job is lost, runs repeat."""

from __future__ import annotations

import pytest
from building import emulate, traced
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Start
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.workload.sharing import Sharing, with_cpu_use
from headway_plugins.consolidation.manager import Consolidation, ConsolidationOptions
from headway_plugins.policies.easy import Easy

#: Each is a whole emulation, or four.
EXAMPLES = 15
PROCESSORS = 6
CLUSTER = ClusterDescription.flat(PROCESSORS).in_nodes()

jobs = st.lists(
    st.tuples(
        st.integers(1, PROCESSORS), st.integers(1, 40), st.integers(0, 100), st.floats(0.2, 1.0),
        st.floats(0.1, 1.0),
    ),
    min_size=1, max_size=14,
)  # fmt: skip


def workload(drawn, *, greedy=False):
    """Jobs (processors, runtime, submit, share of the estimate that is used, CPU use), in order of
    submission."""
    found = []
    for at, (size, runtime, submit, share, use) in enumerate(sorted(drawn, key=lambda one: one[2])):
        cpu = {"cpu": 1.0 if greedy else use}
        found.append(traced(f"j{at}", size, runtime / share, submit, runtime=runtime, attributes=cpu))
    return with_cpu_use(found, Sharing(), 1)


class Watch:
    """Looks, whenever something was decided, whether the state adds up."""

    def __init__(self):
        self.looked = 0

    @hookimpl
    def decided(self, decisions, state):
        self.looked += 1
        (pool,) = state.domains.values()
        front, behind = [], []
        for job in state.running_jobs():
            (behind if job.behind else front).extend(name for name, _ in job.placement)
            assert job.behind == (job.tier == "background") == (job.id in pool.background)
        assert len(set(front)) == len(front) and len(set(behind)) == len(behind)
        # What is behind never counts in what is free.
        assert pool.free == PROCESSORS - len(front)
        assert sum(entry[2] for entry in pool.running) == len(front)


@pytest.mark.parametrize("variant", ["keasy", "reasy", "measy"])
@settings(deadline=None, max_examples=EXAMPLES)
@given(drawn=jobs)
def test_every_job_ends_once_and_no_processor_is_given_twice(variant, drawn):
    watch = Watch()
    plugin = Consolidation(ConsolidationOptions(variant=variant, migration_cost=3))
    run = emulate(CLUSTER, workload(drawn), plugin, watch, sharing=plugin.register_physics(), sharing_seed=1)
    assert run.problems == [] and watch.looked
    assert set(run.states.values()) == {"completed"}
    ended = [event.job_id for event in run.adapter.told if isinstance(event, ev.JobEnded)]
    assert len(ended) == len(set(ended)) == len(drawn)
    for result, trace in zip(run.results.values(), workload(drawn), strict=True):
        # All its work was done, and at no more than full speed.
        assert result.runtime == pytest.approx(trace.runtime, abs=1e-5)
        assert result.end_time - result.start_time >= trace.runtime - 1e-5


@settings(deadline=None, max_examples=EXAMPLES)
@given(drawn=jobs)
def test_the_same_run_again_is_the_same(drawn):
    def one():
        plugin = Consolidation()
        return emulate(CLUSTER, workload(drawn), plugin, sharing=plugin.register_physics(), sharing_seed=1)

    first, second = one(), one()
    assert first.decisions == second.decisions and first.adapter.told == second.adapter.told


@settings(deadline=None, max_examples=EXAMPLES)
@given(drawn=jobs)
# The last one starts at 26: at 27 the one before it has two processors, whichever they are.
@example(drawn=[(1, 1, 0, 1, 1)] * 3 + [(1, 1, 7, 1, 1), (5, 20, 7, 1, 1), (2, 1, 8, 1, 1), (1, 2, 26, 1, 1)])
def test_where_nobody_can_be_behind_all_three_are_easy(drawn):
    """What starts in front where nobody is ever behind is what EASY starts, whose bookings count processors:
    on nodes of one processor it would book certain ones."""
    easy = emulate(ClusterDescription.flat(PROCESSORS), workload(drawn, greedy=True), Easy())
    for variant in ("keasy", "reasy", "measy"):
        plugin = Consolidation(ConsolidationOptions(variant=variant, loss=0, efficiency=1))
        run = emulate(CLUSTER, workload(drawn, greedy=True), plugin, sharing=plugin.register_physics())
        behind = [d for _, d in run.decisions if isinstance(d, Start) and d.tier == "background"]
        if not behind:
            assert run.starts == easy.starts


class Noted(Consolidation):
    """Notes when it looked at the front: steps 1 and 2."""

    def __init__(self, options):
        super().__init__(options)
        self.looked = []

    def _foreground(self, view, slots):
        self.looked.append(view.now)
        super()._foreground(view, slots)


def front_events(told):
    """When jobs arrived, and when jobs left the front."""
    front, times = set(), set()
    for event in told:
        if isinstance(event, ev.JobSubmitted) or (isinstance(event, ev.JobEnded) and event.job_id in front):
            times.add(event.time)
        elif isinstance(event, ev.JobStarted | ev.JobMigrated | ev.JobTierChanged):
            (front.discard if event.tier == "background" else front.add)(event.job_id)
    return times


@pytest.mark.parametrize("variant", ["keasy", "reasy", "measy"])
@settings(deadline=None, max_examples=4 * EXAMPLES)
@given(drawn=jobs, cost=st.sampled_from([3, 60, 200]))
def test_the_front_is_looked_at_when_a_job_arrives_or_leaves_it_and_at_no_other_time(variant, drawn, cost):
    """Neither the end of a move's pause nor an expected end that has come is such a time."""
    plugin = Noted(ConsolidationOptions(variant=variant, migration_cost=cost))
    run = emulate(CLUSTER, workload(drawn), plugin, sharing=plugin.register_physics(), sharing_seed=1)
    assert run.problems == []
    times = sorted(front_events(run.adapter.told))
    for now in plugin.looked:
        at = min(range(len(times)), key=lambda i: abs(times[i] - now))
        assert abs(times[at] - now) <= 1e-6, f"at {now}"
