"""What comes next for a metajob: a call of its search, a reservation to give back, a job to bind, or nothing.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 5. The phases are :mod:`.live_metajob`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from random import Random

from headway.decisions import Tell
from headway.events import ClusterAnswers
from headway.state import State
from headway_plugins.coscheduling import watching
from headway_plugins.coscheduling.calls import Call
from headway_plugins.coscheduling.live_metajob import LiveMetajob
from headway_plugins.coscheduling.machines import MachineOptions
from headway_plugins.coscheduling.metajob_letters import of_loss, of_return
from headway_plugins.coscheduling.metajob_options import MetajobOptions
from headway_plugins.coscheduling.metajob_status import rule_in_words
from headway_plugins.coscheduling.recovery import promised
from headway_plugins.coscheduling.rounds import TRIES, Made
from headway_plugins.coscheduling.search import Done, Search
from headway_plugins.coscheduling.site_calls import shown
from headway_plugins.coscheduling.site_silence import SiteSilence


class Course:
    """Leads metajobs from phase to phase."""

    def __init__(self, options: MetajobOptions, free: Callable[[LiveMetajob, State], None]) -> None:
        """``free``: lets the jobs of a metajob that is over or cancelled go on by themselves."""
        self._options, self._free = options, free
        self._silence = SiteSilence(options.machines, options.patience)
        #: How often what must outlive a crash has changed.
        self.promises = 0
        #: Counts what may have taken a part from a metajob.
        self.happened = 0
        #: Reservations may be there that no metajob has.
        self.sweep = True
        #: Letters to users that are to be decided.
        self.letters: list[Tell] = []

    def next(self, live: LiveMetajob, state: State) -> Call | None:
        """The next call for a metajob; its phase changes where there is none in the old."""
        kept = live.kept
        while True:
            if kept.phase == "searching":
                call = self._search(live, state)
                if call is not None:
                    return call
            elif kept.phase == "giving back":
                for name in self._in_reach(live, state):
                    failed = live.failures.get(name, 0)
                    if failed <= TRIES:
                        return Call("cancel", live.machine_of(name), name, attempt=failed + 1)
                self._gave_back(live, state)
            elif kept.phase == "reserved":
                return self._keep(live, state)
            else:
                return None

    def _search(self, live: LiveMetajob, state: State) -> Call | None:
        kept = live.kept
        if live.search is None:
            metajob = kept.metajob
            if kept.searches:
                metajob = watching.anew(metajob, state.now + self._options.lead, len(kept.searches))
                if metajob.earliest + metajob.span > metajob.latest:
                    live.give_back("refused", "no time is left before the latest end")
                    return None
            draw = Random(f"{self._options.seed}:{metajob.id}").random()
            live.begin(Search(metajob, self._options.search, draw=draw))
        assert live.search is not None
        call = live.search.next()
        if isinstance(call, Call) and call.kind != "bind":
            return call
        if isinstance(call, Call):
            # SUCCESS: the jobs are bound in the phase that follows, now or after a restart.
            names = promised(live.search.journal)
            live.reserve([part for part in live.search.made if part.name in names])
            self.sweep = True
            self.promises += 1
            return None
        self._ended(live, call, state)
        return None

    def _ended(self, live: LiveMetajob, done: Done, state: State) -> None:
        """The search has found nothing."""
        said = "; ".join(f"{site}: {rule_in_words(rule)}" for site, rule in live.denials.items())
        live.kept.leaks = list(done.leaks)
        live.give_back("refused", f"{done.why} ({said})" if said else f"{done.why}")

    def _gave_back(self, live: LiveMetajob, state: State) -> None:
        kept = live.kept
        kept.leaks = [(live.machine_of(name), name) for name in self._in_reach(live, state)]
        for site, name in kept.leaks:
            state.anomalies.append(f"metajob {kept.id}: {site} does not give reservation {name} back")
        self.promises += 1
        if kept.after == "searching":
            kept.phase = "searching"
        else:
            live.rest(kept.after, state.now)
            self._free(live, state)

    def answers(self, event: ClusterAnswers) -> None:
        """A cluster answers again: what could not be given back there can be now."""
        self._silence.answers(event)
        self.sweep = True

    def is_silent(self, machine: str, state: State) -> bool:
        """Whether a machine's site does not answer."""
        return self._silence.since(machine, state) is not None

    def _in_reach(self, live: LiveMetajob, state: State) -> Iterator[str]:
        """The reservations of a metajob that are given back now. What is at a silent site is a stray when the
        site answers again."""
        for name in live.reserved(state):
            if name in state.foreseen or not self.is_silent(live.machine_of(name), state):
                yield name

    def _due(self, live: LiveMetajob, state: State) -> float:
        """When a part is over, a site has been silent for too long, or has long enough answered again."""
        kept = live.kept
        waited_for = [part for part in kept.parts if part.name not in kept.unheard]
        silent = self._silence.silent(waited_for, state).values()
        times = [part.end for part in kept.parts]
        times += [since + self._silence.patience for since in silent]
        times += self._silence.unsettled(kept.parts, state.now).values()
        return min(times, default=0.0)

    def _keep(self, live: LiveMetajob, state: State) -> Call | None:
        """Losses, parts that are over, jobs that are to be bound."""
        kept = live.kept
        if live.looked != self.happened or live.due <= state.now:
            live.looked = self.happened
            self._look(live, state)
            live.due = self._due(live, state)
            if kept.phase != "reserved":
                return self.next(live, state)
        if not kept.parts:
            live.rest("over", state.now)
            self._free(live, state)
            return None
        for part in kept.parts:
            if self.is_silent(part.site, state):
                continue
            job_id = live.job_of(part.name)
            failed = live.failures.get(part.name, 0)
            if job_id and job_id not in state.jobs:
                if failed <= TRIES and part.name in state.reservations:
                    return Call("cancel", part.site, part.name, attempt=failed + 1)
            elif job_id and part.name not in kept.bound and failed < TRIES:
                return Call("bind", part.site, part.name, job=kept.id, attempt=failed + 1)
        wake(state, self._options.machines, live.due)
        return None

    def _look(self, live: LiveMetajob, state: State) -> None:
        """Drop what is over, and react to what was lost."""
        kept, now = live.kept, state.now
        silent = self._silence.silent(kept.parts, state)
        kept.parts = [
            part for part in kept.parts
            if part.end > now and (part.site in silent or not _over(live, part, state))
        ]  # fmt: skip
        sites: dict[str, list[watching.Found] | None] = {
            part.site: None if part.site in silent else [] for part in kept.parts
        }
        for name, found in shown(live, state).items():
            several = sites.get(live.machine_of(name))
            if several is not None:
                several.append(found)
        unsettled = self._silence.unsettled(kept.parts, now)
        losses = watching.losses(kept.parts, sites, silent, now, self._silence.patience, unsettled)
        self._hear_again(live, silent, losses, state)
        told = {loss.partition(": ")[0] for loss in kept.losses}
        lost = [
            loss
            for loss in losses
            if loss.name not in told
            and loss.name not in state.foreseen
            and not live.runs_in(loss.name, state)
        ]
        if not lost:
            return
        self.promises += 1
        for loss in lost:
            kept.losses.append(f"{loss.name}: {loss.what}")
            state.anomalies.append(f"metajob {kept.id} of {kept.user}: {loss.site}: {loss.name}: {loss.what}")
        kept.unheard += [loss.name for loss in lost if loss.silent]
        self.letters.append(of_loss(live, lost))
        reaction = watching.react(kept.parts, lost, kept.on_loss, now)
        if reaction.replan or reaction.calls:
            live.give_back("searching" if reaction.replan else "lost", f"{lost[0].name}: {lost[0].what}")

    def _hear_again(
        self, live: LiveMetajob, silent: Container[str], losses: Sequence[watching.Loss], state: State
    ) -> None:
        """Parts whose site answers again are no more lost because it was silent: they are there, or lost for
        another reason."""
        kept = live.kept
        heard = [part for part in kept.parts if part.name in kept.unheard and part.site not in silent]
        if not heard:
            return
        names = {part.name for part in heard}
        kept.unheard = [name for name in kept.unheard if name not in names]
        kept.losses = [loss for loss in kept.losses if loss.partition(": ")[0] not in names]
        self.promises += 1
        gone = {loss.name for loss in losses}
        there = [part for part in heard if part.name not in gone]
        if there:
            state.notices.append(
                f"metajob {kept.id} of {kept.user} has {', '.join(part.name for part in there)} again: "
                "the site answers"
            )
            self.letters.append(of_return(live, there))

    def went(self, live: LiveMetajob, call: Call, *, carried: bool) -> None:
        """A call without a search was carried out, or not."""
        kept = live.kept
        if call.kind == "set":
            # Its search was given up meanwhile.
            return
        if not carried:
            live.failures[call.name] = live.failures.get(call.name, 0) + 1
        elif call.kind == "bind":
            kept.bound.append(call.name)
        elif kept.phase == "reserved":
            kept.parts = [part for part in kept.parts if part.name != call.name]
        self.promises += 1


def wake(state: State, machines: Mapping[str, MachineOptions], time: float) -> None:
    """Have a step at that time."""
    pool = next((one.pool for one in machines.values() if one.pool in state.pools), None)
    if pool is not None and state.now < time < float("inf"):
        state.wake_at(time, state.pools[pool])


def _over(live: LiveMetajob, part: Made, state: State) -> bool:
    """Whether a part was given back because its job has ended. A part that is gone with its job before it has
    begun is a loss: PBS deletes the jobs of a reservation that an operator deletes."""
    job = live.job_of(part.name)
    ended = bool(job) and job not in state.jobs and part.name not in state.reservations
    return ended and part.start <= state.now
