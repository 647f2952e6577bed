"""The Slurm adapter: looks, tells what happened, carries decisions out, confirms starts.

The control protocol: every job of a managed partition is held as administrator, so Slurm starts
nothing by itself. A start pins the job to its nodes and releases it; the next looks confirm that
it runs. One that stays pending is held again and its node list is given back, so that nothing
ever starts later than it was decided.

Who holds a job. An administrator's hold (``JobHeldAdmin``) is headway's unless its AdminComment
begins with the hold marker (option ``hold_marker``, "hold"): an operator who wants headway to
leave a job alone writes ``scontrol update JobId=J AdminComment="hold: why"``, and ends that with
``AdminComment=``. A user's hold (``JobHeldUser``: ``sbatch --hold``, ``scontrol hold``) is
respected until the user releases the job; then headway takes it over by holding it itself.
The submit filter's hold looks like a user's and is told apart by its AdminComment, or by the filter's
word at the end of the user's comment. A running job is held, too: that changes nothing until it is
requeued, and then Slurm does not start it by itself, whether headway is there or not.

An outage (slurmctld down, hanging, or talking nonsense) is not news about jobs: no event comes
of it. Looking, waiting and confirming are every adapter's (:mod:`headway_adapters.polling`).
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec

from headway import decisions as d
from headway import events as ev
from headway.adapter import Check, Oddity, Outcome
from headway.errors import Failure, UserError
from headway.model import (
    NodeDescription,
    Placement,
    PoolDescription,
    SitePolicy,
    SwitchDescription,
)
from headway.model.parts import placements_of
from headway.resources import layout_is_open
from headway_adapters.polling import Flight, Launch, Look, PollingAdapter, validated
from headway_adapters.polling.actuators import OURS
from headway_adapters.polling.client import Unanswered
from headway_adapters.polling.licences import left_here, less, licences_elsewhere, too_few
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.slurm import checks, marker, reader, together, writer
from headway_adapters.slurm.asking import Asking
from headway_adapters.slurm.client import SlurmClient, is_silence
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.power import PowerSaving
from headway_adapters.slurm.refusals import Refusals
from headway_adapters.slurm.unmet import Unmet
from headway_adapters.transport import Result, Transport

#: Jobs that one look's housekeeping touches at most; the rest comes at the next look.
_TEND_AT_ONCE = 500
#: After so many seconds no further command of it begins: starts wait meanwhile, and a held job can.
_TEND_SECONDS = 1.0

#: Jobs that are released, or taken over, with one command.
_AT_ONCE = 64
#: Starts that are pinned before they are released: each pin is a command of its own, and nobody should wait
#: for those of a hundred others.
_STARTS_AT_ONCE = 16

#: The longest pause until a job that could not be taken over is tried again, seconds.
_TAKE_AGAIN = 60.0

#: Running jobs that are held with one command.
_HOLD_AT_ONCE = 200
#: Until a running job that is not held in spite of it is asked to be again, seconds.
_HOLD_AGAIN = 30.0
#: Until a job that was first seen to run is held, seconds: Slurm forgets at a hold that its launch has failed
#: meanwhile. By this host's clock, which needs no agreement with Slurm's.
_LAUNCHED = 10.0

#: How long a job that is no longer listed counts as it was while what is said of its end is not understood,
#: seconds; then it has vanished.
_DOUBT = 120.0

#: What slurmctld gives as the reason of a node on which a job was launched that it has already.
_TWICE = "duplicate jobid"

#: Looks after a job's end in which its energy is asked for.
_ENERGY_TRIES = 5

CAPABILITIES: frozenset[type[d.Decision]] = frozenset(
    {
        d.Start, d.Hold, d.Release, d.Kill, d.Cancel, d.Requeue, d.Suspend, d.Resume, d.SetTimeLimit,
        d.Annotate, d.Resize, d.Signal, d.Reserve, d.Unreserve,
    }
)  # fmt: skip


@dataclass(frozen=True)
class _Pinned:
    """What is to be restored when a start does not happen."""

    pin: marker.Pin
    #: The pin is in the job's AdminComment.
    marked: bool
    #: Of a heterogeneous job: its components' pins, the leader's first, and what its users had asked for.
    parts: tuple[marker.Pin | None, ...] = ()
    detail: reader.Detail | None = None
    #: The partition that it belongs to, if it was put into that of background jobs.
    partition: str = ""


#: What ``sacctmgr`` complains of when it has lost slurmdbd, and not of a site's own oddities.
_LOST = re.compile(
    r"error:.*(?:dbd|persist|connect|database|communicat|timed? ?out|socket|pipe|poll|unpack|query)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Look(Look[reader.Detail]):
    #: Jobs on nodes that are not held.
    loose: frozenset[str] = frozenset()
    #: Accounts, QOS and weights, where plugins go by them.
    policy: SitePolicy | None = None


@dataclass
class _World:
    """What is learned about the cluster once."""

    name: str
    site: reader.Site
    nodes_as_json: Sequence[str] | None
    accounting: bool
    #: Slurm measures what nodes draw.
    measures: bool
    #: How long jobs that ended stay listed, seconds.
    remembers: float = 300.0
    #: Between two rounds of Slurm's backfill scheduler, seconds.
    backfill_interval: float = 30.0
    switches: tuple[SwitchDescription, ...] = ()
    #: Its JSON does not say on how few switches jobs want to be.
    lists_bounds: bool = False
    #: Bounds of partitions that do not hold for jobs of a QOS.
    lifted: tuple[tuple[str, str], ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)


class SlurmAdapter(PollingAdapter[reader.Detail, _Pinned]):
    """A Slurm cluster. See the module's text for how it is driven."""

    system = "slurm"
    title = "Slurm"
    counts_restarts = True
    drains = True
    enters_reservations = True
    shares_out = True
    suspended_lend = True
    Options = SlurmOptions

    _client: SlurmClient

    #: Those of every configuration; an instance may have more.
    capabilities = CAPABILITIES

    def __init__(
        self,
        options: SlurmOptions | Mapping[str, Any],
        *,
        read_only: bool = False,
        log: Any = None,
        transport: Transport | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``read_only``: monitor mode; no command that changes anything is ever run.

        Raises :class:`UserError` for options that are wrong.
        """
        self.options = validated(SlurmOptions, options)
        client = SlurmClient(self.options, read_only=read_only, transport=transport)
        super().__init__(
            client, self.options, actuators=self.options.actuators, agents=self.options.agents,
            read_only=read_only, log=log, clock=clock,
        )  # fmt: skip
        if self.options.power:
            self.capabilities = self.capabilities | {d.PowerDown, d.PowerUp}
        self._power_saving = PowerSaving()
        #: Jobs that ended, and how many more looks ask for what they used.
        self._unmeasured: dict[str, int] = {}
        #: Jobs of which nobody can say how they ended, and since when (on the monotonic clock).
        self._unclear: dict[str, float] = {}
        self._world: _World | None = None
        #: When accounts, QOS and weights are asked for again (monotonic clock).
        self._policy_due = math.inf
        #: As they were read last, and as they were when the engine was told last.
        self._site_policy: SitePolicy | None = None
        self._told_policy: SitePolicy | None = None
        self._taken: set[str] = set()
        #: When Slurm is asked to hold a running job for the case of a requeue (monotonic clock).
        self._to_stay: dict[str, float] = {}
        self._refusals = Refusals()
        self._unmet = Unmet()
        self._asking = Asking()
        #: Jobs and rests of arrays that could not be taken over: when that is tried again (monotonic clock),
        #: and after which pause.
        self._refused: dict[str, tuple[float, float]] = {}

    def learn(self) -> str:
        return self._learn().name

    def _learn(self) -> _World:
        version, shown, listed = self._client.look(
            [("squeue", "--version"), ("scontrol", "show", "config"), ("scontrol", "-o", "show", "partition")]
        )
        config = reader.config(shown.text)
        partitions = reader.read_partitions(listed.text)
        if not config or not partitions:
            silent = shown if not config else listed
            said = silent.text.strip().splitlines()
            found = repr(said[0][:80]) if said else "nothing"
            raise Unanswered(f"{' '.join(silent.argv[:4])}: expected Slurm's listing, found {found}")
        for key, wanted in (("partitions", self.options.partitions), ("background", self._behind())):
            missing = [name for name in wanted if name not in partitions]
            if missing:
                known = ", ".join(sorted(partitions)) or "none"
                raise UserError(
                    f"cluster.options.{key}: Slurm has no partition {missing[0]!r}. Known: {known}."
                )
        select_type = config.get("SelectType", "")
        parameters = config.get("SelectTypeParameters", "").upper()
        site = reader.Site(
            managed=self.options.partitions,
            hold_marker=self.options.hold_marker,
            array_limit=self.options.array_limit,
            unlimited_walltime=self.options.unlimited_walltime,
            memory_managed="MEMORY" in parameters,
            whole_nodes=select_type == "select/linear",
            whole_cores="CR_CPU" not in parameters,
            power=self.options.power,
            backfills=reader.starts_heterogeneous(config),
            needs_qos="qos" in config.get("AccountingStorageEnforce", "").lower().split(","),
            behind={behind: front for front, behind in self.options.background.items()},
            words=self.words,
        )
        storage = config.get("AccountingStorageType", "")
        accounting = self.options.accounting == "yes" or (
            self.options.accounting == "auto" and storage.endswith("slurmdbd")
        )
        as_json: Sequence[str] | None = ("sinfo", "--json", "-a")
        if checks.version_of(version.text) >= (23, 2):
            # From here on sinfo's JSON groups nodes instead of listing them.
            as_json = ("scontrol", "show", "nodes", "--json", "-a")
        switches = self._switches() if config.get("TopologyPlugin") in reader.KINDS else ()
        self._world = _World(
            name=config.get("ClusterName", "slurm"),
            site=site,
            nodes_as_json=as_json,
            accounting=accounting,
            measures=config.get("AcctGatherEnergyType", "").rpartition("/")[2] not in ("", "none", "(null)"),
            remembers=_seconds_of(config.get("MinJobAge", "")),
            backfill_interval=reader.backfill_interval(config),
            switches=switches,
            lifted=self._lifted() if storage.endswith("slurmdbd") else (),
            lists_bounds=bool(switches) and checks.version_of(version.text) < (23, 2),
            config=config,
        )
        return self._world

    def _lifted(self) -> tuple[tuple[str, str], ...]:
        """Which bounds of partitions do not hold for which QOS; as far as the accounting says it."""
        (shown,) = self._client.run_many([reader.LIFTED])
        if not shown.ok:
            self.note([f"QOS that lift what partitions bound are not known: {shown.complaint()}"])
        return reader.read_lifted(shown.text) if shown.ok else ()

    def _switches(self) -> tuple[SwitchDescription, ...]:
        """How nodes are connected; nothing where Slurm does not say it."""
        notes: set[str] = set()
        (shown,) = self._client.run_many([("scontrol", "show", "topology")])
        found = reader.read_topology(shown.text, notes) if shown.ok else ()
        if not found:
            notes.add(
                "scontrol show topology: expected switches, found none; jobs' --switches are not looked at"
            )
        self.note(notes)
        return found

    def switches(self, nodes: Mapping[str, NodeDescription]) -> tuple[SwitchDescription, ...]:
        return self._world.switches if self._world is not None else ()

    def _behind(self) -> tuple[str, ...]:
        """The partitions of background jobs."""
        return tuple(self.options.background.values())

    # ------------------------------------------------------------------ looking

    def look(self, before: Snapshot | None) -> Look[reader.Detail]:
        world = self._world or self._learn()
        notes: set[str] = set()
        now = self._clock()
        nodes_as_text = ("scontrol", "-o", "show", "nodes", "-a")
        queue, partitions_out, reservations_out, licences_out, nodes_out, *more = self._client.run_many(
            [
                ("squeue", "--json", "-a", "-t", "all"),
                ("scontrol", "-o", "show", "partition", "-a"),
                ("scontrol", "-o", "show", "reservation"),
                ("scontrol", "-o", "show", "licenses"),
                world.nodes_as_json or nodes_as_text,
                # Not every Slurm writes watts into its JSON.
                *([nodes_as_text] if world.measures else []),
                *([reader.BOUNDS] if world.lists_bounds else []),
            ]
        )
        measured = more[: int(world.measures)]
        bounds = reader.read_bounds(more[-1].text) if world.lists_bounds and more[-1].ok else {}
        for result in (queue, partitions_out, reservations_out):
            if not result.ok:
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        partitions = reader.read_partitions(partitions_out.text)
        if not partitions:
            raise Unanswered("scontrol show partition: lists none")
        nodes = self._nodes(nodes_out, world, notes)
        found = reader.read_jobs(queue.stdout, now, world.site, partitions, nodes, notes, bounds)
        ours = reader.told(partitions, world.site.managed)
        pools = {
            name: partition.pool(world.lifted) if name in world.site.managed else _closed(partition)
            for name, partition in partitions.items()
            if name in ours and name not in world.site.behind
        }
        mine: dict[str, NodeDescription] = {
            name: _without_pools(node, world.site.behind)
            for name, node in nodes.nodes.items()
            if ours.intersection(node.pools)
        }
        reservations = {}
        unread: set[str] = set()
        elsewhere = licences_elsewhere(found.jobs, pools)
        for key, reservation in reader.read_reservations(reservations_out.text, notes, unread).items():
            kept = tuple(node for node in reservation.nodes if node in mine)
            rest = less(reservation.licences, elsewhere.get(key, {}))
            if kept or rest:
                pool = reservation.pool if reservation.pool in pools else ""
                reservations[key] = msgspec.structs.replace(reservation, nodes=kept, pool=pool, licences=rest)
        jobs = {key: job for key, job in found.jobs.items() if job.job.pool in pools}
        if before is not None:
            for key, job in before.jobs.items():
                if job.job.array_id in found.unread and key not in jobs:
                    jobs[key] = job
            unread |= found.unread
            missing = self._missing(before, jobs, unread, found, world, now)
            self._fill_in(before, jobs, missing, world, notes, now)
        self._refusals.show(jobs, mine)
        self._unmet.show(jobs, found.details)
        watts = reader.read_watts(measured[0].text) if measured and measured[0].ok else {}
        if world.measures and world.accounting and before is not None:
            self._ask_energies(before, jobs)
        snapshot = Snapshot(
            time=now, jobs=jobs, nodes=mine, pools=pools, reservations=reservations,
            licences=_licences(licences_out, elsewhere, before, notes),
            power={name: power for name, power in nodes.power.items() if name in mine},
            watts={name: value for name, value in watts.items() if name in mine},
        )  # fmt: skip
        policy = self._ask_policy(partitions_out.text, notes)
        return _Look(
            snapshot, found.details, frozenset(notes), unread=frozenset(unread), policy=policy,
            loose=frozenset(found.loose),
        )  # fmt: skip

    def tell_policy(self) -> None:
        self._policy_due = -math.inf

    def news(self, look: Look[reader.Detail]) -> Iterable[ev.Event]:
        policy = look.policy if isinstance(look, _Look) else None
        before, self._told_policy = self._told_policy, policy
        if policy is not None and policy is not before and not _same_policy(policy, before):
            yield ev.SitePolicyChanged(look.snapshot.time, policy)

    def _ask_policy(self, partitions: str, notes: set[str]) -> SitePolicy | None:
        """Accounts, QOS and weights, asked for anew if it is time to; the first time they must come."""
        world = self._world
        if world is None or time.monotonic() < self._policy_due:
            return self._site_policy
        if not world.config.get("AccountingStorageType", "").endswith("slurmdbd"):
            raise UserError(
                "plugins: from-slurm: expected a Slurm with AccountingStorageType=accounting_storage/"
                f"slurmdbd, found {world.config.get('AccountingStorageType') or 'none'}"
            )
        cluster = f"cluster={world.name}"
        shown = ("sacctmgr", "-n", "-P", "show")
        asked = [
            ("scontrol", "show", "config"),
            (*shown, "assoc", cluster, f"format={','.join(reader.ASSOCIATIONS)}"),
            (*shown, "user", f"format={','.join(reader.USERS)}"),
            (*shown, "qos", f"format={','.join(reader.QOS)}"),
            ("sshare", "-a", "-n", "-P", "-o", ",".join(reader.USAGE)),
            ("scontrol", "-o", "show", "assoc_mgr", "flags=assoc,qos"),
        ]
        config, associations, users, qos, usage, spent = self._client.run_many(asked)
        for result in (config, associations, users, qos):
            # One that loses slurmdbd halfway prints what it has, limits left out, complains and exits with 0.
            if not result.ok or _LOST.search(result.stderr):
                if self._site_policy is None:
                    raise Unanswered(f"{' '.join(result.argv[:4])}: {result.complaint()}")
                notes.add(
                    f"the site's policy stays as it was: {' '.join(result.argv[:4])}: {result.complaint()}"
                )
                return self._site_policy
        if not usage.ok:
            notes.add(f"what was used until now is not known: sshare: {usage.complaint()}")
        if not spent.ok:
            notes.add(
                "what was used of GrpWall and of QOS' limits until now is not known: scontrol show assoc_mgr:"
                f" {spent.complaint()}"
            )
        self._policy_due = time.monotonic() + self.options.policy_interval
        used = usage.text if usage.ok else ""
        self._site_policy = reader.read_policy(
            reader.config(config.text),
            partitions,
            associations.text,
            users.text,
            qos.text,
            used,
            notes,
            spent.text if spent.ok else "",
        )
        return self._site_policy

    def _nodes(self, result: Result, world: _World, notes: set[str]) -> reader.Nodes:
        if world.nodes_as_json is not None:
            if is_silence(result):
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
            try:
                if not result.ok:
                    raise Failure(result.complaint())
                return reader.read_nodes(result.stdout, world.site, notes)
            except Failure as error:
                text = self._client.look([("scontrol", "-o", "show", "nodes", "-a")])[0].text
                found = reader.read_nodes_text(text, world.site, notes)
                if not found.nodes:
                    raise Unanswered(f"listing of nodes: {error}") from error
                notes.add(f"nodes are read from text, their JSON could not be used: {error}")
                world.nodes_as_json = None
                return found
        if not result.ok:
            raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        found = reader.read_nodes_text(result.text, world.site, notes)
        if not found.nodes:
            raise Unanswered("scontrol show nodes: lists none")
        return found

    def _missing(
        self, before: Snapshot, jobs: dict[str, SnapshotJob], unread: set[str], found: reader.Jobs,
        world: _World, now: float,
    ) -> list[str]:  # fmt: skip
        """The jobs that the listing dropped without having shown their end, but elements of an array that
        are gone from it while they waited: these were cancelled, which Slurm records nowhere."""
        missing = []
        for key, job in before.jobs.items():
            if job.state == "ended" or key in jobs or key in unread:
                continue
            array = job.job.array_id
            if job.state == "pending" and array in found.arrays and now - before.time < world.remembers:
                rest = found.arrays[array]
                jobs[key] = SnapshotJob(
                    job=job.job, state="ended", outcome="cancelled", restarts=job.restarts,
                    end_time=rest.end_time if rest is not None else now, reason="its array has it no longer",
                )  # fmt: skip
            else:
                missing.append(key)
        return missing

    def _fill_in(
        self, before: Snapshot, jobs: dict[str, SnapshotJob], missing: Sequence[str], world: _World,
        notes: set[str], now: float,
    ) -> None:  # fmt: skip
        """Ask about each job that the listing dropped without having shown its end."""
        if not missing:
            self._unclear = {}
            return
        endings = self._client.endings(missing, accounting=world.accounting)
        since = {key: self._unclear.get(key, time.monotonic()) for key in endings.unclear}
        self._unclear = since
        for key in missing:
            if key in since and time.monotonic() < since[key] + _DOUBT:
                notes.add(f"job {key} stays as it was, its end is not known yet: {endings.unclear[key]}")
                jobs[key] = before.jobs[key]
                continue
            ending = endings.found.get(key)
            if ending is None:
                continue
            known = before.jobs[key]
            if ending.state != "ended":
                # Slurm still has it: the listing was incomplete.
                jobs[key] = known
                continue
            placement = known.placement or tuple((node, 0) for node in ending.nodes)
            if placement and not known.placement:
                share = max(1, known.job.request.processors // len(placement))
                placement = tuple((node, share) for node, _ in placement)
            jobs[key] = SnapshotJob(
                job=known.job, state="ended", placement=placement if ending.start_time else (),
                start_time=ending.start_time, end_time=ending.end_time or now, outcome=ending.outcome,
                exit_code=ending.exit_code, restarts=known.restarts,
            )  # fmt: skip

    def _ask_energies(self, before: Snapshot, jobs: Mapping[str, SnapshotJob]) -> None:
        """Log what the jobs used that ended; the accounting knows it a little later than the end."""
        for key, job in jobs.items():
            known = before.jobs.get(key)
            if job.state == "ended" and job.placement and known is not None and known.state != "ended":
                self._unmeasured[key] = _ENERGY_TRIES
        if not self._unmeasured:
            return
        found = self._client.energies(list(self._unmeasured))
        for key in list(self._unmeasured):
            self._unmeasured[key] -= 1
            if key in found:
                self._log.info("what a job used", job=key, joules=round(found[key]))
            if key in found or not self._unmeasured[key]:
                del self._unmeasured[key]

    # ------------------------------------------------------------------ housekeeping

    def adopt(self, look: Look[reader.Detail]) -> Iterable[tuple[d.Start, _Pinned, int]]:
        for key, job in look.snapshot.jobs.items():
            detail = look.details.get(key)
            if job.releasing and detail is not None and detail.pin is not None:
                tier = "background" if detail.behind else "foreground"
                start = d.Start(key, job.pinned, "asked for before this run began", tier)
                home = job.job.pool if detail.behind else ""
                pins = tuple(part.pin for _, part in detail.parts)
                pinned = _Pinned(detail.pin, True, pins, detail if pins else None, home)
                yield start, pinned, detail.pin.restarts

    def rules(self, pool: str) -> bool:
        return pool in self.options.partitions

    def oddities(self) -> Sequence[Oddity]:
        last = self._last.snapshot if self._last is not None else None
        twice = [name for name, node in last.nodes.items() if _TWICE in node.reason.lower()] if last else []
        if last is None or not twice:
            return super().oddities()
        what = "nodes that Slurm drained because a job was there twice (Duplicate jobid)"
        return (*super().oddities(), Oddity(self.system, what, len(twice), last.time, ", ".join(twice[:5])))

    def given_up(self, job: SnapshotJob, detail: reader.Detail | None) -> str:
        if detail is not None and detail.refused:
            return f"Slurm says that its nodes can never run it ({job.reason})"
        if detail is not None and detail.held:
            return f"it was held before it started ({job.reason})"
        if detail is not None and detail.unmet:
            return f"Slurm says that its dependency {detail.dependency} is not met"
        return ""

    def take_back(self, flight: Flight[_Pinned], *, late: bool) -> bool:
        """Hold a job again and give it its user's node list back."""
        key, pinned = flight.decision.job_id, flight.payload
        job = self.known(key)
        detail = self.detail(key)
        refused = not late and detail is not None and detail.refused
        if refused and job is not None and self._last is not None:
            placement = flight.decision.placement
            self._refusals.learned(key, job.job.request, placement, self._last.snapshot.nodes)
        if not late and detail is not None and detail.unmet:
            self._unmet.learned(key, detail.dependency)
        if late or (detail is not None and not detail.held):
            held = self.change([writer.hold(key)])[0]
            if held is None or not held.ok:
                self._log.error("a start that does not happen could not be held again", job=key,
                                error="not tried" if held is None else held.complaint())  # fmt: skip
                return False
        # A slurmctld that was killed may have forgotten the take-over as well; the mark alone would leave the
        # filter's hold, which then counts as the user's.
        take = refused or (not late and detail is not None and detail.from_filter)
        try:
            if pinned.detail is not None:
                return self._restore_parts(key, pinned)
            restore = writer.restore(
                key, pinned.pin, mark=pinned.marked, take=take, partition=pinned.partition
            )
        except writer.Unfit as error:
            # An administrator wrote the mark that the pin was read from.
            self._log.warning("a node list could not be given back", job=key, error=str(error))
            return True
        given = self.change([restore])[0]
        if given is None or not given.ok:
            self._log.warning("a node list could not be given back", job=key,
                              error="not tried" if given is None else given.complaint())  # fmt: skip
        return True

    def _restore_parts(self, leader: str, pinned: _Pinned) -> bool:
        """Hold a heterogeneous job and give its components back what was theirs; False: it is not held."""
        assert pinned.detail is not None
        steps = together.restore(pinned.detail, leader, pinned.parts, mark=pinned.marked)
        # What is asked of the leader is asked of all: so it comes first.
        results = self.change([steps.leader])
        if results[0] is not None and results[0].ok:
            results += self.change(steps.others)
        for result in results:
            if result is None or not result.ok:
                self._log.warning("a node list could not be given back", job=leader,
                                  error="not tried" if result is None else result.complaint())  # fmt: skip
        return results[0] is not None and not is_silence(results[0])

    def patience(self, start: d.Start) -> float:
        job = self.known(start.job_id)
        if job is None or not job.job.request.parts or self._world is None:
            return super().patience(start)
        # Slurm's backfill scheduler starts them, which looks around now and then.
        return super().patience(start) + 2 * self._world.backfill_interval

    def tend(self, look: Look[reader.Detail], in_flight: set[str]) -> None:
        """Take over what is not held, make the filter's holds ours, clear pins of the past.

        What runs is held, too, so that it does not start by itself if it is requeued.

        Not for jobs that were ``in_flight`` in this look: what it shows of them is over.
        """
        if self.options.power:
            self._tend_power(look.snapshot)
        if isinstance(look, _Look) and (look.loose or self._to_stay):
            self._hold_running(look)
        now = time.monotonic()
        if steps := self._asking.steps(look.details, now, look.snapshot.time):
            self.change(steps)
        listed = {detail.record for detail in look.details.values()}
        self._refused = {key: again for key, again in self._refused.items() if key in listed}
        takes: dict[str, str] = {}
        clears: dict[str, tuple[str, ...]] = {}
        parts: dict[str, _Pinned] = {}
        details = list(look.details.items())
        if self._refused:
            # What Slurm refuses again and again does not keep the others waiting.
            details.sort(key=lambda pair: pair[0] in self._refused or pair[1].record in self._refused)
        for key, detail in details:
            job = look.snapshot.jobs.get(key)
            if job is None or not detail.managed or detail.asked or key in in_flight:
                continue
            if self._refused and self._refused.get(detail.record, (0.0, 0.0))[0] > now:
                continue
            try:
                if detail.from_filter or detail.unmarked or detail.refused or not detail.held:
                    may_mark = detail.comment_free and detail.pin is None
                    mark = marker.held(nodes_open=detail.nodes_open) if may_mark else ""
                    takes.setdefault(writer.record(detail.record), mark)
                elif detail.pin is not None and job.held_by == "headway" and detail.parts:
                    pins = tuple(part.pin for _, part in detail.parts)
                    parts[key] = _Pinned(detail.pin, True, pins, detail)
                elif detail.pin is not None and job.held_by == "headway":
                    clears[key] = writer.restore(key, detail.pin, mark=True)
            except writer.Unfit as error:
                self.note([f"job {key} cannot be taken over: {error}"])
            if len(takes) + len(clears) + len(parts) >= _TEND_AT_ONCE:
                break
        for key, pinned in parts.items():
            self._restore_parts(key, pinned)
        if not takes and not clears:
            return
        results: dict[str, Result | None] = {}
        for mark in dict.fromkeys(takes.values()):
            keys = [key for key, wanted in takes.items() if wanted == mark]
            # A list of an array's elements has commas of its own.
            plain = [key for key in keys if "[" not in key]
            write = partial(writer.take, mark=mark)
            results.update(self._for_all(plain, write, seconds=_TEND_SECONDS))
            lists = [key for key in keys if "[" in key]
            results.update(zip(lists, self.change([write([key]) for key in lists]), strict=True))
        results.update(zip(clears, self.change(list(clears.values())), strict=True))
        for key, result in results.items():
            if result is not None and result.ok:
                if key in takes and key not in self._taken:
                    self._taken.add(key)
                    self._log.info("took a job over: it is held for headway", job=key)
                self._refused.pop(key, None)
                continue
            if result is None:
                continue
            # What Slurm refuses for ever is not asked for at each look, and what it refuses just now is soon.
            pause = min(2 * self._refused.get(key, (0.0, self._pace.poll_interval / 2))[1], _TAKE_AGAIN)
            self._refused[key] = (now + pause, pause)
            if not is_silence(result):
                self.note([f"job {key} could not be taken over: {result.complaint()}"])

    def _hold_running(self, look: _Look) -> None:
        """Slurm refuses it for some, such as those that are about to end: these are asked for again later."""
        now = time.monotonic()
        running = {key for key in look.loose if look.snapshot.jobs[key].state == "running"}
        self._to_stay = {key: self._to_stay.get(key, now + _LAUNCHED) for key in running}
        due = sorted(key for key, at in self._to_stay.items() if at <= now)
        self._to_stay.update(dict.fromkeys(due, now + _HOLD_AGAIN))
        steps = range(0, len(due), _HOLD_AT_ONCE)
        if due:
            self.change([writer.hold_all(due[at : at + _HOLD_AT_ONCE]) for at in steps])

    def _tend_power(self, snapshot: Snapshot) -> None:
        """Wake those that are to wake since they fell asleep, and drain those that did not wake."""
        wake, failed = self._power_saving.looked(snapshot)
        if wake:
            self._ask_power(writer.power(wake, "POWER_UP"))
        for node in failed:
            reason = snapshot.nodes[node].reason
            self._log.error("a node does not wake; it is drained", node=node, error=reason)
            self._ask_power(writer.drain(node, f"{OURS}did not wake in time"))

    def _ask_power(self, argv: tuple[str, ...]) -> Outcome:
        if self._actuators.options.dry:
            self._actuators.say_dry(argv)
            return Outcome(True, "dry: only logged")
        outcome = self.run_steps([argv])
        if not outcome.accepted:
            self._log.warning(
                "a node's power could not be changed", command=" ".join(argv), error=outcome.message
            )
        return outcome

    def signalling(self, job_id: str, name: str) -> tuple[str, ...]:
        return writer.signal(job_id, name)

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        return writer.drain(node, reason)

    def undrain(self, node: str) -> tuple[str, ...]:
        return writer.undrain(node)

    # ------------------------------------------------------------------ apply

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[_Pinned]]:
        """Pin some, release those of them that were pinned, then the next."""
        # Of several nodes Slurm fills the first, in its own order, and leaves one processor for each of the
        # rest: what is free there when it starts the job decides. So what is planned beside it comes first,
        # and those whose layout is open follow in the order of the plan.
        order = sorted(range(len(starts)), key=lambda index: self._layout_is_open(starts[index]))
        launches: dict[int, Launch[_Pinned]] = {}
        for at in range(0, len(order), _STARTS_AT_ONCE):
            part = order[at : at + _STARTS_AT_ONCE]
            found, heard = self._start_some([starts[index] for index in part])
            launches.update(zip(part, found, strict=True))
            if not heard:
                rest = Launch[_Pinned](self.refused(None))
                launches.update(dict.fromkeys(order[at + _STARTS_AT_ONCE :], rest))
                break
        return [launches[index] for index in range(len(starts))]

    def _start_some(self, starts: Sequence[d.Start]) -> tuple[list[Launch[_Pinned]], bool]:
        """Pin all, then release those that were pinned; and whether Slurm answered all the time."""
        launches: dict[int, Launch[_Pinned]] = {}
        plans: dict[int, writer.Plan] = {}
        for index, start in enumerate(starts):
            try:
                if self._has_parts(start):
                    launches[index] = self._start_parts(start)
                else:
                    plans[index] = self._plan_start(start)
            except writer.Unfit as error:
                launches[index] = Launch(Outcome(False, str(error)))
        order = list(plans)
        updated = self.change([plans[index].steps[0] for index in order]) if order else []
        again = [
            index for index, result in zip(order, updated, strict=True)
            if result is not None and not result.ok and "update not available right now" in result.stderr
        ]  # fmt: skip
        marked = set(order)
        released = []
        results: dict[int, Result | None] = dict(zip(order, updated, strict=True))
        if again:
            # With accounting, comments of a job that was submitted just now cannot be written yet.
            bare = [_without(plans[index].steps[0], "AdminComment=") for index in again]
            results.update(zip(again, self.change(bare), strict=True))
            marked.difference_update(again)
        outside = [index for index in order if _refuses_reservation(plans[index], results[index])]
        if outside:
            # Better on time beside its reservation, which may be gone, than late.
            for index in outside:
                self._log.warning("a job could not enter its reservation", job=starts[index].job_id,
                                  error=self.refused(results[index]).message)  # fmt: skip
            bare = [_without(plans[index].steps[0], "ReservationName=") for index in outside]
            results.update(zip(outside, self.change(bare), strict=True))
        for index in order:
            result = results[index]
            if result is not None and result.ok:
                released.append(index)
            else:
                launches[index] = Launch(self.refused(result))
                if result is not None and not is_silence(result):
                    self._leave_partition(starts[index], plans[index], marked=index in marked)
        done = self._for_all([starts[index].job_id for index in released], writer.release_all)
        for index in released:
            start, plan = starts[index], plans[index]
            result = done[start.job_id]
            assert plan.pin is not None
            detail = self.detail(start.job_id)
            home = self._home(start)
            may_mark = index in marked and detail is not None and detail.comment_free
            pinned = _Pinned(plan.pin, may_mark, partition=home)
            if result is not None and (result.ok or is_silence(result)):
                # Unanswered is not refused: the next look tells.
                said = "" if result.ok else "no answer; the next look will tell"
                launches[index] = Launch(Outcome(True, said), pinned)
            else:
                self.change([writer.restore(start.job_id, plan.pin, mark=pinned.marked, partition=home)])
                launches[index] = Launch(self.refused(result))
        answers = [*results.values(), *done.values()]
        heard = all(answer is not None and not is_silence(answer) for answer in answers)
        return [launches[index] for index in range(len(starts))], heard

    def _leave_partition(self, start: d.Start, plan: writer.Plan, *, marked: bool) -> None:
        """Slurm may refuse a pin, and put the job into the partition that was chosen (of its list, or that of
        background jobs) all the same: it may not be in it, and so cannot be changed there."""
        home, detail = self._home(start), self.detail(start.job_id)
        if plan.pin is not None and (home or plan.pin.listed) and detail is not None:
            mark = marked and detail.comment_free
            self.change([writer.restore(start.job_id, plan.pin, mark=mark, partition=home)])

    def _has_parts(self, start: d.Start) -> bool:
        detail = self.detail(start.job_id)
        return detail is not None and bool(detail.parts)

    def _start_parts(self, start: d.Start) -> Launch[_Pinned]:
        """Pin all components of a heterogeneous job, then release them with one command."""
        job, detail = self._startable(start)
        assert self._last is not None
        world, nodes = self._world, self._last.snapshot.nodes
        if start.tier != "foreground":
            raise writer.Unfit(f"job {start.job_id}: a job of several parts cannot start in the background")
        if world is not None and not world.site.backfills:
            raise writer.Unfit(f"job {start.job_id}: it needs sched/backfill with bf_interval=1")
        pool = [name for name, node in nodes.items() if job.job.pool in node.pools]
        placements = placements_of(job.job.request, start.placement)
        steps, pins = together.start(start, detail, placements, pool, reserved=self._is_reserved(start))
        pinned = _Pinned(pins[0], detail.comment_free, pins, detail)
        # What is asked of the leader is asked of all: so it comes first, and the release last.
        for commands in ([steps.leader], steps.others, [writer.release_all([start.job_id])]):
            results = self.change(commands)
            bad = [result for result in results if result is None or not result.ok]
            if bad:
                break
        if bad and not (commands[0][1] == "release" and bad[0] is not None and is_silence(bad[0])):
            self._restore_parts(start.job_id, pinned)
            return Launch(self.refused(bad[0]))
        # Unanswered is not refused: the next look tells.
        return Launch(Outcome(True, "no answer; the next look will tell" if bad else ""), pinned)

    def _home(self, start: d.Start) -> str:
        """The partition that a job belongs to which is started in that of background jobs; "" for others."""
        job = self.known(start.job_id)
        return job.job.pool if start.tier != "foreground" and job is not None else ""

    def _layout_is_open(self, start: d.Start) -> bool:
        job = self.known(start.job_id)
        return job is None or layout_is_open(job.job.request, start.placement)

    def _for_all(
        self,
        job_ids: Sequence[str],
        write: Callable[[Sequence[str]], Sequence[str]],
        *,
        seconds: float = math.inf,
    ) -> dict[str, Result | None]:
        """Do the same to jobs, in this order, with few commands; what became of each: None if it was not
        tried, since nobody answered or ``seconds`` were over."""
        found: dict[str, Result | None] = dict.fromkeys(job_ids)
        end = time.monotonic() + seconds
        for at in range(0, len(job_ids), _AT_ONCE):
            part = job_ids[at : at + _AT_ONCE]
            result = self.change([write(part)])[0]
            if result is None:
                break
            refused = {key: writer.refused_for(key, result.stderr) for key in part}
            if result.ok or is_silence(result) or len(part) == 1:
                found.update(dict.fromkeys(part, result))
            elif any(refused.values()):
                for key, said in refused.items():
                    found[key] = msgspec.structs.replace(result, rc=1 if said else 0, stderr=said)
            else:
                # Something went wrong, and it does not say for whom.
                again = self.change([write([key]) for key in part])
                found.update(zip(part, again, strict=True))
            if is_silence(result) or time.monotonic() > end:
                break
        return found

    def _startable(self, start: d.Start) -> tuple[SnapshotJob, reader.Detail]:
        """The job as the last look showed it; raises :class:`writer.Unfit` if it is not to be started."""
        if start.frequency is not None and d.SetFrequency not in self.capabilities:
            raise writer.Unfit(f"job {start.job_id}: its frequency cannot be set without an actuator")
        detail = self.detail(start.job_id)
        if detail is None or self._last is None:
            raise writer.Unfit(f"job {start.job_id} is not pending in the last listing")
        if not detail.managed:
            raise writer.Unfit(f"job {start.job_id} is not headway's to start")
        job = self.known(start.job_id)
        if job is None or job.job.held:
            why = job.reason if job is not None else "it is not listed"
            raise writer.Unfit(f"job {start.job_id} is not startable: {why}")
        return job, detail

    def _is_reserved(self, start: d.Start) -> bool:
        """Whether headway keeps a reservation for this job alone."""
        last = self._last
        return last is not None and any(
            each.job_id == start.job_id for each in last.snapshot.reservations.values()
        )

    def _plan_start(self, start: d.Start) -> writer.Plan:
        job, detail = self._startable(start)
        moves = start.job_id in self._moves
        reserved = self._is_reserved(start)
        partition = ""
        if start.tier != "foreground":
            pool = start.pool or job.job.pool
            partition = self.options.background.get(pool, "")
            if not partition:
                raise writer.Unfit(f"job {start.job_id}: no partition takes background jobs of {pool}")
        return writer.start(
            start, detail, start.pool or job.job.pool, reserved=reserved, at_once=moves, partition=partition,
            bound=self._given_up(start, job.job.request.switches),
        )  # fmt: skip

    def _given_up(self, start: d.Start, bound: int) -> int:
        """The job's bound on switches if it starts on more than that, or 0.

        Slurm would let it wait for them: for as long as it said, from its own first attempt on.
        """
        if not bound or self._world is None:
            return 0
        nodes = {node for node, _ in start.placement}
        on = sum(not nodes.isdisjoint(switch.nodes) for switch in self._world.switches)
        return bound if on > bound else 0

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        if isinstance(decision, d.PowerDown | d.PowerUp):
            return self._change_power(decision)
        job_id = getattr(decision, "job_id", "")
        known, detail = self.known(job_id), self.detail(job_id)
        existing = None
        if isinstance(decision, d.Resize) and known is not None and known.job.request.parts:
            return Outcome(False, f"job {job_id} has several components: Slurm shrinks none of them")
        if isinstance(decision, d.Reserve) and self._last is not None:
            existing = self._last.snapshot.reservations.get(decision.reservation.id)
        try:
            plan = writer.plan(
                decision,
                now=now,
                hold_marker=self.options.hold_marker,
                reservation_user=self.options.reservation_user,
                reservation_exists=existing is not None and existing.ours,
                running_nodes=_nodes_of(known.placement) if known is not None else (),
                waits=detail is not None and detail.managed,
                comment=self.as_written(job_id, detail.comment if detail is not None else ""),
                comment_free=detail is None or detail.comment_free or isinstance(decision, d.Release),
            )
        except writer.Unfit as error:
            return Outcome(False, str(error))
        gone = (writer.NO_RESERVATION,) if isinstance(decision, d.Unreserve) else ()
        already = (*writer.ALREADY, *gone)
        return self.remember(plan.noted, job_id, self.run_steps(plan.steps, already=already))

    def _change_power(self, decision: d.PowerDown | d.PowerUp) -> Outcome:
        falls = isinstance(decision, d.PowerDown)
        word = "POWER_DOWN" if falls else "POWER_UP"
        try:
            argv = writer.power(decision.nodes, word)
        except writer.Unfit as error:
            return Outcome(False, str(error))
        if self._actuators.options.dry:
            return self._ask_power(argv)
        saving, last = self._power_saving, self._last.snapshot if self._last is not None else None
        nodes = saving.down(decision.nodes, last) if falls else saving.up(decision.nodes, last)
        if not nodes:
            return Outcome(True)
        outcome = self._ask_power(writer.power(nodes, word))
        if falls and outcome.accepted:
            saving.went(nodes)
        return outcome

    # ------------------------------------------------------------------ the rest

    def check(self) -> list[Check]:
        return [*checks.run(self._client, self.options, self._clock), *self.check_agents()]


