"""The travel agent: a search for reservations at several sites, as a state machine without any I/O.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005: the program GUR. The three usages are :mod:`.multiple` (with :mod:`.granting`),
:mod:`.single` and :mod:`.pipeline`; what each of their steps does is in :mod:`.rounds`.

A driver goes on like this, where ``sites`` carries out a call and ``save`` writes to disk::

    search = Search(metajob, options, facts, draw=generator.random())
    while isinstance(call := search.next(), Call):
        save(search.snapshot())         # before the call leaves: its intent is in there
        search.answer(call, sites.carry_out(call))
    report(call)                        # a Done

The answer may come at any time: in the next line, or as an event of a later cycle. Until then ``next()``
gives the same call. ``snapshot()`` is a value that JSON can hold, and ``Search.restore`` goes on from it with
the call that was under way. A driver that does not know whether this call reached its site answers
``TimedOut``: the search then looks, or tries again. A driver that does not want to go on gives the snapshot's
journal to :mod:`.recovery`.

The driver does these things, which need a clock or a network:

- ``wait``: it lets ``seconds`` pass and tells whether anything but this search changed a site's book since
  the search began.
- It lets some time pass before a call whose ``attempt`` is above 1.
- It answers ``TimedOut`` when a site does not answer in its time.
- It asks for starts that are later than the search takes, or at sites that start reservations at whole
  minutes. Otherwise each request, a second later than the last, is offered a later start.
- After SUCCESS it looks at the sites now and then, and asks :mod:`.watching` what to do.

Ours: after ``max_distributions`` the option ``go_on`` goes on with :mod:`.granting`, or with twice the
step. A search that found nothing is repeated once with the option ``repeat``, if a competitor changed a
book meanwhile. A snapshot holds the answers so far, and a search that is restored takes them again; the
search has no choice but in ``draw``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from headway.errors import StateError
from headway_plugins.coscheduling import pipeline, single
from headway_plugins.coscheduling.calls import Answer, Call, Waited
from headway_plugins.coscheduling.granting import Granting
from headway_plugins.coscheduling.metajob import Metajob, check, of_record, to_record
from headway_plugins.coscheduling.multiple import GaveUp, Refused, Vectors, by_delay, delays
from headway_plugins.coscheduling.options import SearchOptions, SiteFacts
from headway_plugins.coscheduling.rounds import Made, Rounds, Steps


class Done(msgspec.Struct, frozen=True):
    """How a search ended."""

    outcome: Literal["SUCCESS", "REFUSED"]
    #: Of a refusal.
    why: str | None
    #: Machines in the order in which they were asked, and the seconds that trials were late by.
    order: list[str]
    delays: dict[str, float]
    #: Of the metajob, seconds since the epoch; None: refused.
    start: float | None
    #: What stays reserved.
    parts: list[Made]
    rounds: int
    #: Ways to divide the nodes that were tried.
    tried: int
    #: Rows for a reader: see :class:`.rounds.Rounds`.
    log: list[list[Any]]
    #: Site and name: not cancelled; not bound; timed out and not there so far.
    leaks: list[tuple[str, str]]
    unbound: list[tuple[str, str]]
    unresolved: list[tuple[str, str]]


class Search:
    """The search for one metajob."""

    def __init__(
        self,
        metajob: Metajob,
        options: SearchOptions | None = None,
        facts: Mapping[str, SiteFacts] | None = None,
        draw: float = 0.0,
    ) -> None:
        """``facts``: of the machines that differ from the default; ``draw``: a random number of [0, 1).

        Raises :class:`headway.errors.UserError` if the metajob is refused before any call.
        """
        check(metajob)
        self.metajob = metajob
        self.options = options or SearchOptions()
        self._facts = dict(facts or {})
        self._draw = draw
        slide = self.options.slide
        self._slide = {name: slide for name, site in self._facts.items() if site.fixed}
        self._rounds = Rounds(metajob)
        self._order: list[str] = []
        self._delays: dict[str, float] = {}
        self._tried = 0
        self._answers: list[Answer] = []
        self._steps = self._run()
        self._now: Call | Done = next(self._steps)

    # ------------------------------------------------------------------ the driver's side

    def next(self) -> Call | Done:
        """The call that is to be answered next, or how the search ended."""
        return self._now

    def answer(self, call: Call, answer: Answer) -> None:
        """Go on with the answer to ``call``, which must be the one that :meth:`next` gives."""
        if call != self._now:
            raise StateError(f"metajob {self.metajob.id}: expected the answer to {self._now}, found {call}")
        self._answers.append(answer)
        try:
            self._now = self._steps.send(answer)
        except StopIteration as end:
            self._now = end.value

    @property
    def journal(self) -> list[list[Any]]:
        """Intents and answers so far, for :mod:`.recovery`."""
        return self._rounds.journal

    @property
    def log(self) -> list[list[Any]]:
        """Rows for a reader so far."""
        return self._rounds.log

    @property
    def rounds(self) -> int:
        """Passes over the machines so far."""
        return self._rounds.round

    @property
    def tried(self) -> int:
        """Ways to divide the nodes that were tried, of those that are over."""
        return self._tried

    @property
    def made(self) -> list[Made]:
        """The reservations that the search has now."""
        return list(self._rounds.made)

    def snapshot(self) -> dict[str, Any]:
        """The search in JSON values."""
        under_way = None if isinstance(self._now, Done) else [self._now.kind, self._now.site, self._now.name]
        return {
            "metajob": to_record(self.metajob),
            "options": self.options.model_dump(),
            "facts": {name: site.model_dump() for name, site in self._facts.items()},
            "draw": self._draw,
            "answers": msgspec.to_builtins(self._answers),
            "under_way": under_way,
            "journal": [list(row) for row in self.journal],
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> Search:
        """The search that :meth:`snapshot` gave.

        Raises :class:`headway.errors.StateError` if this version of the search goes another way; then the
        journal of the snapshot is for :mod:`.recovery`.
        """
        search = cls(
            of_record(snapshot["metajob"]),
            SearchOptions.model_validate(snapshot["options"]),
            {name: SiteFacts.model_validate(site) for name, site in snapshot["facts"].items()},
            snapshot["draw"],
        )
        for answer in msgspec.convert(snapshot["answers"], list[Answer]):
            call = search.next()
            if isinstance(call, Done):
                break
            search.answer(call, answer)
        if search.snapshot()["under_way"] != snapshot["under_way"] or search.journal != snapshot["journal"]:
            raise StateError(
                f"metajob {search.metajob.id}: expected to go on with {snapshot['under_way']}, found "
                f"{search.snapshot()['under_way']}: the snapshot is of another version; recover from its "
                f"journal"
            )
        return search

    # ------------------------------------------------------------------ the search

    def _run(self) -> Steps[Done]:
        rounds = self._rounds
        why = None
        for last in (not self.options.repeat, True):
            try:
                start = yield from self._find()
            except Refused as refused:
                why = str(refused)
            else:
                kept = yield from rounds.bind()
                yield from rounds.settle()
                return self._done("SUCCESS", None, start, kept)
            yield from rounds.settle()
            if last:
                break
            waited = yield Call("wait", job=self.metajob.id, seconds=self._draw * self.options.back_off)
            if not isinstance(waited, Waited) or not waited.changed:
                break
            # Probes have names of their own again.
            rounds.round += 1
        return self._done("REFUSED", why, None, [])

    def _find(self) -> Steps[float]:
        metajob = self.metajob
        if metajob.usage == "pipeline":
            self._order = [stage.machine for stage in metajob.stages]
            return (yield from pipeline.search(self._rounds, self._slide))
        if metajob.usage == "single":
            self._order = metajob.preferred
            return (yield from single.search(self._rounds, self._slide))
        return (yield from self._multiple())

    def _multiple(self) -> Steps[float]:
        options = self.options
        self._order = []
        yield from delays(self._rounds, options.probe, self._slide, self._delays)
        self._order = by_delay(self.metajob, self._delays)
        grants = options.grant_up_to
        while not grants:
            vectors = Vectors(self._rounds, self._order, options, self._slide)
            try:
                return (yield from vectors.window_first() if options.window_first else vectors.vector_first())
            except GaveUp:
                if not options.go_on:
                    raise
            finally:
                self._tried += vectors.tried
            grants = all(self._facts.get(name, SiteFacts()).at_most for name in self._order)
            options = options.model_copy(update={"node_step": 2 * options.node_step})
        return (yield from Granting(self._rounds, self._order, self._slide).run())

    def _done(
        self, outcome: Literal["SUCCESS", "REFUSED"], why: str | None, start: float | None, kept: list[Made]
    ) -> Done:
        rounds = self._rounds
        return Done(
            outcome=outcome, why=why, order=list(self._order), delays=dict(self._delays), start=start,
            parts=kept, rounds=rounds.round, tried=self._tried, log=rounds.log, leaks=list(rounds.leaks),
            unbound=list(rounds.unbound), unresolved=list(rounds.late),
        )  # fmt: skip
