"""What a policy sees of one pool, and what it can do there: start and book.

A policy that a paper describes over a plain count of processors runs unchanged on a cluster of
nodes, because both kinds of view answer the same two questions:

* :meth:`View.start`: can this job start now, without delaying what is booked and without
  breaking a reservation? If so it is started.
* :meth:`View.book`: when is the earliest that this job can start, given what runs, what is
  reserved and what was booked before? That capacity is then kept for it.

On a flat pool (:class:`FlatView`) the answers come from counts; with a single booking and no
reservations they are EASY's shadow time and extra processors. On a node pool (:class:`NodeView`)
they come from placements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.view.booking import Booking
    from headway.view.flat import FlatView
    from headway.view.interface import View
    from headway.view.nodes import NodeView

__all__ = ["Booking", "FlatView", "NodeView", "View"]

__getattr__ = late(
    __name__,
    {
        ".booking": "Booking",
        ".flat": "FlatView",
        ".interface": "View",
        ".nodes": "NodeView",
    },
)
