"""What the scheduler asks plugins about single jobs, and how it takes their answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from time import perf_counter
from typing import Any, TypeVar

from headway.plugins import HookCaller
from headway.state import Barrier, Job, State

_INF = float("inf")
T = TypeVar("T")

#: A plugin's ``bar_jobs`` (:mod:`headway.hookspecs`), and the types of its answers.
Many = Callable[[Sequence[Job], State], Sequence[Barrier | None]]
_BARRIER_OR_NONE = {Barrier, type(None)}


def queue_key(hook: HookCaller, state: State, job: Job) -> tuple[Any, ...]:
    """The first answer to ``queue_key``, so that answered and unanswered jobs can be compared."""
    key = _first(hook, state, job, _key)[1]
    return (1,) if key is None else (0, *key)


def predicted_runtime(hook: HookCaller, state: State, job: Job) -> float | None:
    """The first answer to ``predict_runtime`` that is a time; the job keeps the plugin's name."""
    job.predicted_by, seconds = _first(hook, state, job, _seconds)
    return seconds


def barrier_of(hook: HookCaller, state: State, job: Job) -> Barrier | None:
    """The first answer to ``bar_job`` that is a barrier."""
    return _first(hook, state, job, _barrier)[1]


def _first(hook: HookCaller, state: State, job: Job, meant: Callable[[Any], T]) -> tuple[str, T | None]:
    """What is ``meant`` by the first answer about a job that means anything, and its plugin; "" and None: no
    answer does. ``meant`` raises :class:`TypeError` for an answer that it does not understand."""
    spent, began = hook.seconds, perf_counter()
    for name, function in hook.implementations:
        try:
            answer = function(job, state)
        except Exception as error:
            hook.failed(name, error)
            answer = None
        else:
            hook.answered.add(name)
        # One plugin's end is the next plugin's beginning.
        ended = perf_counter()
        spent[name] += ended - began
        began = ended
        if answer is None:
            continue
        try:
            return name, meant(answer)
        except TypeError as error:
            # It is the answer that is wrong, wherever that was seen.
            hook.failed(name, error.with_traceback(None))
    return "", None


def _key(answer: Any) -> tuple[Any, ...]:
    if isinstance(answer, tuple):
        return answer
    raise TypeError(f"expected a tuple, found {answer!r}")


def _seconds(answer: Any) -> float:
    if type(answer) is float and 0 <= answer < _INF:
        return answer
    try:
        seconds = float(answer)
    except (TypeError, ValueError):
        seconds = _INF
    if not 0 <= seconds < _INF:
        raise TypeError(f"expected seconds, found {answer!r}")
    return seconds


def _barrier(answer: Any) -> Barrier:
    if isinstance(answer, Barrier):
        return answer
    raise TypeError(f"expected a Barrier, found {answer!r}")


def barriers_of(hook: HookCaller, many: Many, state: State, jobs: Sequence[Job]) -> Sequence[Barrier | None]:
    """The same of each of several jobs, where one plugin alone bars and answers about many at once."""
    name = hook.implementations[0][0]
    began = perf_counter()
    try:
        found = many(jobs, state)
        if len(found) == len(jobs) and set(map(type, found)) <= _BARRIER_OR_NONE:
            hook.answered.add(name)
            return found
    except Exception as error:
        hook.failed(name, error)
    else:
        hook.failed(name, TypeError(f"expected a Barrier or None of each of {len(jobs)} jobs"))
    finally:
        hook.seconds[name] += perf_counter() - began
    return [barrier_of(hook, state, job) for job in jobs]


def kind_of_job(hook: HookCaller, kind_of: Callable[[Job], Hashable], job: Job) -> Hashable:
    """The same plugin's ``bar_kind``; None, so that the job is asked about by itself, if that fails."""
    name = hook.implementations[0][0]
    try:
        kind = kind_of(job)
        hash(kind)
    except Exception as error:
        hook.failed(name, error)
        return None
    return kind


def arrival_chance(answer: Any, state: State) -> float | None:
    """An answer to ``arrival_chance``, if it is a chance."""
    if answer is None or (isinstance(answer, int | float) and 0.0 <= answer <= 1.0):
        return answer
    state.anomalies.append(f"arrival_chance: expected a chance from 0 to 1, found {answer!r}")
    return None
