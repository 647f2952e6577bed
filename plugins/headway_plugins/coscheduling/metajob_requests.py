"""A user's request for a metajob, checked before any search: everything in it was written by a user."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite
from typing import Any

import msgspec

from headway.decisions import Bind, Reserve
from headway.errors import UserError
from headway.state import Job, State, Status
from headway_plugins.coscheduling.everywhere import Copy
from headway_plugins.coscheduling.live_metajob import Kept, on_marks
from headway_plugins.coscheduling.machines import MachineOptions, cannot, most
from headway_plugins.coscheduling.metajob import Machine, Metajob, check, of_record
from headway_plugins.coscheduling.quotas import QuotaOptions
from headway_plugins.coscheduling.watching import OnLoss

#: What a metajob may have: nodes, seconds since the epoch, machines or stages, letters of an address.
_MOST_NODES = 1 << 30
_LAST = 1e11
_MOST_PARTS = 32
_MOST_LETTERS = 200
_WAITS = (Status.PENDING, Status.WAITING)
_IS_THERE = (*_WAITS, Status.STARTING, Status.RUNNING, Status.SUSPENDED)


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request."""

    metajob: dict[str, Any]
    #: Machine, of a stage ``machine.stage``, -> job.
    jobs: dict[str, str] = {}
    on_loss: OnLoss | None = None
    #: The jobs are copies of one job, of which one is to run.
    everywhere: bool = False


def read(text: str) -> Wanted:
    """The request of a text of JSON; raises :class:`UserError`."""
    try:
        return msgspec.json.decode(text.encode(), type=Wanted)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise UserError(f"the request cannot be read: {error}") from None


def checked(
    wanted: Wanted,
    asked: tuple[str, str, bool],
    state: State,
    machines: Mapping[str, MachineOptions],
    quotas: QuotaOptions,
    *,
    lead: float,
    on_loss: OnLoss,
) -> Kept:
    """The metajob as it begins; raises :class:`UserError` with what is wrong.

    ``asked``: the new id, the asking user, and whether that is an operator. ``lead``: seconds from now in
    which nothing starts.
    """
    new, user, operator = asked
    metajob = of_record({**wanted.metajob, "id": new})
    _refuse_absurd(metajob)
    unknown = sorted({*metajob.machines, *(stage.machine for stage in metajob.stages)} - set(machines))
    if unknown:
        known = ", ".join(machines)
        raise UserError(f"machines: there is no machine {', '.join(unknown)}; expected some of {known}")
    for name in metajob.machines or dict.fromkeys(stage.machine for stage in metajob.stages):
        if not wanted.everywhere and cannot(state, machines[name], Reserve):
            raise UserError(f"machines: {name}: its cluster makes no reservations")
    metajob = _within(_with_users(metajob, user, operator, quotas), state, machines)
    metajob, _ = on_marks(metajob, {name: machine.grain for name, machine in machines.items()})
    if wanted.everywhere:
        # Nothing is reserved.
        lead = 0.0
    earliest = max(metajob.earliest, state.now + lead)
    if earliest + metajob.span > metajob.latest and metajob.earliest + metajob.span <= metajob.latest:
        raise UserError(
            f"latest: a metajob starts {lead:g} s from now at the earliest and takes {metajob.span:g} s; "
            f"found {metajob.latest - state.now:g} s until the latest end"
        )
    metajob = msgspec.structs.replace(metajob, earliest=earliest)
    check(metajob)
    if wanted.everywhere:
        _check_everywhere(metajob, wanted.jobs)
    states = _IS_THERE if wanted.everywhere else _WAITS
    jobs, pools = _jobs(wanted.jobs, metajob, user, operator, state, machines, states)
    if not wanted.everywhere:
        metajob = _not_before(jobs, metajob, state)
    kept = Kept(new, user, operator, metajob, wanted.on_loss or on_loss, jobs, pools, state.now)
    if wanted.everywhere:
        kept.phase = "queued"
        kept.copies = [
            _copy(name, state.jobs[jobs[name]]) for name in metajob.preferred if name in jobs
        ]  # fmt: skip
        starting = (copy.job for copy in kept.copies if state.jobs[copy.job].status is Status.STARTING)
        kept.chosen = next(starting, "")
    return kept


