"""Decision -> argument vectors. Pure: looks at nothing and runs nothing.

Everything that comes from users, plugins or the batch system is checked here before it may stand in a
command: an id is digits, an index and a server's name; a vnode's name begins with a letter or digit
and has nothing that PBS's ``(a:ncpus=1)+(b:ncpus=1)`` is made of. What does not pass raises
:class:`Unfit`.

What PBS has no command for is no capability of the adapter: tiers, more nodes for a running job, a
migration, a checkpoint by command. Frequencies and sleep are the site's own commands'
(:mod:`headway_adapters.polling.actuators`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

import msgspec

from headway import decisions as d
from headway.model import Placement, Reservation
from headway.model.parts import by_node
from headway_adapters.pbs import select, values
from headway_adapters.pbs.chunk_parts import lie
from headway_adapters.pbs.confirmations import UNCONFIRMED
from headway_adapters.pbs.reader import NOTES, Detail
from headway_adapters.pbs.reservations import PREFIX
from headway_adapters.polling.remarks import with_note
from headway_adapters.polling.words import Argv, Unfit, matching, point_in_time, signal_name, time_limit

_JOB = re.compile(r"[0-9]{1,12}(?:\[[0-9]{1,10}\])?(?:\.[A-Za-z0-9][A-Za-z0-9._-]{0,254})?")
_ARRAY = re.compile(r"[0-9]{1,12}\[\](?:\.[A-Za-z0-9][A-Za-z0-9._-]{0,254})?")
_VNODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\[\]#^-]{0,254}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_RESOURCE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_NOTES = re.compile(r"[A-Za-z0-9_.,:;=@\[\]/+ -]*")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")

#: Seconds that a reservation may take to be confirmed.
_CONFIRMED_WITHIN = 10
#: What is printed, with exit code 0, of a reservation that PBS's scheduler refuses, too.
_NOT_CONFIRMED = (" DENIED", *UNCONFIRMED)
#: PBS's answers that mean that a job which was to be ended has ended.
GONE = ("Unknown Job Id", "Unknown Job id", "Job has finished")
#: Its answer about a job that runs already, or no longer waits: whether it does, the next look tells.
NOT_WAITING = "Request invalid for state of job"
#: Its answer about a job that has an unmet dependency, or a begin time in the future.
NOT_NOW = "Resource temporarily unavailable"


class Plan(msgspec.Struct, frozen=True):
    """Commands to run one after another; the first that fails ends it."""

    steps: tuple[Argv, ...]
    #: Parts of error messages that mean that what was asked for is already so.
    already: tuple[str, ...] = ()
    #: Parts of what a command prints that mean that it has failed, although its exit code is 0.
    denials: tuple[str, ...] = ()
    #: What the job's notes are in from then on, if that is changed.
    noted: str = ""


def job(job_id: str) -> str:
    """A job's id, checked."""
    return matching(job_id, _JOB, "the id of a PBS job")


def array(array_id: str) -> str:
    """A job array's id, checked."""
    return matching(array_id, _ARRAY, "the id of a PBS job array")


def vnode(name: str) -> str:
    """A vnode's name, checked."""
    return matching(name, _VNODE, "the name of a vnode")


def host(name: str) -> str:
    """A host's name, checked."""
    return matching(name, _HOST, "the name of a host")


def name(text: str, what: str) -> str:
    """A user's or reservation's name, checked."""
    return matching(text, _NAME, f"the name of {what}")


def walltime(seconds: float) -> str:
    """A limit as ``HH:MM:SS``, rounded up to whole seconds."""
    return values.hms(time_limit(seconds))


def clock(seconds: float) -> str:
    """An absolute time as ``CCYYMMDDhhmm.SS``; commands run with TZ=UTC."""
    return time.strftime("%Y%m%d%H%M.%S", time.gmtime(point_in_time(seconds)))


# ---------------------------------------------------------------------- starts


