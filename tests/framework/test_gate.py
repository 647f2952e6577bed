"""The gate: a decision means the same from every hook that may make it, and is undone without a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from building import alike, described, node_cluster, plugged

from headway import events as ev
from headway.decisions import (
    DECISION_TYPES,
    Annotate,
    Bind,
    Cancel,
    Checkpoint,
    Copy,
    Decision,
    Drop,
    Hold,
    Kill,
    Migrate,
    PowerDown,
    PowerUp,
    Release,
    Requeue,
    Reserve,
    Resize,
    Resume,
    Route,
    SetFrequency,
    SetTimeLimit,
    Signal,
    Start,
    SubmitSubjob,
    Suspend,
    SwapTiers,
    Tell,
    Unreserve,
)
from headway.hookspecs import hookimpl
from headway.model import Dataset, Link, Reservation, Site, Sites, Store
from headway.model.bundles import BUNDLE
from headway.scheduler import Scheduler
from headway.scheduler.gate import EFFECTS

HOOKS = ("react", "schedule", "control", "revise")


def briefly(decision: Decision) -> str:
    about = [getattr(decision, field) for field in decision.__struct_fields__[:2]]
    return " ".join(
        [type(decision).__name__, *(str(one) for one in about if isinstance(one, str | float | int))]
    )


def reservation(name: str = "r", processors: int = 1, start: float = 50.0) -> Reservation:
    nodes = tuple(f"n{at}" for at in range(processors))
    return Reservation(name, start, start + 50.0, nodes=nodes)


#: One of each kind that the machine below allows.
ALLOWED = [
    Start("waits", (("n3", 2),)),
    Hold("waits"),
    Release("waits"),
    Suspend("runs"),
    Resume("aside"),
    Checkpoint("runs"),
    Migrate("runs", (("n3", 2),)),
    Signal("runs", "TERM", 30.0),
    Signal("runs", "USR1"),
    Requeue("runs"),
    Kill("runs"),
    Cancel("waits"),
    SetTimeLimit("runs", 500.0),
    SetTimeLimit("waits", 500.0),
    Annotate("waits", "key", "value"),
    Resize("runs", 3, (("n0", 3),)),
    Resize("runs", 1, (("n0", 1),)),
    Resize("waits", 1),
    SwapTiers("behind", "front"),
    SetFrequency("runs", 1e9),
    PowerDown(("n3",)),
    PowerUp(("n3",)),
    Reserve(reservation()),
    Unreserve("r"),
    SubmitSubjob("runs", described("runs.1", 1, pool="pool", attributes={BUNDLE: "runs"})),
    Route("waits", "other"),
    Bind("waits", "kept"),
    Bind("waits", ""),
    Copy("d", "south", "north"),
    Drop("e", "south"),
    Tell("ann", "a subject", "a text"),
]

#: And what it refuses.
REFUSED = [
    Start("nobody"),
    Start("runs", (("n3", 2),)),
    Start("waits", (("n0", 4),)),
    Resume("runs"),
    Resume("nobody"),
    Migrate("nobody", (("n3", 2),)),
    Migrate("runs", (("n1", 4),)),
    SwapTiers("runs"),
    SubmitSubjob("nobody", described("nobody.1", 1)),
    Route("nobody", "other"),
    Route("runs", "other"),
    Route("waits", "pool"),
    Route("waits", "nowhere"),
    Bind("nobody", "kept"),
    Bind("runs", "kept"),
    Bind("waits", "nowhere"),
    Bind("waits", "job_runs"),
    Copy("e", "south", "north"),
    Copy("d", "south", "east"),
    Copy("large", "south", "north"),
]


class Wishes:
    """Makes each decision in its hook in the step at its time; vetoes those that it is told to."""

    def __init__(self, *wishes: tuple[float, str, Decision], vetoed: tuple[Decision, ...] = ()) -> None:
        self.wishes, self.vetoed = list(wishes), vetoed

    def _due(self, hook: str, now: float) -> list[Decision]:
        return [decision for time, where, decision in self.wishes if (time, where) == (now, hook)]

    @hookimpl
    def react(self, state):
        return self._due("react", state.now)

    @hookimpl
    def schedule(self, view):
        return self._due("schedule", view.now) or None

    @hookimpl
    def control(self, state):
        # Something to revise.
        return [*self._due("control", state.now), Annotate("waits", "is", "there")]

    @hookimpl
    def revise(self, decisions, state):
        return [*decisions, *self._due("revise", state.now)]

    @hookimpl
    def veto(self, decision):
        return "no" if any(decision is one for one in self.vetoed) else None


#: Two sites, of which one has room for some of what the other has.
SITES = Sites(
    (Site("north", store=Store()), Site("south", store=Store(capacity=10)), Site("east", store=Store())),
    (Link("north", "south", 1.0), Link("east", "south", 0.0)),
    (
        Dataset("d", 5, ("north", "east")),
        Dataset("e", 5, ("south", "north")),
        Dataset("large", 6, ("north",)),
    ),
)


def machine(*plugins: Any, **more: Any) -> Scheduler:
    """Four nodes of four processors at time 10: a job runs on the first, two share the second in both tiers,
    one lends the third's, one waits."""
    reserved = (
        Reservation("kept", 200.0, 300.0, nodes=("n3",)),
        Reservation("job_runs", 400.0, 500.0, nodes=("n3",), ours=True),
    )
    cluster = node_cluster(
        *alike(4, 4), pools=("pool", "other"), suspended_lend=True, sites=SITES, reservations=reserved
    )
    made = Scheduler(cluster, plugged(*plugins), **more)
    made.state.watch_tenants()
    sizes = {"runs": 2, "front": 4, "behind": 4, "aside": 4, "waits": 2}
    made.step(
        0, [ev.JobSubmitted(0, described(name, size, 100, pool="pool")) for name, size in sizes.items()]
    )
    made.step(0, [
        ev.JobStarted(0, "runs", (("n0", 2),)),
        ev.JobStarted(0, "front", (("n1", 4),)),
        ev.JobStarted(0, "behind", (("n1", 4),), tier="background"),
        ev.JobStarted(0, "aside", (("n2", 4),)),
    ])  # fmt: skip
    made.step(5, [ev.JobSuspended(5, "aside")])
    assert made.state.lend(made.state.jobs["aside"])
    made.problems.clear()
    return made


