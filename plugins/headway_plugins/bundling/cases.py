"""Which subjobs an elastic job asks for: the cases of the paper's event handlers, section 3.4.

:func:`first_subjobs` answers for a waiting job, :func:`further_subjobs` for a running job, and
:func:`when_placeholder_starts` when its original request could start after all. Each takes the earliest
projected completion.

Decisions on what the paper leaves open:

- Ties go to the lowest case. Among additions to a running job fewer processor-seconds asked come first.
- Case 3 of a waiting job needs a slot of type II that outlasts a migration.
- The shapes of additions to a running job are in a technical report that is not to be had. Here each size
  brings a later part of the run to another degree: ceil(P_t / d) - q_k.
- A job is moved to its original request only if it ends within that request's limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from headway_plugins.bundling.model import EQUAL, INFINITY, Interval, Member, Model
from headway_plugins.bundling.planning import plan
from headway_plugins.bundling.slots import Slots

Option = Literal["continue", "move", "restart"]


class Request(NamedTuple):
    """A subjob to be submitted."""

    processors: int
    #: Its time limit, seconds.
    walltime: float


class Choice(NamedTuple):
    """What an elastic job asks for, and what it makes of it."""

    #: 1: for as long as it lasts; 2: until the shadow time; 3: a subjob of each kind.
    case: int
    subjobs: tuple[Request, ...]
    #: T_c: the projected completion, absolute seconds.
    completion: float
    #: What is ahead from now on.
    intervals: tuple[Interval, ...]


def first_subjobs(model: Model, now: float, slots: Slots) -> Choice | None:
    """What a job that waits asks for; None: nothing would do, or its own request could start as it is."""
    lasting = min(slots.lasting, model.processors)
    passing = min(slots.passing(now), model.processors)
    best: Choice | None = None
    small = 0
    if lasting and model.suffices(lasting):
        small = model.trim(lasting)
        time = model.time_on(small)
        best = _alone(1, now, small, time)
    if passing and model.suffices(passing):
        large = model.trim(passing)
        time = model.time_on(large)
        limit = slots.shadow - now
        if time < limit - EQUAL:
            if best is None or now + time < best.completion - EQUAL:
                best = _alone(2, now, large, time)
        elif small and large > small and limit > model.migration + EQUAL:
            choice = _both(model, now, small, large, slots.shadow)
            if choice is not None and (best is None or choice.completion < best.completion - EQUAL):
                best = choice
    if best is not None and best.subjobs[0].processors >= model.processors:
        return None
    return best


def _alone(case: int, now: float, processors: int, time: float) -> Choice:
    run = Interval(now, now + time, processors)
    return Choice(case, (Request(processors, time),), run.end, (run,))


def _both(model: Model, now: float, small: int, large: int, shadow: float) -> Choice | None:
    """Case 3: ``large`` processors until all but ``small`` are claimed."""
    departure = shadow - model.migration
    last = (1.0 - (departure - now) / model.time_on(large)) * model.time_on(small)
    if last <= EQUAL:
        return None
    completion = shadow + last
    requests = Request(small, completion - now), Request(large - small, shadow - now)
    intervals = [Interval(now, departure, large)]
    if model.migration > 0:
        intervals.append(Interval(departure, shadow, 0, True))
    return Choice(3, requests, completion, (*intervals, Interval(shadow, completion, small)))


def further_subjobs(
    model: Model,
    now: float,
    done: float,
    members: Sequence[Member],
    intervals: Sequence[Interval],
    slots: Slots,
    *,
    min_gain: float = 0.0,
    slack: float = 1.0,
) -> Choice | None:
    """What a job that runs asks for in addition; None: nothing would bring its completion forward.

    ``done`` is the share of the application that is done, ``members`` are its subjobs, ``intervals`` the
    plan that it follows (the last one's end is its present T_c). It must complete more than ``min_gain``
    seconds earlier. ``slack``: factor on the limits that are asked for, within what the slots allow.
    """
    now_or_before = now + EQUAL
    current = next(
        (i.processors for i in intervals if i.start <= now_or_before < i.end and not i.migrating), 0
    )
    most = min(slots.free, model.processors - current)
    if not current or most < 1 or model.migration == INFINITY:
        return None
    parts = {i.processors for i in intervals if i.end > now_or_before and not i.migrating}
    bound = intervals[-1].end - max(min_gain, EQUAL)
    best = _Best(model, now, done, members, slots, bound)
    best.consider_all(_sizes(model, parts, most), slots.passing(now) > 0)
    return best.choice(slack)


def _sizes(model: Model, parts: Iterable[int], most: int) -> list[int]:
    """The processors, at most ``most``, with which a part of the plan runs at another degree."""
    return sorted({
        size
        for degree in range(1, model.omax + 1)
        for part in parts
        if 1 <= (size := -(-model.processors // degree) - part) <= most
    })  # fmt: skip


class _Best:
    """The best addition so far to a job that runs."""

    def __init__(
        self, model: Model, now: float, done: float, members: Sequence[Member], slots: Slots, bound: float
    ) -> None:
        """``bound``: before when an addition must complete the job to be worth it."""
        self._model = model
        self._now = now
        self._done = done
        self._members = members
        self._shadow, self._lasting = slots.shadow, slots.lasting
        self._bound = bound
        #: Completion, processor-seconds asked, case, processors of the first and of the second subjob.
        self._key: tuple[float, float, int, int, int] | None = None
        self._ahead: tuple[Interval, ...] = ()

    def consider_all(self, sizes: Sequence[int], passing: bool) -> None:
        """``passing``: there are processors that are free until the shadow time alone."""
        for size in sizes:
            if size <= self._lasting or passing:
                self._consider(1, size, 0)
            if passing:
                self._consider(2, size, 0)
                if size <= self._lasting:
                    for both in sizes:
                        if both > size:
                            self._consider(3, size, both - size)

    def _consider(self, case: int, one: int, other: int) -> None:
        now, shadow, best = self._now, self._shadow, self._key
        more = [Member(one, shadow if case == 2 else INFINITY)]
        if other:
            more.append(Member(other, shadow))
        ahead = plan(self._model, now, self._done, (*self._members, *more), self._model.migration)
        if ahead is None:
            return
        completion = ahead[-1].end
        if completion >= self._bound or (best is not None and completion > best[0] + EQUAL):
            return
        if case == 1 and one > self._lasting and completion > shadow + EQUAL:
            return
        asked = one * ((shadow if case == 2 else completion) - now)
        if other:
            asked += other * (shadow - now)
        key = completion, asked, case, one, other
        if best is None or _before(key, best):
            self._key, self._ahead = key, tuple(ahead)

    def choice(self, slack: float) -> Choice | None:
        """What is asked for; ``slack``: factor on limits, within what the slots allow."""
        if self._key is None:
            return None
        completion, _, case, one, other = self._key
        passes = self._shadow - self._now
        if case == 2:
            return Choice(case, (Request(one, passes),), completion, self._ahead)
        limit = (completion - self._now) * slack
        requests = [Request(one, limit if one <= self._lasting else min(limit, passes))]
        if other:
            requests.append(Request(other, passes))
        return Choice(case, tuple(requests), completion, self._ahead)


def _before(one: tuple[float, float, int, int, int], other: tuple[float, float, int, int, int]) -> bool:
    """Whether one addition is better: earlier, else fewer processor-seconds, else the rest in order."""
    if abs(one[0] - other[0]) > EQUAL:
        return one[0] < other[0]
    # Processor-seconds carry the rounding of times on each processor.
    if abs(one[1] - other[1]) > EQUAL * (one[3] + one[4] + other[3] + other[4]):
        return one[1] < other[1]
    return one[2:] < other[2:]


class Turn(NamedTuple):
    """What becomes of a running bundle when its original request starts."""

    #: ``continue``: that request is dropped; ``move``: all processes move to it; ``restart``: the application
    #: begins again there.
    option: Option
    #: T_c: the projected completion, absolute seconds.
    completion: float


def when_placeholder_starts(model: Model, now: float, done: float, completion: float) -> Turn:
    """The choice when the original request of a bundle that runs to ``completion`` could start now."""
    best = Turn("continue", completion)
    needs = model.migration + (1.0 - done) * model.walltime
    if needs <= model.walltime + EQUAL and now + needs < best.completion - EQUAL:
        best = Turn("move", now + needs)
    if now + model.walltime < best.completion - EQUAL:
        best = Turn("restart", now + model.walltime)
    return best
