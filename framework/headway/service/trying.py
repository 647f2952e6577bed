"""A user's words about a job that is not submitted, as a job that a scheduler can be given."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from headway.inquiry.inquiry import Inquiry
from headway.inquiry.reports import SmallerRequest, TrialReport
from headway.inquiry.trial import as_before, next_id, trial
from headway.model import JobDescription, Request
from headway.scheduler import Scheduler
from headway.service.protocol import Reply, When
from headway.state import State

#: A request in halves has at least so many seconds.
_SHORTEST = 60.0
#: Of a reply, nodes that are named.
_NAMED = 1000


class Impossible(Exception):
    """The words name no job; the message says what is wrong with them."""


def try_out(inquiry: Inquiry, wanted: When, user: str, now: float, say: Callable[[Reply], None]) -> None:
    """Try the job and say what is known, each time better. Uses the inquiry's scheduler up."""
    scheduler = inquiry.scheduler
    as_of = scheduler.state.now
    try:
        description = described(scheduler, wanted, user, now)
    except Impossible as error:
        say(Reply("unknown", str(error), as_of=as_of))
        return

    def found(report: TrialReport) -> None:
        named = report.placement[:_NAMED]
        say(Reply("accepted", found=replace(report, placement=named), as_of=as_of))

    try:
        trial(inquiry, now, description, found)
    except Exception as error:
        say(Reply("failed", f"the trial failed, which is a mistake of headway's: {error}", as_of=as_of))


def described(scheduler: Scheduler, wanted: When, user: str, now: float) -> JobDescription:
    """The job. Raises :class:`Impossible`."""
    state = scheduler.state
    pool = _pool(state, wanted.pool)
    if not wanted.seconds:
        raise Impossible("expected a time limit (-t); found none")
    request = _flat(wanted) if state.pools[pool].flat else _on_nodes(wanted)
    job = JobDescription(
        next_id(scheduler), now, request, pool=pool, user=user, account=wanted.account, qos=wanted.qos,
        begin_time=wanted.begin if wanted.begin > now else None,
    )  # fmt: skip
    return as_before(scheduler, job)


def _pool(state: State, name: str) -> str:
    if name in state.pools:
        return name
    if not name and len(state.pools) == 1:
        return next(iter(state.pools))
    found = f"found {name!r}" if name else "found none"
    raise Impossible(f"expected one of the pools {', '.join(state.pools)} (-p); {found}")


def _flat(wanted: When) -> Request:
    if not wanted.processors:
        raise Impossible("expected a number of processors (-n), because the pool has no nodes; found none")
    return Request(wanted.processors, wanted.seconds, licences=wanted.licences)


def _on_nodes(wanted: When) -> Request:
    each = wanted.processors_per_node
    processors = wanted.processors or (wanted.nodes or 1) * (each or 1)
    if wanted.nodes and processors < wanted.nodes:
        raise Impossible(
            f"expected at least one processor a node; found {processors} on {wanted.nodes} nodes"
        )
    if each and (processors % each or (wanted.nodes and processors != wanted.nodes * each)):
        on = f" on {wanted.nodes} nodes" if wanted.nodes else ""
        raise Impossible(f"expected a multiple of {each} processors a node; found {processors}{on}")
    return Request(
        processors, wanted.seconds, nodes=wanted.nodes, processors_per_node=each,
        memory_per_node=wanted.memory_per_node, memory_per_processor=wanted.memory_per_processor,
        gres_per_node=wanted.gres_per_node, features=wanted.features, licences=wanted.licences,
        exclusive=wanted.exclusive,
    )  # fmt: skip


def smaller(wanted: When) -> Iterator[When]:
    """Requests for less: a half and a quarter of the time, half of the nodes or processors, half of both."""
    half = replace(wanted, seconds=wanted.seconds / 2)
    if half.seconds >= _SHORTEST:
        yield half
    less = wanted
    if wanted.nodes > 1:
        less = replace(
            wanted,
            nodes=wanted.nodes // 2,
            processors=wanted.processors * (wanted.nodes // 2) // wanted.nodes,
        )
    elif not wanted.nodes and wanted.processors > 1:
        each = wanted.processors_per_node or 1
        less = replace(wanted, processors=wanted.processors // each // 2 * each)
    if less is not wanted and (less.processors or less.nodes):
        yield less
        if half.seconds >= _SHORTEST:
            yield replace(less, seconds=half.seconds)
    if wanted.seconds / 4 >= _SHORTEST:
        yield replace(wanted, seconds=wanted.seconds / 4)


def earlier(tried: When, reply: Reply, than: TrialReport) -> SmallerRequest | None:
    """The smaller request, if it would start earlier than the whole."""
    report = reply.found
    if not isinstance(report, TrialReport) or report.start is None:
        return None
    if than.start is not None and report.start >= than.start:
        return None
    return SmallerRequest(tried.nodes, tried.processors, tried.seconds, report.start)
