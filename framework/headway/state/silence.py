"""Clusters that do not answer, and since when.

What is known of a silent cluster stands: its jobs, nodes and reservations are as they were told last. So
silence changes nothing else in the state; a plugin that must not wait for such a cluster asks here.
"""

from __future__ import annotations

from headway import events as ev
from headway.state.facts import Facts


def fell_silent(state: Facts, event: ev.ClusterSilent) -> None:
    """A cluster does not answer; of several such events in a row the first tells since when."""
    state.silent.setdefault(event.cluster, event.time)


def answers(state: Facts, event: ev.ClusterAnswers) -> None:
    """A cluster answers again."""
    state.silent.pop(event.cluster, None)


def silent_since(state: Facts, name: str) -> float | None:
    """Since when the cluster of a pool, node or job has not answered, in absolute seconds; None: it answers.

    The names of a federation begin with their cluster and a colon. A job that has gone to another cluster
    keeps its name: ask about its pool.
    """
    if not state.silent:
        return None
    return state.silent.get(name.partition(":")[0], state.silent.get(""))