def start(
    decision: d.Start, detail: Detail, *, hosts: Mapping[str, str] | None = None, torque: bool = False
) -> Argv:
    """``qrun -H`` with a parenthesis for each chunk, in the order of the job's chunks.

    ``hosts``: vnode -> host.
    """
    job_id = job(decision.job_id)
    if not decision.placement:
        raise Unfit(f"job {job_id}: a start on PBS must name vnodes")
    counts = dict(decision.placement)
    if len(counts) != len(decision.placement) and not detail.groups:
        raise Unfit(f"job {job_id}: a vnode is named twice")
    if not detail.chunks:
        raise Unfit(f"job {job_id}: what it asks for is not known")
    try:
        if detail.request is not None:
            laid = lie(
                detail.request, detail.groups, detail.chunks, decision.placement, dict(hosts or {}),
                whole=detail.whole,
            )  # fmt: skip
            if torque:
                flat = _summed([share for chunk in laid for share in chunk])
                where = "+".join(f"{host(vnode)}:ppn={ppn}" for vnode, ppn in flat.items())
            else:
                where = "+".join(f"({'+'.join(_share(*share) for share in chunk)})" for chunk in laid)
            return ("qrun", "-H", where, job_id)
        if detail.spread and not torque:
            parts = select.spread(detail.chunks, counts, hosts or {}, apart=detail.apart)
            where = "+".join(f"({'+'.join(_share(*share) for share in chunk)})" for chunk in parts)
            return ("qrun", "-H", where, job_id)
        lies = select.distribute(detail.chunks, counts, whole=detail.whole, homes=detail.homes)
    except ValueError as error:
        raise Unfit(f"job {job_id}: {error}") from error
    if torque:
        where = "+".join(f"{host(vnode)}:ppn={ppn}" for vnode, ppn in _summed(lies).items())
    else:
        where = "+".join(f"({_share(vnode, chunk)})" for vnode, chunk in lies)
    return ("qrun", "-H", where, job_id)


