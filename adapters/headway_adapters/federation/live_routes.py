"""Jobs that go from one real cluster to another: rounds that take each route a step further.

A round asks all clusters that offer :class:`headway_adapters.polling.resubmission.Resubmission` which jobs
have marks, and does the next step of each route (:mod:`headway_adapters.federation.route_steps`). Rounds run
on a thread of their own; what they ask and order is done on the clusters' threads. In memory there are only
the routes that this run was ordered to begin: after a crash the marks alone say what is to be done.

Decisions that we took:

- A cluster that does not answer within ``patience`` is left out, and so is each route that touches it. While
  something that it was asked is still under way there, it is asked nothing more: no step comes too late.
- There is a round when a route is ordered, when a look shows a mark, when a cluster joins, and every
  ``pause`` seconds as long as a route is open.
- What the batch system refuses again and again before the original is marked ends the route. What it refuses
  later is tried until it is done.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headway import decisions as d
from headway.adapter import Oddity, Outcome
from headway.errors import HeadwayError
from headway.model.sites import Intake
from headway_adapters.federation.member import Member
from headway_adapters.federation.route_pairs import Ordered, Pair, Pairing, needed, written
from headway_adapters.federation.route_steps import Do, Step, next_step
from headway_adapters.polling.resubmission import (
    COPY,
    LEAVING,
    SEALED,
    Label,
    Mark,
    Resubmission,
    Standing,
)
from headway_adapters.polling.words import Unfit

T = TypeVar("T")
#: From where, to where, the job's user, and what is called at the end: what was taken, in words.
Carry = Callable[[tuple[str, str], tuple[str, str], str, Callable[[], None]], "Future[str]"]
#: Steps of one route in a row, at most: there are six, and their undoing.
_MOST_STEPS = 12
#: Until a round is made again while a route is open, seconds.
PAUSE = 5.0
#: How often a mark is tried before the route ends: Slurm with accounting takes none of a job that was
#: submitted just now.
_TRIES = 4
_NO_INTAKE = Intake()
#: How long a round has to end, seconds.
_LEAVE = 2.0


class _Silent(Exception):
    """A cluster does not answer; the text says which."""


@dataclass(frozen=True)
class Settled:
    """A copy has become the job."""

    name: str
    #: Cluster and id of the original, and of the copy.
    original: tuple[str, str]
    copy: tuple[str, str]


@dataclass(frozen=True)
class Stays:
    """The original is the job; ``decision``: the route that this run was ordered, if it was this one."""

    original: tuple[str, str]
    decision: d.Route | None
    why: str


@dataclass
class _Wanted:
    """A route that this run was ordered."""

    decision: d.Route
    #: Cluster and id of the original; cluster and pool that it goes to, in that cluster's names.
    source: tuple[str, str]
    target: str
    pool: str
    #: When the job was submitted first, whole seconds, once that is known.
    submitted: int = 0
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    asked: bool = False
    #: The copy's id, once it is marked.
    copy: str = ""
    #: Its user, and how often it had gone back to the queue when its copy was submitted.
    user: str = ""
    restarts: int = 0
    #: What is kept of it is on its way to the other cluster, or there.
    image: Future[str] | None = None
    #: How often a cluster refused its present step.
    tries: int = 0
    #: Why it does not go on; "" while it does.
    stopped: str = ""


class LiveRoutes:
    """The routes between the clusters of a federation. Called on the engine's thread but for its rounds."""

    def __init__(
        self, members: Mapping[str, Member], intakes: Mapping[str, Intake], *, poke: Callable[[], None],
        log: Any, clock: Callable[[], float], patience: float, pause: float = PAUSE,
        carry: Carry | None = None,
    ) -> None:  # fmt: skip
        """``intakes``: how jobs are submitted at each cluster. ``poke``: wakes the engine's thread when
        there is news. ``carry``: takes what migration handlers keep of a job that ran to another cluster;
        None: they keep nothing."""
        self._members = members
        self._intakes = intakes
        self._poke = poke
        self._carry = carry
        self._log = log
        self._clock = clock
        self._patience = patience
        self._pause = pause
        self._lock = threading.Lock()
        self._wanted: dict[tuple[str, str], _Wanted] = {}
        self._news: list[Settled | Stays] = []
        self._busy: dict[str, Future[Any]] = {}
        self._due = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        #: What could not be done in the last round: cluster and reason, by place.
        self._stuck: dict[str, tuple[str, str]] = {}
        self._told: set[tuple[str, str]] = set()

    # ------------------------------------------------------------------ the engine's thread

    @property
    def able(self) -> list[str]:
        """The clusters between which jobs can go."""
        found = [name for name, member in self._members.items() if member.resubmission is not None]
        return found if len(found) > 1 else []

    def order(self, decision: d.Route, source: tuple[str, str], target: str, pool: str) -> Outcome:
        """Begin a route. ``source``: the job's cluster and its id there; ``pool``: in the target's names."""
        for name in (source[0], target):
            member = self._members.get(name)
            if member is None or not member.joined:
                return Outcome(False, f"cluster {name or '?'} has not answered yet, or is none of ours")
            if member.resubmission is None:
                return Outcome(
                    False, f"jobs go to another cluster between Slurm clusters only, which {name} is not"
                )
            if d.Route in member.adapter.capabilities and name == target and not _drives(member, pool):
                return Outcome(False, f"{pool!r} is not a pool that headway drives at {name}")
        with self._lock:
            if source in self._wanted:
                return Outcome(True, "it is on its way already")
            self._wanted[source] = _Wanted(decision, source, target, pool)
        self.look()
        return Outcome(True)

    def look(self) -> None:
        """Make a round soon."""
        if not self.able or self._closing:
            return
        self._due.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name="routes", daemon=True)
            self._thread.start()

    def open(self, cluster: str, local: str) -> bool:
        """Whether this run was ordered a route of that job and has not told its end."""
        with self._lock:
            return (cluster, local) in self._wanted

    def news(self) -> Sequence[Settled | Stays]:
        """What came to an end since it was asked last."""
        with self._lock:
            found, self._news = self._news, []
        return found

    def oddities(self) -> Sequence[Oddity]:
        """Routes that do not go on by themselves. On any thread."""
        now = self._clock()
        return [
            Oddity(cluster, "jobs between clusters that do not go on", 1, now, f"{place}: {why}")
            for place, (cluster, why) in sorted(self._stuck.items())
        ]

    def close(self) -> None:
        """End the rounds; a step that is under way is the clusters' threads' matter."""
        self._closing = True
        self._due.set()
        if self._thread is not None:
            self._thread.join(min(self._patience, _LEAVE))

    # ------------------------------------------------------------------ rounds, on their own thread

    def _live(self) -> None:
        again = False
        while True:
            self._due.wait(self._pause if again else None)
            self._due.clear()
            if self._closing:
                return
            try:
                again = self.round()
            except Exception as error:
                self._log.error("a round of the routes between clusters failed", exc_info=error)
                again = True

    def round(self) -> bool:
        """Take each route as far as it goes now; whether one is still open."""
        stuck: dict[str, tuple[str, str]] = {}
        for _ in range(_MOST_STEPS):
            if self._closing:
                return True
            pairing, moved = self._pairs(), False
            stuck = pairing.stuck
            for pair in pairing.pairs:
                moved = self._advance(pair, stuck) or moved
            if not moved:
                break
        self._tell_stuck(stuck)
        with self._lock:
            return bool(self._wanted or stuck)

    def _tell_stuck(self, stuck: dict[str, tuple[str, str]]) -> None:
        for place, (cluster, why) in stuck.items():
            if (place, why) not in self._told:
                self._log.warning(
                    "a job between clusters does not go on", job=place, cluster=cluster, why=why
                )
        self._told = {(place, why) for place, (_, why) in stuck.items()}
        self._stuck = stuck

    # ------------------------------------------------------------------ what there is

    def _pairs(self) -> Pairing:
        """All routes that the clusters show, and all that are ordered; asked once more about jobs that others
        name."""
        with self._lock:
            ordered = [Ordered(one.source, one.target, one.key, one.copy) for one in self._wanted.values()]
        stuck: dict[str, tuple[str, str]] = {}
        found: dict[str, Mapping[str, Standing]] = {}
        for name in self.able:
            self._ask_standing(name, (), found, stuck)
        for name, job_ids in needed(found, ordered).items():
            if name in found:
                del found[name]
                self._ask_standing(name, job_ids, found, stuck)
        pairing = Pairing(found, ordered, list(self._members))
        pairing.stuck.update(stuck)
        return pairing

    def _ask_standing(
        self, name: str, job_ids: Collection[str], found: dict[str, Mapping[str, Standing]],
        stuck: dict[str, tuple[str, str]],
    ) -> None:  # fmt: skip
        try:
            found[name] = self._at(name, lambda there: there.standing(job_ids))
        except (_Silent, HeadwayError) as error:
            with self._lock:
                touched = [one for one in self._wanted.values() if name in (one.source[0], one.target)]
            for one in touched:
                stuck[written(one.source)] = name, str(error)

    def _at(self, name: str, work: Callable[[Resubmission], T]) -> T:
        """Have something done at a cluster. Raises :class:`_Silent` if it is not done in time."""
        member = self._members[name]
        there = member.resubmission
        if there is None or not member.joined or member.ended:
            raise _Silent(f"cluster {name} does not answer")
        before = self._busy.get(name)
        if before is not None and not before.done():
            raise _Silent(f"cluster {name} has not answered yet")
        future = self._busy[name] = member.run(lambda: work(there))
        try:
            return future.result(self._patience)
        except NotInTime:
            if future.done():
                raise
            raise _Silent(f"cluster {name} has not answered within {self._patience:g} s") from None

    # ------------------------------------------------------------------ one step

    def _advance(self, pair: Pair, stuck: dict[str, tuple[str, str]]) -> bool:
        """Do the next step of a route; whether there may be another."""
        with self._lock:
            wanted = self._wanted.get(pair.source) if pair.ordered else None
        goes_on = wanted is not None and not wanted.stopped
        step = next_step(
            pair.original, pair.copy, pair.place, wanted=goes_on, key=wanted.key if wanted else ""
        )
        if wanted is not None and step.do is Do.SUBMIT and wanted.asked:
            step = Step(Do.FAIL, "its copy is not there")
        if step.do is Do.NOTHING:
            if wanted is not None and wanted.stopped:
                self._stays(pair, wanted, wanted.stopped)
            return False
        if step.do is Do.UNDECIDED:
            stuck[pair.name] = pair.target, step.why
            return False
        if step.do is Do.FAIL:
            self._stays(pair, wanted, step.why)
            return False
        if wanted is not None and step.do is Do.COMMIT and not self._carried(pair, wanted):
            return bool(wanted.stopped)
        about = {"job": written(pair.source), "copy": pair.place, "step": step.do.value, "why": step.why}
        self._log.info("a job between clusters", **about)
        try:
            outcome = self._do(step.do, pair, wanted)
        except _Silent as error:
            stuck[pair.name] = pair.target, str(error)
            return False
        except HeadwayError as error:
            outcome = Outcome(False, str(error))
        if not outcome.accepted:
            return self._refused(step, pair, wanted, outcome.message, stuck)
        self._done(step, pair, wanted)
        return True

    def _refused(
        self, step: Step, pair: Pair, wanted: _Wanted | None, why: str, stuck: dict[str, tuple[str, str]]
    ) -> bool:
        """What a cluster refuses early ends the route, and is tried again later. Whether to go on at once."""
        early = wanted is not None and not wanted.stopped and step.do in (Do.SUBMIT, Do.MARK, Do.COMMIT)
        if wanted is not None and early:
            wanted.tries += 1
        if wanted is not None and early and (step.do is Do.SUBMIT or wanted.tries >= _TRIES):
            wanted.stopped = f"{step.do.value}: {why}"
            return True
        stuck[pair.name] = pair.target, f"{step.do.value}: {why}"
        return False

    def _do(self, do: Do, pair: Pair, wanted: _Wanted | None) -> Outcome:
        original, copy = pair.source[1], pair.copy.job_id if pair.copy is not None else ""
        from_here = written(pair.source)
        if do is Do.SUBMIT:
            assert wanted is not None
            return self._submit(wanted, from_here)
        if do is Do.MARK:
            assert wanted is not None
            wanted.copy = copy
            mark = Mark(COPY, from_here, wanted.decision.job_id, wanted.submitted)
            return self._at(pair.target, lambda there: there.mark(copy, mark))
        if do is Do.COMMIT:
            assert wanted is not None
            leaving = Mark(LEAVING, pair.place, restarts=wanted.restarts)
            return self._at(pair.source[0], lambda there: there.mark(original, leaving))
        if do is Do.SEAL:
            assert pair.copy is not None and pair.copy.mark is not None
            sealed = Mark(SEALED, from_here, pair.copy.mark.name, pair.copy.mark.submitted)
            return self._at(pair.target, lambda there: there.mark(copy, sealed))
        if do is Do.CANCEL_ORIGINAL:
            return self._at(pair.source[0], lambda there: there.cancel(original))
        if do is Do.SETTLE:
            return self._at(pair.target, lambda there: there.settle(copy))
        if do is Do.CANCEL_COPY:
            return self._at(pair.target, lambda there: there.cancel(copy))
        return self._at(pair.source[0], lambda there: there.unmark(original))

    def _carried(self, pair: Pair, wanted: _Wanted) -> bool:
        """Whether what is kept of the job is at the cluster that it goes to. Only then it may go."""
        if self._carry is None or not wanted.restarts:
            return True
        if wanted.image is None:
            wanted.image = self._carry(wanted.source, (wanted.target, wanted.copy), wanted.user, self.look)
        if not wanted.image.done():
            return False
        try:
            taken = wanted.image.result()
        except Exception as error:
            wanted.stopped = f"what it has saved was not copied to {wanted.target}: {error}"
            return False
        job, said = written(wanted.source), taken or "nothing: no migration handler keeps an image of it"
        self._log.info("what a job has saved goes with it", job=job, copy=pair.place, what=said)
        return True

    def _submit(self, wanted: _Wanted, from_here: str) -> Outcome:
        try:
            parcel = self._at(wanted.source[0], lambda there: there.parcel(wanted.source[1]))
            intake = self._intakes.get(wanted.target, _NO_INTAKE)
            label = Label(from_here, wanted.key)
            wanted.submitted = int(parcel.job.submit_time)
            wanted.user, wanted.restarts = parcel.job.user, parcel.restarts
            wanted.asked = True
            return self._at(wanted.target, lambda there: there.submit(parcel, wanted.pool, label, intake))
        except Unfit as error:
            return Outcome(False, str(error))

    def _done(self, step: Step, pair: Pair, wanted: _Wanted | None) -> None:
        if step.do is Do.SETTLE:
            assert pair.copy is not None and pair.copy.mark is not None
            with self._lock:
                self._wanted.pop(pair.source, None)
                place = (pair.target, pair.copy.job_id)
                self._news.append(Settled(pair.copy.mark.name, pair.source, place))
            self._poke()
        elif step.do in (Do.CANCEL_COPY, Do.UNMARK):
            if wanted is not None and not wanted.stopped:
                wanted.stopped = step.why
            marked = pair.copy is not None and pair.copy.mark is not None
            unmarked = pair.original is None or pair.original.mark is None
            if step.do is Do.UNMARK or (unmarked and (pair.ordered or marked)):
                self._stays(pair, wanted, wanted.stopped if wanted is not None else step.why)

    def _stays(self, pair: Pair, wanted: _Wanted | None, why: str) -> None:
        with self._lock:
            if wanted is not None:
                # Another may have been ordered since an earlier run's came to its end.
                self._wanted.pop(pair.source, None)
            self._news.append(Stays(pair.source, wanted.decision if wanted is not None else None, why))
        self._poke()


def _drives(member: Member, pool: str) -> bool:
    drives = getattr(member.adapter, "drives", None)
    return drives is None or bool(drives(pool))
