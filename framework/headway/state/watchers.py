"""The watchers, which are told of each job that takes processors and of each that gives them back.

For plugins that count what jobs have, however the jobs were started: what was decided and is not confirmed
yet counts, and a start that is taken back does not. Events tell that only later, and not all of it.
"""

from __future__ import annotations

from headway.state.facts import Facts
from headway.state.records import Job, Watcher


def watch(state: Facts, watcher: Watcher) -> None:
    """Tell the watcher from now on. To be called in the hook ``startup``, when there are no jobs yet."""
    state.watchers.append(watcher)


def tell_took(state: Facts, job: Job) -> None:
    """The job has its processors."""
    for watcher in state.watchers:
        try:
            watcher.took(job)
        except Exception as error:
            _failed(state, watcher, job, error)


def tell_gave(state: Facts, job: Job) -> None:
    """The job has given them back."""
    for watcher in state.watchers:
        try:
            watcher.gave(job)
        except Exception as error:
            _failed(state, watcher, job, error)


def _failed(state: Facts, watcher: Watcher, job: Job, error: Exception) -> None:
    name = type(watcher).__name__
    state.anomalies.append(f"{name} could not count job {job.id}: {type(error).__name__}: {error}")