def _without(argv: Sequence[str], key: str) -> tuple[str, ...]:
    return tuple(word for word in argv if not word.startswith(key))


def _without_pools(node: NodeDescription, pools: Mapping[str, str]) -> NodeDescription:
    if not pools or not set(pools) & set(node.pools):
        return node
    return msgspec.structs.replace(node, pools=tuple(name for name in node.pools if name not in pools))


def _refuses_reservation(plan: writer.Plan, result: Result | None) -> bool:
    """Whether a pin may have failed because of the job's reservation."""
    reserved = plan.pin is not None and plan.pin.reserved
    return reserved and result is not None and not result.ok and not is_silence(result)


def _seconds_of(text: str) -> float:
    """``300 sec`` -> 300.0; 0.0 for anything else."""
    amount = text.partition(" ")[0]
    return float(amount) if amount.isascii() and amount.isdecimal() else 0.0


def _nodes_of(placement: Placement) -> tuple[str, ...]:
    return tuple(node for node, _ in placement)


def _closed(partition: reader.Partition) -> PoolDescription:
    return replace(partition, open=False).pool()


def _licences(
    shown: Result, elsewhere: Mapping[str, Counter[str]], before: Snapshot | None, notes: set[str]
) -> Mapping[str, int]:
    """How much of each licence is there for our jobs; as it was where Slurm does not say."""
    if not shown.ok:
        notes.add(f"licences stay as they were: {' '.join(shown.argv[:4])}: {shown.complaint()}")
        return before.licences if before is not None else {}
    total, used = reader.read_licences(shown.text)
    if before is None:
        notes.update(too_few(total, used))
    return left_here(total, elsewhere)


def _same_policy(one: SitePolicy, other: SitePolicy | None) -> bool:
    """Whether nothing is otherwise but what was used, which changes all the time."""
    if other is None or one == other:
        return one == other
    unused = [
        tuple(msgspec.structs.replace(a, usage=0.0, processor_minutes=0.0) for a in p.associations)
        for p in (one, other)
    ]
    return unused[0] == unused[1] and msgspec.structs.replace(
        one, associations=(), used={}
    ) == msgspec.structs.replace(other, associations=(), used={})
