"""Decision -> argument vectors. Pure: looks at nothing and runs nothing.

Everything that comes from users, plugins or the batch system is checked here before it may stand
in a command: an id is digits, a name begins with a letter or digit, and each value stands behind
its ``Key=``, so that nothing can be taken for an option. What does not pass raises :class:`Unfit`.

Slurm's limits are whole minutes: a limit in seconds is rounded up.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from headway import decisions as d
from headway.model import FOR_JOB, Reservation
from headway_adapters.polling.remarks import with_note
from headway_adapters.polling.words import Argv, Unfit, matching, point_in_time, signal_name, time_limit
from headway_adapters.slurm import hostlist, marker
from headway_adapters.slurm.reader import RESERVATION_PREFIX, Detail, said_by_user

_JOB = re.compile(r"[0-9]{1,10}(?:_[0-9]{1,10})?")
_RECORD = re.compile(r"[0-9]{1,10}(?:_(?:[0-9]{1,10}|\[[0-9,-]+\]))?")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}")

#: The answer about a reservation that does not exist.
NO_RESERVATION = "Requested reservation is invalid"
#: Slurm's answers that mean that what was asked for is already so.
ALREADY = (
    "already finished",
    "already completing or completed",
    "Job/step already completing",
    "is already suspended",
    "already suspended",
)


class Plan(msgspec.Struct, frozen=True):
    """Commands to run one after another; the first that fails ends it."""

    steps: tuple[Argv, ...]
    #: A start's pin, to be restored when it does not happen.
    pin: marker.Pin | None = None
    #: What the job's notes are in from then on, if that is changed.
    noted: str = ""


def job(job_id: str) -> str:
    """A job's id, checked."""
    return matching(job_id, _JOB, "the id of a Slurm job")


def record(name: str) -> str:
    """A job's or the rest of an array's id, checked."""
    return matching(name, _RECORD, "the id of a Slurm job or array")


def nodes(names: Iterable[str]) -> str:
    """A host list of node names, checked."""
    return hostlist.compress([matching(name, _NODE, "the name of a node") for name in names])


def name(text: str, what: str) -> str:
    """A user's, account's, partition's or reservation's name, checked."""
    return matching(text, _NAME, f"the name of {what}")


def partitions(names: Iterable[str]) -> str:
    """A list of partitions, each checked."""
    return ",".join(name(one, "a partition") for one in names)


def minutes(seconds: float) -> int:
    """Whole minutes, rounded up, at least one."""
    return max(1, math.ceil(time_limit(seconds) / 60 - 1e-9))


def utc(seconds: float) -> str:
    """An absolute time as Slurm reads it; commands run with TZ=UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(point_in_time(seconds)))


# ---------------------------------------------------------------------- starts


def start(
    decision: d.Start,
    detail: Detail,
    pool: str,
    *,
    mark: bool = True,
    reserved: bool = False,
    at_once: bool = False,
    partition: str = "",
    bound: int = 0,
    shown: marker.Shown | None = None,
) -> Plan:
    """Pin the job to its nodes, then release it.

    The number of nodes is pinned too: Slurm gives a job whose user left it open as many as it may
    have. ``mark``: write the AdminComment (:mod:`headway_adapters.slurm.marker`). ``reserved``: it
    starts inside the reservation that headway keeps for it. ``at_once``: it went back to the queue just now,
    for which Slurm would have it wait for two minutes. ``partition``: put it into this partition, which is
    the partition of the pool's background jobs. ``bound``: on how many switches it was to be, which it gives
    up. ``shown``: the planned start that its begin time may be.
    """
    job_id = job(decision.job_id)
    if not decision.placement:
        raise Unfit(f"job {job_id}: a start on Slurm must name nodes")
    chosen = tuple(node for node, _ in decision.placement)
    if len(set(chosen)) != len(chosen):
        raise Unfit(f"job {job_id}: a node is named twice")
    missing = set(detail.pin.asked if detail.pin is not None else detail.node_list) - set(chosen)
    asked = detail.pin.asked if detail.pin is not None else detail.node_list
    if missing:
        raise Unfit(f"job {job_id}: its user also asked for {', '.join(sorted(missing))}")
    pin = marker.Pin(
        nodes=chosen,
        asked=asked,
        least=detail.least_nodes,
        most=detail.most_nodes,
        placement=decision.placement,
        restarts=detail.restarts,
        reserved=reserved,
        listed=detail.listed,
        came=detail.came,
        shown=shown,
    )
    nodes(asked)
    update = ["scontrol", "update", f"JobId={job_id}", f"ReqNodeList={nodes(chosen)}"]
    count = len(chosen)
    if not detail.least_nodes == detail.most_nodes == count:
        update.append(f"NumNodes={count}-{count}")
    if at_once or shown is not None:
        update.append("StartTime=now")
    if partition or detail.listed or detail.behind:
        partitions(detail.listed)
        update.append(f"Partition={name(partition or pool, 'a partition')}")
    if reserved:
        update.append(f"ReservationName={own_reservation(job_id)}")
    if bound:
        update.append(f"Switches={bound}@0")
    if mark and detail.comment_free:
        update.append(f"AdminComment={pin.text()}")
    return Plan(steps=(tuple(update), ("scontrol", "release", job_id)), pin=pin)


def own_reservation(job_id: str) -> str:
    """Slurm's name of the reservation that headway keeps for this job alone, checked."""
    return name(RESERVATION_PREFIX + FOR_JOB + job(job_id), "a reservation")


