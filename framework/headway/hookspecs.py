"""Every extension point, in the order in which a run calls them.

A plugin is a class whose methods are marked with :data:`hookimpl` and named after the hooks below.
It takes only the arguments it needs, by name. It is enabled in the configuration file, in whose
order plugins are asked::

    from headway.hookspecs import hookimpl

    class ShortestFirst:
        "Serve the shortest estimate first."

        @hookimpl
        def queue_key(self, job):
            return (job.estimate,)

A hook marked *first answer wins* asks plugins in configured order until one answers other than
None. A plugin that raises is named in the log and its answer is left out; a policy that raises
starts nothing in that cycle. ``docs/plugins`` has a complete example for each hook.

A domain (a pool, or pools that share nodes) is looked at when something happened to it, and what could not
start then is taken to be unable to start until something else happens than arrivals behind it. Each hook says
how long its answer stands. Nothing is asked because time passes: a plugin whose answer changes at a moment at
which nothing happens says so with ``state.wake_at(time, pool)``, which has the pool's domain looked at from
scratch then.

Beside its hooks a plugin has one record that says what it needs, when to ask it again and what an experiment
must know: its traits (:mod:`headway.plugins.traits`). Their defaults are safe and slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import click

    from headway.adapter.migration import MigrationHandler
    from headway.decisions import Answer, Decision
    from headway.events import Event
    from headway.model import Placement
    from headway.report import Section
    from headway.resources import Offer
    from headway.results import RunResult
    from headway.state import Barrier, Factor, Job, State
    from headway.view import View
    from headway.workload import EstimateModel, WorkloadModel

PROJECT = "headway"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class _NoMore(tuple["Decision", ...]):
    """No decisions, now and later."""

    __slots__ = ()


#: What ``react`` may answer: no decisions, and it need not be called again.
NO_MORE = _NoMore()


class HookSpecs:
    """The hooks. The first group is called by the scheduler, the second by whoever needs it."""

    # ------------------------------------------------------------------ a run's beginning and end

    @hookspec
    def register_factors(self) -> Mapping[str, Factor] | None:
        """Properties of jobs by name that orders and limits can weigh: functions of several jobs and the
        state whose values, one a job, are between 0 and 1. Called once, before :meth:`startup`; everybody
        finds them in ``state.factors``. Of two with one name that of the first plugin counts.

        A factor is asked as often as its user wants, about jobs in any order, and must not change what
        anybody sees. One with a method ``one(job, state)`` is asked about a single job by that, and answers
        the same number."""

    @hookspec
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        """The run begins; ``state`` knows pools and nodes but no job yet. A
        :class:`headway.errors.UserError` ends it: the options do not fit the cluster.

        ``capabilities`` are the decision types that the cluster carries out."""

    @hookspec
    def restore(self, saved: Any, counting_on: bool) -> None:
        """Take up what :meth:`checkpoint` of the same plugin once returned. Called after startup,
        only when a journal has something saved for this plugin. ``counting_on``: nothing was missed since
        then, because the events since are shown next (trait ``checkpoint="counts"``)."""

    @hookspec
    def checkpoint(self) -> Any:
        """What the plugin must remember over a restart, as JSON values; None for nothing. A copy: what the
        plugin changes later must not change in it."""

    @hookspec(firstresult=True)
    def promised(self) -> int | None:
        """How often what the plugin has promised to jobs has changed, for a plugin whose checkpoint holds
        promises (trait ``checkpoint="promises"``). Asked after each step: when the number has changed, the
        plugin's checkpoint is saved before the step's decisions have an effect, so a crash cannot revoke a
        promise."""

    @hookspec
    def shutdown(self, state: State) -> None:
        """The run ends in an orderly way."""

    # ------------------------------------------------------------------ events

    @hookspec
    def observe(self, event: Event, state: State) -> None:
        """An event was folded into the state. For learning and counting; decide in other hooks. Asked about
        the events that the trait ``observes`` names, or about all."""

    @hookspec(firstresult=True)
    def predict_runtime(self, job: Job, state: State) -> float | None:
        """How long the job will run, in seconds. First answer wins; without one, the estimate.

        Asked when a job arrives or changes, when a start of it is taken back, and when it outlives what it
        was predicted (``job.start_time`` and ``state.now`` tell how long it runs): then an answer that is
        over already means the estimate. Stands until then.

        Its pool is looked at at that moment where that may let a job start: one waits that is not larger than
        what is free.
        Otherwise it is asked at the pool's next look, so perhaps once for several corrections."""

    @hookspec(firstresult=True)
    def admit_job(self, job: Job, state: State) -> str | None:
        """A refusal with its reason, or None. First refusal wins. A refused job is never started;
        it stays with the batch system, and ``headway explain`` gives the reason. A job of several pools is
        asked about in each of them (``job.pool``), and is not started in one where it is refused. Asked when
        a job arrives or changes; stands until it changes. Not asked about jobs that have ended before
        anything is decided, such as those that a batch system still lists when the daemon begins."""

    @hookspec(firstresult=True)
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        """Why a job may not start now although it could: a limit that is reached. First answer wins.

        Asked when a job is to enter its queue, and for each start, those of the same pass counted
        (``state.watch`` tells who takes and gives back processors). A barred job is in no queue: it holds
        up nobody and is not booked, and ``headway explain`` gives the reason. It is asked about again
        when it changes, and when the plugin says, in ``react``, that there may be room:
        ``state.lifted(barrier.key)``. A job that waits in its queue and that no policy tries is not asked
        about: a plugin that may come to bar it without a start in its pool, because time passes say, has all
        that wait asked about, in ``react``: ``state.bar_queued(pool)``. A pass in which a job turns out to be
        barred is taken back, and the policy is asked once more without it. Jobs of one size and with the same
        value of the trait ``same_answer`` have the same answer; one of them is asked about."""

    @hookspec(firstresult=True)
    def bar_jobs(self, jobs: Sequence[Job], state: State) -> Sequence[Barrier | None] | None:
        """The answers of ``bar_job`` about several jobs, in their order, as the plugin would give them one by
        one at that moment; it must not matter to any of them that another of these waits. Optional beside
        ``bar_job``: asked instead about jobs that are looked at together, if no other plugin bars jobs."""

    @hookspec(firstresult=True)
    def queue_key(self, job: Job, state: State) -> tuple[Any, ...] | None:
        """The job's place in its queue: smaller keys first, ties by submission. First answer wins.

        Asked when a job arrives or changes; the queue is then kept sorted at no cost a cycle.
        Without an answer the order is that of submission. The key stands until the job changes: one
        that follows time or other jobs belongs into ``order_queue``, or its plugin says when it is another
        one: ``state.rekey(jobs)``, and ``state.outdate_keys()`` for the jobs that are in no queue."""

    @hookspec
    def react(self, state: State) -> Iterable[Decision] | None:
        """Decisions that come before all policies: answers to users' commands. Called once a step.

        Each decision counts at once, whichever hook makes it, so the policies see the job as it will be
        (but processors that a running job gives back are free only when the cluster says so); if
        the cluster refuses it, the job is again what its description says. A generator sees the
        effect of what it has yielded. A plugin that has nothing more to do here, whatever comes,
        answers :data:`NO_MORE` and is not called again in this run."""

    # ------------------------------------------------------------------ a cycle, domain by domain

    @hookspec(firstresult=True)
    def order_queue(self, jobs: Sequence[Job], state: State) -> Sequence[Job] | None:
        """A domain's queue in service order, for orders that change with time (fair share,
        aging). First answer wins. Where a fixed key does, use ``queue_key``. A higher tier of a job's pool
        comes first whatever the answer.

        Asked about each queue in each step in which something happened, in any domain; what was booked
        under an earlier answer is booked anew."""

    @hookspec
    def prepare(self, view: View) -> None:
        """Book capacity before the policy is asked, for jobs that are not in the queue yet
        (``view.book(job, after=...)``). No start may break such a booking. Called when the domain's
        bookings are made anew, also when its queue is empty; they stand while only arrivals at the
        queue's tail happen there (trait ``ask_again=Again.DOMAIN``), or are made anew at each event
        (``Again.ANY_EVENT``, the default)."""

    @hookspec(firstresult=True)
    def schedule(self, view: View) -> Iterable[Decision] | None:
        """**The policy**: which jobs start now. First answer wins.

        Try a start with ``view.start(job, reason)`` (None: it does not fit now), keep capacity for
        a later one with ``view.book(job)``; return the starts that were made.

        Asked at each event in its domain, or, with the trait ``ask_again=Again.DOMAIN``, not after arrivals
        at the queue's tail that need more processors than are free."""

    @hookspec(firstresult=True)
    def place(self, job: Job, offer: Offer, view: View) -> Placement | None:
        """Which nodes a starting job gets, on node pools. First answer wins.

        ``offer`` holds the nodes that could host it; return ``offer.take(order)`` with your order
        of preference; ``offer.time`` is when the job would start, later than now where it is to be booked.
        None from all plugins: the job does not fit. ``()``: it must not be placed on
        any of them now, whatever the other plugins would say.

        A job that found no place is tried again in each step in which something happened; with the trait
        ``ask_again=Again.DOMAIN`` when something else than arrivals at the queue's tail has happened in its
        domain; with ``Again.ROOM`` when something was taken or given back. In one cycle it is not tried again
        after a job of the same shape and ``same_answer`` that found no place."""

    # ------------------------------------------------------------------ a cycle, all domains

    @hookspec(firstresult=True)
    def arrival_chance(self, pool: str, seconds: float, state: State) -> float | None:
        """The chance, from 0 to 1, that at least one job is submitted to a pool within so many seconds from
        now. First answer wins.

        Asked by plugins that prepare for arrivals, such as those that wake nodes, whenever they like, with
        ``state.arrival_chance(pool, seconds)``: None where nobody answers. Must not change what anybody
        sees."""

    @hookspec
    def control(self, state: State) -> Iterable[Decision] | None:
        """Further decisions: elastic commands, power, reservations. Called once a step.

        They count at once, as those of ``react``. A start passes the same guard as a policy's; on nodes it
        names its placement."""

    @hookspec
    def revise(self, decisions: list[Decision], state: State) -> list[Decision] | None:
        """The decisions of the step, changed (frequency, tier, size). A pipeline in configured
        order: each plugin gets what the one before returned. None: no change. What is left out is undone,
        what is added counts at once, or is left out with a problem if it cannot be.

        What is added about a job whose start is vetoed then (such as a longer limit) goes with it."""

    @hookspec(firstresult=True)
    def veto(self, decision: Decision, state: State) -> str | None:
        """A reason why the decision must not be taken, or None. Any veto counts. A vetoed decision is undone:
        what was decided about the same job before it stands. The pool of a start that
        is vetoed, or that ``revise`` leaves out, is looked at from scratch in the next step."""

    @hookspec
    def decided(self, decisions: Sequence[Decision], state: State) -> None:
        """What was finally decided in this step; called when there is something."""

    @hookspec(firstresult=True)
    def answer(self, request: str) -> Answer | None:
        """What became of a user's request that came with an event of this step; None if it is not
        yours. Asked once, after the step's decisions were handed to the cluster."""

    # ------------------------------------------------------------------ outside the loop

    @hookspec(firstresult=True)
    def explain(self, job: Job, question: str, view: View, clock: Callable[[float], str]) -> str | None:
        """What ``headway explain`` says of a job, as a sentence without its full stop; None or "": nothing.
        ``clock`` turns a time into words. The questions:

        ``"placement"``
            why the plugin places a waiting job nowhere now although nodes are free (hook ``place``).
        ``"waiting"``
            why the policy did not look at a waiting job without a booking, or does not book it.
        ``"suspension"``
            for which job the plugin has suspended it, and when it is to run again.
        ``"prediction"``
            what the prediction that counts for it follows from, as the end of a sentence.
        ``"no prediction"``
            why the plugin does not predict it although it could have."""

    @hookspec
    def migrate(self) -> MigrationHandler | None:
        """One way to move running jobs on a real cluster: see :mod:`headway.adapter.migration`. The plugins'
        handlers are asked in configured order, and the first that suits a move carries it out. Such a plugin
        says what it ``gives``. Asked once, before the run begins; emulated clusters move jobs by
        themselves."""

    @hookspec
    def register_commands(self, cli: click.Group) -> None:
        """Add commands to the ``headway`` command line."""

    @hookspec
    def register_workloads(self) -> dict[str, WorkloadModel] | None:
        """Workload models by name: see :class:`headway.workload.WorkloadModel`."""

    @hookspec
    def register_estimates(self) -> dict[str, EstimateModel] | None:
        """Models of users' runtime estimates by name: see :class:`headway.workload.EstimateModel`."""

    @hookspec
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]] | None:
        """Further metrics by name, each computed from a run's result; they appear in
        ``metrics.json`` under ``extra`` and in the report."""

    @hookspec
    def register_job_columns(self) -> dict[str, Callable[[RunResult], Any]] | None:
        """Further columns of ``jobs.csv`` by name: of a run's result one number a job, in the order of its
        jobs; NaN: the field stays empty. They stand behind all others."""

    @hookspec
    def register_report_sections(self, results: Sequence[RunResult]) -> Sequence[Section] | None:
        """Further sections of the HTML report."""

    @hookspec
    def register_physics(self) -> Any:
        """A physics module of the emulated cluster: an object whose ``rate(execution, now)`` gives
        a factor on a job's speed; or a :class:`headway.workload.sharing.Sharing`: what it costs jobs to share
        processors in two tiers; or a :class:`headway.model.bundles.Oversubscription`: what it costs an
        application to run on fewer processors than it has processes. See ``docs/plugins``."""


class Plugin:
    """A convenient base for plugins: keeps the options. Using it is not required."""

    def __init__(self, options: Any = None) -> None:
        self.options = options
