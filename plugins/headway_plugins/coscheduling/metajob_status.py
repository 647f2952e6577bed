"""What became of a metajob: as a record for programs, and in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any

import msgspec

from headway_plugins.coscheduling.live_metajob import LiveMetajob

#: What a phase means.
_PHASES = {
    "searching": "the search goes on",
    "giving back": "what the search left is given back",
    "reserved": "all parts are reserved",
    "refused": "there is no place",
    "lost": "a site lost a part, and the other parts were given back",
    "cancelled": "the user gave it up",
    "over": "all parts are over",
}
#: And of copies of one job.
_COPIES = {
    "queued": "its copies wait, and the first that starts is the job",
    "started": "a copy is the job, and the others are removed",
    "undecided": "a copy is gone that may have run, and the others start nowhere",
    "giving back": "its copies are removed",
    "refused": "no copy started in time",
    "cancelled": "the user gave it up",
    "over": "no copy is left",
}
#: What the rules mean by which a site refuses.
RULES = {
    "request": "fewer nodes or seconds than a reservation must have",
    "size": "more nodes than a reservation may have",
    "duration": "longer than a reservation may be",
    "count": "the account has as many reservations as it may have",
    "place": "no room before the latest end, beside running jobs, reservations and the queue",
    "horizon": "its first place ends too far ahead",
    "budget": "more node-seconds than users' reservations may have in the window",
    "timeout": "the site did not answer in time",
}


class PartReport(msgspec.Struct, frozen=True):
    """What is reserved at a machine."""

    machine: str
    reservation: str
    nodes: int
    start: float
    end: float
    #: "": none is named for it.
    job: str | None
    bound: bool


class MetajobReport(msgspec.Struct, frozen=True):
    """A metajob; times are seconds since the epoch. What follows ``why`` is told of one that is named."""

    id: str
    user: str
    phase: str
    usage: str
    start: float | None
    why: str
    submitted: float | None = None
    earliest: float | None = None
    latest: float | None = None
    on_loss: str | None = None
    #: Machine -> job.
    jobs: dict[str, str] = {}
    rounds: int = 0
    #: What the search waits for: the kind of question, and the site.
    asks: tuple[str, str] | None = None
    parts: tuple[PartReport, ...] = ()
    #: The search step by step.
    search: tuple[dict[str, Any], ...] = ()
    losses: tuple[str, ...] = ()
    #: Site and name of reservations that were not given back.
    leaks: tuple[tuple[str, str], ...] = ()
    #: Of copies of one job: each with its state.
    copies: tuple[dict[str, Any], ...] = ()


#: What ``headway metajob status`` tells: of all, or of the metajob that is named.
Told = list[MetajobReport] | MetajobReport


def rule_in_words(rule: str) -> str:
    """A rule with what it means."""
    return f"{rule} ({RULES[rule]})" if rule in RULES else rule


def brief(live: LiveMetajob) -> dict[str, Any]:
    """A line of the list."""
    kept = live.kept
    return {
        "id": kept.id,
        "user": kept.user,
        "phase": kept.phase,
        "usage": "everywhere" if kept.everywhere else kept.metajob.usage,
        "start": min((part.start for part in kept.parts), default=None),
        "why": kept.why,
    }


def full(live: LiveMetajob) -> dict[str, Any]:
    """All that is known of a metajob, in JSON values."""
    kept, search = live.kept, live.search
    call = live.errand.call if live.errand is not None else None
    return {
        **brief(live),
        "submitted": kept.submitted,
        "earliest": kept.metajob.earliest,
        "latest": kept.metajob.latest,
        "on_loss": kept.on_loss,
        "jobs": dict(kept.jobs),
        "rounds": kept.rounds + (search.rounds if search is not None else 0),
        "asks": [call.kind, call.site or live.machine_of(call.name)] if call is not None else None,
        "parts": [
            {
                "machine": live.machine_of(part.name),
                "reservation": part.name,
                "nodes": part.nodes,
                "start": part.start,
                "end": part.end,
                "job": live.job_of(part.name),
                "bound": part.name in kept.bound,
            }
            for part in kept.parts
        ],
        "search": msgspec.to_builtins(live.rows()),
        "losses": list(kept.losses),
        "leaks": [list(leak) for leak in kept.leaks],
    }


# ---------------------------------------------------------------------- sentences


def list_in_words(rows: list[Mapping[str, Any]], clock: Callable[[float], str]) -> Iterator[str]:
    """A line for each metajob."""
    if not rows:
        yield "no metajobs"
    for row in rows:
        start = f", starts {clock(row['start'])}" if row["start"] is not None else ""
        why = f": {row['why']}" if row["why"] else ""
        yield f"{row['id']} of {row['user']} ({row['usage']}): {row['phase']}{start}{why}"


def in_words(row: Mapping[str, Any], clock: Callable[[float], str]) -> Iterator[str]:
    """A metajob, a sentence a line."""
    means = (_COPIES if row["copies"] else _PHASES)[row["phase"]]
    yield f"metajob {row['id']} of {row['user']} ({row['usage']}): {row['phase']}: {means}"
    yield f"between {clock(row['earliest'])} and {clock(row['latest'])}; submitted {clock(row['submitted'])}"
    if row["why"]:
        yield row["why"]
    yield from (_copy(copy, clock) for copy in row["copies"])
    for part in row["parts"]:
        job = (
            f", job {part['job']} {'is bound' if part['bound'] else 'is not bound yet'}"
            if part["job"]
            else ""
        )
        yield (
            f"{part['machine']}: {part['nodes']} nodes from {clock(part['start'])} to {clock(part['end'])}, "
            f"reservation {part['reservation']}{job}"
        )
    for loss in row["losses"]:
        yield f"lost: {loss}"
    for site, name in row["leaks"]:
        yield f"{site} does not give reservation {name} back; an operator can remove it"
    if row["search"]:
        yield f"the search so far, {row['rounds']} rounds:"
        yield from (f"  {_row(step, clock)}" for step in row["search"])
    if row["asks"]:
        kind, site = row["asks"]
        yield f"waits for the answer of {site or 'the clock'} ({kind})"


def _copy(row: Mapping[str, Any], clock: Callable[[float], str]) -> str:
    words = {
        "waiting": "waits",
        "starting": "is being started",
        "running": f"runs since {clock(row['start'])}" if row["start"] is not None else "",
        "ended": f"is gone ({row['ended']})",
        "going": "is being removed",
        "away": "waits for its site to answer",
        "unknown": "is not listed any more, and may have run",
    }
    job = ", the job" if row["is_the_job"] else ""
    why = f": {row['why']}" if row["why"] else ""
    return f"{row['machine']}: copy {row['job']}{job}, {words[row['state']]}{why}"


def _row(row: list[Any], clock: Callable[[float], str]) -> str:
    kind, site, *more = row
    if kind == "P":
        nodes, start = more
        found = "has no place for" if start is None or start == inf else f"from {clock(start)} on could have"
        return f"{site} {found} {nodes} nodes (trial)"
    if kind == "M":
        return f"{site}: {more[0]} nodes reserved from {clock(more[1])} on"
    if kind == "D":
        return f"{site} refuses {more[0]} nodes: {rule_in_words(more[1])}"
    words = {
        "X": "reservation given back",
        "L": "reservation could not be given back",
        "B": "part of the answer",
    }
    return f"{site}: {words.get(kind, kind)}"
