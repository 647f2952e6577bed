"""Tiers on a batch system: what the agents on the nodes are told, and what they tell.

No batch system knows tiers. A job that was started in the background is one like any other to it; that its
processes give way is done on the nodes, by agents (:mod:`headway_adapters.node_agent`). The daemon tells each
agent in which tier the jobs on its node are, again and again; an agent that began anew, or was not reached,
knows it after the next round. A swap is over once all agents concerned have put its jobs where they belong;
if an agent cannot, or is silent for ``swap_timeout``, all agents are told the old tiers again and the swap is
refused. A silent agent changes nothing about its jobs: they run on in the tier that they have.

Agents also measure how much of its processors each job uses. That is told about jobs in front, whose use
decides what fits behind them; a job behind uses what is left, which says nothing about what it could use.

Rounds run on threads of their own; all else on the adapter's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field, field_validator

from headway import decisions as d
from headway import events as ev
from headway.adapter import Check, Oddity, Outcome
from headway.adapter.migration import ON_NODES
from headway.errors import Failure
from headway.link import Client, read_key
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

BACKGROUND, FOREGROUND = "background", "foreground"
#: Agents that are asked at once.
_THREADS = 8
#: A use is told again once it has changed by so much.
_WORTH_TELLING = 0.03
_SILENT = "node agents that do not answer"
_UNABLE = "background jobs that an agent cannot put into the background"

Seconds = Annotated[float, Field(gt=0, le=86400)]


class AgentOptions(BaseModel):
    """How agents are reached. All times are seconds."""

    model_config = ConfigDict(extra="forbid")
    #: The site's key: a file that only its owner can read.
    key: Path
    #: Where each node's agent listens; `{node}` is replaced.
    address: str = "{node}:9099"
    #: Between two rounds.
    interval: Seconds = 5.0
    #: For each wait for an agent.
    timeout: Seconds = 5.0
    #: How long a swap may take.
    swap_timeout: Seconds = 30.0

    @field_validator("address")
    @classmethod
    def _names_the_node(cls, value: str) -> str:
        if not value.startswith("unix:") and not value.rpartition(":")[2].isdecimal():
            raise ValueError("unix:PATH or HOST:PORT, such as {node}:9099")
        return value


@dataclass
class _Swap:
    """A swap that is under way."""

    decision: d.SwapTiers
    #: Job -> the tier that it had.
    before: dict[str, str]
    #: Job and node whose agent has not confirmed it.
    open: set[tuple[str, str]]
    #: On the monotonic clock.
    deadline: float


@dataclass
class _Node:
    """What is known of one node's agent."""

    client: Client
    #: On the monotonic clock.
    next_round: float = 0.0
    asked: Future[Mapping[str, Any]] | None = None
    #: The wishes of the round that is under way.
    wishes: dict[str, str] = field(default_factory=dict)
    silent: str = ""


