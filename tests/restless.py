"""A plugin that has every pool looked at whenever a job is expected to end."""

from __future__ import annotations

from headway.hookspecs import hookimpl


class Restless:
    """Looks at every expected end of every running job."""

    @hookimpl
    def control(self, state):
        for pool in state.domains.values():
            for end, *_ in pool.running:
                if end > state.now:
                    state.wake_at(end, pool)