def release_all(job_ids: Iterable[str]) -> Argv:
    """Release several. Slurm takes them in this order, and starts in the order of their releases what
    is released at the same time (``PriorityType=priority/basic``)."""
    return ("scontrol", "release", ",".join(job(one) for one in job_ids))


def refused_for(job_id: str, said: str) -> str:
    """What the answer to a command about several jobs says against one of them; "" if nothing."""
    for line in said.splitlines():
        if line.startswith(f"{job_id}: ") or line.rstrip().endswith(f" for job {job_id}"):
            return line.strip()
    return ""


def hold(job_id: str) -> Argv:
    """Hold as an administrator: a user cannot release it."""
    return ("scontrol", "hold", record(job_id))


def hold_all(job_ids: Iterable[str]) -> Argv:
    """Hold several as an administrator. A running one runs on, and is held when it goes back to the queue."""
    return ("scontrol", "hold", ",".join(job(one) for one in job_ids))


def take(record_ids: Iterable[str], *, mark: str) -> Argv:
    """Hold for headway: as an administrator, and marked as ours unless ``mark`` is empty."""
    named = ",".join(record(one) for one in record_ids)
    argv = ("scontrol", "update", f"JobId={named}", "Priority=0")
    return (*argv, f"AdminComment={mark}") if mark else argv


def show(detail: Detail, planned: marker.Shown) -> Argv:
    """Show a planned start as the begin time of a held job, or of the rest of an array."""
    mark = marker.showing(detail.mark, planned)
    return (
        "scontrol", "update", f"JobId={record(detail.record)}", f"StartTime={utc(planned.time)}",
        f"AdminComment={mark}",
    )  # fmt: skip


def show_no_more(detail: Detail, shown: marker.Shown, now: float) -> Argv:
    """Give a held job, or the rest of an array, the begin time that it had before a planned start was shown.
    ``now``: absolute seconds."""
    named = ("scontrol", "update", f"JobId={record(detail.record)}", begin_before(shown, now))
    return (*named, f"AdminComment={marker.showing(detail.mark, None)}") if detail.mark else named


def begin_before(shown: marker.Shown, now: float) -> str:
    """The word of an update that ends that a planned start is shown. Slurm has no word for no begin time:
    where there was none, or it has come, it is ``now`` (absolute seconds)."""
    return f"StartTime={utc(shown.begin)}" if shown.begin > now else "StartTime=now"


def restore(job_id: str, pin: marker.Pin, *, mark: bool, take: bool = False, partition: str = "") -> Argv:
    """Give a job that did not start its user's node list and number of nodes back.

    Slurm cannot forget a number of nodes: where the user stated none, the marker says so. ``take``: the hold
    that it has is the submit filter's, and becomes headway's. ``partition``: where it belongs, if it was to
    start in the background; a job whose user listed several waits in all of these again.
    """
    argv = ["scontrol", "update", f"JobId={job(job_id)}", f"ReqNodeList={nodes(pin.asked)}"]
    if take:
        argv.append("Priority=0")
    if pin.listed or partition:
        argv.append(f"Partition={partitions(pin.listed or (partition,))}")
    if pin.most:
        argv.append(f"NumNodes={pin.least}-{pin.most}")
    if pin.reserved:
        argv.append("ReservationName=")
    if mark:
        taken_back = marker.Pin(nodes=(), restarts=pin.restarts, came=pin.came, shown=pin.shown)
        text = marker.held(came=pin.came, shown=pin.shown) if pin.most else taken_back.text()
        argv.append(f"AdminComment={text}")
    return tuple(argv)


