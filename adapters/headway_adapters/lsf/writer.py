"""Decision -> argument vectors. Pure: looks at nothing and runs nothing.

Everything that comes from users, plugins or the batch system is checked here before it may stand
in a command: an id is digits with an index in brackets, a name begins with a letter or digit and
holds no blank, so that nothing can be taken for an option or for two words. What does not pass
raises :class:`Unfit`.

LSF's limits are whole minutes: a limit in seconds is rounded up.

Starts. ``brun -m "h1 h2"`` gives the hosts, in the order in which they are named, as many slots as they
have CPUs (``ncpus`` of ``lshosts``) until the job has enough (IBM's manual, under ``-c``; OpenLava's and
volclava's ``setUrgentJobExecHosts`` in mbatchd). So the hosts are named such that this gives what was
decided. Where no order does, IBM's takes the slots on each host, ``-m "h1#2 h2#1"``; on the others the
start is refused rather than made elsewhere. A job of ``bsub -n LEAST,MOST`` would get all CPUs of its hosts
there, and none at all where these are more than MOST: it is made one of exactly so many slots before its
``brun`` (``bmod -n``), and gets its user's numbers back when the start does not happen.
"""

from __future__ import annotations

import dataclasses
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from headway import decisions as d
from headway.model import Placement, Reservation
from headway_adapters.lsf.detail import Detail
from headway_adapters.lsf.hosts import RESERVATION_PREFIX
from headway_adapters.lsf.reader import ENDS
from headway_adapters.polling.remarks import unwritable, with_note
from headway_adapters.polling.words import Argv, Unfit, matching, point_in_time, signal_name, time_limit

_JOB = re.compile(r"[0-9]{1,18}(?:\[[0-9]{1,9}\])?")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}")

#: LSF's answers that mean that what was asked for is already so.
ALREADY = (
    "has already finished",
    "already finished",
    "has already been stopped",
    "has already been suspended",
    "already suspended",
    "has already started",
    "has already been requeued",
)
#: Most hosts in one command (LSB_MAX_ASKED_HOSTS_NUMBER).
MOST_HOSTS = 512


class Plan(msgspec.Struct, frozen=True):
    """Commands to run one after another; the first that fails ends it."""

    steps: tuple[Argv, ...]
    #: What the job's notes are in from then on, if that is changed.
    noted: str = ""


class Launching(msgspec.Struct, frozen=True):
    """The commands of a start."""

    brun: Argv
    #: Makes the job one of so many slots before; empty: it is one already.
    settle: Argv = ()
    #: Gives the job its user's numbers back when the start does not happen.
    unsettle: Argv = ()


def job(job_id: str) -> str:
    """A job's id, checked."""
    return matching(job_id, _JOB, "the id of an LSF job")


def host(name: str) -> str:
    """A host's name, checked."""
    return matching(name, _HOST, "the name of a host")


def name(text: str, what: str) -> str:
    """A user's, group's, queue's or reservation's name, checked."""
    return matching(text, _NAME, f"the name of {what}")


def minutes(seconds: float) -> str:
    """A run limit in whole minutes, rounded up, at least one."""
    return str(max(1, math.ceil(time_limit(seconds) / 60 - 1e-9)))


def moment(seconds: float) -> str:
    """An absolute time as ``brsvadd`` reads it, rounded up to a minute; commands run with TZ=UTC."""
    minute = math.ceil(point_in_time(seconds) / 60 - 1e-9) * 60
    return time.strftime("%Y:%m:%d:%H:%M", time.gmtime(minute))


# ---------------------------------------------------------------------- starts


