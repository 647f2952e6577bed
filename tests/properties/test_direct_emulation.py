"""A run is the same whether the emulated cluster keeps its own account from the beginning, or takes over what
the scheduler's account has by then: records, decisions, cycles, who is left waiting, what plugins saw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest
from building import traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.decisions import Cancel, Decision, Hold, Kill, Signal, Start
from headway.emulation import emulate
from headway.events import Event
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Dependency, PoolDescription
from headway.plugins import Again, Catalogue, PluginConfig, Traits
from headway.results import RunResult
from headway.state import Job, State, Status
from headway.view import View
from headway.workload import TraceJob

PROCESSORS = 8


class Watching:
    """Notes each event and decision, and what the state says of the jobs at each event."""

    seen: list[Any]

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        jobs = [(job.id, job.status, job.start_time, job.expected_end) for job in state.jobs.values()]
        queued = [[job.id for job in domain.queue] for domain in state.domains.values()]
        self.seen.append((state.now, event, jobs, queued))

    @hookimpl
    def decided(self, decisions: Sequence[Decision], state: State) -> None:
        self.seen.append((state.now, list(decisions)))

    @hookimpl
    def shutdown(self, state: State) -> None:
        self.seen.append((state.now, "over", state.seq))


class Counting:
    """Is told what jobs take and give back."""

    seen: list[Any]

    @hookimpl
    def startup(self, state: State) -> None:
        state.watch(self)

    def took(self, job: Job) -> None:
        self.seen.append(("took", job.id, job.start_time))

    def gave(self, job: Job) -> None:
        self.seen.append(("gave", job.id, job.expected_end))


class Turning:
    """An order that follows the clock."""

    traits = Traits(ask_again=Again.ANY_EVENT)

    @hookimpl
    def order_queue(self, jobs: Sequence[Job], state: State) -> Sequence[Job]:
        at = int(state.now) % len(jobs)
        return [*jobs[at:], *jobs[:at]]


class Waking:
    """Has its pools looked at from time to time, and refuses to start anything in between."""

    @hookimpl
    def startup(self, state: State) -> None:
        for pool in state.pools.values():
            state.wake_at(7.0, pool)

    @hookimpl
    def veto(self, decision: Decision, state: State) -> str | None:
        if int(state.now) % 7:
            for pool in state.pools.values():
                state.wake_at(7.0 * (state.now // 7 + 1), pool)
            return "not now"
        return None


class Predicting:
    """Predicts a third of the estimate, then two thirds."""

    @hookimpl
    def predict_runtime(self, job: Job, state: State) -> float | None:
        third = job.estimate / 3
        return None if job.id.endswith("3") else third if job.start_time is None else 2 * third


class Refusing:
    """Refuses, and fails at every fifth job."""

    @hookimpl
    def admit_job(self, job: Job, state: State) -> str | None:
        if job.id.endswith("5"):
            raise ValueError(f"job {job.id}")
        return "never" if job.id.endswith("4") else None


class Failing:
    """A policy that fails now and then, and leaves what it began."""

    traits = Traits(ask_again=Again.DOMAIN)

    @hookimpl
    def schedule(self, view: View) -> Iterable[Decision] | None:
        for job in view.queue:
            view.start(job, "tried")
        if int(view.now) % 3 == 0:
            raise RuntimeError("at a third second")
        return view.made


class Killing:
    """Decides something else than starts at the thirteenth second or later, once."""

    kind: type[Decision] = Kill
    status = Status.RUNNING

    def __init__(self) -> None:
        self._done = False

    @hookimpl
    def control(self, state: State) -> list[Decision]:
        found = [job for job in state.jobs.values() if job.status is self.status]
        if self._done or state.now < 13 or not found:
            return []
        self._done = True
        kind: Any = self.kind
        return [kind(found[0].id)]


class Holding(Killing):
    kind, status = Hold, Status.PENDING


class Cancelling(Killing):
    kind, status = Cancel, Status.PENDING


class Signalling(Killing):
    kind, status = Signal, Status.RUNNING


class Revising:
    """Gives each start another reason, and takes the starts of a job away for some time."""

    @hookimpl
    def revise(self, decisions: list[Decision], state: State) -> list[Decision]:
        kept = [
            one for one in decisions if not isinstance(one, Start) or one.job_id != "j2" or state.now > 30
        ]
        return [
            msgspec.structs.replace(one, reason="revised") if isinstance(one, Start) else one for one in kept
        ]


#: Plugins of this file by name.
OWN = {
    kind.__name__.lower(): kind
    for kind in (
        Watching, Counting, Turning, Waking, Predicting, Refusing, Failing, Killing, Holding, Cancelling,
        Signalling, Revising,
    )
}  # fmt: skip
LIMITS = {"of": {"user": {"*": {"jobs": 2, "processors": 7}}}}
POLICIES: list[tuple[str, dict[str, Any]]] = [
    ("fcfs", {}), ("easy", {}), ("easy", {"bookings": 2}), ("easy", {"backfill": "shortest-first"}),
    ("conservative", {}), ("los", {}), ("delayed-los", {}), ("hybrid-los", {}), ("select", {}),
    ("strict", {}), ("greedy", {}), ("window", {}), ("k-reserved", {}), ("failing", {}),
]  # fmt: skip
BESIDE: list[tuple[str, dict[str, Any]]] = [
    ("shortest-first", {}), ("largest-xfactor", {}), ("round-robin", {}), ("turning", {}),
    ("multifactor", {"weights": {"age": 10, "size": 100}}), ("limits", LIMITS), ("recent", {}),
    ("predicting", {}), ("refusing", {}), ("waking", {}), ("revising", {}), ("counting", {}),
    ("killing", {}), ("holding", {}), ("cancelling", {}), ("signalling", {}), ("fairness", {}),
]  # fmt: skip


class Shelf(Catalogue):
    """What is installed, and the plugins of this file; keeps what they have seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def get(self, name: str, where: str = "plugins") -> Any:
        if name not in OWN:
            return super().get(name, where)
        self.seen.append([])
        return type(name, (OWN[name],), {"seen": self.seen[-1]})