# ---------------------------------------------------------------------- everything else


def _held(job_id: str) -> Argv:
    return ("scontrol", "update", f"JobId={job_id}", "Priority=0")


def _hold_words(hold_marker: str, came: str, shown: marker.Shown | None, now: float) -> Iterator[str]:
    """An administrator's hold, in whose mark a planned start has no place."""
    if shown is not None:
        yield begin_before(shown, now)
    yield f"AdminComment={hold_marker}: by headway{f';from={came}' if came else ''}"


def _released(job_id: str, came: str, shown: marker.Shown | None) -> tuple[Argv, ...]:
    """Not Slurm's release: that would let Slurm start the job. It is held for headway again."""
    return ((*_held(job_id), f"AdminComment={marker.held(came=came, shown=shown)}"),)


def _requeued(job_id: str) -> tuple[Argv, ...]:
    """Held first: ``requeuehold`` would leave a hold that counts as the user's, and for ever if headway is
    killed before it makes that its own."""
    return _held(job_id), ("scontrol", "requeue", job_id)


def _ended(job_id: str) -> tuple[Argv, ...]:
    return (("scancel", job_id),)


#: The commands of the decisions that need no more than the job's id.
_BY_ID: dict[type[d.Decision], Callable[[str], tuple[Argv, ...]]] = {
    d.Kill: _ended,
    d.Cancel: _ended,
    d.Requeue: _requeued,
    d.Suspend: lambda job_id: (("scontrol", "suspend", job_id),),
    d.Resume: lambda job_id: (("scontrol", "resume", job_id),),
}


def plan(
    decision: d.Decision,
    *,
    now: float,
    hold_marker: str = "hold",
    reservation_user: str = "root",
    reservation_exists: bool = False,
    running_nodes: tuple[str, ...] = (),
    comment_free: bool = True,
    comment: str = "",
    waits: bool = False,
    came: str = "",
    shown: marker.Shown | None = None,
) -> Plan:
    """The commands of every decision but :class:`Start`. Raises :class:`Unfit`.

    ``now``: absolute seconds. ``running_nodes``: where the job runs. ``comment_free``: its
    AdminComment may be written. ``reservation_exists``: headway has made the reservation. ``comment``: what
    its Comment says. ``waits``: it is pending.
    ``came``: its name for all and when it was submitted, if it came from another cluster. ``shown``: the
    planned start that is shown as its begin time.
    """
    if type(decision) in _BY_ID:
        return Plan(_BY_ID[type(decision)](job(decision.job_id)))  # type: ignore[attr-defined]
    if isinstance(decision, d.Release):
        return Plan(_released(job(decision.job_id), came, shown))
    if isinstance(decision, d.Hold):
        held = _held(job(decision.job_id))
        return Plan(((*held, *_hold_words(hold_marker, came, shown, now)) if comment_free else held,))
    if isinstance(decision, d.SetTimeLimit):
        limit = minutes(decision.walltime)
        return Plan((("scontrol", "update", f"JobId={job(decision.job_id)}", f"TimeLimit={limit}"),))
    if isinstance(decision, d.Annotate):
        written = _annotated(decision, comment)
        return Plan(
            (("scontrol", "update", f"JobId={job(decision.job_id)}", f"Comment={written}"),), noted=written
        )
    if isinstance(decision, d.Resize):
        return _other_size(decision) if waits and not running_nodes else _shrink(decision, running_nodes)
    if isinstance(decision, d.Reserve):
        return Plan((_reserve(decision.reservation, now, reservation_user, reservation_exists),))
    if isinstance(decision, d.Unreserve):
        key = name(RESERVATION_PREFIX + decision.reservation_id, "a reservation")
        return Plan((("scontrol", "delete", f"ReservationName={key}"),))
    if isinstance(decision, d.Route):
        where = name(decision.pool, "a partition")
        return Plan((("scontrol", "update", f"JobId={job(decision.job_id)}", f"Partition={where}"),))
    if isinstance(decision, d.Bind):
        return Plan((_bind(decision, reservation_exists),))
    if isinstance(decision, d.PowerDown | d.PowerUp):
        state = "POWER_DOWN" if isinstance(decision, d.PowerDown) else "POWER_UP"
        return Plan((power(decision.nodes, state),))
    raise Unfit(f"{type(decision).__name__} cannot be carried out on Slurm")


