"""What the next step of a route between clusters is: a function of what both clusters show now.

Nothing else is known, so a daemon that was killed goes on from any step. The steps of a route that goes well:

============================  ======================================================================
step                          why it is safe to be killed behind it
============================  ======================================================================
``SUBMIT`` the copy, held     without a mark it is no job; the next daemon cancels it
``MARK`` it a copy            likewise; its user cannot release it any more
``COMMIT``: mark the          the original starts no more; the next daemon goes on
original as leaving
``SEAL`` the copy             only now the original may be cancelled: a sealed copy without its original
                              is the job, an unsealed copy without it is of a job that its user cancelled
``CANCEL_ORIGINAL``           only if it waits
``SETTLE``: the copy is       asked for until it is done; from then on the copy is a job like any other,
the job                       with the name of the original
============================  ======================================================================

Everything that comes between undoes the copy as long as the original can still be the job. What the two jobs
show and nobody can have ordered is ``UNDECIDED``: nothing is done, and an operator is told.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from headway_adapters.polling.resubmission import COPY, LEAVING, SEALED, Standing


class Do(enum.Enum):
    """A step."""

    SUBMIT = "submit"
    MARK = "mark"
    COMMIT = "commit"
    SEAL = "seal"
    CANCEL_ORIGINAL = "cancel the original"
    SETTLE = "settle"
    CANCEL_COPY = "cancel the copy"
    UNMARK = "unmark"
    #: The route is over, and the original is the job.
    FAIL = "fail"
    UNDECIDED = "undecided"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Step:
    """What is to be done, and why, for a person."""

    do: Do
    why: str = ""


_NOTHING = Step(Do.NOTHING)


def next_step(
    original: Standing | None, copy: Standing | None, place: str, *, wanted: bool, key: str = ""
) -> Step:
    """The next step of one route.

    ``original``, ``copy``: as their clusters show them; None: certainly not known there. ``place``: of the
    copy, as :data:`headway_adapters.polling.resubmission.PLACE`; "" without one. ``wanted``: this run ordered
    the route, with a label of this ``key``, and nothing stopped it yet.
    """
    if any(one is not None and one.state == "unknown" for one in (original, copy)):
        return Step(Do.UNDECIDED, "what became of it is not known yet")
    if copy is not None and copy.came:
        return _settled(original, place)
    if copy is None or (copy.state == "ended" and not copy.ran):
        return _without_copy(original, place, wanted=wanted)
    if copy.mark is None:
        return _labelled(original, copy, wanted=wanted, key=key)
    if copy.state != "pending":
        return _ran(original, copy)
    if original is None or original.state != "pending":
        return _original_gone(original, copy)
    if original.ran and original.mark is not None:
        return Step(Do.CANCEL_COPY, "the original ran")
    if original.mark is not None and original.mark.other != place:
        return Step(Do.CANCEL_COPY, f"the original goes to {original.mark.other}")
    committed = original.mark is not None and original.mark.kind == LEAVING
    if copy.mark.kind == SEALED:
        if committed:
            return Step(Do.CANCEL_ORIGINAL)
        return Step(Do.CANCEL_COPY, "the original's mark was taken away, so it stays")
    if committed:
        return Step(Do.SEAL)
    return Step(Do.COMMIT) if wanted else Step(Do.CANCEL_COPY, "the route was not finished")


def _settled(original: Standing | None, place: str) -> Step:
    """The copy is the job: nothing is left to do, if the original is gone."""
    if original is not None and original.state != "ended" and _leaves_for(original, place):
        return Step(Do.UNDECIDED, "its copy became the job, and the original is still there")
    return _NOTHING


def _leaves_for(original: Standing, place: str) -> bool:
    return original.mark is not None and original.mark.kind == LEAVING and original.mark.other == place


def _without_copy(original: Standing | None, place: str, *, wanted: bool) -> Step:
    if original is None or original.state != "pending":
        return Step(Do.FAIL, "the job does not wait any more") if wanted else _NOTHING
    if original.mark is not None:
        return Step(Do.UNMARK, "its copy is gone") if not place or original.mark.other == place else _NOTHING
    if not wanted:
        return _NOTHING
    return Step(Do.SUBMIT) if not place else Step(Do.FAIL, "the copy was cancelled")


def _labelled(original: Standing | None, copy: Standing, *, wanted: bool, key: str) -> Step:
    """A copy, or a user's job that looks like a copy: only a label that this run drew is believed."""
    if copy.label is None or copy.state != "pending":
        return _NOTHING
    waits = original is not None and original.state == "pending" and original.user == copy.user
    if wanted and copy.label.key == key and waits:
        return Step(Do.MARK)
    return Step(Do.CANCEL_COPY, "the route was not finished")


def _ran(original: Standing | None, copy: Standing) -> Step:
    """An administrator let the copy start."""
    if original is None or (original.state == "ended" and not original.ran):
        return Step(Do.SETTLE) if copy.state == "running" else _NOTHING
    if original.state == "pending":
        return Step(Do.CANCEL_ORIGINAL, "its copy was started outside headway")
    return Step(Do.UNDECIDED, "the original ran, and so did its copy")


def _original_gone(original: Standing | None, copy: Standing) -> Step:
    assert copy.mark is not None
    if original is not None and (original.state == "running" or (original.ran and not original.cancelled)):
        return Step(Do.CANCEL_COPY, "the original ran")
    if copy.mark.kind == COPY:
        return Step(Do.CANCEL_COPY, "the original was cancelled")
    if original is None or (original.cancelled and not original.ran):
        return Step(Do.SETTLE)
    return Step(Do.UNDECIDED, "the original was cancelled after it had started, or ended without running")