#: What makes a job one that is not plain.
ODD: list[dict[str, Any]] = [
    {"held": True}, {"array_id": "all"}, {"attributes": {"cpu": 0.5}}, {"licences": (("matlab", 1),)},
    {"reservation": "none"}, {"dependencies": (Dependency("ended", "j0"),)},
    {"dependencies": (Dependency("started", "j1"),)}, {"begin_time": 25.0}, {"further_pools": ("small",)},
]  # fmt: skip


@st.composite
def workloads(draw: Any, pools: tuple[str, ...]) -> list[TraceJob]:
    """Jobs of which few are not plain, or none."""
    jobs: list[TraceJob] = []
    submit = 0
    odd = draw(st.booleans())
    for at in range(draw(st.integers(1, 18))):
        submit += draw(st.sampled_from([0, 0, 1, 3, 8]))
        job = traced(
            f"j{at}",
            draw(st.integers(1, PROCESSORS + odd)),
            draw(st.integers(1, 20)),
            submit,
            runtime=draw(st.integers(0, 25)),
            outcome=draw(st.sampled_from(["completed", "completed", "failed", "timed out"])),
            pool=draw(st.sampled_from(pools)),
            user=draw(st.sampled_from("ab")),
            **(draw(st.sampled_from(ODD)) if odd and draw(st.integers(0, 5)) == 0 else {}),
        )
        jobs.append(job)
    return jobs


#: What a run tells.
TOLD = (
    "jobs", "refused", "left_waiting", "failures", "capacity", "activities", "power", "partitions", "cycles"
)  # fmt: skip


def ran(jobs: Sequence[TraceJob], plugins: Any, cluster: ClusterDescription, **more: Any) -> Any:
    """All that a run has to tell, and what its plugins have seen."""
    shelf, moments = Shelf(), list[float]()
    configs = [PluginConfig(name, options) for name, options in plugins]
    result: RunResult = emulate(
        cluster, jobs, configs, shelf, label="run", keep_decisions=True, on_cycle=moments.append, **more
    )
    return {name: getattr(result, name) for name in TOLD}, list(result.decisions), moments, shelf.seen


def the_same(jobs: Sequence[TraceJob], plugins: Any, cluster: ClusterDescription, **more: Any) -> None:
    directly = ran(jobs, plugins, cluster, **more)
    in_full = ran(jobs, plugins, cluster, direct=False, **more)
    for one, other in zip(directly, in_full, strict=True):
        assert one == other


ONE = ClusterDescription.flat(PROCESSORS)
TWO = ClusterDescription("two", (PoolDescription("wide", PROCESSORS), PoolDescription("small", 4)))
CLUSTERS = [(ONE, ("", ONE.pools[0].name)), (TWO, ("wide", "small"))]


@pytest.mark.parametrize("beside", [None, *BESIDE], ids=lambda one: one[0] if one else "alone")
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_run_that_begins_directly_is_the_same(beside: Any, data: Any) -> None:
    cluster, names = data.draw(st.sampled_from(CLUSTERS))
    jobs = data.draw(workloads(names))
    others = [beside, *data.draw(st.sampled_from([[], [], *([one] for one in BESIDE)]))] if beside else []
    watched = [("watching", {})] if data.draw(st.booleans()) else []
    plugins = [*dict(others).items(), *watched, data.draw(st.sampled_from(POLICIES))]
    cycle = data.draw(st.sampled_from([None, None, None, 5.0]))
    the_same(jobs, plugins, cluster, cycle=cycle)


def test_a_plugin_may_be_woken_before_the_first_job_comes() -> None:
    the_same([traced("a", 1, 10, 8), traced("b", 1, 10, 9)], [("waking", {}), ("easy", {})], ONE)


def test_a_job_comes_while_another_has_outlived_its_prediction() -> None:
    jobs = [traced("a", 6, 30, 0), traced("b", 4, 30, 12), traced("c", 2, 20, 13), traced("d", 8, 20, 25)]
    the_same(jobs, [("predicting", {}), ("watching", {}), ("easy", {})], ONE)