def _check_everywhere(metajob: Metajob, jobs: Mapping[str, str]) -> None:
    """Raises :class:`UserError` if no copy of one job can wait at each of these machines."""
    if metajob.usage != "single":
        raise UserError(f"usage: copies at every machine need usage single, found {metajob.usage}")
    if not jobs:
        raise UserError("jobs: expected a copy of the job at each machine that is to have one, found none")
    for name in jobs:
        machine = metajob.machines.get(name)
        if machine is not None and not machine.min <= metajob.total <= machine.max:
            raise UserError(
                f"jobs: {_short(name)} takes {machine.min} to {machine.max} nodes, and the job has "
                f"{metajob.total}"
            )


def _copy(machine: str, job: Job) -> Copy:
    runs = job.status in (Status.RUNNING, Status.SUSPENDED)
    return Copy(machine, job.id, job.pool.name, job.start_time if runs else None)


def _not_before(jobs: Mapping[str, str], metajob: Metajob, state: State) -> Metajob:
    """The metajob, with no part that starts before its job may begin; raises :class:`UserError`."""
    earliest = metajob.earliest
    for place, job_id in jobs.items():
        begin = state.jobs[job_id].description.begin_time or 0.0
        earliest = max(earliest, begin - _offset(place, metajob))
        if earliest + metajob.span > metajob.latest:
            until = metajob.latest - state.now
            raise UserError(
                f"jobs: {place}: job {job_id} begins {begin - state.now:g} s from now at the earliest; with "
                f"it the metajob would not be over by the latest end, {until:g} s from now"
            )
    return msgspec.structs.replace(metajob, earliest=earliest)


def _offset(place: str, metajob: Metajob) -> float:
    """Seconds from the metajob's start to that of the part of a place."""
    if metajob.usage != "pipeline":
        return 0.0
    return metajob.stages[int(place.rpartition(".")[2]) - 1].offset or 0.0


def _refuse_absurd(metajob: Metajob) -> None:
    """Numbers that nothing can be reckoned with."""
    times = [metajob.earliest, metajob.latest, metajob.duration]
    counts = [metajob.total]
    for machine in metajob.machines.values():
        counts += [machine.min, machine.max]
    for stage in metajob.stages:
        times += [stage.duration, stage.transfer, stage.offset or 0.0]
        counts.append(stage.nodes)
    if not all(isfinite(time) and abs(time) <= _LAST for time in times):
        raise UserError(f"times: expected at most {_LAST:g} s since the epoch, found more")
    if any(abs(count) > _MOST_NODES for count in counts):
        raise UserError(f"nodes: expected at most {_MOST_NODES}, found more")
    if max(len(metajob.machines), len(metajob.stages)) > _MOST_PARTS:
        raise UserError(f"expected at most {_MOST_PARTS} machines and stages, found more")


def _within(metajob: Metajob, state: State, machines: Mapping[str, MachineOptions]) -> Metajob:
    """No machine has more nodes than it has: a search would try each of them."""
    found = {}
    for name, machine in metajob.machines.items():
        there = most(state, machines[name])
        if there is not None and machine.min > there:
            raise UserError(f"machines: {name}: min: expected at most {there} nodes, found {machine.min}")
        found[name] = (
            machine if there is None else msgspec.structs.replace(machine, max=min(machine.max, there))
        )
    return msgspec.structs.replace(metajob, machines=found)


