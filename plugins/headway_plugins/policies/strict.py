"""Strict order: jobs start from the head of the queue, and no job overtakes.

The head of the queue waits until it fits, and all jobs behind it wait as well. Where only arrivals
happened since the last cycle, an older head that did not fit still does not.
"""

from __future__ import annotations

from headway.decisions import Decision
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Again, Study, Traits
from headway.view import View


class Strict(Plugin):
    """Start from the head of the queue until one does not fit."""

    traits = Traits(ask_again=Again.DOMAIN, study=Study(estimates=False))

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        arrivals = view.arrivals
        if arrivals is not None and (not arrivals or arrivals[0] is not view.queue[0]):
            return view.made
        for job in view.queue:
            if view.start(job, "first in the queue") is None:
                view.stopped_at = job
                break
        return view.made
