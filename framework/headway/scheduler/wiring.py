"""The questions about single jobs that the state has answered by plugins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headway.decisions import PowerDown, PowerUp
from headway.plugins import HookCaller, Plugins, traits_of
from headway.scheduler import answers
from headway.state import Job, State
from headway.state.admission import ask_in_each


def ask_plugins(state: State, plugins: Plugins, caller: Callable[[str], HookCaller]) -> None:
    """Have the state ask these plugins for predictions, places in the queue, admissions, barriers and
    factors; ``caller`` makes what calls a hook."""
    state.sleeps = state.cluster.wiring is None and (plugins.using(PowerDown) or plugins.using(PowerUp))
    if predict := caller("predict_runtime"):
        state.predict = partial(answers.predicted_runtime, predict, state)
    if key := caller("queue_key"):
        state.queue_key = partial(answers.queue_key, key, state)
        state.one_key = len(key.implementations) == 1
    if admit := caller("admit_job"):

        def admit_job(job: Job) -> None:
            ask_in_each(job, lambda job: admit.first(job, state) or "")

        state.admit = admit_job
    if bars := caller("bar_job"):
        _ask_for_barriers(state, plugins, bars)
    if arrivals := caller("arrival_chance"):
        state.arrival_chance = lambda pool, seconds: answers.arrival_chance(
            arrivals.first(pool, seconds, state), state
        )
    for _, factors in reversed(caller("register_factors").all()):
        state.factors.update(factors)


def _ask_for_barriers(state: State, plugins: Plugins, bars: HookCaller) -> None:
    """One by one; where one plugin alone bars and can answer about many at once, so, and by kind."""
    state.bars = partial(answers.barrier_of, bars, state)
    alone = bars.implementations[0][0] if len(bars.implementations) == 1 else ""
    together = {name: function for name, function in plugins.implementations("bar_jobs")}
    if alone in together:
        state.bars_many = partial(answers.barriers_of, bars, together[alone], state)
        if (kind_of := traits_of(plugins.by_name[alone]).same_answer) is not None:
            state.bar_kind = partial(answers.kind_of_job, bars, kind_of)
