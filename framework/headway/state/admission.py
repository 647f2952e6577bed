"""Whether plugins refuse a job: for good, as it is.

Plugins are asked about a job of several pools in each pool. A job that is refused in a pool may still start
in its other pools.
"""

from __future__ import annotations

from collections.abc import Callable

from headway.state.choices import facing_each
from headway.state.records import Job


def ask_in_each(job: Job, ask: Callable[[Job], str]) -> None:
    """Note the refusal of a job that arrived or changed. ``ask``: why it is refused in the pool that it
    faces; "" if it is not."""
    if not job.choices:
        job.refusal = ask(job)
        return
    job.refusal = ""
    for choice in facing_each(job):
        choice.refusal = ask(job)
    refusals = [choice.refusal for choice in job.choices]
    if not all(refusals):
        return
    told = [f"in pool {choice.pool.name!r}: {choice.refusal}" for choice in job.choices]
    job.refusal = refusals[0] if len(set(refusals)) == 1 else "; ".join(told)
