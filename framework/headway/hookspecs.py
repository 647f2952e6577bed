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

Class attributes of a plugin that the framework reads, all optional:

``name``
    what configurations call a plugin of a file; an installed one has its entry point's name.
``Options``
    a pydantic model of its options; the plugin is made as ``Plugin(options)``.
``needs``
    decision types that the cluster's adapter must be able to carry out.
``needs_nodes``
    True: it must know which processors a job has; a flat pool of the emulated cluster then consists of nodes
    of one processor each.
``gives``
    decision types that a real cluster can carry out with this plugin's help, such as Migrate.
``wakes``
    True: it wakes nodes that sleep where the cluster can, though it does not need that.
``lacks(cluster, capabilities)``
    for a plugin that needs one thing or another of the cluster: what is missing on this one, such as
    "expected ..., found ..."; "" if nothing is. ``headway check`` asks it.
``needs_energy``
    True: the cluster must have an energy profile.
``needs_lending``
    True: others must be able to have the processors of suspended jobs
    (:attr:`headway.model.ClusterDescription.suspended_lend`). May be set by the plugin as it is made.
``job_words``
    names of jobs' attributes that its options name, which users can then say with their jobs. May be set as
    the plugin is made.
``needs_policy``
    True: it goes by what the batch system says of its site's policy, which the event ``SitePolicyChanged``
    tells before anything is decided. May be set by the plugin as it is made, since its options decide.
``ask_always``
    for a policy: True asks it at every arrival; by default it is not asked when nothing happened
    but arrivals at the queue's tail that need more processors than are free (it is where plugins put
    nodes to sleep, which goes by what is booked). For a plugin with
    ``prepare`` or ``place``: True says that its answers may change with any event, wherever it
    happened; then each event has every queue looked at from scratch (with ``order_queue`` that is
    always so).
``observes``
    for a plugin with ``observe``: a tuple of the events' types that it is shown; by default it is shown all.
    May be set by the plugin as it is made.
``unused``
    a tuple of names of hooks that it has, but as it is configured has no use for: they are not called. May be
    set by the plugin as it is made.
``promises``
    True: its ``checkpoint`` holds what it has promised to jobs, and its attribute ``promised`` (int) counts
    how often that has changed. It is written down in each cycle in which the count is another than in the
    one before, before its decisions have an effect, so that a kill takes nothing back; ``headway explain``
    goes by it. What changes without being counted is written with everybody's state.
``recounts``
    True: all that its ``checkpoint`` holds is counted from the events that it is shown. After a kill the
    checkpoint is old: the plugin is made from it once more, told ``goes_on()``, since nobody was away in
    between, and shown the events since, and what it holds then is what the next run restores. Before that it
    is shown the site's policy and the submissions, with their present descriptions, of the jobs that these
    events are about; it must count nothing for being shown a submission twice.
``by_booking``
    for a policy: True says that, once it has booked one job, it starts others by what is free and by that
    booking alone. On a flat pool it is then not asked because running jobs outlive their predictions, if they
    are now expected to end before that booking starts: that changes nothing of it.
``bar_jobs(jobs, state)``
    for a plugin with ``bar_job``: its answers about several jobs, one each in their order, as it would give
    them one by one at that moment; it must not matter to any of them that another of these waits. Asked
    instead of ``bar_job`` about jobs that are looked at together, if no other plugin bars jobs.
``bar_kind(job)``
    for a plugin with ``bar_jobs``: a hashable value of all that its answer about the job follows from, beside
    the job's size and what others have; None: it follows from more. Of the jobs of one kind and size that
    are looked at together one is asked about, and its answer, Barrier included, is that of the others. Asked
    when a job arrives or changes, and about all jobs when the plugin says ``state.outdate_kinds()``.
``passes_over``
    for a policy: True says that it serves jobs one by one, and one whom a limit refuses beside its starts
    (``view.refuses(job)``) as if it were not in the queue: it goes on behind it and does not book it. Its
    pass then stands, and need not be taken back because of the hook ``bar_job``.
