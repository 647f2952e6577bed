"""Policies of a program, as a notebook has them."""

from __future__ import annotations

from pydantic import BaseModel

from headway.hookspecs import hookimpl


class Smallest:
    """The smallest job first, without reservations."""

    @hookimpl
    def queue_key(self, job):
        return (job.processors,)

    @hookimpl
    def schedule(self, view):
        return [start for job in view.queue if (start := view.start(job, "fits now"))]


class Some:
    """At most so many starts in a cycle, in the order of the queue."""

    class Options(BaseModel):
        most: int = 1

    def __init__(self, options):
        self.options = options

    @hookimpl
    def schedule(self, view):
        found = []
        for job in view.queue:
            start = view.start(job, "among the first") if len(found) < self.options.most else None
            if start is None:
                break
            found.append(start)
        return found


class Failing:
    """A policy with a mistake."""

    @hookimpl
    def schedule(self, view):
        raise ValueError("a mistake")


class Unmarked:
    """Its hook has no mark."""

    def schedule(self, view):
        return []


class Easy(Smallest):
    """It is called as an installed plugin is."""
