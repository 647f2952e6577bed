"""First come, first served: jobs start in queue order, and nobody overtakes.

The head of the queue waits until it fits, and everybody behind it waits as well.
"""

from __future__ import annotations

from headway.decisions import Start
from headway.hookspecs import Plugin, hookimpl
from headway.view import View


class Fcfs(Plugin):
    """First come, first served: start from the head of the queue until one does not fit."""

    @hookimpl
    def schedule(self, view: View) -> list[Start]:
        if 0 <= view.fresh < len(view.queue):
            return view.made  # the head did not fit before these arrived, and nothing became free
        for job in view.queue:
            if view.start(job, "first in the queue") is None:
                break
        return view.made