def known(scheduler: Scheduler) -> dict[str, Any]:
    """All that decisions may change."""
    state = scheduler.state
    jobs = {
        job.id: (
            job.status, job.estimate, job.expected_end, job.expected_runtime, job.processors, job.placement,
            job.tier, job.gone_by, job.aside, job.lends, job.frequency, job.start_time, job.bound_for,
            job.description.reservation, job.unconditional,
        )
        for job in state.jobs.values()
    }  # fmt: skip
    domain = state.domains["pool"]
    return {
        "jobs": jobs,
        "reservations": dict(state.reservations),
        "foreseen": dict(state.foreseen),
        "before a binding": dict(state.before_binding),
        "before a move": dict(state.before_move),
        "before growth": dict(state.before_growth),
        "returning": set(state.returning),
        "free": list(state.nodes.free.processors),
        "running": [(entry[0], entry[2], entry[3].id) for entry in domain.running],
        "queue": [job.id for job in domain.queue],
        "background": sorted(domain.background),
        "free processors": domain.free,
        "copies": dict(state.catalogue.copies),
    }


def after(*wishes: tuple[float, str, Decision], vetoed: tuple[Decision, ...] = (), **more: Any):
    """What is decided, what the state is, and what was told at 10 and 11."""
    made = machine(Wishes(*wishes, vetoed=vetoed), **more)
    decided: list[Decision] = []
    for now in (10.0, 11.0):
        decided += made.step(now, [ev.Tick(now)])
    return (
        [decision for decision in decided if not isinstance(decision, Annotate) or decision.key == "key"],
        known(made),
        [problem.message for problem in made.problems],
    )


def test_every_kind_of_decision_has_its_effect():
    assert set(EFFECTS) == set(DECISION_TYPES.values()) == {type(decision) for decision in ALLOWED}


@pytest.mark.parametrize("decision", ALLOWED, ids=briefly)
def test_it_means_the_same_from_every_hook(decision):
    outcomes = [after((10.0, hook, decision)) for hook in HOOKS]
    assert all(outcome == ([decision], outcomes[0][1], []) for outcome in outcomes)


