"""Arrays of which something is not over, and what became of jobs and arrays that other jobs depend on."""

from __future__ import annotations

import msgspec

from headway.state.facts import Facts
from headway.state.records import Array, Job, Past


def element_came(state: Facts, job: Job) -> None:
    """An element of an array was submitted."""
    name = job.description.array_id
    array = state.arrays.get(name)
    if array is None:
        array = state.arrays[name] = Array(past=state.past.pop(name, None))
    array.left.add(job.id)


def went(state: Facts, job: Job, outcome: str, time: float) -> None:
    """A job ended; a job that never started counts as started then."""
    past = Past(outcome, time if job.start_time is None else job.start_time)
    if job.id in state.dependants:
        state.past[job.id] = past
    name = job.description.array_id
    array = state.arrays.get(name) if name else None
    if array is None:
        return
    array.left.discard(job.id)
    array.past = past if array.past is None else _both(array.past, past)
    if not array.left:
        del state.arrays[name]
        if name in state.dependants:
            state.past[name] = array.past


def _both(one: Past, other: Past) -> Past:
    """Of elements: the last start, and success if both had it."""
    outcome = other.outcome if one.outcome == "completed" else one.outcome
    return msgspec.structs.replace(one, outcome=outcome, start=max(one.start, other.start))