def _with_users(metajob: Metajob, user: str, operator: bool, quotas: QuotaOptions) -> Metajob:
    """Each machine with the user and the account that count there."""
    names = dict.fromkeys([*metajob.machines, *(stage.machine for stage in metajob.stages)])
    found = {}
    for name in names:
        machine = metajob.machines.get(name)
        if machine is None:
            nodes = [stage.nodes for stage in metajob.stages if stage.machine == name]
            machine = Machine(min(nodes), max(nodes))
        owner = machine.user or user
        if owner != user and not operator:
            raise UserError(f"machines: {name}: only an operator may reserve for {_short(owner)}")
        if len(machine.email) > _MOST_LETTERS or not machine.email.isprintable():
            raise UserError(f"machines: {name}: email: expected at most {_MOST_LETTERS} printable letters")
        try:
            account = quotas.account_of(owner, machine.account, operator=operator)
        except LookupError:
            raise UserError(
                f"machines: {name}: {_short(owner)} does not belong to an account {_short(machine.account)}"
            ) from None
        found[name] = msgspec.structs.replace(machine, user=owner, account=account)
    return msgspec.structs.replace(metajob, machines=found)


def _jobs(
    jobs: Mapping[str, str],
    metajob: Metajob,
    user: str,
    operator: bool,
    state: State,
    machines: Mapping[str, MachineOptions],
    states: Collection[Status],
) -> tuple[dict[str, str], dict[str, str]]:
    """The jobs by their places, and the pools in which they wait; raises :class:`UserError`.

    ``states``: in which the jobs may be.
    """
    places = _places(metajob)
    pools: dict[str, str] = {}
    found: dict[str, str] = {}
    for place, given in jobs.items():
        if place not in places:
            raise UserError(f"jobs: expected one of {', '.join(places)}, found {_short(place)}")
        machine, longest = places[place]
        if cannot(state, machines[machine], Bind):
            raise UserError(f"jobs: {place}: its cluster cannot bind jobs to reservations; submit without")
        pool, owner = machines[machine].pool, metajob.machines[machine].user
        job = find_job(given, pool, state)
        if job is None or (job.user != user and not operator):
            # Another user's job is answered as a job that is not there.
            raise UserError(
                f"jobs: {place}: there is no job {_short(given)} of yours, or none yet that headway has seen"
            )
        wrong = _unfit(job, pool, owner, longest, states)
        if wrong:
            raise UserError(f"jobs: {place}: job {job.id} {wrong}")
        if job.id in pools:
            raise UserError(f"jobs: {place}: job {job.id} is named twice")
        pools[job.id], found[place] = job.pool.name, job.id
    return found, pools


def _unfit(job: Job, pool: str, owner: str, longest: float, states: Collection[Status]) -> str:
    """Why a job cannot be bound to a reservation of ``owner`` in ``pool``; "" if it can."""
    if job.status not in states:
        return f"is {job.status.value}, expected a job that waits"
    if job.user != owner:
        return f"is of {job.user}, and the reservation of {owner}"
    if job.pool.name != pool:
        return f"is in pool {job.pool.name!r}, expected {pool!r}"
    if job.description.reservation:
        return "asks for another reservation"
    if job.estimate > longest:
        return f"may run for {job.estimate:g} s, and the reservation lasts {longest:g} s"
    return ""


def find_job(given: str, pool: str, state: State) -> Job | None:
    """The job that a user means, perhaps without its cluster's name before the id or its server's behind."""
    cluster, colon, _ = pool.partition(":")
    for name in (given, f"{cluster}:{given}" if colon else ""):
        if name in state.jobs:
            return state.jobs[name]
        several = [job for job in state.jobs.values() if name and job.id.startswith(f"{name}.")]
        if len(several) == 1:
            return several[0]
    return None


def _places(metajob: Metajob) -> dict[str, tuple[str, float]]:
    """Where jobs may be bound: the place's name, its machine, and the seconds that it lasts."""
    if metajob.usage != "pipeline":
        return {name: (name, metajob.duration) for name in metajob.machines}
    return {
        f"{stage.machine}.{number}": (stage.machine, stage.duration)
        for number, stage in enumerate(metajob.stages, 1)
    }


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:97]}...")