``placement_kind(job)``
    for a plugin with the hook ``place`` that looks at more than the job's request: a hashable value
    of what else it looks at. A job is not tried again in a cycle in which one of the same shape
    and kind found no place.
``places_by_room``
    for a plugin with the hook ``place``: True says that whether it places a job at all depends on nothing but
    the offer's nodes, the jobs that have the others, the request and the kind. A job is then not tried again
    until something was taken or given back since one of the same shape and kind found no place.
``placement_changes(job)``
    for a plugin with the hook ``place``: the moments, absolute seconds, at which it answers otherwise about
    the job though nothing happens (a wish that is given up after a time). Then the job is booked at such a
    moment if it fits then; and the plugin wakes its pool (``state.wake_at``).
``why_not_placed(job, view)``
    for a plugin with the hook ``place``: why it places a waiting job nowhere now although nodes are free, as
    a sentence without its full stop; "" if it would. ``headway explain`` shows it.
``why_predicted(job)``
    for a plugin with ``predict_runtime``: what the prediction that counts for the job follows from, as the
    end of a sentence. ``headway explain`` shows it.
``why_waiting(job, view)``
    for a policy: why it did not look at a waiting job without a booking, or does not book it, as a sentence
    without its full stop; "" if it did. ``headway explain`` shows it.
``why_suspended(job, clock)``
    for whom the plugin has suspended a job and when it is to run again, as a sentence without its full stop;
    "" if it has not. ``clock`` says a time for a person. ``headway explain`` shows it.
``why_not_predicted(job)``
    for a plugin with ``predict_runtime``: why it does not predict a job that it could have predicted, in the
    same way; "" for others.
``paper``
    the reference of the paper that it implements.
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
    def restore(self, saved: Any) -> None:
        """Take up what :meth:`checkpoint` of the same plugin once returned. Called after startup,
        only when a journal has something saved for this plugin."""

    @hookspec
    def checkpoint(self) -> Any:
        """What the plugin must remember over a restart, as JSON values; None for nothing. A copy: what the
        plugin changes later must not change in it."""

    @hookspec
    def shutdown(self, state: State) -> None:
        """The run ends in an orderly way."""

    # ------------------------------------------------------------------ events

    @hookspec
    def observe(self, event: Event, state: State) -> None:
        """An event was folded into the state. For learning and counting; decide in other hooks. Asked about
        the events that the plugin's attribute ``observes`` names, if it has one."""

    @hookspec(firstresult=True)
    def predict_runtime(self, job: Job, state: State) -> float | None:
        """How long the job will run, in seconds. First answer wins; without one, the estimate.

        Asked when a job arrives or changes, when a start of it is taken back, and when it outlives what it
        was predicted (``job.start_time`` and ``state.now`` tell how long it runs): then an answer that is
        over already means the estimate. Stands until then.

        Its pool is looked at at that moment where that may let a job start: one waits that is not larger than
        what is free (see also ``by_booking``).
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
        barred is taken back, and the policy is asked once more without it, unless it says ``passes_over``."""

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
        queue's tail happen there. If they may change with less, say ``ask_always``."""

    @hookspec(firstresult=True)
    def schedule(self, view: View) -> Iterable[Decision] | None:
        """**The policy**: which jobs start now. First answer wins.

        Try a start with ``view.start(job, reason)`` (None: it does not fit now), keep capacity for
        a later one with ``view.book(job)``; return the starts that were made."""

    @hookspec(firstresult=True)
    def place(self, job: Job, offer: Offer, view: View) -> Placement | None:
        """Which nodes a starting job gets, on node pools. First answer wins.

        ``offer`` holds the nodes that could host it; return ``offer.take(order)`` with your order
        of preference; ``offer.time`` is when the job would start, later than now where it is to be booked.
        None from all plugins: the job does not fit. ``()``: it must not be placed on
        any of them now, whatever the other plugins would say.

        A job that found no place is tried again when something else than arrivals at the queue's tail
        has happened in its domain; with ``ask_always`` in each step in which something happened."""

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