def _bind(decision: d.Bind, ours: bool) -> Argv:
    """Into a reservation, which ``ours`` says that headway made; or out of any."""
    key = decision.reservation_id
    if key:
        key = name(RESERVATION_PREFIX + key if ours else key, "a reservation")
    return ("scontrol", "update", f"JobId={job(decision.job_id)}", f"ReservationName={key}")


def signal(job_id: str, name: str) -> Argv:
    """A signal for the processes of all steps and of the script; a process that does not catch it ends."""
    return ("scancel", "--full", f"--signal={signal_name(name)}", job(job_id))


def power(names: Iterable[str], state: str) -> Argv:
    """Ask Slurm's power saving for "POWER_DOWN" or "POWER_UP"."""
    return ("scontrol", "update", f"NodeName={_some(tuple(names))}", f"State={state}")


def drain(node: str, reason: str) -> Argv:
    """Take a node out of service, or give another reason why it is. ``reason`` is a text of ours."""
    return ("scontrol", "update", f"NodeName={nodes([node])}", "State=DRAIN", f"Reason={reason}")


def undrain(node: str) -> Argv:
    """Put a node back into service."""
    return ("scontrol", "update", f"NodeName={nodes([node])}", "State=RESUME")


def _some(names: tuple[str, ...]) -> str:
    if not names:
        raise Unfit("no nodes are named")
    return nodes(names)


def _annotated(decision: d.Annotate, comment: str) -> str:
    """Behind the user's words; the submit filter's word stays the last."""
    text, word = said_by_user(comment)
    return with_note(text, decision.key, decision.value) + (f" {word}" if word else "")


def _other_size(decision: d.Resize) -> Plan:
    """A waiting job asks for another number of processors, one a task."""
    if not 1 <= decision.processors < 1 << 31:
        raise Unfit(f"{decision.processors!r} is no number of processors")
    count = decision.processors
    job_id = job(decision.job_id)
    return Plan((("scontrol", "update", f"JobId={job_id}", f"NumCPUs={count}-{count}", f"NumTasks={count}"),))


def _shrink(decision: d.Resize, running_nodes: tuple[str, ...]) -> Plan:
    """A running job gives nodes back; it keeps its first node, where its script runs."""
    job_id = job(decision.job_id)
    kept = tuple(node for node, _ in decision.placement)
    if not kept or not set(kept) < set(running_nodes):
        raise Unfit(f"job {job_id}: only giving whole nodes of a running job back is possible on Slurm")
    if running_nodes[0] not in kept:
        raise Unfit(f"job {job_id}: it cannot give {running_nodes[0]} back, its script runs there")
    return Plan((("scontrol", "update", f"JobId={job_id}", f"NodeList={nodes(kept)}"),))


def _reserve(reservation: Reservation, now: float, user: str, exists: bool) -> Argv:
    if not reservation.nodes:
        raise Unfit(f"reservation {reservation.id}: on Slurm it must name nodes")
    if reservation.end <= max(now, reservation.start):
        raise Unfit(f"reservation {reservation.id}: it would be over before it begins")
    key = name(RESERVATION_PREFIX + reservation.id, "a reservation")
    argv = ["scontrol", "update" if exists else "create"]
    argv += [f"ReservationName={key}"] if exists else ["reservation", f"ReservationName={key}"]
    if reservation.start > now:
        argv.append(f"StartTime={utc(reservation.start)}")
    elif not exists:
        argv.append("StartTime=now")
    argv += [f"EndTime={utc(reservation.end)}", f"Nodes={nodes(reservation.nodes)}"]
    if reservation.users:
        argv.append("Users=" + ",".join(name(one, "a user") for one in reservation.users))
    if reservation.accounts:
        argv.append("Accounts=" + ",".join(name(one, "an account") for one in reservation.accounts))
    if not reservation.users and not reservation.accounts:
        argv.append(f"Users={name(user, 'a user')}")
    if reservation.job_id and not exists:
        # Slurm ends the jobs of a reservation with it, but not of a flexible one. When the job ends is
        # a matter of its limit; and it may have begun a moment after its reservation.
        argv.append("Flags=FLEX")
    return tuple(argv)