def start(decision: d.Start, detail: Detail, cpus: Mapping[str, int], *, ibm: bool) -> Launching:
    """Force the job to run on its hosts. ``cpus``: host -> ``ncpus``."""
    job_id, placement = job(decision.job_id), decision.placement
    names = _names(job_id, placement)
    total = sum(count for _, count in placement)
    if detail.exclusive:
        # Its hosts are whole, and LSF counts the slots that it asks for.
        wanted: dict[str, int] | None = None
        total = min(sum(cpus.get(node, 0) for node in names), detail.most)
    else:
        wanted = dict(placement)
    if any(count < 1 for _, count in placement) or not detail.least <= total <= detail.most:
        asked = str(detail.least) if detail.least == detail.most else f"{detail.least} to {detail.most}"
        raise Unfit(f"job {job_id}: it asks for {asked} slots, not for {total}")
    if wanted is not None:
        names = tuple(node for node, count in sorted(placement, key=lambda p: p[1] < cpus.get(p[0], 0)))
    brun = ("brun", "-m", " ".join(names), job_id)
    if _gives(wanted, fills(names, cpus, detail)):
        return Launching(brun)
    if ibm and wanted is not None:
        return Launching(("brun", "-m", " ".join(f"{node}#{count}" for node, count in placement), job_id))
    settled = dataclasses.replace(detail, least=total, most=total)
    if detail.least != detail.most and _gives(wanted, fills(names, cpus, settled)):
        before = f"{detail.least},{detail.most}"
        return Launching(brun, ("bmod", "-n", str(total), job_id), ("bmod", "-n", before, job_id))
    where = ", ".join(f"{count} on {node}" for node, count in placement)
    raise Unfit(
        f"job {job_id}: this LSF's brun fills hosts one after another up to their CPUs and cannot give "
        f"{where}"
    )


def _names(job_id: str, placement: Placement) -> tuple[str, ...]:
    if not placement:
        raise Unfit(f"job {job_id}: a start on LSF must name hosts")
    names = tuple(host(node) for node, _ in placement)
    if len(set(names)) != len(names):
        raise Unfit(f"job {job_id}: a host is named twice")
    if len(names) > MOST_HOSTS:
        raise Unfit(f"job {job_id}: LSF takes at most {MOST_HOSTS} hosts in one start")
    return names


def _gives(wanted: Mapping[str, int] | None, given: Mapping[str, int]) -> bool:
    """Whether these slots are what is wanted; None: any are."""
    return bool(given) if wanted is None else given == wanted


def fills(names: tuple[str, ...], cpus: Mapping[str, int], detail: Detail) -> dict[str, int]:
    """The slots that OpenLava's ``brun`` gives on each host; empty if it refuses."""
    whole = sum(cpus.get(node, 0) for node in names)
    if whole < detail.least or (detail.least != detail.most and whole > detail.most):
        return {}
    left = min(whole, detail.most)
    given = {}
    for node in names:
        share = min(cpus.get(node, 0), left)
        if share:
            given[node] = share
        left -= share
    return given


def hold(job_id: str) -> Argv:
    """Keep a pending job from starting, or stop a running one."""
    return ("bstop", job(job_id))


def release(job_id: str) -> Argv:
    """Let a held or a stopped job go on."""
    return ("bresume", job(job_id))


def kill(job_id: str) -> Argv:
    """End a job, whatever it does."""
    return ("bkill", job(job_id))


def requeue(job_id: str) -> Argv:
    """End a running job's execution and put the job back into its queue."""
    return ("brequeue", job(job_id))


def signal(job_id: str, name: str) -> Argv:
    """A signal for all processes of a running job."""
    return ("bkill", "-s", signal_name(name), job(job_id))


def drain(node: str, reason: str) -> Argv:
    """Close a host: running jobs go on, no new ones start. IBM only, for the comment."""
    return ("badmin", "hclose", "-C", reason, host(node))


def undrain(node: str) -> Argv:
    """Open a host."""
    return ("badmin", "hopen", host(node))


# ---------------------------------------------------------------------- everything else

#: The commands of the decisions that need no more than the job's id.
_BY_ID: dict[type[d.Decision], Callable[[str], Argv]] = {
    d.Hold: hold,
    d.Suspend: hold,
    d.Release: release,
    d.Resume: release,
    d.Kill: kill,
    d.Cancel: kill,
    d.Requeue: requeue,
}