@pytest.mark.parametrize("decision", REFUSED, ids=briefly)
def test_what_the_state_refuses_leaves_by_no_hook_and_is_told(decision):
    nothing = after()[1]
    for hook in HOOKS:
        decided, state, problems = after((10.0, hook, decision))
        assert (decided, state, len(problems)) == ([], nothing, 1)


@pytest.mark.parametrize("decision", ALLOWED, ids=briefly)
def test_a_veto_leaves_the_state_as_it_was(decision):
    nothing = after()[1]
    for hook in HOOKS:
        assert after((10.0, hook, decision), vetoed=(decision,)) == ([], nothing, [])


@pytest.mark.parametrize("decision", ALLOWED, ids=briefly)
def test_where_nobody_carries_it_out_the_state_is_as_it_was(decision):
    nothing = after(monitor=True)[1]
    for hook in HOOKS:
        decided, state, problems = after((10.0, hook, decision), monitor=True)
        assert (decided, state, problems) == ([decision], nothing, [])


#: Two wishes for the same thing, both of which can be.
PAIRS = [
    (SetTimeLimit("runs", 500.0), SetTimeLimit("runs", 300.0)),
    (SetTimeLimit("waits", 500.0), SetTimeLimit("waits", 300.0)),
    (Resize("runs", 3, (("n0", 3),)), Resize("runs", 4, (("n0", 4),))),
    (Resize("waits", 1), Resize("waits", 3)),
    (Kill("runs"), Signal("runs", "TERM", 30.0)),
    (Signal("runs", "TERM", 30.0), Requeue("runs")),
    (Suspend("runs"), Kill("runs")),
    (Reserve(reservation()), Reserve(reservation(processors=2))),
    (Migrate("runs", (("n3", 2),)), Migrate("runs", (("n2", 2),))),
    (SwapTiers("behind", "front"), SwapTiers("front", "behind")),
    (SetTimeLimit("runs", 500.0), Kill("runs")),
    (Resume("aside"), Reserve(reservation())),
    (Bind("waits", "kept"), Bind("waits", "")),
    (Bind("waits", "kept"), SetTimeLimit("waits", 500.0)),
]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=briefly)
def test_a_vetoed_second_wish_leaves_the_first(first, second):
    alone = after((10.0, "react", first))
    for hook in HOOKS:
        assert after((10.0, "react", first), (10.0, hook, second), vetoed=(second,)) == alone
        # The first has left already, and the cluster has not said what became of it.
        assert after((10.0, "react", first), (11.0, hook, second), vetoed=(second,)) == alone


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=briefly)
def test_a_vetoed_first_wish_leaves_the_second(first, second):
    for hook in HOOKS[1:]:
        decided, state, problems = after((10.0, "react", first), (10.0, hook, second), vetoed=(first,))
        alone = after((10.0, hook, second))
        if isinstance(second, SwapTiers):
            # It was possible only after the other.
            assert (decided, state, len(problems)) == ([], alone[1], 1)
        else:
            assert (decided, state, problems) == alone


def test_room_that_a_vetoed_move_made_is_not_given_to_a_start():
    moves, start = Migrate("runs", (("n3", 2),)), Start("waits", (("n0", 4),))
    wide: Callable[[float, str], Any] = lambda time, hook: (time, hook, Resize("waits", 4))  # noqa: E731
    wishes = [wide(10.0, "react"), (10.0, "react", moves), (10.0, "control", start)]
    decided, state, problems = after(*wishes)
    assert start in decided and not problems
    decided, state, problems = after(*wishes, vetoed=(moves,))
    assert decided == [Resize("waits", 4)] and len(problems) == 1
    assert state == after(wide(10.0, "react"))[1]


class EveryJob:
    """A policy that starts all that it can."""

    @hookimpl
    def schedule(self, view):
        return [start for job in view.queue if (start := view.start(job))]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_reservation_counts_before_the_cluster_tells_it(hook):
    """A job of 1,000 s does not start into a window that was just reserved."""
    wish = (10.0, hook, Reserve(reservation(processors=4)))
    made = Scheduler(node_cluster(*alike(4, 4)), plugged(Wishes(wish), EveryJob()))
    made.step(10, [ev.JobSubmitted(10, described("short", 1, 10))])
    made.step(11, [ev.JobSubmitted(11, described("long", 1, 1000))])
    assert made.state.jobs["long"].start_time is None
