"""Where jobs are put: what the placement plugins say of a job, for the views of domains of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headway.model import Placement
from headway.plugins import Again, HookCaller, Plugins, traits_of
from headway.resources import Offer
from headway.state import Job
from headway.view import View


class Placing:
    """The plugins with the hook ``place``, as one."""

    def __init__(self, hook: HookCaller, plugins: Plugins) -> None:
        self._hook = hook
        #: Where a job is put depends on nothing but the job and what it is offered: no plugin has the view.
        self.by_offer = not plugins.takes("place", "view")
        self._placers = [plugins.by_name[name] for name, _ in hook.implementations]
        traits = [traits_of(placer) for placer in self._placers]
        self._kinds = [found for one in traits if (found := one.same_answer) is not None]
        self._changes = [found for one in traits if (found := one.changes_at) is not None]

    def find(self, job: Job, offer: Offer, view: View) -> Placement | None:
        """Where a job is to run, of what is offered; None: nowhere."""
        if not self._hook:
            return offer.take(offer.feasible)
        # An empty answer is one: nowhere.
        return self._hook.first(job, offer, view) or None

    @property
    def kind(self) -> Callable[[Job], Any] | None:
        """What of a job beside its shape decides where it is put; None: nothing."""
        kinds = self._kinds
        return (lambda job: tuple(function(job) for function in kinds)) if kinds else None

    @property
    def changes(self) -> Callable[[Job], Sequence[float]] | None:
        """When a job is put elsewhere though nothing happens, absolute seconds; None: never."""
        changes = self._changes
        return (lambda job: [time for function in changes for time in function(job)]) if changes else None

    def by_room(self) -> bool:
        """Whether a job that finds no place finds one only once something was taken or given back."""
        return all(traits_of(placer).ask_again is Again.ROOM for placer in self._placers)
