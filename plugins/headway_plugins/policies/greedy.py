"""Greedy: a job that fits starts, in queue order; a job that does not fit is skipped.

A. Chandio, K. Bilal, N. Tziritas, Z. Yu, Q. Jiang, S. Khan, C. Xu: A comparative study on resource
allocation and energy efficient job scheduling strategies in large-scale parallel computing systems.
Cluster Computing, 2014, section 5: the "first fit" (FF) that goes with each of its orders. (The plugin
``first-fit`` is a placement.)

Nothing is booked, so a large job may wait for ever. Where only arrivals happened since the last cycle,
only they are tried; otherwise the jobs that fit are found by their sizes
(:meth:`headway.view.View.fitting`), so that a long queue costs little.
"""

from __future__ import annotations

from headway.decisions import Decision
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Again, Study, Traits
from headway.state import Status
from headway.view import View


class Greedy(Plugin):
    """Start whatever fits, in queue order; pass over what does not."""

    traits = Traits(
        ask_again=Again.DOMAIN,
        study=Study(backfills=True, estimates=False),
        paper=(
            "A. Chandio and others: A comparative study on resource allocation and energy efficient "
            "job scheduling strategies in large-scale parallel computing systems, Cluster Computing, "
            "2014"
        ),
    )

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        arrivals = view.arrivals
        if view.prepared and view.fresh < 0:
            # What other plugins keep was booked anew, and may leave room for jobs that were skipped.
            arrivals = None
        waiting = iter(view.queue)
        head = next(waiting)
        for job in view.fitting() if arrivals is None else arrivals:
            while head.status is not Status.PENDING:
                head = next(waiting)
            if job is head:
                view.start(job, "first in the queue")
            else:
                view.start(job, f"fits now, and job {head.id}, the first in the queue, does not")
        return view.made
