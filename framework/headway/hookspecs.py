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

The scheduler looks at a domain (a pool, or pools that share nodes) when something happened to it. A job that
could not start then is not tried again until something else happens than arrivals behind it. Each hook says
how long its answer stands. The scheduler asks nothing because time passes. A plugin whose answer changes at a
moment at which nothing happens calls ``state.wake_at(time, pool)``: the scheduler looks at the pool's domain
from scratch at that time.

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
    from headway.model.questions import Question
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
    """The hooks. The scheduler calls the first groups; the last group is called outside its loop."""

    # ------------------------------------------------------------------ a run's beginning and end

    @hookspec
    def register_factors(self) -> Mapping[str, Factor] | None:
        """Properties of jobs by name that orders and limits can weigh. A factor is a function of several
        jobs and the state; its values, one per job, are between 0 and 1. Called once, before
        :meth:`startup`; all plugins find the factors in ``state.factors``. When two factors have the same
        name, the first plugin's factor counts.

        Plugins ask a factor at any time, about jobs in any order, so it must change nothing that another
        plugin sees. A factor with a method ``one(job, state)`` answers about a single job by that method,
        with the same number. A factor that notes something when it is asked (what it has computed, users that
        are new) has a method ``aside(jobs, state)``: the same numbers, and nothing is noted. Users' questions
        are answered by it (:meth:`inform`)."""

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
        """How often the plugin's promises to jobs have changed, for a plugin whose checkpoint holds
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
        """How long the job will run, in seconds. First answer wins; without an answer the estimate counts.

        Asked when a job arrives or changes, when a start of it is taken back, and when the job outlives its
        prediction (``job.start_time`` and ``state.now`` tell how long it runs). When the job outlives its
        prediction, an answer that is over already means the estimate. The answer stands until the next
        question.

        When a job outlives its prediction and a waiting job is no larger than what is free, the scheduler
        looks at the pool at once and asks the plugin. Otherwise it asks at the pool's next look, so perhaps
        once for several corrections."""

    @hookspec(firstresult=True)
    def admit_job(self, job: Job, state: State) -> str | None:
        """A refusal with its reason, or None. First refusal wins. The scheduler never starts a refused job;
        the job stays with the batch system, and ``headway explain`` gives the reason. A job of several pools
        is asked about in each of them (``job.pool``), and is not started in a pool that refuses it. Asked
        when a job arrives or changes; stands until it changes. Not asked about jobs that have ended before
        anything is decided, such as ended jobs that a batch system still lists when the daemon begins."""

    @hookspec(firstresult=True)
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        """Why a job may not start now although it could: a limit that is reached. First answer wins.

        Asked when a job is to enter its queue, and for each start; the starts of the same pass count
        (``state.watch`` tells which jobs take and give back processors). A barred job is in no queue: it
        holds up no job and is not booked, and ``headway explain`` gives the reason. The plugin is asked again
        when the job changes, and when the plugin says, in ``react``, that there may be room:
        ``state.lifted(barrier.key)``. The plugin is not asked about a waiting job that no policy tries. A
        plugin whose answer about such jobs can change without a start in their pool (because time passes)
        calls ``state.bar_queued(pool)`` in ``react``: then it is asked about all jobs that wait there. When a
        job turns out to be barred, the pass is taken back, and the policy is asked once more without the job.
        Jobs of one size and with the same value of the trait ``same_answer`` have the same answer; the plugin
        is asked about one of them."""

    @hookspec(firstresult=True)
    def bar_jobs(self, jobs: Sequence[Job], state: State) -> Sequence[Barrier | None] | None:
        """The answers of ``bar_job`` about several jobs, in the jobs' order. Each answer is what ``bar_job``
        would give at that moment; it must not depend on whether the other jobs wait. Optional beside
        ``bar_job``: asked instead about jobs that are looked at together, if no other plugin bars jobs."""

    @hookspec(firstresult=True)
    def queue_key(self, job: Job, state: State) -> tuple[Any, ...] | None:
        """The job's place in its queue: smaller keys first, ties by submission. First answer wins.

        Asked when a job arrives or changes; the queue is then kept sorted at no cost a cycle.
        Without an answer the order is that of submission. The key stands until the job changes. A key
        that follows time or other jobs belongs into ``order_queue``, or its plugin says when the key has
        changed: ``state.rekey(jobs)``, and ``state.outdate_keys()`` for the jobs that are in no queue."""

    @hookspec
    def react(self, state: State) -> Iterable[Decision] | None:
        """Decisions that come before all policies: answers to users' commands. Called once a step.

        Each decision counts at once, whichever hook makes it, so the policies see the job as it will be.
        Processors that a running job gives back are free only when the cluster says so. If the cluster
        refuses the decision, the job is again what its description says. A generator sees the effect of
        what it has yielded. A plugin that has nothing more to do here, whatever comes, answers
        :data:`NO_MORE` and is not called again in this run."""

    # ------------------------------------------------------------------ a cycle, domain by domain

    @hookspec(firstresult=True)
    def order_queue(self, jobs: Sequence[Job], state: State) -> Sequence[Job] | None:
        """A domain's queue in service order, for orders that change with time (fair share,
        aging). First answer wins. Where a fixed key does, use ``queue_key``. The jobs of a pool of a higher
        priority tier come first whatever the answer.

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
        a later start with ``view.book(job)``; return the starts that were made.

        Asked at each event in its domain, or, with the trait ``ask_again=Again.DOMAIN``, not after arrivals
        at the queue's tail that need more processors than are free."""

    @hookspec(firstresult=True)
    def place(self, job: Job, offer: Offer, view: View) -> Placement | None:
        """Which nodes a starting job gets, on node pools. First answer wins.

        ``offer`` holds the nodes that could host it; return ``offer.take(order)`` with your order
        of preference; ``offer.time`` is when the job would start, later than now where it is to be booked.
        None from all plugins: the job does not fit. ``()``: the job must not be placed on
        any of the nodes now, whatever the other plugins would say. Do not take ``view`` if ``job`` and
        ``offer`` suffice: bookings that decide no start are put off only where no plugin looks at it here.

        A job that found no place is tried again in each step in which something happened; with the trait
        ``ask_again=Again.DOMAIN`` when something else than arrivals at the queue's tail has happened in its
        domain; with ``Again.ROOM`` when something was taken or given back. When a job found no place, no job
        of the same shape and ``same_answer`` is tried again in the same cycle."""

    # ------------------------------------------------------------------ a cycle, all domains

    @hookspec(firstresult=True)
    def arrival_chance(self, pool: str, seconds: float, state: State) -> float | None:
        """The chance, from 0 to 1, that at least one job is submitted to a pool within so many seconds from
        now. First answer wins.

        Plugins that prepare for arrivals (for example plugins that wake nodes) ask at any time, with
        ``state.arrival_chance(pool, seconds)``: None when no plugin answers. The hook must change nothing
        that another plugin sees."""

    @hookspec
    def control(self, state: State) -> Iterable[Decision] | None:
        """Further decisions: elastic commands, power, reservations. Called once a step.

        They count at once, as the decisions of ``react`` do. A start passes the same guard as a policy's
        start; on nodes it names its placement."""

    @hookspec
    def revise(self, decisions: list[Decision], state: State) -> list[Decision] | None:
        """The decisions of the step, changed (frequency, tier, size). A pipeline in configured
        order: each plugin gets what the plugin before it returned. None: no change. A decision that is left
        out is undone. A decision that is added counts at once; if it cannot be carried out, it is left out
        and reported as a problem.

        When a job's start is vetoed, what was added about the job (such as a longer limit) is dropped too."""

    @hookspec(firstresult=True)
    def veto(self, decision: Decision, state: State) -> str | None:
        """A reason why the decision must not be taken, or None. Any veto counts. A vetoed decision is undone:
        what was decided about the same job before it stands. When a start is vetoed, or ``revise`` leaves it
        out, its pool is looked at from scratch in the next step."""

    @hookspec
    def decided(self, decisions: Sequence[Decision], state: State) -> None:
        """What was finally decided in this step; called when there is a decision."""

    @hookspec(firstresult=True)
    def answer(self, request: str) -> Answer | None:
        """What became of a user's request that came with an event of this step; None if the request is not
        the plugin's. Asked once, after the step's decisions were handed to the cluster."""

    # ------------------------------------------------------------------ outside the loop

    @hookspec(firstresult=True)
    def explain(self, job: Job, question: str, view: View, clock: Callable[[float], str]) -> str | None:
        """What ``headway explain`` says of a job, as a sentence without its full stop; None or "": nothing.
        ``clock`` turns a time into words. The daemon asks between two cycles: the answer changes nothing, and
        takes little time. The questions:

        ``"placement"``
            why the plugin places a waiting job nowhere now although nodes are free (hook ``place``).
        ``"waiting"``
            why the policy did not look at a waiting job without a booking, or does not book it.
        ``"suspension"``
            for which job the plugin has suspended it, and when it is to run again.
        ``"prediction"``
            what the plugin's prediction of the job's runtime follows from, as the end of a sentence.
        ``"no prediction"``
            why the plugin does not predict the job's runtime although it could have.
        ``"site"``
            why the plugin sends a job of a federation to another site, or leaves it where it is."""

    @hookspec(firstresult=True)
    def inform(self, question: Question, state: State) -> Any | None:
        """The answer to a user's question that only the plugin can give, such as ``shares``; None: the
        question is not the plugin's. First answer wins. The answer is anything that msgspec writes as JSON: a
        :class:`msgspec.Struct`, as its shape can be told.

        The daemon asks between two steps. The answer is not in the journal, so asking changes nothing that a
        later step sees: a factor is asked by its method ``aside``, where it has one
        (:meth:`register_factors`). The answer takes little time: what is long is given in pages
        (:func:`headway.inquiry.pages.page`). ``question.text`` was written by a user. The answer holds only
        what ``question.may_see``. A :class:`headway.errors.UserError` says to the user that what is asked for
        is not there, or that the question cannot be read."""

    @hookspec
    def migrate(self) -> MigrationHandler | None:
        """One way to move running jobs on a real cluster: see :mod:`headway.adapter.migration`. The plugins'
        handlers are asked in configured order, and the first that suits a move carries it out. Such a plugin
        says what it ``gives``. Asked once, before the run begins. Each of several clusters has a handler of
        its own (``for_cluster``). Emulated clusters move jobs by themselves, and ask only which jobs a
        handler can save."""

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
        """Further columns of ``jobs.csv`` by name: from a run's result, one number per job, in the order of
        the result's jobs; NaN: the field stays empty. They stand behind all other columns."""

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