class Agents:
    """The tiers of all jobs, and the agents of all nodes."""

    def __init__(
        self, options: AgentOptions | None, *, poke: Callable[[], None], log: Any, clock: Callable[[], float]
    ) -> None:
        """``options``: None for a site without agents. Raises :class:`headway.errors.UserError` for a
        key that is none."""
        self.options = options
        self._poke = poke
        self._log = log
        self._clock = clock
        self._key = read_key(options.key) if options is not None else b""
        #: Job -> its tier, where that is not what the batch system shows.
        self._tiers: dict[str, str] = {}
        self._nodes: dict[str, _Node] = {}
        self._jobs: dict[str, SnapshotJob] = {}
        self._swaps: list[_Swap] = []
        #: Job -> node -> processors in use there; what was told of it last.
        self._uses: dict[str, dict[str, float]] = {}
        self._told_uses: dict[str, float] = {}
        self._unable: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(_THREADS, "agents") if options is not None else None

    # ------------------------------------------------------------------ tiers

    def adopt(self, tiers: Mapping[str, str]) -> None:
        """The tiers that an earlier run's journal says."""
        self._tiers.update(tiers)

    def start(self, start: d.Start) -> None:
        """A start was accepted: the job will be in that tier."""
        self._tiers[start.job_id] = start.tier

    def show(self, snapshot: Snapshot) -> Snapshot:
        """A look, with the tiers that only we know."""
        shown = dict(self._tiers)
        for swap in self._swaps:
            shown.update(swap.before)
        changed = {
            key: msgspec.structs.replace(snapshot.jobs[key], tier=tier)
            for key, tier in shown.items()
            if key in snapshot.jobs and snapshot.jobs[key].tier != tier
        }
        return replace(snapshot, jobs={**snapshot.jobs, **changed}) if changed else snapshot

    def looked(self, snapshot: Snapshot, starting: Iterable[str]) -> None:
        """Take in a look: which job is where. Jobs that run no more are forgotten, except ``starting``."""
        self._jobs = {key: job for key, job in snapshot.jobs.items() if job.state in ON_NODES}
        kept = {*self._jobs, *starting}
        for known in (self._tiers, self._uses, self._told_uses, self._unable):
            for key in [key for key in known if key not in kept]:
                del known[key]

    def tier_of(self, job_id: str) -> str:
        """The tier that a job is in, or starts in."""
        job = self._jobs.get(job_id)
        return self._tiers.get(job_id) or (job.tier if job is not None else FOREGROUND)

    def swap(self, decision: d.SwapTiers) -> Outcome:
        """Begin a swap; what becomes of it is told."""
        wanted = {decision.job_id: FOREGROUND}
        if decision.other_job_id:
            wanted[decision.other_job_id] = BACKGROUND
        if any(one.decision == decision for one in self._swaps):
            return Outcome(True, "the change is under way already")
        busy = {key for one in self._swaps for key in one.before}
        for key in wanted:
            if key not in self._jobs:
                return Outcome(False, f"job {key} does not run")
            if key in busy:
                return Outcome(False, f"job {key} is being swapped already")
        before = {key: self.tier_of(key) for key in wanted}
        if before == wanted:
            return Outcome(True, "the job is in that tier already")
        assert self.options is not None
        everywhere = {(key, node) for key in wanted for node, _ in self._jobs[key].placement}
        deadline = time.monotonic() + self.options.swap_timeout
        self._swaps.append(_Swap(decision, before, everywhere, deadline))
        self._tiers.update(wanted)
        for _, node in everywhere:
            self._node(node).next_round = 0.0
        self._poke()
        return Outcome(True)

    # ------------------------------------------------------------------ rounds

    def advance(self) -> tuple[list[ev.Event], bool]:
        """Ask agents that are due, take in the answers: what is to be told, and whether tiers changed."""
        if self.options is None:
            return [], False
        told: list[ev.Event] = []
        changed = False
        now = time.monotonic()
        for name in {node for job in self._jobs.values() for node, _ in job.placement}:
            self._node(name)
        for name, node in self._nodes.items():
            if node.asked is not None and node.asked.done():
                self._answered(name, node, told)
            if node.asked is None and now >= node.next_round:
                self._ask(name, node)
        for swap in list(self._swaps):
            gone = {(key, node) for key, node in swap.open if key not in self._jobs}
            swap.open -= gone
            if not swap.open:
                self._swaps.remove(swap)
                self._log.info("jobs changed their tiers", front=swap.decision.job_id,
                               behind=swap.decision.other_job_id)  # fmt: skip
                changed = True
            elif now >= swap.deadline:
                missing = ", ".join(sorted({node for _, node in swap.open}))
                self._undo(swap, f"the agent of {missing} did not confirm the change in time", told)
                changed = True
        return told, changed

    @property
    def due(self) -> float | None:
        """Seconds until an agent is to be asked; None: no agent is."""
        times = [node.next_round for node in self._nodes.values() if node.asked is None]
        times += [swap.deadline for swap in self._swaps]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _node(self, name: str) -> _Node:
        node = self._nodes.get(name)
        if node is None:
            assert self.options is not None
            address = self.options.address.replace("{node}", name)
            node = self._nodes[name] = _Node(Client(address, self._key, self.options.timeout))
        return node

    def _ask(self, name: str, node: _Node) -> None:
        assert self.options is not None and self._pool is not None
        here = [key for key, job in self._jobs.items() if any(at == name for at, _ in job.placement)]
        # Foreground is said only of a job that was in another tier: of other jobs it is no news.
        node.wishes = {
            key: self.tier_of(key) for key in here
            if key in self._tiers or self.tier_of(key) == BACKGROUND
        }  # fmt: skip
        wishes = {key: {"tier": tier, "user": self._jobs[key].job.user} for key, tier in node.wishes.items()}
        node.next_round = time.monotonic() + self.options.interval
        if not here and not wishes:
            return
        node.asked = self._pool.submit(node.client.ask, {"wishes": wishes})
        node.asked.add_done_callback(lambda _: self._poke())

    def _answered(self, name: str, node: _Node, told: list[ev.Event]) -> None:
        asked, node.asked = node.asked, None
        assert asked is not None
        try:
            answer = asked.result()
            if "error" in answer:
                raise Failure(f"agent of {name}: {answer['error']}")
            reports = {alias: one for one in answer["jobs"] for alias in one["names"]}
        except (Failure, KeyError, TypeError) as error:
            if not node.silent:
                self._log.warning("a node's agent does not answer; its jobs stay as they are", node=name,
                                  error=str(error))  # fmt: skip
            node.silent = str(error)
            return
        node.silent = ""
        for key, tier in node.wishes.items():
            report = reports.get(key) or {}
            self._heard(name, key, tier, str(report.get("problem") or ""), told)
        for key in list(self._jobs):
            report = reports.get(key) or {}
            if report.get("use") is not None:
                self._measured(name, key, float(report["use"]), told)

    def _heard(self, node: str, key: str, tier: str, problem: str, told: list[ev.Event]) -> None:
        swap = next((one for one in self._swaps if (key, node) in one.open), None)
        if swap is not None and self._tiers.get(key) == tier:
            if problem:
                self._undo(swap, f"job {key} on {node}: {problem}", told)
            else:
                swap.open.discard((key, node))
        if not problem:
            self._unable.pop(key, None)
        elif tier == BACKGROUND and self._unable.get(key) != problem:
            self._unable[key] = problem
            self._log.warning("a background job has the priority of a foreground job", job=key, node=node,
                              error=problem)  # fmt: skip

    def _undo(self, swap: _Swap, why: str, told: list[ev.Event]) -> None:
        if swap not in self._swaps:
            return
        self._swaps.remove(swap)
        self._tiers.update({key: tier for key, tier in swap.before.items() if key in self._jobs})
        for key in swap.before:
            for node, _ in self._jobs[key].placement if key in self._jobs else ():
                self._node(node).next_round = 0.0
        self._log.warning("jobs did not change their tiers", job=swap.decision.job_id, error=why)
        told.append(ev.DecisionFailed(self._clock(), swap.decision, why))

    def _measured(self, node: str, key: str, use: float, told: list[ev.Event]) -> None:
        job = self._jobs[key]
        if self.tier_of(key) != FOREGROUND or job.state != "running":
            return
        uses = self._uses.setdefault(key, {})
        uses[node] = use
        count = sum(number for at, number in job.placement if at in uses)
        if not count or len(uses) < len({at for at, _ in job.placement}):
            return
        share = min(1.0, max(0.001, sum(uses.values()) / count))
        if abs(share - self._told_uses.get(key, -1.0)) >= _WORTH_TELLING:
            self._told_uses[key] = share
            told.append(ev.JobUsageMeasured(self._clock(), key, round(share, 3)))

    # ------------------------------------------------------------------ the rest

    def oddities(self, cluster: str) -> list[Oddity]:
        silent = sorted(name for name, node in list(self._nodes.items()) if node.silent)
        found = []
        if silent:
            found.append(Oddity(cluster, _SILENT, len(silent), self._clock(), ", ".join(silent[:5])))
        if self._unable:
            jobs = ", ".join(sorted(self._unable)[:5])
            found.append(Oddity(cluster, _UNABLE, len(self._unable), self._clock(), jobs))
        return found

    def check(self, nodes: Iterable[str]) -> list[Check]:
        """Whether the agents of these nodes answer."""
        if self.options is None:
            return []
        silent: dict[str, str] = {}
        names = sorted(nodes)
        assert self._pool is not None
        asked = {name: self._pool.submit(self._node(name).client.ask, {}) for name in names}
        for name, future in asked.items():
            try:
                future.result()
            except Failure as error:
                silent[name] = str(error)
        if not silent:
            return [Check("node agents", True, f"all {len(names)} node agents answer")]
        first = next(iter(silent))
        said = f"{len(silent)} of {len(names)} node agents do not answer, such as {first}: {silent[first]}"
        return [Check("node agents", False, said, "headway node-agent serve on each node, with the same key")]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        for node in self._nodes.values():
            node.client.close()
