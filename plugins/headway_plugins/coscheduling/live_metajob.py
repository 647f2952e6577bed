"""A user's metajob in the scheduler: what is kept of it over a restart, and what its states mean.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 5. The states are ours:

| state | means | next |
|---|---|---|
| `searching` | reservations are made and given back until all parts fit | `giving back`, `reserved` |
| `giving back` | what the search left is given back | `searching`, `refused`, `cancelled`, `lost` |
| `reserved` | all parts are reserved, and the jobs are bound to them | `giving back`, `over` |
| `refused` | there is no place; the jobs wait until the user cancels the metajob | `cancelled` |
| `lost` | a site lost a part, and the other parts were given back; the jobs wait | `cancelled` |
| `cancelled` | the user gave it up; the jobs go on as any job | |
| `over` | all parts are over, or the job | |

And of copies at several sites (:mod:`.everywhere`):

| state | means | next |
|---|---|---|
| `queued` | the first copy that starts is the job | `started`, `undecided`, `giving back`, `over` |
| `started` | a copy is the job; the others are removed | `giving back`, `over` |
| `undecided` | a copy is gone that may have run; the others wait | `queued`, `started`, `giving back` |
| `giving back` | all copies but the one that runs are removed | `refused`, `cancelled` |
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm
from typing import Any, Literal

import msgspec

from headway.state import State
from headway_plugins.coscheduling.calls import Answer, Call, metajob_of
from headway_plugins.coscheduling.everywhere import UNKNOWN, Copy
from headway_plugins.coscheduling.metajob import Metajob
from headway_plugins.coscheduling.queue_plan import on_grain
from headway_plugins.coscheduling.rounds import Made
from headway_plugins.coscheduling.search import Search
from headway_plugins.coscheduling.watching import OnLoss

Phase = Literal[
    "searching", "giving back", "reserved", "refused", "lost", "cancelled", "over",
    "queued", "started", "undecided",
]  # fmt: skip
#: In these nothing happens any more unless the user asks for it.
RESTING: frozenset[str] = frozenset({"refused", "lost", "cancelled", "over"})
#: Rows of the search that are kept for the user.
_ROWS = 200
#: And that are kept over a restart.
_SAVED = 20


class Errand(msgspec.Struct):
    """A call under way."""

    call: Call
    #: When it was issued; before, when it may be.
    since: float
    issued: bool = False
    #: What counted as a change of the sites' books when it began.
    edition: int = 0


class Kept(msgspec.Struct):
    """What outlives a restart."""

    id: str
    user: str
    operator: bool
    metajob: Metajob
    on_loss: OnLoss
    #: Machine (of a stage: `machine.stage`) -> job, and job -> the pool in which it waited.
    jobs: dict[str, str]
    pools: dict[str, str]
    submitted: float
    phase: Phase = "searching"
    why: str = ""
    #: What comes after giving back.
    after: Phase = "refused"
    #: The ids of all its searches, by which its reservations are known.
    searches: list[str] = []
    parts: list[Made] = []
    #: Names of the reservations to which their jobs are bound.
    bound: list[str] = []
    losses: list[str] = []
    #: Names of the parts that count as lost only because their site does not answer.
    unheard: list[str] = []
    #: Site and name of what a site did not give back.
    leaks: list[tuple[str, str]] = []
    rows: list[list[Any]] = []
    tried: int = 0
    rounds: int = 0
    #: When it came to rest.
    rested: float | None = None
    #: Copies of one job, in the order of the sites; empty: it is a search for reservations.
    copies: list[Copy] = []
    #: The copy that is the job, or is being started; "": none.
    chosen: str = ""

    @property
    def everywhere(self) -> bool:
        """Whether its job waits at each site, without reservations."""
        return bool(self.copies)

    @property
    def forgotten(self) -> list[str]:
        """Copies that their sites list no more, and may list again."""
        return [copy.job for copy in self.copies if copy.ended == UNKNOWN]


class LiveMetajob:
    """A metajob and the call that is under way for it."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.search: Search | None = None
        self.errand: Errand | None = None
        #: Of each reservation: how often giving it back or binding its job has failed.
        self.failures: dict[str, int] = {}
        #: Of each machine: why it refused last.
        self.denials: dict[str, str] = {}
        #: What had happened when losses were looked for last.
        self.looked = -1
        #: When they are looked for again though nothing happens.
        self.due = float("inf")

    @property
    def resting(self) -> bool:
        """Nothing is to be done."""
        return self.kept.phase in RESTING

    def rest(self, phase: Phase, now: float) -> None:
        """Nothing more happens."""
        self.kept.phase, self.kept.rested = phase, now
        self.search, self.errand = None, None

    def give_back(self, after: Phase, why: str = "") -> None:
        """All reservations go, and then ``after`` comes."""
        kept = self.kept
        self._note_rows()
        kept.phase, kept.after, kept.parts, kept.bound = "giving back", after, [], []
        kept.why = why or kept.why
        self.search, self.failures = None, {}
        if self.errand is not None and not (self.errand.issued and self.errand.call.kind == "set"):
            # What is on its way to be made cannot be given back yet.
            self.errand = None

    def begin(self, search: Search) -> None:
        """A search goes on from here."""
        kept = self.kept
        self.search, self.errand, self.denials = search, None, {}
        kept.phase, kept.why = "searching", ""
        kept.searches.append(search.metajob.id)

    def reserve(self, parts: list[Made]) -> None:
        """The search was successful."""
        self._note_rows()
        self.kept.phase, self.kept.parts = "reserved", parts
        self.search, self.errand, self.looked, self.failures = None, None, -1, {}

    def _note_rows(self) -> None:
        if self.search is not None:
            self.kept.rows = [*self.kept.rows, *self.search.log][-_ROWS:]
            self.kept.rounds += self.search.rounds
            self.kept.tried += self.search.tried

    def rows(self) -> list[list[Any]]:
        """What the searches have done, the latest last."""
        return [*self.kept.rows, *(self.search.log if self.search is not None else [])][-_ROWS:]

    def owns(self, reservation: str) -> bool:
        """Whether a reservation of this name is of this metajob."""
        return metajob_of(reservation) in self.kept.searches

    def job_of(self, reservation: str) -> str:
        """The job that belongs into a reservation; "" if the user named none."""
        return self.kept.jobs.get(reservation.split("-", 2)[-1], "")

    def machine_of(self, reservation: str) -> str:
        """The machine of a reservation."""
        place = reservation.split("-", 2)[-1]
        return place if place in self.kept.metajob.machines else place.rpartition(".")[0]

    def expected(self) -> set[str]:
        """The names of reservations that are being dealt with, or stay."""
        found = {part.name for part in self.kept.parts} | {name for _, name in self.kept.leaks}
        if self.search is not None:
            found |= {part.name for part in self.search.made}
        if self.errand is not None:
            found.add(self.errand.call.name)
        return found

    def saved(self) -> dict[str, Any]:
        """What outlives a restart, in JSON values."""
        record: dict[str, Any] = msgspec.to_builtins(
            msgspec.structs.replace(self.kept, rows=self.kept.rows[-_SAVED:])
        )
        return record

    def reserved(self, state: State) -> Iterator[str]:
        """The names of its reservations, the latest first; of a reservation in which its job runs not."""
        for name, one in reversed(list(state.reservations.items())):
            if one.ours and self.owns(name) and not self.runs_in(name, state):
                yield name

    def runs_in(self, reservation: str, state: State) -> bool:
        """Whether the job of a reservation runs in it."""
        job = state.jobs.get(self.job_of(reservation))
        return job is not None and job.entries is not None and job.description.reservation == reservation

    def take(self, answer: Answer) -> None:
        """The search goes on with the answer to its call."""
        assert self.search is not None and self.errand is not None
        call, self.errand = self.errand.call, None
        self.search.answer(call, answer)


def on_marks(metajob: Metajob, grains: dict[str, int]) -> tuple[Metajob, int]:
    """The metajob with the stages' offsets at marks that all of its machines have; seconds between marks."""
    used = [stage.machine for stage in metajob.stages] or list(metajob.machines)
    grain = lcm(*(grains[name] for name in used))
    stages, over = [], 0.0
    for stage in metajob.stages:
        offset = on_grain(over + stage.transfer if stage.offset is None else stage.offset, grain)
        stages.append(msgspec.structs.replace(stage, offset=offset))
        over = offset + stage.duration
    return msgspec.structs.replace(metajob, stages=tuple(stages)), grain