def _summed(lies: Sequence[tuple[str, select.Chunk]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, chunk in lies:
        found[name] = found.get(name, 0) + chunk.ncpus
    return found


def _share(where: str, chunk: select.Chunk) -> str:
    parts = [vnode(where), f"ncpus={chunk.ncpus}"]
    if chunk.memory:
        parts.append(f"mem={-(-chunk.memory // 1024)}kb")
    for resource, amount in chunk.amounts:
        parts.append(f"{matching(resource, _RESOURCE, 'the name of a resource')}={amount}")
    return ":".join(parts)


# ---------------------------------------------------------------------- everything else

_DELETE = ("qdel",)
#: The commands of the decisions that need no more than the job's id, which comes last.
_BY_ID: dict[type[d.Decision], Argv] = {
    d.Hold: ("qhold", "-h", "s"),
    d.Release: ("qrls", "-h", "s"),
    d.Kill: _DELETE,
    d.Cancel: _DELETE,
    d.Requeue: ("qrerun",),
}


def plan(
    decision: d.Decision,
    *,
    now: float,
    torque: bool = False,
    running_on: Placement = (),
    hosts: Mapping[str, str] | None = None,
    processors: Mapping[str, int] | None = None,
    reservation: str = "",
    notes: str = "",
    pending: Detail | None = None,
) -> Plan:
    """The commands of every decision but :class:`Start`. Raises :class:`Unfit`.

    ``now``: absolute seconds. ``running_on``: what the job has, its first vnode first. ``hosts``: vnode ->
    host, and ``processors``: vnode -> processors, of all vnodes. ``reservation``: PBS's id of a
    reservation that exists. ``notes``: what the job was told before. ``pending``: what a job asks for that
    waits; None: it does not wait.
    """
    if type(decision) in _BY_ID:
        words, named = _BY_ID[type(decision)], job(decision.job_id)  # type: ignore[attr-defined]
        return Plan(((*words, named),), already=GONE if words == _DELETE else ())
    if isinstance(decision, (d.Suspend, d.Resume)):
        what = "suspend" if isinstance(decision, d.Suspend) else "resume"
        # OpenPBS's own resume asks its scheduler, which does not run.
        return Plan((("qsig", "-s", what if torque else f"admin-{what}", job(decision.job_id)),))
    if isinstance(decision, d.SetTimeLimit):
        return Plan((limit(decision.job_id, decision.walltime),))
    if isinstance(decision, d.Annotate):
        told = matching(with_note(notes, decision.key, decision.value), _NOTES, "a text that can be quoted")
        return Plan((("qalter", "-l", f'{NOTES}="{told}"', job(decision.job_id)),), noted=told)
    if isinstance(decision, d.Resize):
        if pending is not None:
            return _other_size(decision, pending)
        return _shrink(decision, running_on, hosts or {})
    if isinstance(decision, d.Route):
        return Plan((_route(decision),))
    if isinstance(decision, d.Reserve):
        return _reserve(decision.reservation, now, processors or {}, reservation)
    if isinstance(decision, d.Unreserve):
        return Plan((("pbs_rdel", name(_known(reservation, decision), "a reservation")),))
    if isinstance(decision, d.Bind):
        return Plan((_bind(decision, reservation, waits=pending is not None),))
    raise Unfit(f"{type(decision).__name__} cannot be carried out on PBS")


def _route(decision: d.Route) -> Argv:
    """Into another queue."""
    job_id = job(decision.job_id)
    if "[" in job_id:
        raise Unfit(f"job {job_id}: PBS moves a job array as a whole only, not an element of it")
    return ("qmove", name(decision.pool, "a queue"), job_id)


def _known(reservation: str, decision: d.Unreserve | d.Bind) -> str:
    """PBS's id of the decision's reservation, which must exist."""
    if not reservation:
        raise Unfit(f"reservation {decision.reservation_id}: PBS has no reservation of that name")
    return reservation


def _bind(decision: d.Bind, reservation: str, *, waits: bool) -> Argv:
    """Into the queue of a reservation, whose jobs PBS's own scheduler starts; or back into a queue."""
    job_id = job(decision.job_id)
    if not waits:
        raise Unfit(f"job {job_id} no longer waits: PBS moves only queued jobs")
    if not decision.reservation_id:
        return ("qmove", name(decision.pool, "a queue"), job_id)
    return ("qmove", name(_known(reservation, decision).partition(".")[0], "a reservation"), job_id)


def limit(job_id: str, seconds: float) -> Argv:
    """Another walltime for a job."""
    return ("qalter", "-l", f"walltime={walltime(seconds)}", job(job_id))


def signal(job_id: str, name: str) -> Argv:
    """A signal for all processes of a running job."""
    return ("qsig", "-s", f"SIG{signal_name(name)}", job(job_id))


def offline(name: str, reason: str, *, torque: bool = False) -> Argv:
    """Take a host out of service."""
    return ("pbsnodes", "-N" if torque else "-C", reason, "-o", host(name))


def online(name: str, *, torque: bool = False) -> Argv:
    """Put a host back into service, and take the comment away."""
    # OpenPBS's -c knows no -C, and leaves the comment.
    return ("pbsnodes", *(("-N", "", "-c") if torque else ("-C", "", "-r")), host(name))


def _other_size(decision: d.Resize, pending: Detail) -> Plan:
    """A waiting job asks for another number of chunks, of one processor each."""
    job_id = job(decision.job_id)
    if not 1 <= decision.processors < select.MOST_CHUNKS:
        raise Unfit(f"job {job_id}: {decision.processors} is no number of processors")
    if not pending.select:
        raise Unfit(f"job {job_id}: only a job with a select of its own changes its size while it waits")
    try:
        wanted = select.of_other_size(pending.select, decision.processors)
    except ValueError as error:
        raise Unfit(f"job {job_id}: its size does not change alone: {error}") from error
    return Plan((("qalter", "-l", f"select={wanted}", job_id),))


def _shrink(decision: d.Resize, running_on: Placement, hosts: Mapping[str, str]) -> Plan:
    """A running job gives whole vnodes back; it keeps the vnodes of its first host, where its script runs."""
    job_id = job(decision.job_id)
    has, kept = by_node(running_on), by_node(decision.placement)
    if not kept or not kept.keys() < has.keys():
        raise Unfit(f"job {job_id}: only giving whole vnodes of a running job back is possible on PBS")
    for one, count in kept.items():
        if count != has[one]:
            raise Unfit(
                f"job {job_id}: it cannot keep {count} of its {has[one]} processors on {one}: only giving "
                f"whole vnodes back is possible on PBS"
            )
    given = [one for one in has if one not in kept]
    first = running_on[0][0]
    primary = hosts.get(first, first)
    for one in given:
        if hosts.get(one, one) == primary:
            raise Unfit(f"job {job_id}: it cannot give {one} back, its script runs on that host")
    return Plan((("pbs_release_nodes", "-j", job_id, *(vnode(one) for one in given)),))


def _reserve(reservation: Reservation, now: float, processors: Mapping[str, int], existing: str) -> Plan:
    if not reservation.nodes:
        raise Unfit(f"reservation {reservation.id}: on PBS it must name vnodes")
    if reservation.end <= max(now, reservation.start):
        raise Unfit(f"reservation {reservation.id}: it would be over before it begins")
    # PBS takes no start that has passed.
    times = ["-R", clock(max(reservation.start, now + 1)), "-E", clock(reservation.end)]
    if existing:
        patience = ["-I", str(_CONFIRMED_WITHIN)]
        argv = ["pbs_ralter", *patience, *times, name(existing, "a reservation")]
        return Plan((tuple(argv),), denials=_NOT_CONFIRMED)
    chunks = []
    for one in reservation.nodes:
        if one not in processors:
            raise Unfit(f"reservation {reservation.id}: {one!r} is not the name of a vnode")
        chunks.append(f"1:vnode={vnode(one)}:ncpus={processors[one]}")
    # What PBS's scheduler does not confirm in time, PBS forgets: no look would show it.
    patience = ["-I", f"-{_CONFIRMED_WITHIN}"]
    argv = ["pbs_rsub", "-N", name(PREFIX + reservation.id, "a reservation"), *times, *patience]
    argv += ["-l", f"select={'+'.join(chunks)}", "-l", "place=excl"]
    if reservation.users:
        argv += ["-U", ",".join(name(one, "a user") for one in reservation.users)]
    return Plan((tuple(argv),), denials=_NOT_CONFIRMED)
