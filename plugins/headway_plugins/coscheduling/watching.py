"""What to do when a site loses a reservation after SUCCESS.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling
Strategies for Parallel Processing, 2005, section 5: "If a reservation cannot be fulfilled, perhaps due to
hardware failure or unplanned maintenance, then the local scheduler is expected to email notification to the
user."

Ours: the sites are looked at now and then. Where a reservation is gone, or has lost nodes, or the site does
not answer, ``on_loss`` says what happens:

- ``keep``: the other reservations stay.
- ``cancel_all``: the other reservations are cancelled.
- ``replan``: the other reservations are cancelled, and the metajob is searched for anew.

A stage of a pipeline that is over is no loss. A site that does not answer has lost its reservation only when
it has not answered for ``patience`` seconds. Its reservation cannot be cancelled before it answers again.
When it does, its nodes may still be down: they report to it one after another, and have as long for that.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Literal

import msgspec

from headway_plugins.coscheduling.calls import Call, Found
from headway_plugins.coscheduling.metajob import Metajob
from headway_plugins.coscheduling.rounds import Made

OnLoss = Literal["keep", "cancel_all", "replan"]


class Loss(msgspec.Struct, frozen=True):
    """A reservation that is not what it was."""

    site: str
    name: str
    what: str
    #: The site does not answer: the reservation may still be there.
    silent: bool = False


class Reaction(msgspec.Struct, frozen=True):
    """What follows from a look at the sites."""

    #: The user is told of each.
    losses: tuple[Loss, ...] = ()
    calls: tuple[Call, ...] = ()
    #: Whether a new search begins after the calls.
    replan: bool = False


def losses(
    parts: Sequence[Made],
    shown: Mapping[str, Sequence[Found] | None],
    silent: Mapping[str, float],
    now: float,
    patience: float,
    unsettled: Container[str] = (),
) -> list[Loss]:
    """What was lost.

    ``shown``: of each site that was asked its reservations, None if it did not answer. ``silent``: since when
    a site has not answered, absolute seconds; ``patience``: seconds. ``unsettled``: the sites that have just
    answered again.
    """
    found = []
    for part in parts:
        if part.end <= now or part.site not in shown:
            continue
        there = shown[part.site]
        if there is None:
            if silent.get(part.site, now) + patience <= now:
                found.append(Loss(part.site, part.name, "the site does not answer", silent=True))
            continue
        mine = next((one for one in there if one.name == part.name), None)
        if mine is None:
            found.append(Loss(part.site, part.name, "the reservation is gone"))
        elif (mine.state == "DEGRADED" and part.site not in unsettled) or mine.nodes < part.nodes:
            found.append(Loss(part.site, part.name, f"the reservation has lost nodes ({mine.state})"))
        elif mine.start != part.start:
            found.append(Loss(part.site, part.name, f"the reservation was moved to {mine.start:g}"))
    return found


def react(parts: Sequence[Made], lost: Sequence[Loss], on_loss: OnLoss, now: float) -> Reaction:
    """What ``on_loss`` says. Cancels go to all parts that are not over, the last made first."""
    if not lost:
        return Reaction()
    if on_loss == "keep":
        return Reaction(tuple(lost))
    calls = tuple(Call("cancel", part.site, part.name) for part in reversed(parts) if part.end > now)
    return Reaction(tuple(lost), calls, on_loss == "replan")


def anew(metajob: Metajob, now: float, number: int) -> Metajob:
    """The metajob of the ``number``-th replan, which starts no earlier than now.

    Its reservations have names of their own.
    """
    return msgspec.structs.replace(metajob, id=f"{metajob.id}r{number}", earliest=max(metajob.earliest, now))
