"""Reports of what is free now and for how long: holes that a job could use that is submitted now."""

from __future__ import annotations

import math

import msgspec

from headway.inquiry.inquiry import Inquiry
from headway.inquiry.reports import HoleList, HoleReport, PoolHoles, finite
from headway.model import Request
from headway.plugins import traits_of
from headway.state import PoolState
from headway.state.licences import licence_profile
from headway.view import View
from headway.view.holes import Holes, holes
from headway.view.owed import short_of_time

#: Seconds of processor time for the pools of an answer together: then the longer holes are left out.
SECONDS = 0.02


class HolesWanted(msgspec.Struct, frozen=True):
    """Which holes are asked for."""

    #: What each node must have (:func:`headway.view.holes.holes`), and licences.
    each: Request
    #: "": in any pool.
    pool: str = ""
    #: Of all nodes together, at least; 0: not stated.
    nodes: int = 0
    processors: int = 0
    #: Seconds that the hole must last.
    seconds: float = 0.0


def hole_list(inquiry: Inquiry, wanted: HolesWanted) -> HoleList:
    """The holes of a pool, or of all pools."""
    check = short_of_time(SECONDS)
    pools = [pool for name, pool in inquiry.state.pools.items() if wanted.pool in ("", name)]
    found = []
    for pool in pools:
        view = inquiry.scheduler.views[pool.domain.name]
        why = _why_none(inquiry, pool, view)
        here = holes(view, pool, wanted.each, check, inquiry.check) if not why else Holes((), math.inf)
        found.append(_report(inquiry, pool, view, here, why, wanted))
    return HoleList(tuple(found))


def _why_none(inquiry: Inquiry, pool: PoolState, view: View) -> str:
    """Why no job could start there now, whatever it asks for; "": some might."""
    if not pool.open:
        return "the pool is closed"
    if view.domain.free <= 0:
        return "no processor is free"
    waiting = len(view.domain.queue)
    backfills = any(traits_of(policy).study.backfills for policy in inquiry.scheduler.policies)
    if waiting and not backfills:
        jobs = "a job waits" if waiting == 1 else f"{waiting} jobs wait"
        return f"{jobs}, and the policy lets no job overtake"
    return ""


def _report(
    inquiry: Inquiry, pool: PoolState, view: View, found: Holes, why: str, wanted: HolesWanted
) -> PoolHoles:
    now = inquiry.state.now
    licensed = _licensed_until(inquiry, view, wanted.each)
    rows = [
        HoleReport(hole.processors, hole.nodes, finite(until), finite(until - now))
        for hole in found.holes
        if (until := min(hole.until, licensed)) > now
    ]
    # Of holes that end with the licences only the largest counts.
    rows = [row for at, row in enumerate(rows) if not at or row.until != rows[at - 1].until]
    fits = [
        row
        for row in rows
        if row.nodes >= wanted.nodes
        and row.processors >= wanted.processors
        and (row.seconds is None or row.seconds >= wanted.seconds)
    ]
    asked = bool(wanted.nodes or wanted.processors or wanted.seconds)
    return PoolHoles(
        pool.name,
        tuple(rows),
        why or ("" if rows else "nothing that is asked for is free now"),
        finite(found.known_until),
        bool(fits) if asked else None,
    )


def _licensed_until(inquiry: Inquiry, view: View, request: Request) -> float:
    """Until when the licences of a request are free from now on; infinity: without limit."""
    state, until = inquiry.state, math.inf
    for name, amount in request.licences:
        if state.licences is None or name not in state.licences.total:
            return state.now
        profile = licence_profile(state, name, "")
        for booking in view._licensed_bookings():
            for other, taken in booking.job.request.licences:
                if other == name and booking.start != math.inf:
                    profile.reserve(booking.start, booking.start + booking.job.expected_runtime, taken)
        until = min(until, profile.until(amount, state.now))
    return until