def plan(
    decision: d.Decision,
    *,
    now: float,
    slots: Mapping[str, int],
    reservation_exists: bool = False,
    placement: Placement = (),
    pending: bool = False,
    ibm: bool = True,
    description: str = "",
) -> Plan:
    """The commands of every decision but :class:`Start`. Raises :class:`Unfit`.

    ``now``: absolute seconds. ``slots``: the slots of each host. ``placement``: where the job runs;
    ``pending``: it does not. ``reservation_exists``: headway has made the reservation. ``description``: its
    description.
    """
    if type(decision) in _BY_ID:
        return Plan((_BY_ID[type(decision)](decision.job_id),))  # type: ignore[attr-defined]
    if isinstance(decision, d.SetTimeLimit):
        return Plan((("bmod", "-W", minutes(decision.walltime), job(decision.job_id)),))
    if isinstance(decision, d.Annotate):
        if not pending:
            raise Unfit(f"job {job(decision.job_id)} no longer waits: LSF changes no description then")
        if why := unwritable(description, ENDS):
            raise Unfit(f"job {job(decision.job_id)}: {why}")
        written = with_note(description, decision.key, decision.value)
        return Plan((("bmod", "-Jd", written, job(decision.job_id)),), noted=written)
    if isinstance(decision, d.Resize):
        return _resize(decision, placement, pending=pending, ibm=ibm)
    if isinstance(decision, d.Route):
        return Plan((("bswitch", name(decision.pool, "a queue"), job(decision.job_id)),))
    if isinstance(decision, d.Reserve):
        return _reserve(decision.reservation, now, slots, reservation_exists)
    if isinstance(decision, d.Unreserve):
        key = name(RESERVATION_PREFIX + decision.reservation_id, "a reservation")
        return Plan((("brsvdel", key),))
    if isinstance(decision, d.Bind):
        return Plan((_bind(decision, reservation_exists, pending=pending),))
    if isinstance(decision, d.PowerDown | d.PowerUp):
        verb = "suspend" if isinstance(decision, d.PowerDown) else "resume"
        return Plan((("badmin", "hpower", verb, *_some(decision.nodes)),))
    raise Unfit(f"{type(decision).__name__} cannot be carried out on LSF")


def _bind(decision: d.Bind, ours: bool, *, pending: bool) -> Argv:
    """Into a reservation, which ``ours`` says that headway made; or out of any."""
    job_id = job(decision.job_id)
    if not pending:
        raise Unfit(f"job {job_id} no longer waits: LSF binds only pending jobs to a reservation")
    if not decision.reservation_id:
        return ("bmod", "-Un", job_id)
    key = decision.reservation_id
    return ("bmod", "-U", name(RESERVATION_PREFIX + key if ours else key, "a reservation"), job_id)


def _some(names: Iterable[str]) -> list[str]:
    found = [host(one) for one in names]
    if not found:
        raise Unfit("no hosts are named")
    return found


def _resize(decision: d.Resize, placement: Placement, *, pending: bool, ibm: bool) -> Plan:
    """A pending job asks for another number; a running one gives slots back."""
    job_id = job(decision.job_id)
    if pending:
        if decision.processors < 1:
            raise Unfit(f"job {job_id}: {decision.processors} is no number of slots")
        return Plan((("bmod", "-n", str(decision.processors), job_id),))
    if not ibm:
        raise Unfit(
            f"job {job_id}: a running job keeps its size on this LSF (only IBM Spectrum LSF has bresize)"
        )
    had, kept = dict(placement), dict(decision.placement)
    given_back = {node: count - kept.get(node, 0) for node, count in had.items()}
    if not kept or set(kept) - set(had) or any(count < 0 for count in given_back.values()):
        raise Unfit(f"job {job_id}: only giving slots of a running job back is possible on LSF")
    first = placement[0][0]
    if not kept.get(first):
        raise Unfit(f"job {job_id}: it cannot give {first} back, its first process runs there")
    words = [f"{count}*{host(node)}" for node, count in given_back.items() if count]
    if not words:
        raise Unfit(f"job {job_id}: it has that size already")
    return Plan((("bresize", "release", " ".join(words), job_id),))


def _reserve(reservation: Reservation, now: float, slots: Mapping[str, int], exists: bool) -> Plan:
    """A reservation of whole hosts. LSF cannot change its hosts and times at once: it is made anew."""
    if not reservation.nodes:
        raise Unfit(f"reservation {reservation.id}: on LSF it must name hosts")
    # LSF refuses a time that has passed: at the next full minute, then.
    begin = max(reservation.start, now + 60.0)
    if reservation.end <= begin:
        raise Unfit(f"reservation {reservation.id}: it would be over before it begins")
    key = name(RESERVATION_PREFIX + reservation.id, "a reservation")
    hosts = _some(reservation.nodes)
    total = sum(slots.get(one, 0) for one in hosts)
    if not total:
        raise Unfit(f"reservation {reservation.id}: its hosts have no slots")
    who = [name(one, "a user or a group") for one in (*reservation.users, *reservation.accounts)]
    argv = ["brsvadd", "-N", key, "-n", str(total), "-m", " ".join(hosts)]
    # For no particular user: a system reservation, in which no job starts.
    argv += ["-u", " ".join(who)] if who else ["-s"]
    argv += ["-b", moment(begin), "-e", moment(reservation.end)]
    add = tuple(argv)
    return Plan((("brsvdel", key), add) if exists else (add,))
